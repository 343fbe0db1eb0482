"""Carries runs outwards: what is durable in the log goes to the broadcaster and the hub, thread by thread, in order.

Knows the log and who broadcasts; does not know adapters or HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from runcast.slim import ReaderTooSlow, SlimError

if TYPE_CHECKING:
    from runcast.app.run import Run
    from runcast.broadcast import Broadcaster
    from runcast.slim import Entry, RunLog

PATIENCE = 5.0  # seconds that a run's last entries may take to become durable after it ended

logger = logging.getLogger("runcast.app")


class Followers:
    """One follower a thread that has an active run; the run before it is told to its end first."""

    def __init__(self, log: RunLog, targets: Sequence[Broadcaster]) -> None:
        self._log = log
        self._targets = targets
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by thread

    def __len__(self) -> int:
        return len(self._tasks)

    def follow(self, run: Run) -> None:
        """Carry this run's entries to everybody who broadcasts, once they are durable."""
        if not self._targets:
            return
        before = self._tasks.get(run.thread_id)
        task = asyncio.create_task(self._carry(run, before), name=f"runcast follow {run.thread_id}")
        self._tasks[run.thread_id] = task
        task.add_done_callback(lambda done: self._followed(run.thread_id, done))

    def _followed(self, thread_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(thread_id) is task:
            del self._tasks[thread_id]

    async def _carry(self, run: Run, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        try:
            async with aclosing(entries_of(run, self._log)) as entries:
                async for entry in entries:
                    for target in self._targets:
                        target.put(entry)
        except SlimError as error:
            logger.warning("thread %s is not broadcast any further: %s", run.thread_id, error)

    async def tail(self, thread_id: str) -> None:
        """Carry all of a thread, whoever writes it, for as long as this is awaited."""
        after = 0
        while True:
            try:
                async with aclosing(self._log.attach(thread_id, after)) as entries:
                    async for entry in entries:
                        after = entry.seq
                        for target in self._targets:
                            target.put(entry)
                return
            except ReaderTooSlow:
                continue

    async def mirror(self, own: Callable[[], Collection[str]], pause: float = 0.3) -> None:
        """Carry whatever other processes write to this log, for as long as this is awaited."""
        tails: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                active = await self._written()
                for thread_id in active - tails.keys() - set(own()):
                    tails[thread_id] = asyncio.create_task(self.tail(thread_id))
                for thread_id in [each for each in tails if each not in active]:
                    await asyncio.sleep(pause)  # its last entries are on their way
                    tails.pop(thread_id).cancel()
                await asyncio.sleep(pause)
        finally:
            for task in tails.values():
                task.cancel()

    async def _written(self) -> set[str]:
        """Threads that somebody holds, as far as the store answers."""
        found: set[str] = set()
        after = ""
        try:
            while page := await self._log.threads(limit=1_000, after=after):
                found |= {each.thread_id for each in page if each.owner is not None}
                after = page[-1].thread_id
        except SlimError as error:
            logger.warning("the log cannot be looked through: %s", error)
        return found

    async def close(self, patience: float = 2.0) -> None:
        """Wait until what is there was handed over, as long as it is reasonable."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=patience)
        for task in list(self._tasks.values()):
            task.cancel()


async def entries_of(run: Run, log: RunLog) -> AsyncGenerator[Entry]:
    """A run's entries as they become durable, from its first to its last, whenever that is and however it ends."""
    after = run.first_seq - 1
    over = asyncio.create_task(run.over())
    try:
        while not _is_told(run, after):
            try:
                async with aclosing(
                    _until(run, over, log.attach(run.thread_id, after, epoch=run.epoch))
                ) as found:
                    async for entry in found:
                        after = entry.seq
                        yield entry
                return
            except ReaderTooSlow:  # whoever takes them is slow; the store has the rest
                continue
    finally:
        over.cancel()


async def _until(run: Run, over: asyncio.Task[None], entries: AsyncGenerator[Entry]) -> AsyncGenerator[Entry]:
    coming: asyncio.Task[Entry | None] | None = None
    after = run.first_seq - 1
    async with aclosing(entries):
        try:
            while not _is_told(run, after):
                coming = coming or asyncio.create_task(_next(entries))
                # A run that is cut short ends without an entry that would wake us.
                both: set[asyncio.Task[Any]] = {coming, over}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done() and not _is_told(run, after):
                    await asyncio.wait({coming}, timeout=PATIENCE)
                if not coming.done():
                    return
                entry, coming = coming.result(), None
                if entry is None:
                    return
                after = entry.seq
                yield entry
        finally:
            if coming is not None:  # a generator that is asked cannot be closed
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)


async def _next(entries: AsyncGenerator[Entry]) -> Entry | None:
    return await anext(entries, None)


def _is_told(run: Run, after: int) -> bool:
    return not run.active and after >= run.last_seq
