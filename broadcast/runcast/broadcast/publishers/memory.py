"""A target in this process: for tests, notebooks, and hosts that forward envelopes themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from runcast.broadcast.budget import HUB, Budget
from runcast.broadcast.envelope import Envelope

SCHEMES = ("memory",)


class MemoryPublisher:
    """Keeps the newest envelopes of every channel; what was delivered twice is kept once."""

    name = "memory"

    def __init__(self, *, keep: int = 10_000, budget: Budget = HUB) -> None:
        self.budget = budget
        self._keep = keep  # per channel
        self._channels: dict[str, list[Envelope]] = defaultdict(list)

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Keep them."""
        kept = self._channels[channel]
        for envelope in envelopes:
            place = _place(envelope)
            if not kept or place > _place(kept[-1]):
                kept.append(envelope)
        del kept[: -self._keep]

    def envelopes(self, channel: str) -> list[Envelope]:
        """What a watcher of this channel would have received, oldest first."""
        return list(self._channels.get(channel, ()))

    async def aclose(self) -> None:
        """Nothing to let go of."""


def _place(envelope: Envelope) -> tuple[int, int]:
    return envelope.seq, 0 if envelope.part is None else envelope.part[0]


def connect(url: str) -> MemoryPublisher:
    """`memory://`"""
    return MemoryPublisher()
