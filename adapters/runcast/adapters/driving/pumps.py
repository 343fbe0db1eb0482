"""The active runs of an adapter that can only cancel: a pump for each run id. Does not know what runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ag_ui.core import Event

from runcast.adapters.driving.pump import Begun, Pump
from runcast.adapters.errors import UnknownRun


class Pumps:
    """Starts and cancels runs."""

    def __init__(self) -> None:
        self.active: dict[str, Pump[Any]] = {}  # by run id

    def run(
        self, run_id: str, begin: Callable[[], Awaitable[Begun[Any]]], *, limit: int = 1_000
    ) -> AsyncIterator[Event]:
        """The events of a run; the arguments are those of `Pump`."""

        def forget() -> None:
            if self.active.get(run_id) is pump:
                del self.active[run_id]

        pump = self.active[run_id] = Pump(begin, limit=limit, closed=forget)
        return pump.events()

    def cancel(self, run_id: str) -> None:
        """Cancel a run. Raises `UnknownRun` if it is not active."""
        pump = self.active.get(run_id)
        if pump is None:
            raise UnknownRun(f"no run {run_id!r} is active here")
        pump.cancel()
