"""Group commit: one write at a time carries the batches of all threads of a log.

Knows when to write; does not know the content of a batch. An idle store is written to at once, but no sooner than a
millisecond after the last write; five where no reader of this process waits for the entries, so that a short run is one
write after its start. While a write is under way, new events gather. When a write ends and more has gathered,
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

SHORTEST = 0.001  # seconds from one write to the next, which double under load
UNREAD = 0.005  # the same for entries that no reader of this process waits for
SLOW = 0.1  # seconds after which the next write no longer waits for one that is under way
BROKEN_OFF = "the write was broken off before the store answered: flush to try again"

Lot = list[tuple[Batch, Callable[[Answer], None]]]


class Committer:
    """Writes the batches of one log."""

    def __init__(self, store: Events, flush_ms: int) -> None:
        self._store = store
        self._longest = flush_ms / 1000
        self._gathering: dict[
            Callable[[], object], float
        ] = {}  # called when the next write starts, and their rest
        self._waiting: Lot = []
        self._next: asyncio.Handle | None = None  # starts the next write, at once or after a pause
        self._load = 0.0  # seconds of the pause of a loaded store
        self._busy: asyncio.TimerHandle | None = None  # while a write is under way: when it counts as slow
        self._written = 0.0  # when the last write ended, by the loop's clock
        self._writes: set[asyncio.Task[None]] = set()

    def gather(self, send: Callable[[], object], *, read: bool) -> None:
        """Call `send` when the next write starts; it then calls `write`. `read`: this process reads what it sends."""
        rest = SHORTEST if read else max(SHORTEST, min(UNREAD, self._longest))
        if rest >= self._gathering.get(send, rest + 1):
            return
        self._gathering[send] = rest
        if self._busy is None and (self._next is None or isinstance(self._next, asyncio.TimerHandle)):
            self._plan()

    def write(self, batch: Batch, answered: Callable[[Answer], None]) -> None:
        """Write a batch as soon as possible, and pass on the answer."""
        self._waiting.append((batch, answered))
        if self._busy is None and (self._next is None or isinstance(self._next, asyncio.TimerHandle)):
            self._plan()

    def _plan(self) -> None:
        """Start the next write, after a pause if no caller waits for it."""
        loop = asyncio.get_running_loop()
        if self._next is not None:
            self._next.cancel()
        pause = 0.0
        if not self._waiting:
            pause = self._written + max(self._load, min(self._gathering.values())) - loop.time()
        self._next = loop.call_later(pause, self._begin) if pause > 0 else loop.call_soon(self._begin)

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
            self._go_on()

    def _go_on(self) -> None:
        """What has gathered waits no longer for the write under way, which has ended or is slow."""
        if self._busy is not None:
            self._busy.cancel()
            self._busy = None
        self._written = asyncio.get_running_loop().time()
        if self._gathering or self._waiting:
            self._load = min(self._longest, max(SHORTEST, 2 * self._load))
            self._plan()
        else:
            self._load = 0.0

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
