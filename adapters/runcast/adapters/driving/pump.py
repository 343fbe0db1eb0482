"""A driver for readers that may be slow: `translate`, with a bounded buffer and an immediate stop.

A reader that keeps up is served straight from the source, at no extra cost. Frameworks do not wait for a slow one
(LangGraph queues without a bound). So once a reader is found busy several times in a row, a task reads the source into a
bounded box (`EventBox`), and the reader takes events from there. As with `translate`, the emitted stream is complete
whatever happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Generic

from ag_ui.core import Event

from runcast.adapters.driving.event_box import EventBox
from runcast.adapters.driving.fault_log import log_failure
from runcast.adapters.translator import Part, Translator, ending

TICK = 0.02  # seconds between two looks at the reader
PATIENCE = 3  # times in a row that a reader is found busy before its run gets a box

Begun = tuple[AsyncIterator[Part], Translator[Part]]


class Pump(Generic[Part]):
    """One run. `begin` makes the source and its translator; `closed` is called when the run is over."""

    def __init__(
        self,
        begin: Callable[[], Awaitable[Begun[Part]]],
        *,
        limit: int = 1_000,
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        self.box = EventBox(limit)
        self._begin = begin
        self._closed = closed
        self._stopped = False
        self._reader: asyncio.Task[object] | None = None  # the task that waits for the source, while it waits
        self._cancelling = 0  # cancellations of the reader by others
        self._cancelled = 0  # and by `cancel`
        self._filler: asyncio.Task[None] | None = None  # reads ahead of a slow reader
        self._found_busy = 0
        self._watch: asyncio.TimerHandle | None = None
        self._ready = asyncio.Event()  # something waits in the box, or the source is over
        self._room = asyncio.Event()  # the reader took something, or left
        self._over = False
        self._leaving = False  # the reader ends the filler
        self._left = False

    def cancel(self) -> None:
        """Stop the source at once. The reader gets the closing events and a normal end."""
        self._stopped = True
        if self._filler is not None:
            self._filler.cancel()
        elif self._reader is not None:
            self._cancelling = self._reader.cancelling() - self._cancelled
            self._cancelled += 1
            self._reader.cancel()

    async def events(self) -> AsyncGenerator[Event, None]:
        """The run, once. Close it to stop the source."""
        source: AsyncIterator[Part] | None = None
        passing: BaseException | None = None
        try:
            source, translator = await self._begin()
            self._look(source, translator)
            for event in translator.start():
                yield event
            pull, feed, current_task = source.__anext__, translator.feed, asyncio.current_task
            more = True
            while more and self._filler is None:
                try:
                    if self._stopped:
                        events, more = translator.cancel(), False
                    else:
                        self._reader = current_task()
                        events = feed(await pull())
                except BaseException as error:  # noqa: BLE001  becomes the run's end; a cancellation is raised after it
                    events, more = self._last(error, translator), False
                    passing = error if self._passes(error) else None
                self._reader = None
                for event in events:
                    yield event
            if passing is not None:
                raise passing
            if more:
                async for event in self._from_box():
                    yield event
        finally:
            await self._leave(source)

    def _passes(self, error: BaseException) -> bool:
        """Whether the reader itself was cancelled, and not by `cancel`."""
        others = not self._stopped
        if self._reader is not None and self._cancelled:
            for _ in range(self._cancelled):
                self._reader.uncancel()
            others = self._reader.cancelling() > self._cancelling
        return others and not isinstance(error, Exception)

    def _look(self, source: AsyncIterator[Part], translator: Translator[Part]) -> None:
        """Check the reader regularly; start to read ahead of one that is always busy."""
        loop = asyncio.get_running_loop()
        self._found_busy = self._found_busy + 1 if self._reader is None else 0
        if self._found_busy <= PATIENCE:
            self._watch = loop.call_later(TICK, self._look, source, translator)
        else:
            self._filler = loop.create_task(self._fill(source, translator))

    async def _from_box(self) -> AsyncIterator[Event]:
        while True:
            while (event := self.box.take()) is not None:
                self._room.set()
                yield event
            if self._over:
                return
            self._ready.clear()
            try:
                await self._ready.wait()
            except asyncio.CancelledError:
                await self._end_filler()
                while (event := self.box.take()) is not None:
                    yield event
                raise

    async def _fill(self, source: AsyncIterator[Part], translator: Translator[Part]) -> None:
        more = True
        try:
            while more:
                try:
                    events = translator.feed(await source.__anext__())
                except BaseException as error:  # noqa: BLE001  becomes the run's end
                    events, more = self._last(error, translator), False
                if not await self._put(events) and more:
                    await self._put(translator.cancel())
                    more = False
        finally:
            self._over = True
            self._ready.set()

    async def _put(self, events: list[Event]) -> bool:
        """Put events into the box, however long it takes; False if the run was stopped meanwhile (they still go out).

        A cancellation of another origin passes: a loop that closes cannot wait for a reader that never comes.
        """
        going = True
        for event in events:
            while not self._left and not self.box.put(event):
                self._room.clear()
                try:
                    await self._room.wait()
                except asyncio.CancelledError:
                    if not (self._stopped or self._leaving):
                        raise
                    going = False
            self._ready.set()
        return going

    async def _end_filler(self) -> None:
        if self._filler is not None:
            self._leaving = True
            self._filler.cancel()
            self._room.set()
            await asyncio.wait({self._filler})

    async def _leave(self, source: AsyncIterator[Part] | None) -> None:
        self._left = True
        if self._watch is not None:
            self._watch.cancel()
        try:
            await self._end_filler()
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._closed()

    def _last(self, error: BaseException, translator: Translator[Part]) -> list[Event]:
        """The last events of a run, after its source ended or failed; what a stop makes it raise is the stop."""
        if isinstance(error, StopAsyncIteration):
            return ending(translator)
        log_failure(error)
        failed = isinstance(error, Exception) and not self._stopped
        return translator.fail(error) if failed else translator.cancel()
