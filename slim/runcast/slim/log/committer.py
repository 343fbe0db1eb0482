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
from functools import partial

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
        self._next: asyncio.Handle | None = None  # starts the next write, at once or after a pause
        self._pause = 0.0  # before the next write
        self._busy: asyncio.TimerHandle | None = None  # while a write is under way: when it counts as slow
        self._written = 0.0  # when the last write ended, by the loop's clock
        self._writes: set[asyncio.Task[None]] = set()

    def gather(self, send: Callable[[], object]) -> None:
        """Call `send` when the next write starts; it then calls `write`."""
        self._gathering[send] = None
        if self._busy is None and self._next is None:
            self._plan(max(0.0, self._written + SHORTEST - asyncio.get_running_loop().time()))

    def write(self, batch: Batch, answered: Callable[[Answer], None]) -> None:
        """Write a batch as soon as possible, and pass on the answer."""
        self._waiting.append((batch, answered))
        if self._busy is not None:
            return
        if isinstance(self._next, asyncio.TimerHandle):
            self._next.cancel()  # the pause
            self._next = None
        if self._next is None:
            self._plan(self._pause)

    def _plan(self, pause: float) -> None:
        """Start the next write, after a pause if nobody waits for it."""
        loop, self._pause = asyncio.get_running_loop(), pause
        rests = pause and not self._waiting
        self._next = loop.call_later(pause, self._begin) if rests else loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._busy = asyncio.get_running_loop().call_later(SLOW, self._go_on)
        gathered, self._gathering = self._gathering, {}
        try:
            for send in gathered:
                send()
        finally:
            self._next = None
            lot, self._waiting = self._waiting, []
            if lot:
                write = asyncio.create_task(self._commit(lot), name="runcast-write")
                self._writes.add(write)
                write.add_done_callback(partial(self._over, self._busy))
            else:
                self._go_on()

    def _over(self, busy: asyncio.TimerHandle, write: asyncio.Task[None]) -> None:
        self._writes.discard(write)
        if busy is self._busy:  # else it was slow, and others have begun meanwhile
            self._written = asyncio.get_running_loop().time()
            self._go_on()

    def _go_on(self) -> None:
        """What has gathered waits no longer for the write under way, which has ended or is slow."""
        if self._busy is not None:
            self._busy.cancel()
            self._busy = None
        if self._gathering or self._waiting:
            self._plan(min(self._longest, max(SHORTEST, 2 * self._pause)))
        else:
            self._pause = 0.0

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
