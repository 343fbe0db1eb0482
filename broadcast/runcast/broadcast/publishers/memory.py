"""A target in this process: for tests, notebooks, and hosts that forward envelopes by other means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from runcast.broadcast.envelopes.budget import HUB, Budget
from runcast.broadcast.envelopes.envelope import Envelope

SCHEMES = ("memory",)


class MemoryPublisher:
    """Keeps the newest envelopes of every channel; an envelope that arrives twice is kept once."""

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
        """The envelopes that a watcher of this channel would have received, oldest first."""
        return list(self._channels.get(channel, ()))

    async def probe(self) -> str:
        """There is nothing to check."""
        return "envelopes stay in this process"

    async def aclose(self) -> None:
        """There is nothing to close."""


def _place(envelope: Envelope) -> tuple[int, int]:
    return envelope.seq, 0 if envelope.part is None else envelope.part[0]


def connect(url: str) -> MemoryPublisher:
    """`memory://`"""
    return MemoryPublisher()
