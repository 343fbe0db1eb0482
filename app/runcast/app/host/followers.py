"""Carries durable entries from the log to the broadcasters, in order.

A thread has one follower while a run of this process is active in it, or while its channel on the hub is watched and no
fan-out delivers it. Entries of this process's runs go to every broadcaster; those of other processes go to the local hub
alone, since their owner broadcasts them. Knows the log, the broadcasters and the hub's channels; does not know adapters
or HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from runcast.broadcast import channel_for
from runcast.slim import ReaderTooSlow, SlimError, UnknownThread
from runcast.slim.entry import is_other_history
from runcast.slim.outage import Outage
from runcast.slim.tasks import end

if TYPE_CHECKING:
    from runcast.app.runs.run import Run
    from runcast.broadcast import Broadcaster, Hub
    from runcast.broadcast.hub.fanout import RedisFanout
    from runcast.slim import Entry, RunLog

PATIENCE = 5.0  # seconds that a run's last entries may take to become durable after it ended
LINGER = 2.0  # seconds that a thread is followed after its last watcher left: most return
FRESH_MS = 60_000  # a run that ended longer ago is not sent to a new watcher
PAUSES = (0.1, 5.0)  # first and longest pause before a log that cannot be read is read again
RUN_ID = attrgetter("run_id")
LOOK, SWEEP = 0.25, 5.0  # seconds between two checks of the fan-out, and of what it has missed

logger = logging.getLogger("runcast.app")


class Followed(Protocol):
    """A run of this process whose entries go to every broadcaster."""

    @property
    def thread_id(self) -> str:
        """Its thread."""
        ...

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    @property
    def first_seq(self) -> int:
        """Its first entry."""
        ...

    @property
    def last_seq(self) -> int:
        """Its last entry so far."""
        ...

    @property
    def epoch(self) -> str:
        """The log's incarnation."""
        ...

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        ...

    async def over(self) -> None:
        """Wait for its end."""
        ...


@dataclass(slots=True)
class _Thread:
    """A thread that is followed, and the runs it is followed for."""

    runs: dict[str, Followed] = field(default_factory=dict[str, Followed])  # not broadcast to their end yet
    after: int = 0  # the last seq that was read
    epoch: str | None = None
    task: asyncio.Task[None] | None = None


class Followers:
    """The followers of one cast, started and stopped as needed."""

    def __init__(
        self,
        log: RunLog,
        broadcasters: Sequence[Broadcaster],
        *,
        hub: Hub | None = None,
        local: Broadcaster | None = None,  # to the hub alone
        fanout: RedisFanout | None = None,
    ) -> None:
        self._log = log
        self._broadcasters = broadcasters
        self._hub = hub
        self._local = local
        self._fanout = fanout
        # Where the hub is the only target, a run without a watcher is not mapped; a late watcher gets it from the log.
        self._elsewhere = any(each is not local for each in broadcasters)
        self._outage, self._sweeps = Outage(logger), Outage(logger)
        self._threads: dict[str, _Thread] = {}
        self._behind: set[str] = set()  # watched threads of which the fan-out missed entries
        self._offsets: dict[str, int] = {}  # by watched thread, the hub's position at the last sweep
        self._read: dict[str, int] = {}  # by watched thread, how far the log was followed because of that
        self._watching: asyncio.Task[None] | None = None  # of the fan-out
        self._closing = False
        if hub is not None and local is not None:
            hub.on_watch.append(self._watched)

    def __len__(self) -> int:
        return sum(each.task is not None for each in self._threads.values())

    # ------------------------------------------------------------- own runs

    def expect(self, run: Followed) -> None:
        """A run of this process is about to begin: broadcast its entries from here."""
        self._threads.setdefault(run.thread_id, _Thread()).runs[run.run_id] = run

    def dismiss(self, run: Followed) -> None:
        """The run did not begin, or was broadcast to its end."""
        thread = self._threads.get(run.thread_id)
        if thread is not None:
            thread.runs.pop(run.run_id, None)
            self._review(run.thread_id)

    def follow(self, run: Followed) -> None:
        """Broadcast the entries of a run that has begun, as they become durable."""
        thread = self._threads.setdefault(run.thread_id, _Thread())
        thread.runs[run.run_id] = run
        if thread.task is None:
            if not self._needs(run.thread_id, thread):
                self.dismiss(run)
                return
            thread.after, thread.epoch = run.first_seq - 1, run.epoch
            self._start(run.thread_id, thread)
        over = asyncio.ensure_future(run.over())
        over.add_done_callback(lambda _: self._ended(run, thread))

    def _ended(self, run: Followed, thread: _Thread) -> None:
        """A run that is cut short ends without an entry that would wake its follower."""
        if thread.after >= run.last_seq:
            self.dismiss(run)
        elif not self._closing:
            asyncio.get_running_loop().call_later(PATIENCE, self.dismiss, run)

    async def erase(self, thread_id: str) -> None:
        """Stop following a thread that was forgotten, and have every broadcaster drop it."""
        thread = self._threads.pop(thread_id, None)
        self._behind.discard(thread_id)
        if thread is not None:
            await end([thread.task])
        for target in {*self._broadcasters, *(() if self._local is None else (self._local,))}:
            await target.erase(thread_id)

    # -------------------------------------------------------------- watched

    def _watched(self, channel: str, first: bool) -> None:
        """The first watcher came to a channel of the hub, or the last one left."""
        thread_id = self._thread_of(channel)
        if thread_id is None or self._closing:
            return
        if first:
            self._review(thread_id)
        else:
            self._behind.discard(thread_id)
            self._offsets.pop(thread_id, None)
            self._read.pop(thread_id, None)
            asyncio.get_running_loop().call_later(LINGER, self._review, thread_id)

    def _thread_of(self, channel: str) -> str | None:
        """The thread that is broadcast on this channel."""
        if self._hub is None:
            return None
        thread_id = self._hub.session(channel)
        if thread_id is None or channel != channel_for(thread_id, prefix=self._hub.prefix):
            return None
        return thread_id

    def _is_watched(self, thread_id: str) -> bool:
        if self._hub is None or self._local is None:
            return False
        return self._hub.watches(channel_for(thread_id, prefix=self._hub.prefix))

    def _needs(self, thread_id: str, thread: _Thread | None) -> bool:
        if thread is not None and thread.runs and self._elsewhere:
            return True
        delivered = self._fanout is not None and self._fanout.connected.is_set()
        return self._is_watched(thread_id) and (not delivered or thread_id in self._behind)

    def _review(self, thread_id: str) -> None:
        """Follow the thread as long as it is needed, and no longer."""
        thread = self._threads.get(thread_id)
        if self._closing or not self._needs(thread_id, thread):
            if thread is not None and not (thread.runs and self._elsewhere):
                del self._threads[thread_id]
                if thread.task is not None:
                    thread.task.cancel()
            return
        if thread is None:
            thread = self._threads[thread_id] = _Thread()
        if thread.task is None and not thread.runs:  # a run of this process is followed from its start
            thread.after = -1
            self._start(thread_id, thread)

    # ------------------------------------------------------------- following

    def _start(self, thread_id: str, thread: _Thread) -> None:
        thread.task = asyncio.create_task(self._follow(thread_id, thread), name=f"runcast follow {thread_id}")

    async def _follow(self, thread_id: str, thread: _Thread) -> None:
        (pause, longest), failed = PAUSES, False
        while True:
            try:
                if failed:
                    await self._log.thread(thread_id)
                    failed = False
                    self._outage.over("the log is read again: threads are broadcast")
                if thread.after < 0:
                    thread.after, thread.epoch = await self._beginning(thread_id)
                found = self._log.live.attach(thread_id, thread.after, epoch=thread.epoch)
                async with aclosing(found) as lots:
                    async for entries in lots:
                        pause = PAUSES[0]
                        for run_id, own in groupby(entries, RUN_ID):
                            self._send(thread_id, thread, run_id, list(own))
            except ReaderTooSlow:  # the rest is read from the store
                continue
            except UnknownThread:  # it was deleted, and perhaps created again
                thread.after = -1
            except SlimError as error:
                failed = True
                self._outage.lost(f"thread {thread_id!r} is broadcast later: {error}")
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(longest, pause * 2)

    async def _beginning(self, thread_id: str) -> tuple[int, str | None]:
        """Where to begin in another process's thread: at a run's start, since the mapper needs its first event."""
        if self._local is not None:
            self._local.forget(thread_id)
        found = await self._log.thread(thread_id)
        if found is None:
            return 0, None
        runs = await self._log.runs(thread_id)
        last = runs[-1] if runs else None
        if last is None or (last.ended_at or _now()) < _now() - FRESH_MS or last.pruned:
            return found.last_seq, found.epoch
        return last.first_seq - 1, found.epoch

    def _send(self, thread_id: str, thread: _Thread, run_id: str, entries: Sequence[Entry]) -> None:
        """Broadcast entries of one run that follow each other."""
        last = entries[-1]
        thread.after, thread.epoch = last.seq, last.history
        run = thread.runs.get(run_id)
        if run is not None:
            for target in self._broadcasters:
                target.put_all(entries)
            if not run.active and last.seq >= run.last_seq:
                self.dismiss(run)
        elif self._local is not None:
            for entry in entries:
                self._to_hub(self._local, thread_id, entry)

    def _to_hub(self, local: Broadcaster, thread_id: str, entry: Entry) -> None:
        """Give the local hub an entry of another process's run, unless it has it already."""
        if self._hub is not None:
            known = self._hub.position(channel_for(thread_id, prefix=self._hub.prefix))
            same = entry.epoch == known.epoch
            same &= not is_other_history(known.offset, known.mark, entry.seq, entry.mark)
            if same and entry.seq <= known.offset:
                local.prime(entry)
                return
        local.put(entry)

    # --------------------------------------------------------------- fan-out

    def begin(self) -> None:
        """Watch the fan-out from now on."""
        if self._fanout is not None and self._hub is not None and self._watching is None:
            self._watching = asyncio.create_task(
                self._watch_fanout(self._hub, self._fanout), name="runcast fan-out"
            )

    async def _watch_fanout(self, hub: Hub, fanout: RedisFanout) -> None:
        """Follow the log while the fan-out is disconnected; while it is connected, look for entries it missed."""
        was, due = True, time.monotonic() + SWEEP
        while True:
            await asyncio.sleep(LOOK)
            now = fanout.connected.is_set()
            if now != was:
                was = now
                for thread_id in {*self._threads, *self._occupied(hub)}:
                    self._review(thread_id)
            if now and time.monotonic() >= due:
                due = time.monotonic() + SWEEP * random.uniform(0.8, 1.2)
                try:
                    await self._sweep(hub)
                except SlimError as error:
                    self._sweeps.lost(f"the log cannot be compared with the fan-out: {error}")
                else:
                    self._sweeps.over("the log is compared with the fan-out again")

    def _occupied(self, hub: Hub) -> list[str]:
        found = (self._thread_of(channel) for channel in hub.occupied())
        return [each for each in found if each is not None]

    async def _sweep(self, hub: Hub) -> None:
        """Find entries that are in the log alone, because their worker died or lost the fan-out."""
        for thread_id in self._occupied(hub):
            found = await self._log.thread(thread_id)
            end = 0 if found is None else found.last_seq
            place = hub.position(channel_for(thread_id, prefix=hub.prefix)).offset
            followed = self._threads.get(thread_id)
            if followed is not None:
                if thread_id in self._behind and followed.after >= end:
                    self._behind.discard(thread_id)
                    self._read[thread_id] = end
                    self._review(thread_id)
            elif place < end and end != self._read.get(thread_id) and place == self._offsets.get(thread_id):
                # Not every entry gives an envelope, so only a position that stopped moving shows a loss.
                self._behind.add(thread_id)
                self._review(thread_id)
            self._offsets[thread_id] = place

    async def close(self, patience: float = 2.0) -> None:
        """Broadcast what is left, for at most `patience` seconds, then stop."""
        deadline = time.monotonic() + patience
        while any(each.runs and each.task for each in self._threads.values()) and time.monotonic() < deadline:  # noqa: ASYNC110  each ends by itself
            await asyncio.sleep(0.01)
        self._closing = True
        await end([*(each.task for each in self._threads.values()), self._watching])
        self._threads.clear()


async def entries_of(run: Run, log: RunLog) -> AsyncGenerator[Entry]:
    """A run's entries as they become durable, from its first to its last, however it ends."""
    after = run.first_seq - 1
    over = asyncio.create_task(run.over())
    try:
        while not _is_read(run, after):
            try:
                async with aclosing(
                    _until(run, over, log.attach(run.thread_id, after, epoch=run.epoch))
                ) as found:
                    async for entry in found:
                        after = entry.seq
                        yield entry
                return
            except ReaderTooSlow:  # the rest is read from the store
                continue
    finally:
        over.cancel()


async def _until(run: Run, over: asyncio.Task[None], entries: AsyncGenerator[Entry]) -> AsyncGenerator[Entry]:
    coming: asyncio.Task[Entry | None] | None = None
    after = run.first_seq - 1
    async with aclosing(entries):
        try:
            while not _is_read(run, after):
                coming = coming or asyncio.create_task(_next(entries))
                # A run that is cut short ends without an entry that would wake the reader.
                both: set[asyncio.Task[Any]] = {coming, over}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done() and not _is_read(run, after):
                    await asyncio.wait({coming}, timeout=PATIENCE)
                if not coming.done():
                    return
                entry, coming = coming.result(), None
                if entry is None:
                    return
                after = entry.seq
                yield entry
        finally:
            await end([coming])  # a generator that is running cannot be closed


async def _next(entries: AsyncGenerator[Entry]) -> Entry | None:
    return await anext(entries, None)


def _is_read(run: Run, after: int) -> bool:
    return not run.active and after >= run.last_seq


def _now() -> int:
    return time.time_ns() // 1_000_000
