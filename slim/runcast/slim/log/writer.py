"""The writer of one thread: turns events into stored entries.

Knows the checks before anything is written (the rules of the protocol, then raw parts, then secrets), where a run
begins and ends, and what to do when the store fails; does not know batches (`batches`) or readers. Appends take
turns. A run begins only when everything before it is durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ag_ui.core import RawEvent, RunStartedEvent

from runcast.slim.archive.blobs import snapshot_body
from runcast.slim.archive.info import Claim
from runcast.slim.archive.run_end import end_of, type_of
from runcast.slim.entry import Entry, bound, mark_of
from runcast.slim.errors import Conflict, InvalidStream, LineageError, SlimError, StoreError
from runcast.slim.log.batches import BatchQueue, OpenRun, RunPlan
from runcast.slim.protocol.verifier import Verifier
from runcast.slim.stores import refusals
from runcast.slim.stores.blob_codec import pack
from runcast.slim.stores.records import APART, Key, NewRun, RunEnd
from runcast.slim.tasks import HEAVY, beside
from runcast.slim.values.lifecycles import PHASES
from runcast.slim.wire.codec import AnyEvent, encode

if TYPE_CHECKING:
    from runcast.slim.log.engine import Core

LOG = logging.getLogger("runcast.log")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts to write to an unavailable store
MOST_LOGGED = 20  # different violations of one run that are logged; all are counted

OnEntry = Callable[[Entry], Mapping[str, Any] | bytes | None]

T = TypeVar("T")


class Writer:
    """Appends to one thread. Made by the log, one for each thread."""

    def __init__(self, key: Key, core: Core) -> None:
        self.out = BatchQueue(key, core)
        self._key = key
        self._core = core
        self._options = core.options
        self._count = core.count
        self._turn = asyncio.Lock()
        self._plan: RunPlan | None = None
        self._unrecorded: StoreError | None = None  # why the run continues without the log
        self._logged: set[tuple[str, str | None]] = set()  # violations of this run that were logged
        self._start_checks()

    def _start_checks(self) -> None:
        """Forget the events of a run that will not continue here: the next run is judged by itself."""
        self._redactor = self._core.redactor()
        verify = self._options.verify
        self._verifier = None if verify == "off" else Verifier(refusing=verify == "reject")

    @property
    def idle(self) -> bool:
        """No run is active, no event is unflushed, no lease is held."""
        return self.out.lease is None and not self.out.unflushed and not self._turn.locked()

    async def plan(self, plan: RunPlan) -> Claim:
        """Record the parent of the next run, and take the lease for it."""
        async with self._turn:
            out = self.out
            if out.is_running:
                raise Conflict(f"run {out.run_id!r} is active here: end it before another one begins")
            await out.flush()
            lease = await out.acquire()
            if lease.last_run is not None and await self._is_used(plan.run_id):
                await out.release()  # or the thread would stay leased for nothing
                raise refusals.used(self._key, plan.run_id)
            last = lease.last_run
            history = bound(lease.epoch, last.mark if last else "")
            claim = Claim(last is None, lease.notes, lease.last_seq, history)
            self._plan = replace(plan, claim=claim)
            return claim

    async def _is_used(self, run_id: str) -> bool:
        named = await self._core.store.named(self._key.tenant, run_id)
        return any(thread.key == self._key for thread, _ in named)

    async def append(
        self, event: AnyEvent, seq: int | None = None, on_entry: OnEntry | None = None
    ) -> Entry | None:
        """Append one event; see `RunLog.append`."""
        if seq is None and (at_once := self.flow(event, on_entry)) is not None:
            return next(reversed(at_once), None)
        async with self._turn:
            if seq is not None and await self._is_taken(seq):
                await self.out.flush()
                redacted = self._redactor is not None
                return await self._core.pages.again(self._key, seq, _without_raw(event), redacted=redacted)
            return next(reversed(await self._append(event, on_entry)), None)

    async def append_many(self, events: Iterable[AnyEvent], on_entry: OnEntry | None = None) -> list[Entry]:
        """Append events in order, and make them durable."""
        async with self._turn:
            entries = [entry for event in events for entry in await self._append(event, on_entry)]
            await self._flush_by_choice()
            return entries

    async def close(self, *, cut: bool = True) -> None:
        """Write held text and release the lease; an active run is truncated, or left open for the next owner."""
        async with self._turn:
            running = self.out.is_running
            if running and self._redactor is not None:
                for event in self._redactor.close():
                    self.out.put(event)
            try:
                await self.out.release(cut=cut)
            finally:  # a store that is away gets the end later; the run is over here all the same
                if running:
                    self._start_checks()

    async def mark_truncated(self) -> tuple[str, ...]:
        """Take and release the lease, which truncates an orphaned run; returns the runs it truncated."""
        async with self._turn:
            if self.out.lease is not None:
                return ()  # a run of this log has begun meanwhile
            lease = await self.out.acquire()
            await self.out.release()
            return lease.cut

    async def begin_anew(self) -> str:
        """Give the thread a new epoch, and release the lease; `Conflict` while a run is active."""
        async with self._turn:
            if self.out.lease is not None:
                raise Conflict(
                    f"run {self.out.run_id!r} is active here: end it before the thread gets a new epoch"
                )
            lease = await self.out.acquire(anew=True)
            await self.out.release()
            return lease.epoch

    async def aside(self, events: Sequence[AnyEvent]) -> list[Entry]:
        """Write a whole run that is no history, in one transaction, and release the lease."""
        async with self._turn:
            if self.out.lease is not None:
                raise Conflict(f"a run of thread {self._key.thread_id!r} is active here: write into that")
            await self.out.acquire()
            try:
                return await self._whole_run(events)
            finally:
                await self.out.release()

    async def _whole_run(self, events: Sequence[AnyEvent]) -> list[Entry]:
        started, end = events[0], end_of(events[-1])
        if not isinstance(started, RunStartedEvent) or end is None:
            raise InvalidStream("an aside begins with RUN_STARTED and ends with the end of its run")
        self._plan, redactor = RunPlan(started.run_id, None, "aside"), self._core.redactor()
        await self._begin(started)
        safe = events if redactor is None else [each for event in events for each in redactor.feed(event)]
        entries = [self.out.put(each) for each in safe]
        if self.out.run is not None:
            self.out.run.end = end
        await self.out.flush()
        self._core.ended(self._key, started.run_id, self.out.first, entries[-1].seq)
        return entries

    def flow(self, event: AnyEvent, on_entry: OnEntry | None) -> list[Entry] | None:
        """Append an event within the open run, if nothing has to be waited for; returns None if something has."""
        if type(event) not in PHASES or self._turn.locked() or not self.out.flows:
            return None
        if event.__dict__["raw_event"] is not None or len(data := encode(event)) >= HEAVY:
            return None
        self._judge(event)
        redactor, entries = self._redactor, list[Entry]()
        for each in (event,) if redactor is None else redactor.feed(event, data):
            entries.append(entry := self.out.put(each, data if each is event else None))
            if on_entry is not None:
                self._show(entry, on_entry)
        self.out.arm()
        return entries

    async def _append(self, event: AnyEvent, on_entry: OnEntry | None = None) -> list[Entry]:
        if isinstance(event, RunStartedEvent):
            refusals.unless_text("a run id", event.run_id)
            refusals.unless_text("parentRunId", event.parent_run_id or "")
            if self._unrecorded is not None or self.out.fenced is not None:
                self._start_checks()
            self._unrecorded, self._logged = None, set()
        elif self.out.fenced is not None:
            raise _again(self.out.fenced)
        try:
            return await self._judged(event, on_entry)
        except BaseException:
            if isinstance(event, RunStartedEvent) and not self.out.is_running:
                self._start_checks()  # it never began, and is not held against the next
            raise

    async def _judged(self, event: AnyEvent, on_entry: OnEntry | None) -> list[Entry]:
        # Encoded once, for a redactor that finds nothing returns the same event; and before it is judged, because what
        # cannot be written never was.
        kept = None if isinstance(event, RawEvent) else _without_raw(event)
        data, redactor = b"" if kept is None else encode(kept), self._redactor
        self._judge(event)
        if self._unrecorded is not None:
            self._count.lost += 1
            return []
        self._keep_raws(event)
        if kept is None:
            return []
        safe: Sequence[AnyEvent] = (kept,)
        if redactor is not None:
            heavy = len(data) >= HEAVY  # a search through megabytes must not hold up other runs
            safe = await beside(lambda: redactor.feed(kept, data)) if heavy else redactor.feed(kept, data)
        admitted = [await self._admit(each, data if each is kept else None, on_entry) for each in safe]
        return [entry for entry in admitted if entry is not None]

    async def _is_taken(self, seq: int) -> bool:
        """Whether this place is taken; `Conflict` when it is not the next one either."""
        last = self.out.last_seq
        if self.out.lease is None:
            thread = await self._core.store.thread(self._key)
            last = thread.last_seq if thread else 0
        if seq > last + 1:
            raise refusals.misplaced(self._key, seq, last)
        return seq <= last

    def _judge(self, event: AnyEvent) -> None:
        found = self._verifier.feed(event) if self._verifier is not None else None
        if found is None:
            return
        self._count.violations += 1
        sentence = f"thread {self._key.thread_id!r}, run {self.out.run_id!r}: {found}"
        if self._options.verify == "reject":
            raise InvalidStream(sentence)
        mistake = (found.rule, found.subject)
        if mistake not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(mistake)
            LOG.warning("%s", sentence)

    def _keep_raws(self, event: AnyEvent) -> None:
        """Raw parts are dropped, or kept apart."""
        raw = getattr(event, "raw_event", None)
        if isinstance(event, RawEvent):
            self._keep_raw(event)
        elif raw is not None:
            self._keep_raw(RawEvent(event=raw))

    def _keep_raw(self, event: RawEvent) -> None:
        if self._options.raw == "drop":
            self._count.raw_dropped += 1
            return
        for each in [event] if self._redactor is None else self._redactor.feed(event):
            self.out.keep_raw(type_of(each), encode(each))

    # writing

    def _show(self, entry: Entry, on_entry: OnEntry) -> None:
        """Show an entry that is about to be written; a snapshot that this gives is written with it."""
        try:
            data = on_entry(entry)
            if data is not None:
                place: dict[str, Any] = {"run": 0, "seq": entry.seq, "at": entry.at, "events": 1}
                body = data if isinstance(data, bytes) else snapshot_body(data)
                self.out.snapshot = pack("snapshot", body, codec=self._core.codec, **place)
        except SlimError as error:
            LOG.warning("the snapshot of thread %r was not saved: %s", self._key.thread_id, error)

    async def _admit(self, event: AnyEvent, data: bytes | None, on_entry: OnEntry | None) -> Entry | None:
        """Give the event its place, and write when a batch is due."""
        out, starts = self.out, isinstance(event, RunStartedEvent)
        if starts or not out.is_running or out.unflushed >= self._options.buffer_events:
            try:
                event, data = await self._patiently(lambda: self._make_room(event, data))
            except (Conflict, LineageError):
                raise
            except StoreError as error:
                self._continue_unrecorded(error)
                return None
        entry = self.out.put(event, data)
        if on_entry is not None:
            self._show(entry, on_entry)
        end = end_of(event)
        if end is not None and out.run is not None:
            out.run.end = end
        if end is not None or starts or out.is_due:
            await self._flush_by_choice()
        else:
            out.arm()
        if end is not None:
            self._core.ended(self._key, entry.run_id, out.first, entry.seq)
        return entry

    async def _make_room(self, event: AnyEvent, data: bytes | None) -> tuple[AnyEvent, bytes | None]:
        """Ensure a lease, an open run, and room for one more event; returns the event as it is to be stored."""
        out = self.out
        if out.unflushed >= self._options.buffer_events:
            await out.flush()
        if isinstance(event, RunStartedEvent):
            small = await self._begin(event)
            return small, data if small is event else None
        if not out.is_running:
            await self._reopen()
        return event, data

    async def _begin(self, event: RunStartedEvent) -> RunStartedEvent:
        """Open the run; returns its RUN_STARTED as it is to be stored."""
        out = self.out
        if out.run is not None and out.run.end is None:
            out.run.end = RunEnd("truncated", None)
        await out.flush()
        await out.acquire()
        plan, self._plan = self._plan, None
        if plan is None or plan.run_id != event.run_id:
            plan = RunPlan(event.run_id, None, "continue")
        parent = out.head if plan.parent is None and plan.edge not in (*APART, "branch") else plan.parent
        new = NewRun(event.run_id, parent, plan.edge, event.parent_run_id, self._mark())
        out.begin(OpenRun(event.run_id, new, mark=new.mark))
        return await self._core.shorten(self._key, event, new, plan.claim.before if plan.claim else None)

    def _mark(self) -> str:
        """The mark of the run that begins here."""
        return mark_of(self.out.last_seq + 1, self._options.new_id())

    async def _reopen(self) -> None:
        """Open a run for an event outside one: the run that just ended here, or the first of an unannounced run."""
        out = self.out
        await out.flush()
        written = out.last_seq
        last = (await out.acquire()).last_run
        # A log that has lost the end of that run continues another history, which the run's mark must not name.
        if last is not None and last.run_id == out.ended and out.last_seq == written:
            end = RunEnd(last.status, last.terminal, last.usage)
            out.begin(OpenRun(last.run_id, None, last.seq, end, last.mark))
        else:
            run_id = f"unannounced-{self._options.new_id()}"
            new = NewRun(run_id, out.head, "continue", mark=self._mark())
            out.begin(OpenRun(run_id, new, mark=new.mark))

    # when the store fails

    async def flush(self) -> None:
        """Make everything durable; raises the error that keeps entries of this run from the store."""
        async with self._turn:
            await self.out.flush()
            for error in (self.out.fenced, self._unrecorded):
                if error is not None:
                    raise _again(error)

    async def settle(self) -> None:
        """Make durable what can be, before a read; `flush` reports errors."""
        async with self._turn:
            await self.out.flush_quietly()

    async def _flush_by_choice(self) -> None:
        try:
            await self._patiently(self.out.flush)
        except (Conflict, LineageError):
            raise
        except StoreError as error:
            if self._options.on_store_error == "raise":
                raise
            LOG.error("thread %r: the run continues, its entries wait: %s", self._key.thread_id, error)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work that needs the store, and retry for `patience_ms` while the store is unavailable."""
        loop = asyncio.get_running_loop()
        patience = self._options.patience_ms / 1000 if self._options.on_store_error == "raise" else 0
        deadline, pause = loop.time() + patience, FIRST_PAUSE
        while True:
            try:
                return await work()
            except (Conflict, LineageError):
                raise
            except StoreError as error:
                if loop.time() + pause > deadline:
                    raise
                LOG.warning("thread %r waits for its store: %s", self._key.thread_id, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _continue_unrecorded(self, error: StoreError) -> None:
        """By choice the run continues without the log, until another one begins."""
        if self._options.on_store_error == "raise":
            raise error
        self._unrecorded = error
        self.out.give_up()
        self._count.lost += 1
        LOG.error("thread %r: the run continues unrecorded: %s", self._key.thread_id, error)


def _again(error: StoreError | LineageError) -> Exception:
    """The same error for another caller."""
    return type(error)(str(error))


def _without_raw(event: AnyEvent) -> AnyEvent:
    has_raw = getattr(event, "raw_event", None) is not None
    return event.model_copy(update={"raw_event": None}) if has_raw else event
