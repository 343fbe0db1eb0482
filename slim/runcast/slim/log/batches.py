"""The unwritten part of a thread: its lease, its open run, and events that are not durable yet.

Knows batches, their retry and when one is due; does not know the meaning of an event. Nothing is visible before a
flush has written it. All unflushed events belong to one run: its first batch creates the run, its last one ends it
and releases the lease.

A sent batch keeps its id until the store has answered. After a lost connection the same batch is sent again and cannot
count twice. One batch of a thread is under way at a time; a cancelled caller does not stop it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from runcast.slim.archive.info import Claim
from runcast.slim.archive.run_end import type_of
from runcast.slim.entry import Entry
from runcast.slim.errors import Conflict, LineageError, StoreError
from runcast.slim.stores import refusals
from runcast.slim.stores.records import Answer, Batch, Blob, Edge, Key, Lease, NewEvent, NewRun, RunEnd
from runcast.slim.wire.codec import AnyEvent, encode

if TYPE_CHECKING:
    from runcast.slim.log.engine import Core

LOG = logging.getLogger("runcast.log")
RETRY_MS = 1_000  # after a failed flush, unless another call retries sooner


@dataclass(slots=True)
class Counters:
    """Counters that the writers of a log share."""

    appended: int = 0
    flushed: int = 0
    batches: int = 0
    lost: int = 0
    violations: int = 0
    raw_dropped: int = 0
    store_errors: int = 0
    leases_lost: int = 0


Stretch = tuple[Sequence[Entry], Sequence[NewEvent]]  # entries, and each as it was written


class Standing(NamedTuple):
    """The durable end of a thread that is written here; `untaken` are its newest entries, if no feed has taken them."""

    seq: int
    mark: str
    epoch: str
    untaken: Stretch


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The parent of a run that has not begun; without one it continues the thread's newest run."""

    run_id: str
    parent: str | None
    edge: Edge
    claim: Claim | None = None  # what its starter was given


@dataclass(slots=True)
class OpenRun:
    """The run that is being written; `number` is the store's, once its first batch is written."""

    run_id: str
    new: NewRun | None
    number: int = 0
    end: RunEnd | None = None
    mark: str = ""


class BatchQueue:
    """Events of one thread on their way to the store. The caller keeps its own calls in order."""

    def __init__(self, key: Key, core: Core) -> None:
        self.key = key
        self.lease: Lease | None = None
        self.head: str | None = None  # the run that the next one continues, known with the lease
        self.run: OpenRun | None = None
        self.ended: str | None = None  # the run that ended here last
        self.snapshot: Blob | None = None  # written with the next batch
        self.untaken: Stretch = ((), ())  # durable at last, until a feed takes it
        self.first = 1  # of the run that began here last
        self.failure: StoreError | None = None  # of the last flush
        self.fenced: Conflict | LineageError | None = None  # why the last run cannot be written any more
        self._core = core
        self._options = core.options
        self._count = core.count
        self._next = 1
        self._durable = (0, "")  # the last durable seq, and the mark of its run
        self._fresh: list[NewEvent] = []
        self._entries: list[Entry] = []  # of the events that are not durable
        self._raws: list[NewEvent] = []
        self._sent: Batch | None = None  # sent and not answered yet, or to be sent again
        self._under_way = False  # the store has not answered
        self._callers: list[asyncio.Future[StoreError | LineageError | None]] = []  # who wait for the answer
        self._retry: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        """Whether a run is open and has not ended."""
        return self.run is not None and self.run.end is None

    @property
    def run_id(self) -> str | None:
        """The open run's id."""
        return self.run.run_id if self.run else None

    @property
    def unflushed(self) -> int:
        """Events that are not durable yet."""
        return len(self._fresh) + (len(self._sent.events) if self._sent else 0)

    @property
    def last_seq(self) -> int:
        """The last seq that was given, durable or not."""
        return self._next - 1

    @property
    def standing(self) -> Standing | None:
        """The durable end of the thread, which no other process can move while this one has the lease."""
        return None if self.lease is None else Standing(*self._durable, self.lease.epoch, self.untaken)

    @property
    def flows(self) -> bool:
        """Whether the open run takes one more event without a wait."""
        run, sent, fresh = self.run, self._sent, len(self._fresh)
        if run is None or run.end is not None or self.failure is not None:
            return False
        held = fresh if sent is None else fresh + len(sent.events)
        return fresh + 1 < self._options.flush_events and held < self._options.buffer_events

    @property
    def is_due(self) -> bool:
        """Whether to wait for a flush now rather than to gather more."""
        return len(self._fresh) >= self._options.flush_events or self.failure is not None

    async def acquire(self, *, anew: bool = False) -> Lease:
        """The thread's lease, taken if it is not held. `Conflict` while another owner holds it. `anew` gives the thread
        a new epoch."""
        if self.lease is None:
            now = self._options.clock()
            until, epoch = now + self._options.lease_ms, self._options.new_id()
            lease = await self._core.store.acquire(
                self.key, owner=self._core.owner, now=now, until=until, epoch=epoch, anew=anew
            )
            self.lease, self._next = lease, lease.last_seq + 1
            self._durable = (lease.last_seq, lease.last_run.mark if lease.last_run else "")
            self.head = lease.head.run_id if lease.head else None
        return self.lease

    def begin(self, run: OpenRun) -> None:
        """Open a run for the events that follow."""
        self.run, self.first = run, self._next
        self.fenced = None

    def put(self, event: AnyEvent, data: bytes | None = None) -> Entry:
        """Give an event its place; `data`, its bytes, saves encoding it."""
        run, lease = self.run, self.lease
        if lease is None or run is None:
            raise Conflict(f"thread {self.key.thread_id!r} has no run here that could be written")
        seq, at = self._next, self._options.clock()
        entry = Entry(self.key.thread_id, seq, lease.epoch, run.run_id, at, event, run.mark)
        self._fresh.append(NewEvent(seq, at, type_of(event), encode(event) if data is None else data))
        self._entries.append(entry)
        self._next += 1
        self._count.appended += 1
        return entry

    def keep_raw(self, type: str, payload: bytes) -> None:
        """Keep a raw part apart from the entries, under the seq of the next one."""
        self._raws.append(NewEvent(self._next, self._options.clock(), type, payload))

    def arm(self) -> None:
        """Write at once if the store is idle, or with the next write."""
        self._core.committer.gather(self._send_next, read=self._core.is_read(self.key))

    async def flush_quietly(self) -> None:
        """Flush before a read: an error is logged, and raised by the next call that needs the store."""
        try:
            await self.flush()
        except (StoreError, LineageError) as error:
            self._warn(error)

    async def flush(self) -> None:
        """Make everything durable. After a `StoreError` the events are kept, and the next flush tries again."""
        while self._send_next():
            await self._answered()

    async def _answered(self) -> None:
        """Wait for the batch under way; raise the error that answers it."""
        answer: asyncio.Future[StoreError | LineageError | None]
        answer = asyncio.get_running_loop().create_future()
        self._callers.append(answer)
        error = await answer
        if error is not None:
            raise error

    def _send_next(self) -> bool:
        """Send the next batch unless one is under way; False when there is nothing to send."""
        if not self._under_way and (batch := self._batch()) is not None:
            self._send(batch)
        return self._under_way

    def _send(self, batch: Batch) -> None:
        self._under_way = True
        self._core.committer.write(batch, partial(self._take_answer, batch))

    def _take_answer(self, batch: Batch, answer: Answer) -> None:
        callers = [each for each in self._callers if not each.done()]  # else it was cancelled
        self._under_way, self._callers = False, []
        error = None if isinstance(answer, int) else answer
        if isinstance(answer, int):
            self._written(batch, answer)
        elif isinstance(answer, Conflict | LineageError):
            self._drop(answer)
        else:
            self._count.store_errors += 1
            self.failure = answer
            if self._retry is not None:
                self._retry.cancel()
            self._retry = asyncio.get_running_loop().call_later(RETRY_MS / 1000, self.arm)
        if error is not None and not callers:
            self._warn(error)
        for each in callers:
            each.set_result(error)
        if error is None and self._owes():
            self.arm()  # what came meanwhile, and the end of a run that was given up while the store was away

    def _warn(self, error: StoreError | LineageError) -> None:
        LOG.warning("thread %r: entries could not be written: %s", self.key.thread_id, error)

    def lose(self, lease: Lease) -> None:
        """Drop what another owner of the thread has made unwritable; a batch under way finds that out by itself."""
        if not self._under_way and self.lease is not None and self.lease.token == lease.token:
            self._drop(refusals.lost(self.key, None))

    async def release(self, *, cut: bool = True) -> None:
        """Release the lease; a run that is still open is truncated, or left open for the next owner."""
        run = self.run
        if run is not None and run.new is not None and not run.number and not self.unflushed:
            self.run = None  # no event was written, so drop the run
        elif cut and run is not None and run.end is None:
            run.end = RunEnd("truncated", None)
        await self.flush()
        lease = self.lease  # None if the flush ended the run
        try:
            if lease is not None:
                self._send(self._made(lease, (), (), release=True))
                await self._answered()
        finally:  # what cannot be released expires
            self.lease = self.run = None
            self._core.look(self.key)

    def give_up(self) -> int:
        """Drop everything unflushed, and the run; returns the number of lost entries."""
        lost = self.unflushed
        self._count.lost += lost
        self._fresh, self._entries, self._raws, self._sent = [], [], [], None
        self.lease = self.run = self.failure = self.snapshot = None
        self.untaken = ((), ())
        self._core.look(self.key)
        return lost

    def _batch(self) -> Batch | None:
        if self._sent is None and self.lease is not None and self.run is not None and self._owes():
            events, self._fresh = tuple(self._fresh), []
            raws, self._raws = tuple(self._raws), []
            self._sent, self.snapshot = self._made(self.lease, events, raws), None
        elif self._sent is not None and self._sent.until is not None:  # sent again: its lease counts from now
            self._sent = replace(self._sent, until=self._options.clock() + self._options.lease_ms)
        return self._sent

    def _owes(self) -> bool:
        return bool(self._fresh or self._raws or (self.run is not None and self.run.end is not None))

    def _made(
        self, lease: Lease, events: tuple[NewEvent, ...], raws: tuple[NewEvent, ...], *, release: bool = False
    ) -> Batch:
        run, now = self.run, self._options.clock()
        first = events[0].seq if events else self._next
        end = run.end if run is not None else None
        # A batch that only releases the lease begins no run: the caller may still be preparing it.
        place: NewRun | int = 0
        if run is not None and (events or raws or end is not None):
            place = run.number or run.new or 0
        until = None if end is not None or release else now + self._options.lease_ms
        return Batch(
            self.key,
            lease.owner,
            lease.token,
            self._options.new_id(),
            first,
            place,
            events,
            raws,
            end,
            until,
            now,
            self.snapshot,
        )

    def _written(self, batch: Batch, number: int) -> None:
        self._sent = self.failure = None
        self._count.flushed += len(batch.events)
        self._count.batches += 1
        if batch.until is None:
            self.lease = None
        if batch.events and self._entries and self._entries[0].seq == batch.first_seq:
            durable, self._entries = self._entries[: len(batch.events)], self._entries[len(batch.events) :]
            self._durable = durable[-1].seq, durable[-1].mark
            taken = self._core.hand_over(self.key, durable, batch.events)
            self.untaken = ((), ()) if taken else (durable, batch.events)
        if self.run is None or not batch.writes:
            return
        self.run.number = number
        if batch.end is not None:
            self.ended, self.run = self.run.run_id, None
            self.untaken = ((), ())

    def _drop(self, error: Conflict | LineageError) -> None:
        self._count.leases_lost += 1
        self.fenced = error
        run_id = self.run_id
        LOG.error("thread %r, run %r: %d entries lost: %s", self.key.thread_id, run_id, self.give_up(), error)
