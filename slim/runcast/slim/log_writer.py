"""One thread's writer: from events as they come to entries as they are kept.

Knows what is looked at before anything is written (the rules of the protocol, then raw parts, then secrets), where a
run begins and ends, and what to do when the store refuses; does not know batches (`log_outbox`) or readers. Appends
take turns. A run begins only when all before it is durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from ag_ui.core import RawEvent, RunStartedEvent

from runcast.slim.entry import Entry
from runcast.slim.errors import Conflict, InvalidStream, LineageError, StoreError
from runcast.slim.log_ends import end_of, type_of
from runcast.slim.log_outbox import Counters, OpenRun, Outbox, Timing
from runcast.slim.log_redaction import EventStream
from runcast.slim.stores import Store, refuse
from runcast.slim.stores.records import Edge, Key, NewRun, RunEnd
from runcast.slim.verify import Verifier
from runcast.slim.wire import AnyEvent, decode, encode

LOG = logging.getLogger("runcast.log")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts to write, while the store is away
TOLD = 20  # different mistakes of one run that are logged; all are counted

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a log does with what it is given; see `RunLog`."""

    verify: Literal["off", "warn", "reject"]
    raw: Literal["drop", "keep"]
    on_store_error: Literal["raise", "continue"]
    patience_ms: int
    buffer_events: int
    redactor: Callable[[], EventStream | None]
    shorten: Callable[[Key, RunStartedEvent, NewRun], Awaitable[RunStartedEvent]]
    ended: Callable[[Key, str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a run that has not begun belongs; without a parent, behind the thread's newest."""

    run_id: str
    parent: str | None
    edge: Edge


class Writer:
    """Appends to one thread. Made by the log, one a thread."""

    def __init__(self, key: Key, store: Store, timing: Timing, policy: Policy, counters: Counters) -> None:
        self.out = Outbox(key, store, timing, counters)
        self._key = key
        self._store = store
        self._new_id = timing.new_id
        self._policy = policy
        self._count = counters
        self._turn = asyncio.Lock()
        self._plan: Plan | None = None
        self._deaf: StoreError | None = None  # why the run goes on unrecorded, by choice
        self._told: set[tuple[str, str | None]] = set()  # mistakes of this run that were logged
        self._redactor = policy.redactor()
        refusing = policy.verify == "reject"
        self._verifier = None if policy.verify == "off" else Verifier(refusing=refusing)

    @property
    def idle(self) -> bool:
        """Nothing is open, owed or owned."""
        return self.out.lease is None and not self.out.unflushed and not self._turn.locked()

    async def plan(self, plan: Plan) -> None:
        """Say where the next run belongs, and take the lease for it."""
        async with self._turn:
            out = self.out
            if out.run is not None and out.run.end is None:
                raise Conflict(f"run {out.run.run_id!r} is under way here: end it before another one begins")
            await out.flush()
            await out.acquire()
            if await self._is_used(plan.run_id):
                await out.release()  # else the thread would be ours until the lease runs out, for nothing
                raise refuse.used(self._key, plan.run_id)
            self._plan = plan

    async def _is_used(self, run_id: str) -> bool:
        named = await self._store.named(self._key.tenant, run_id)
        return any(thread.key == self._key for thread, _ in named)

    async def append(self, event: AnyEvent, seq: int | None = None) -> Entry | None:
        """Append one event; see `RunLog.append`."""
        async with self._turn:
            if seq is not None and await self._is_there(seq):
                return await self._again(seq, event)
            entries = await self._append(event)
            return entries[-1] if entries else None

    async def append_many(self, events: Iterable[AnyEvent]) -> list[Entry]:
        """Append events in order, and make them durable."""
        async with self._turn:
            entries = [entry for event in events for entry in await self._append(event)]
            await self._flush_by_choice()
            return entries

    async def close(self, *, cut: bool = True) -> None:
        """Write what is held back, and give the lease back; a run that is open is cut short, or left to the next."""
        async with self._turn:
            if self._redactor is not None and self.out.run is not None and self.out.run.end is None:
                for event in self._redactor.close():
                    self._put(event)
            await self.out.release(cut=cut)

    async def reclaim(self) -> tuple[str, ...]:
        """Take the lease and give it back, so that a run that lost its owner is marked truncated; answers which."""
        async with self._turn:
            if self.out.lease is not None:
                return ()  # since it was asked for, a run of our own has begun
            lease = await self.out.acquire()
            await self.out.release()
            return lease.cut

    async def _append(self, event: AnyEvent) -> list[Entry]:
        if isinstance(event, RunStartedEvent):
            refuse.unless_text("a run id", event.run_id)
            refuse.unless_text("parentRunId", event.parent_run_id or "")
            self._deaf, self._told = None, set()
        elif self.out.ousted is not None:
            raise _again(self.out.ousted)
        self._judge(event)
        if self._deaf is not None:
            self._count.lost += 1
            return []
        kept = self._without_raw(event)
        if kept is None:
            return []
        # Encoded once: a redactor that finds nothing gives the same event back.
        data = encode(kept)
        safe = (kept,) if self._redactor is None else self._redactor.feed(kept, data)
        entries: list[Entry] = []
        for each in safe:
            entry = await self._admit(each, data if each is kept else None)
            if entry is not None:
                entries.append(entry)
        return entries

    # the same event again

    async def _is_there(self, seq: int) -> bool:
        """Whether this place is taken; `Conflict` when it is not the next one either."""
        last = self.out.last_seq
        if self.out.lease is None:
            thread = await self._store.thread(self._key)
            last = thread.last_seq if thread else 0
        if seq > last + 1:
            raise refuse.misplaced(self._key, seq, last)
        return seq <= last

    async def _again(self, seq: int, event: AnyEvent) -> Entry:
        """The entry at this place, if it is this event; `Conflict` if it is another."""
        await self.out.flush()
        page = await self._store.events(self._key, after=seq - 1, upto=seq)
        for found in page.events:
            kept = decode(found.payload, legacy=False)
            if self._is_same(kept, event):
                return Entry(self._key.thread_id, seq, page.epoch or "", found.run_id, found.at, kept)
        raise Conflict(
            f"seq {seq} of thread {self._key.thread_id!r} is taken by another event: read it first"
        )

    def _is_same(self, kept: AnyEvent, event: AnyEvent) -> bool:
        """Whether `kept` is what became of `event`. Where secrets were taken out, its kind has to do."""
        if isinstance(kept, RunStartedEvent) and isinstance(event, RunStartedEvent):
            return kept.run_id == event.run_id
        if type(kept) is not type(event):
            return False
        return self._redactor is not None or encode(kept) == encode(_bare(event))

    # before anything is written

    def _judge(self, event: AnyEvent) -> None:
        found = self._verifier.feed(event) if self._verifier is not None else None
        if found is None:
            return
        self._count.violations += 1
        run = self.out.run.run_id if self.out.run else None
        sentence = f"thread {self._key.thread_id!r}, run {run!r}: {found}"
        if self._policy.verify == "reject":
            raise InvalidStream(sentence)
        mistake = (found.rule, found.subject)
        if mistake not in self._told and len(self._told) < TOLD:
            self._told.add(mistake)
            LOG.warning("%s", sentence)

    def _without_raw(self, event: AnyEvent) -> AnyEvent | None:
        """The event as the log keeps it; what a framework said is dropped, or kept apart."""
        if isinstance(event, RawEvent):
            self._aside(event)
            return None
        raw = getattr(event, "raw_event", None)
        if raw is None:
            return event
        self._aside(RawEvent(event=raw))
        return _bare(event)

    def _aside(self, event: RawEvent) -> None:
        if self._policy.raw == "drop":
            self._count.raw_dropped += 1
            return
        for each in [event] if self._redactor is None else self._redactor.feed(event):
            self.out.aside(type_of(each), encode(each))

    # writing

    async def _admit(self, event: AnyEvent, data: bytes | None) -> Entry | None:
        """Give the event its place, and write when it is time."""
        out, starts = self.out, isinstance(event, RunStartedEvent)
        if (
            starts
            or out.run is None
            or out.run.end is not None
            or out.unflushed >= self._policy.buffer_events
        ):
            try:
                event, data = await self._patiently(lambda: self._make_room(event, data))
            except (Conflict, LineageError):
                raise
            except StoreError as error:
                self._go_unrecorded(error)
                return None
        entry = self._put(event, data)
        end = end_of(event)
        if end is not None and out.run is not None:
            out.run.end = end
        if end is not None or starts or out.is_due:
            await self._flush_by_choice()
        else:
            out.arm()
        if end is not None:
            self._policy.ended(self._key, entry.run_id)
        return entry

    async def _make_room(self, event: AnyEvent, data: bytes | None) -> tuple[AnyEvent, bytes | None]:
        """See to it that there is a lease, an open run, and room for one more; gives the event as it is to be kept."""
        out = self.out
        if out.unflushed >= self._policy.buffer_events:
            await out.flush()
        if isinstance(event, RunStartedEvent):
            small = await self._policy.shorten(self._key, event, await self._begin(event))
            return small, data if small is event else None
        if out.run is None or out.run.end is not None:
            await self._go_on()
        return event, data

    async def _begin(self, event: RunStartedEvent) -> NewRun:
        out = self.out
        if out.run is not None and out.run.end is None:
            out.run.end = RunEnd("truncated", None)  # nobody will ever know how it ended
        await out.flush()
        await out.acquire()
        plan, self._plan = self._plan, None
        if plan is None or plan.run_id != event.run_id:
            plan = Plan(event.run_id, None, "continue")
        parent = out.head if plan.parent is None and plan.edge != "spawn" else plan.parent
        new = NewRun(event.run_id, parent, plan.edge, event.parent_run_id)
        out.begin(OpenRun(event.run_id, new))
        return new

    async def _go_on(self) -> None:
        """An event outside a run: a late word about the one that ended here, or a run that nobody announced."""
        out = self.out
        await out.flush()
        last = (await out.acquire()).last_run
        if last is not None and last.run_id == out.ended:
            end = RunEnd(last.status, last.terminal, last.usage)
            out.begin(OpenRun(last.run_id, None, last.seq, end))
        else:
            run_id = f"unannounced-{self._new_id()}"
            out.begin(OpenRun(run_id, NewRun(run_id, out.head, "continue")))

    def _put(self, event: AnyEvent, data: bytes | None = None) -> Entry:
        lease, run = self.out.lease, self.out.run
        if lease is None or run is None:
            raise Conflict(f"thread {self._key.thread_id!r} has no run here that could be written")
        new = self.out.put(type_of(event), encode(event) if data is None else data)
        return Entry(self._key.thread_id, new.seq, lease.epoch, run.run_id, new.at, event)

    # when the store refuses

    async def flush(self) -> None:
        """Make everything durable; raises what kept entries of this run from ever being so."""
        async with self._turn:
            await self.out.flush()
            if self.out.ousted is not None:
                raise _again(self.out.ousted)
            if self._deaf is not None:
                raise _again(self._deaf)

    async def settle(self) -> None:
        """Make durable what can be, for somebody who wants to read it; who wants to know asks `flush`."""
        async with self._turn:
            await self.out.flush_quietly()

    async def _flush_by_choice(self) -> None:
        try:
            await self._patiently(self.out.flush)
        except (Conflict, LineageError):
            raise
        except StoreError as error:
            if self._policy.on_store_error == "raise":
                raise
            LOG.error("thread %r: the run goes on, its entries wait: %s", self._key.thread_id, error)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what needs the store; while it is away, try again as long as the log has patience. The writer waits."""
        loop = asyncio.get_running_loop()
        waits = self._policy.patience_ms / 1000 if self._policy.on_store_error == "raise" else 0
        deadline, pause = loop.time() + waits, FIRST_PAUSE
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

    def _go_unrecorded(self, error: StoreError) -> None:
        """There is no place for the event. By choice the run goes on without the log, until another one begins."""
        if self._policy.on_store_error == "raise":
            raise error
        self._deaf = error
        self.out.give_up()
        self._count.lost += 1
        LOG.error("thread %r: the run goes on unrecorded: %s", self._key.thread_id, error)


def _again(error: Conflict | LineageError | StoreError) -> Exception:
    """The same error for another caller."""
    return type(error)(str(error))


def _bare(event: AnyEvent) -> AnyEvent:
    """The event without what its framework said."""
    if getattr(event, "raw_event", None) is None:
        return event
    return event.model_copy(update={"raw_event": None})
