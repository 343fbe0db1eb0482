"""Group commit: one write at a time carries the batches of all threads of a log.

Knows when to write; does not know the content of a batch. An idle store is written to at once, but no sooner than a
millisecond after the last write. While a write is under way, new events gather. When a write ends and more has gathered,
the store is loaded: the next write starts after a pause, which doubles from one to the next up to `flush_ms`, so that
fewer and larger writes carry the load. A caller that waits for a write ends the pause. A batch that the store will not
write with others is written by itself, and a slow write holds up no other thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runcast.slim.errors import LineageError, StoreError
from runcast.slim.stores.base import Events
from runcast.slim.stores.records import Answer, Batch

SHORTEST = 0.001  # seconds of the first pause
SLOW = 0.1  # seconds after which the next write no longer waits for one that is under way
BROKEN_OFF = "the write was broken off before the store answered: flush to try again"

Lot = list[tuple[Batch, Callable[[Answer], None]]]


class Committer:
    """Writes the batches of one log."""

    def __init__(self, store: Events, flush_ms: int) -> None:
        self._store = store
        self._longest = flush_ms / 1000
        self._gathering: dict[Callable[[], object], None] = {}  # called when the next write starts
        self._waiting: Lot = []
        self._pause: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._written = 0.0  # when the last write ended, by the loop's clock
        self._writes: set[asyncio.Task[None]] = set()

    def gather(self, send: Callable[[], object]) -> None:
        """Call `send` when the next write starts; it then calls `write`."""
        self._gathering[send] = None
        self._start()

    def write(self, batch: Batch, answered: Callable[[Answer], None]) -> None:
        """Write a batch as soon as possible, and pass on the answer."""
        self._waiting.append((batch, answered))
        if self._pause is not None:
            _end(self._pause)
        self._start()

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="runcast-commit")

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        pause = max(0.0, self._written + SHORTEST - loop.time())
        try:
            while self._gathering or self._waiting:
                if pause and not self._waiting:
                    await self._rest(pause)
                gathered, self._gathering = self._gathering, {}
                for send in gathered:
                    send()
                lot, self._waiting = self._waiting, []
                if lot:
                    await self._write(lot)
                    self._written = loop.time()
                loaded = self._gathering or self._waiting
                pause = min(self._longest, max(SHORTEST, 2 * pause)) if loaded else 0.0
        finally:
            self._task = None

    async def _rest(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._pause = pause = loop.create_future()
        timer = loop.call_later(seconds, _end, pause)
        await pause
        timer.cancel()

    async def _write(self, lot: Lot) -> None:
        write = asyncio.create_task(self._commit(lot), name="runcast-write")
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)
        await asyncio.wait([write], timeout=SLOW)

    async def _commit(self, lot: Lot) -> None:
        alone = lot if len(lot) == 1 else await self._append_all(lot)
        if len(alone) == 1:
            await self._append(*alone[0])
        elif alone:
            await asyncio.gather(*(self._append(*each) for each in alone))

    async def _append_all(self, lot: Lot) -> Lot:
        """Write batches together; returns those that have to be appended alone."""
        answers: list[Answer | None] = [StoreError(BROKEN_OFF)] * len(lot)
        try:
            answers = [*await self._store.append_all([batch for batch, _ in lot])]
        except StoreError as error:
            answers = [error] * len(lot)
        finally:
            for (_, answered), answer in zip(lot, answers, strict=True):
                if answer is not None:
                    answered(answer)
        return [each for each, answer in zip(lot, answers, strict=True) if answer is None]

    async def _append(self, batch: Batch, answered: Callable[[Answer], None]) -> None:
        answer: Answer = StoreError(BROKEN_OFF)
        try:
            answer = await self._store.append(batch)
        except (StoreError, LineageError) as error:
            answer = error
        finally:
            answered(answer)


def _end(pause: asyncio.Future[None]) -> None:
    if not pause.done():
        pause.set_result(None)
