"""What a target of envelopes must be able to do.

A new target is one file beside this one with a class that fits `Publisher`; the contract tests find it by looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from runcast.broadcast.budget import Budget
from runcast.broadcast.envelope import Envelope


@runtime_checkable
class Publisher(Protocol):
    """Takes one channel's envelopes, in order, to where its watchers are."""

    name: str  # for stats and logs
    budget: Budget  # the largest finished message the target takes

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Deliver these, in order, or raise `PublishError`. May be called again with what it delivered before."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
