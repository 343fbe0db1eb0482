"""What a thread's writer owes the store: the lease, the run that is open, and events that are not durable yet.

Knows batches, their retry and when one is due; does not know what an event means. Nothing is visible to anybody
before a flush has written it. Everything unflushed belongs to one run: its first batch makes the run, its last one
ends it and gives the lease back.

A batch that was sent keeps its id until the store has answered, so that after a lost connection, or a cancelled
wait, the same batch goes again and cannot count twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from runcast.slim.errors import Conflict, LineageError, StoreError
from runcast.slim.stores import Store
from runcast.slim.stores.records import Batch, Key, Lease, NewEvent, NewRun, RunEnd

LOG = logging.getLogger("runcast.log")
RETRY_MS = 1_000  # after a flush that failed, when nothing else makes it try again


@dataclass(slots=True)
class Counters:
    """What the writers of a log count together."""

    appended: int = 0
    flushed: int = 0
    batches: int = 0
    lost: int = 0
    violations: int = 0
    raw_dropped: int = 0
    store_errors: int = 0
    leases_lost: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """Who writes, and how often at the least."""

    owner: str
    clock: Callable[[], int]
    new_id: Callable[[], str]
    flush_ms: int
    flush_events: int
    lease_ms: int


@dataclass(slots=True)
class OpenRun:
    """The run that is under way; `number` is the store's, once its first batch is written."""

    run_id: str
    new: NewRun | None
    number: int = 0
    end: RunEnd | None = None


class Outbox:
    """The way out for one thread. Flushes take turns by themselves; the caller keeps its own calls in order."""

    def __init__(self, key: Key, store: Store, timing: Timing, counters: Counters) -> None:
        self.key = key
        self.lease: Lease | None = None
        self.head: str | None = None  # the run that the next one goes on from
        self.run: OpenRun | None = None
        self.ended: str | None = None  # the run that ended here last
        self.failure: StoreError | None = None  # of the last flush
        self.ousted: Conflict | LineageError | None = None  # why the last run can be written no further
        self._store = store
        self._timing = timing
        self._count = counters
        self._flushing = asyncio.Lock()
        self._next = 1
        self._until = 0
        self._fresh: list[NewEvent] = []
        self._raws: list[NewEvent] = []
        self._sent: Batch | None = None  # on its way, or to be sent again as it is
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def unflushed(self) -> int:
        """Events that are not durable yet."""
        return len(self._fresh) + (len(self._sent.events) if self._sent else 0)

    @property
    def last_seq(self) -> int:
        """The seq given last, durable or not."""
        return self._next - 1

    @property
    def is_due(self) -> bool:
        """Whether to flush now rather than in some milliseconds."""
        return len(self._fresh) >= self._timing.flush_events or self.failure is not None

    async def acquire(self) -> Lease:
        """The thread's lease, taken if need be. `Conflict` while another owner holds it."""
        if self.lease is None:
            timing, now = self._timing, self._timing.clock()
            until = now + timing.lease_ms
            lease = await self._store.acquire(
                self.key, owner=timing.owner, now=now, until=until, epoch=timing.new_id()
            )
            self.lease, self._until, self._next = lease, until, lease.last_seq + 1
            self.head = lease.head.run_id if lease.head else None
        return self.lease

    def begin(self, run: OpenRun) -> None:
        """What is put from now on belongs to this run."""
        self.run = run
        self.ousted = None
        if run.new is not None and run.new.edge != "spawn":
            self.head = run.run_id

    def put(self, type: str, payload: bytes) -> NewEvent:
        """Give an event its place."""
        event = NewEvent(self._next, self._timing.clock(), type, payload)
        self._fresh.append(event)
        self._next += 1
        self._count.appended += 1
        return event

    def aside(self, type: str, payload: bytes) -> None:
        """Keep something apart from the log, under the seq of the entry that comes next."""
        self._raws.append(NewEvent(self._next, self._timing.clock(), type, payload))

    def arm(self, after_ms: int | None = None) -> None:
        """Flush soon, whatever happens meanwhile."""
        if self._timer is None:
            delay = self._timing.flush_ms if after_ms is None else after_ms
            self._timer = asyncio.get_running_loop().call_later(delay / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._task = asyncio.ensure_future(self.flush_quietly())

    async def flush_quietly(self) -> None:
        """Flush for nobody in particular: what goes wrong is kept for the next who asks."""
        try:
            await self.flush()
        except (StoreError, LineageError) as error:
            LOG.warning("thread %r: entries could not be written: %s", self.key.thread_id, error)

    async def flush(self) -> None:
        """Make everything durable. After a `StoreError` it is still here, and the next flush tries again."""
        async with self._flushing:
            while (batch := self._batch()) is not None:
                await self._send(batch)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    async def beat(self) -> None:
        """Renew the lease when a third of it has gone by, or when the clock was set and it cannot be told."""
        lease, left = self._timing.lease_ms, self._until - self._timing.clock()
        if not lease * 2 // 3 < left <= lease:
            await self._settle(release=False)

    async def release(self, *, cut: bool = True) -> None:
        """Give the lease back; a run that is still open is cut short here, or left open for whoever takes it up."""
        run = self.run
        if run is not None and run.new is not None and not run.number and not self.unflushed:
            self.run = None  # nothing of it was said: it never was
        elif cut and run is not None and run.end is None:
            run.end = RunEnd("truncated", None)
        await self._settle(release=True)
        self.run = None

    async def _settle(self, *, release: bool) -> None:
        await self.flush()
        async with self._flushing:
            lease = self.lease  # gone by now if the flush ended the run
            if lease is not None and self._sent is None:
                await self._send(self._made(lease, (), (), release=release))
                self.lease = None if release else lease

    def give_up(self) -> int:
        """Let go of everything unflushed, and of the run; answers how many entries that were."""
        lost = self.unflushed
        self._count.lost += lost
        self._fresh, self._raws, self._sent = [], [], None
        self.lease = self.run = self.failure = None
        return lost

    def _batch(self) -> Batch | None:
        owed = self._fresh or self._raws or self._is_ending()
        if self._sent is None and self.lease is not None and self.run is not None and owed:
            events, self._fresh = tuple(self._fresh), []
            raws, self._raws = tuple(self._raws), []
            self._sent = self._made(self.lease, events, raws)
        return self._sent

    def _is_ending(self) -> bool:
        return self.run is not None and self.run.end is not None

    def _made(
        self, lease: Lease, events: tuple[NewEvent, ...], raws: tuple[NewEvent, ...], *, release: bool = False
    ) -> Batch:
        run, now = self.run, self._timing.clock()
        first = events[0].seq if events else self._next - len(self._fresh)  # those go behind it
        end = run.end if run is not None else None
        # A batch that is about the lease alone begins no run: whoever begins one may still be reading what came before.
        place: NewRun | int = 0
        if run is not None and (events or raws or end is not None):
            place = run.number or run.new or 0
        until = None if end is not None or release else now + self._timing.lease_ms
        return Batch(
            self.key,
            lease.owner,
            lease.token,
            self._timing.new_id(),
            first,
            place,
            events,
            raws,
            end,
            until,
            now,
        )

    async def _send(self, batch: Batch) -> None:
        try:
            number = await self._store.append(batch)
        except (Conflict, LineageError) as error:
            self._oust(error)
            raise
        except StoreError as error:
            self._count.store_errors += 1
            self.failure = error
            self.arm(RETRY_MS)
            raise
        self._written(batch, number)

    def _written(self, batch: Batch, number: int) -> None:
        self._sent = self.failure = None
        self._count.flushed += len(batch.events)
        self._count.batches += 1
        if batch.until is not None:
            self._until = batch.until
        if self.run is None or not batch.writes:
            return
        self.run.number = number
        if batch.end is not None:
            self.ended, self.run, self.lease = self.run.run_id, None, None

    def _oust(self, error: Conflict | LineageError) -> None:
        self._count.leases_lost += 1
        self.ousted = error
        run = self.run.run_id if self.run else None
        LOG.error("thread %r, run %r: %d entries lost: %s", self.key.thread_id, run, self.give_up(), error)
