"""Carries threads outwards: what is durable in the log goes to those who watch it here, in order, whoever wrote it.

One follower a thread, as long as a run of this process is under way in it, or somebody watches its channel on the hub
and no fan-out brings it. Entries of this process's runs go to everybody who broadcasts; those of others go to this
process's own watchers alone, since their owner broadcasts them. Knows the log, who broadcasts and who is watched; does
not know adapters or HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from runcast.broadcast import channel_for
from runcast.slim import ReaderTooSlow, SlimError, UnknownThread

if TYPE_CHECKING:
    from runcast.app.run import Run
    from runcast.broadcast import Broadcaster, Hub
    from runcast.slim import Entry, RunLog

PATIENCE = 5.0  # seconds that a run's last entries may take to become durable after it ended
LINGER = 2.0  # seconds a thread is followed on after its last watcher left: most come back
FRESH_MS = 60_000  # a run that ended longer ago is no news to whoever begins to watch now
PAUSES = (0.1, 5.0)  # first and longest pause before a log that cannot be read is asked again
LOOK, SWEEP = 0.25, 5.0  # seconds between two looks at the fan-out, and at whether it has missed something

logger = logging.getLogger("runcast.app")


class Fanout(Protocol):
    """What brings other processes' envelopes to the hub, while it is connected."""

    @property
    def connected(self) -> asyncio.Event:
        """Set while it does."""
        ...


@dataclass(slots=True)
class _Thread:
    """A thread that is followed, and why."""

    runs: dict[str, Run] = field(
        default_factory=dict[str, "Run"]
    )  # of this process, not told to their end yet
    held: int = 0  # by whoever wants it followed, watched or not
    after: int = 0  # the seq that was read last
    epoch: str | None = None
    task: asyncio.Task[None] | None = None


class Followers:
    """Followers of threads, by need."""

    def __init__(
        self,
        log: RunLog,
        everybody: Sequence[Broadcaster],
        *,
        hub: Hub | None = None,
        near: Broadcaster | None = None,  # to the hub alone
        fanout: Fanout | None = None,
    ) -> None:
        self._log = log
        self._everybody = everybody
        self._hub = hub
        self._near = near
        self._fanout = fanout
        self._threads: dict[str, _Thread] = {}
        self._silent: set[str] = set()  # watched threads of which the fan-out missed something
        self._places: dict[str, int] = {}  # by watched thread, how far the hub was at the last sweep
        self._told: dict[str, int] = {}  # by watched thread, how far the log was followed because of that
        self._tending: asyncio.Task[None] | None = None
        self._closing = False
        if hub is not None and near is not None:
            hub.on_watch = self._watched

    def __len__(self) -> int:
        return sum(each.task is not None for each in self._threads.values())

    # ------------------------------------------------------------- own runs

    def expect(self, run: Run) -> None:
        """A run of this process is about to begin: its entries are ours to broadcast."""
        self._threads.setdefault(run.thread_id, _Thread()).runs[run.run_id] = run

    def dismiss(self, run: Run) -> None:
        """It did not begin, or has been told to its end."""
        thread = self._threads.get(run.thread_id)
        if thread is not None:
            thread.runs.pop(run.run_id, None)
            self._review(run.thread_id)

    def follow(self, run: Run) -> None:
        """Carry this run's entries to everybody who broadcasts, once they are durable. It has begun."""
        if not self._everybody:
            return
        thread = self._threads.setdefault(run.thread_id, _Thread())
        thread.runs[run.run_id] = run
        if thread.task is None:
            thread.after, thread.epoch = run.first_seq - 1, run.epoch
            self._start(run.thread_id, thread)
        over = asyncio.ensure_future(run.over())
        over.add_done_callback(lambda _: self._ended(run, thread))

    def _ended(self, run: Run, thread: _Thread) -> None:
        """A run that is cut short ends without an entry that would wake its follower."""
        if thread.after >= run.last_seq:
            self.dismiss(run)
        elif not self._closing:
            asyncio.get_running_loop().call_later(PATIENCE, self.dismiss, run)

    # -------------------------------------------------------------- watched

    def _watched(self, channel: str, first: bool) -> None:
        """Somebody came to a channel of the hub that nobody was on, or the last one left."""
        thread_id = self._thread_of(channel)
        if thread_id is None or self._closing:
            return
        if first:
            self._review(thread_id)
        else:
            self._silent.discard(thread_id)
            self._places.pop(thread_id, None)
            self._told.pop(thread_id, None)
            asyncio.get_running_loop().call_later(LINGER, self._review, thread_id)

    def _thread_of(self, channel: str) -> str | None:
        """The thread whose envelopes the broadcasters send to this channel."""
        if self._hub is None:
            return None
        thread_id = self._hub.session(channel)
        if thread_id is None or channel != channel_for(thread_id, prefix=self._hub.prefix):
            return None
        return thread_id

    def _is_watched(self, thread_id: str) -> bool:
        if self._hub is None or self._near is None:
            return False
        return self._hub.watches(channel_for(thread_id, prefix=self._hub.prefix))

    def _needs(self, thread_id: str, thread: _Thread | None) -> bool:
        if thread is not None and (thread.held or (thread.runs and self._everybody)):
            return True
        brought = self._fanout is not None and self._fanout.connected.is_set()
        return self._is_watched(thread_id) and (not brought or thread_id in self._silent)

    def _review(self, thread_id: str) -> None:
        """Follow the thread if there is need to, and no longer than that."""
        thread = self._threads.get(thread_id)
        if self._closing or not self._needs(thread_id, thread):
            if thread is not None and not thread.runs:
                del self._threads[thread_id]
                if thread.task is not None:
                    thread.task.cancel()
            return
        if thread is None:
            thread = self._threads[thread_id] = _Thread()
        if thread.task is None and not thread.runs:  # one that begins a run is followed from its start
            thread.after = -1
            self._start(thread_id, thread)

    @contextmanager
    def held(self, thread_id: str) -> Generator[None]:
        """Follow the thread meanwhile, whether it is watched or not."""
        thread = self._threads.setdefault(thread_id, _Thread())
        thread.held += 1
        self._review(thread_id)
        try:
            yield
        finally:
            thread.held -= 1
            self._review(thread_id)

    # ------------------------------------------------------------- following

    def _start(self, thread_id: str, thread: _Thread) -> None:
        thread.task = asyncio.create_task(self._follow(thread_id, thread), name=f"runcast follow {thread_id}")

    async def _follow(self, thread_id: str, thread: _Thread) -> None:
        pause, longest = PAUSES
        while True:
            try:
                if thread.after < 0:
                    thread.after, thread.epoch = await self._beginning(thread_id)
                async with aclosing(self._log.attach(thread_id, thread.after, epoch=thread.epoch)) as entries:
                    async for entry in entries:
                        pause = PAUSES[0]
                        self._tell(thread_id, thread, entry)
            except ReaderTooSlow:  # whoever takes them is slow; the store has the rest
                continue
            except UnknownThread:  # it was deleted, and perhaps made anew
                thread.after = -1
            except SlimError as error:
                logger.warning("thread %s is broadcast later: %s", thread_id, error)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(longest, pause * 2)

    async def _beginning(self, thread_id: str) -> tuple[int, str | None]:
        """Where to begin in a thread of others: a mapper has to see a run from its start, and so must who came late."""
        if self._near is not None:
            self._near.forget(thread_id)
        found = await self._log.thread(thread_id)
        if found is None:
            return 0, None
        runs = await self._log.runs(thread_id)
        last = runs[-1] if runs else None
        if last is None or (last.ended_at or _now()) < _now() - FRESH_MS or last.pruned:
            return found.last_seq, found.epoch
        return last.first_seq - 1, found.epoch

    def _tell(self, thread_id: str, thread: _Thread, entry: Entry) -> None:
        thread.after, thread.epoch = entry.seq, entry.epoch
        run = thread.runs.get(entry.run_id)
        if run is not None:
            for target in self._everybody:
                target.put(entry)
            if not run.active and entry.seq >= run.last_seq:
                self.dismiss(run)
        elif self._near is not None:
            self._near_by(self._near, thread_id, entry)

    def _near_by(self, near: Broadcaster, thread_id: str, entry: Entry) -> None:
        """An entry of another process's run, for those who watch here; what the hub has already is passed over."""
        if self._hub is not None:
            known = self._hub.position(channel_for(thread_id, prefix=self._hub.prefix))
            if entry.epoch == known.epoch and entry.seq <= known.offset:
                near.prime(entry)
                return
        near.put(entry)

    # --------------------------------------------------------------- fan-out

    def begin(self) -> None:
        """Look after what the fan-out brings, from now on."""
        if self._fanout is not None and self._hub is not None and self._tending is None:
            self._tending = asyncio.create_task(self._tend(self._hub, self._fanout), name="runcast fan-out")

    async def _tend(self, hub: Hub, fanout: Fanout) -> None:
        """While the fan-out is away the log is followed instead; while it is there, it is asked what it has missed."""
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
                    logger.warning("nobody can tell what the fan-out missed: %s", error)

    def _occupied(self, hub: Hub) -> list[str]:
        found = (self._thread_of(channel) for channel in hub.occupied())
        return [each for each in found if each is not None]

    async def _sweep(self, hub: Hub) -> None:
        """A worker that died, or has lost its way to the fan-out, left its last words in the log alone."""
        for thread_id in self._occupied(hub):
            found = await self._log.thread(thread_id)
            end = 0 if found is None else found.last_seq
            place = hub.position(channel_for(thread_id, prefix=hub.prefix)).offset
            followed = self._threads.get(thread_id)
            if followed is not None:
                if thread_id in self._silent and followed.after >= end:
                    self._silent.discard(thread_id)
                    self._told[thread_id] = end
                    self._review(thread_id)
            elif place < end and end != self._told.get(thread_id) and place == self._places.get(thread_id):
                # Not every entry is told, so being behind says little; having stood still behind news says more.
                self._silent.add(thread_id)
                self._review(thread_id)
            self._places[thread_id] = place

    async def close(self, patience: float = 2.0) -> None:
        """Wait until what is there was handed over, as long as it is reasonable."""
        deadline = time.monotonic() + patience
        while any(each.runs and each.task for each in self._threads.values()) and time.monotonic() < deadline:  # noqa: ASYNC110  each ends by itself
            await asyncio.sleep(0.01)
        self._closing = True
        tasks = [each.task for each in self._threads.values() if each.task is not None]
        tasks += [self._tending] if self._tending is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.clear()


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


def _now() -> int:
    return time.time_ns() // 1_000_000
