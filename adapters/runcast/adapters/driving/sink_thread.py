"""Events to a sink that may be slow, broken, or a coroutine function, without ever blocking the sender.

`Delivery` has a thread of its own. `send` queues an event and returns; the thread calls the sink, one event at a time, in
order. A coroutine sink runs on the loop that was running when the first event of a burst was sent, else on the thread's
own. If the box is full, an event is lost, and the sender drops and counts the rest of that run.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable

from ag_ui.core import Event

from runcast.adapters.driving.event_box import EventBox

Sink = Callable[[Event], Awaitable[None] | None]
logger = logging.getLogger(__name__)
IDLE = 0.2  # seconds the thread waits for more before it ends; a program that exits waits as long at most


class Delivery:
    """One sink, any number of senders, counted in `stats`."""

    def __init__(self, sink: Sink, *, limit: int = 10_000) -> None:
        self._sink = sink
        self._box = EventBox(limit)
        self._lock = threading.Condition()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # where a coroutine sink runs
        self._busy = False  # the sink is handling an event
        self.delivered = 0
        self.failed = 0  # events the sink raised for
        self.dropped = 0  # events of runs that were cut off

    def send(self, event: Event) -> bool:
        """Queue an event; False if there was no room for it. Never waits."""
        with self._lock:
            if not self._box.put(event):
                self.dropped += 1
                return False
            if self._thread is None:
                self._loop = _running_loop() or self._loop
                self._thread = threading.Thread(target=self._work, name="runcast-delivery", daemon=False)
                self._thread.start()
            self._lock.notify_all()
        return True

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until the sink has everything; False if time ran out. Not for the loop a sink runs on."""
        with self._lock:
            return self._lock.wait_for(lambda: not len(self._box) and not self._busy, seconds)

    async def aflush(self, seconds: float | None = None) -> bool:
        """The same, without blocking the loop of a coroutine sink."""
        return await asyncio.to_thread(self.flush, seconds)

    def stats(self) -> dict[str, int]:
        """How many events were delivered, failed or dropped, and the counters of the box."""
        counts = {"delivered": self.delivered, "failed": self.failed, "dropped": self.dropped}
        return {**self._box.stats(), **counts}

    def _work(self) -> None:
        own: asyncio.AbstractEventLoop | None = None
        try:
            while (event := self._next()) is not None:
                try:
                    own = self._call_sink(event, own)
                    self.delivered += 1
                except Exception:
                    self.failed += 1
                    logger.warning("a sink failed on %s", event.type.value, exc_info=True)
        finally:
            if own is not None:
                own.close()

    def _next(self) -> Event | None:
        """Wait for an event; None if none came for a while, which ends the thread."""
        with self._lock:
            self._busy = False
            self._lock.notify_all()
            if not len(self._box):
                self._lock.wait(IDLE)
            event = self._box.take()
            self._busy = event is not None
            if event is None:
                self._thread = None
            return event

    def _call_sink(
        self, event: Event, own: asyncio.AbstractEventLoop | None
    ) -> asyncio.AbstractEventLoop | None:
        result = self._sink(event)
        if not inspect.isawaitable(result):
            return own
        if self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(_awaited(result), self._loop).result()
            return own
        own = own or asyncio.new_event_loop()
        own.run_until_complete(_awaited(result))
        return own


async def _awaited(result: Awaitable[None]) -> None:
    await result


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
