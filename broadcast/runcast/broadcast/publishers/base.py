"""The interface of a target of envelopes.

A new target is one file beside this one with a class that fits `Publisher`, a tuple `SCHEMES` and a function
`connect(url)`. `open_publisher` and the contract tests find it by looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from runcast.broadcast.envelopes.budget import Budget
from runcast.broadcast.envelopes.envelope import Envelope


@runtime_checkable
class Publisher(Protocol):
    """Sends one channel's envelopes, in order, to the server that its watchers use."""

    name: str  # for stats and logs
    budget: Budget  # the largest finished message the target takes

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Deliver these in order, or raise `PublishError`. May be called again with envelopes it delivered before.

        The error's `delivered` names those that arrived, so that only the others are sent again.
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@runtime_checkable
class Erasing(Protocol):
    """A publisher that remembers a channel's envelopes, and can forget them."""

    async def erase(self, channel: str) -> None:
        """Drop all that is remembered of a channel, and send its watchers away; harmless to repeat."""
        ...


@runtime_checkable
class Probed(Protocol):
    """A publisher that `runcast doctor` can try."""

    async def probe(self) -> str:
        """Check address and settings at the target without publishing; a sentence about it, or `PublishError`."""
        ...
