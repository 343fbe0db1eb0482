"""The log of threads: append, read, restore, attach. Everything else is derived from it.

Knows the promises to writers and readers; the rooms it names do the work. Does not know frameworks, sockets or
envelopes.

**When data is durable.** `append` returns a `seq` at once and writes within `flush_ms` or `flush_events`, whichever
comes first; a crash costs at most that much, from the end. RUN_STARTED, an event that ends or interrupts a run,
`append_many` and `flush` return when everything is durable. Readers, in this process and in others, receive only
durable entries, so a `seq` they have received never changes its meaning.

**Ownership.** The writer holds the thread's lease and renews it while the run is active; a second writer gets
`Conflict`. When a writer dies, its lease expires and the run is *truncated*: no terminal event is written, and
continuing starts a new run. `start_run`, `branch` and `resume` record which run a run continues; the wire does not.

**RUN_STARTED.** Its input is stored without the messages that its history already holds, and entries show it so;
`input` returns the input exactly as the user sent it.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from ag_ui.core import RunAgentInput, RunStartedEvent

from runcast.slim.archive.blobs import keep_snapshot, newest_snapshot
from runcast.slim.archive.info import Claim, LogStats, Portion, RunInfo, Snapshot, ThreadInfo
from runcast.slim.archive.joining import join_thread
from runcast.slim.archive.lineage import denormalize_started
from runcast.slim.archive.pages import run_info, runs_of, thread_info
from runcast.slim.entry import Entry
from runcast.slim.errors import StoreError
from runcast.slim.log.batches import RunPlan
from runcast.slim.log.engine import Core
from runcast.slim.log.keeping import Archive
from runcast.slim.log.live_feed import Live
from runcast.slim.log.log_options import LogChanges, LogOptions, Scope
from runcast.slim.log.notes import Notes
from runcast.slim.log.recovery import Recovery
from runcast.slim.log.redaction import Redaction, for_threads
from runcast.slim.log.writer import OnEntry
from runcast.slim.stores import Store, refusals
from runcast.slim.stores.records import Edge
from runcast.slim.wire.codec import AnyEvent


class RunLog:
    """A log over a store. Use it as `async with RunLog(open_store(url)) as log`, or `close` it."""

    def __init__(
        self,
        store: Store,
        options: LogOptions | None = None,
        *,
        redactor: Redaction | None = None,
        **changes: Unpack[LogChanges],  # of single options: `RunLog(store, flush_ms=5)`
    ) -> None:
        self._core = Core(store, replace(options or LogOptions(), **changes), for_threads(redactor))
        self.owner = self._core.owner  # the name under which this log takes leases
        self.lease_ms = self._core.options.lease_ms  # how long a lease lasts unless it is renewed
        self._bind(Scope())

    def _bind(self, scope: Scope) -> None:
        self._scope = scope
        self.notes = Notes(self._core.store, self._core.options.clock, scope)
        self.archive = Archive(self._core, scope)
        self.recovery = Recovery(self._core, scope)
        self.live = Live(self._core, scope)

    def for_tenant(self, name: str) -> RunLog:
        """A view of the log for one tenant, which reaches no thread of any other."""
        if self._scope.bound:
            raise StoreError("this log is bound to a tenant already: ask the log it was made from")
        if not name:
            raise StoreError("a tenant needs a name")
        view = copy(self)
        view._bind(Scope(name, bound=True))
        return view

    async def __aenter__(self) -> Self:
        await self._core.store.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Write unflushed entries, release all leases, end all readers and close the store.

        A run that is still active is truncated. A tenant's view only flushes.
        """
        await (self.flush() if self._scope.bound else self._core.close())

    # writing

    async def append(
        self, thread_id: str, event: AnyEvent, *, seq: int | None = None, on_entry: OnEntry | None = None
    ) -> Entry | None:
        """Append an event to the thread's run; RUN_STARTED begins one. Returns None when there is no entry: for raw
        parts, text that a redactor still holds, and events of a run that continues unrecorded.

        With `seq` the event goes to that place or nowhere: the same event again returns its entry again, another
        event is a `Conflict`. Raises `Conflict` when another writer owns the thread, `InvalidStream` under
        `verify="reject"`, `LineageError` for an unknown parent. After any other `StoreError` the appended events are
        kept, and the next call tries again to write them.

        `on_entry` receives each entry before it is written; a snapshot of the thread that it returns, as data or as its
        JSON, is written in one transaction with the entry.
        """
        return await self._core.writer(self._scope.key(thread_id)).append(event, seq, on_entry)

    async def append_many(
        self, thread_id: str, events: Iterable[AnyEvent], *, on_entry: OnEntry | None = None
    ) -> list[Entry]:
        """Append events in order and make them durable; `on_entry` as in `append`."""
        return await self._core.writer(self._scope.key(thread_id)).append_many(events, on_entry)

    async def flush(self, thread_id: str | None = None) -> None:
        """Make everything appended here durable, for one thread or all. Raises when that fails, or when entries of
        an active run were lost."""
        only = None if thread_id is None else self._scope.key(thread_id)
        await self._core.flush(lambda key: self._scope.covers(key) if only is None else key == only)

    async def start_run(
        self, thread_id: str, run_id: str, *, parent: str | None = None, edge: Edge = "continue"
    ) -> Claim:
        """Take the thread's lease for a run and record its parent, before its RUN_STARTED arrives.

        Without a parent it continues the newest run, as a run without `start_run` does; a branch without one begins
        anew, as the first run of the thread did. A caller who reads the thread before the run begins sets `before`.
        """
        plan = RunPlan(refusals.unless_text("a run id", run_id), parent, edge)
        return await self._core.writer(self._scope.key(thread_id)).plan(plan)

    async def branch(self, thread_id: str, from_run: str, run_id: str) -> None:
        """Start a run that continues an earlier one, as if nothing had come after that."""
        await self._start_from(thread_id, from_run, run_id, "branch")

    async def resume(self, thread_id: str, run_id: str, *, of: str | None = None) -> None:
        """Start a run that resumes one that was interrupted, truncated or failed: the newest, or `of`."""
        await self._start_from(thread_id, of, run_id, "resume")

    async def _start_from(self, thread_id: str, parent: str | None, run_id: str, edge: Edge) -> None:
        found = (await self._core.derived.chain(self._scope.key(thread_id), parent))[-1].run_id
        await self.start_run(thread_id, run_id, parent=found, edge=edge)

    # reading

    async def thread(self, thread_id: str) -> ThreadInfo | None:
        """The thread, or None."""
        found = await self._core.store.thread(self._scope.key(thread_id))
        return None if found is None else thread_info(found, self._core.options.clock())

    async def threads(self, *, limit: int = 100, after: str = "") -> list[ThreadInfo]:
        """Threads ordered by id, from behind `after`."""
        found = await self._core.store.threads(self._scope.tenant, limit=limit, after=after)
        return [thread_info(thread, self._core.options.clock()) for thread in found]

    async def runs(self, thread_id: str) -> list[RunInfo]:
        """All runs of the thread but asides, oldest first; `parent` makes them a tree."""
        return await runs_of(self._core.store, self._scope.key(thread_id), self._core.options.clock())

    async def find(self, run_id: str) -> list[tuple[ThreadInfo, RunInfo]]:
        """The runs of this id with their threads, oldest first: a run id is unique in its thread alone."""
        now, id = self._core.options.clock(), refusals.unless_text("a run id", run_id)
        found: list[tuple[ThreadInfo, RunInfo]] = []
        for thread, run in await self._core.store.named(self._scope.tenant, id):
            info = thread_info(thread, now)
            found.append((info, run_info(run, {}, leased=info.owner is not None)))
        return found

    async def entries(
        self, thread_id: str, after: int = 0, limit: int | None = None, *, epoch: str | None = None
    ) -> list[Entry]:
        """Entries behind `after`, about `limit` of them: a pruned run is returned whole or, from inside it, refused
        with `UnknownThread`. Empty for a thread that does not exist. With `epoch`, a position of another history is
        refused as by `attach`."""
        return await self._core.pages.entries(self._scope.key(thread_id), after, limit, epoch)

    async def attach(
        self, thread_id: str, after: int | None = None, *, epoch: str | None = None
    ) -> AsyncGenerator[Entry]:
        """Entries behind `after`, then every new one as soon as it is durable, until the reader stops.

        The thread need not exist yet. Raises `ReaderTooSlow` when a reader that had caught up falls more than
        `reader_queue` entries behind: attach again with `after`. Raises `UnknownThread` when `after` has no meaning
        here any more: another `epoch`, beyond the end, or inside a pruned run. Restore the thread then. Give
        `Entry.history` as `epoch`: it also shows that a log lost its tail and has other entries there now.
        """
        async with aclosing(self.live.attach(thread_id, after, epoch=epoch)) as lots:
            async for entries in lots:
                for entry in entries:
                    yield entry

    async def join(
        self, thread_id: str, *, at: int | None = None, after: int | None = None, epoch: str | None = None
    ) -> AsyncGenerator[Portion]:
        """For an empty client that comes late: first all events it needs to reach the thread's state, with open
        streams opened again, then new ones. A portion's `seq` holds once all its events are applied.

        To continue after a break, give `at`, the seq of the first portion, `after`, the last seq received, and the
        `history` of its portion as `epoch`: `UnknownThread` means that the log has another history now.
        """
        key, core = self._scope.key(thread_id), self._core
        await core.settle(key)
        portions = join_thread(
            core.store,
            core.derived,
            key,
            lambda cut: self.attach(thread_id, cut),
            at=at,
            after=after,
            epoch=epoch,
        )
        async with aclosing(portions):
            async for portion in portions:
                yield portion

    async def restore(
        self, thread_id: str, run_id: str | None = None, *, compacted: bool = True
    ) -> list[AnyEvent]:
        """A stream that brings an empty client to the state after a run: the newest, or the one named.

        Only the run's ancestors count; siblings and spawned runs do not. Compacted it is a handful of events;
        otherwise every stored event. A run that is active or truncated has no end in it.
        """
        key = self._scope.key(thread_id)
        await self._core.settle(key)
        return await self._core.derived.restore(key, run_id, compacted=compacted)

    async def input(self, thread_id: str, run_id: str) -> RunAgentInput | None:
        """The input of the run, exactly as RUN_STARTED echoed it; None if it did not."""
        key, derived = self._scope.key(thread_id), self._core.derived
        await self._core.settle(key)
        chain = await derived.chain(key, run_id)
        started = (await anext(derived.pieces(key, chain[-1:], folded=False)))[0]
        if not isinstance(started, RunStartedEvent):
            return None
        parent = chain[-2].run_id if len(chain) > 1 else None
        return denormalize_started(started, await derived.messages(key, parent)).input

    async def save_snapshot(
        self, thread_id: str, data: Mapping[str, Any], *, run_id: str | None = None, keep: int = 3
    ) -> Snapshot:
        """Store a snapshot of the thread as it is now; the newest `keep` of them stay."""
        key, core = self._scope.key(thread_id), self._core
        await core.settle(key)
        run = (await core.derived.chain(key, run_id))[-1]
        return await keep_snapshot(core.store, key, run, data, core.codec, core.options.clock(), keep)

    async def snapshot(self, thread_id: str) -> Snapshot | None:
        """The newest sound snapshot of the thread."""
        return await newest_snapshot(self._core.store, self._scope.key(thread_id))

    def stats(self) -> LogStats:
        """Counters of all tenants since the log was made, and its present load."""
        return self._core.stats()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            room = MOVED.get(name)
            if room is None:
                raise AttributeError(f"RunLog has no attribute {name!r}")
            warnings.warn(f"RunLog.{name} is RunLog.{room}.{name} now", DeprecationWarning, stacklevel=2)
            return getattr(getattr(self, room), name)


MOVED = {
    **dict.fromkeys(
        (
            "size",
            "raws",
            "compact",
            "prune",
            "delete",
            "export_lines",
            "import_lines",
            "export_file",
            "import_file",
        ),
        "archive",
    ),
    **dict.fromkeys(
        ("abandon", "release_running", "orphaned_runs", "truncated_unresumed", "mark_truncated", "recover"),
        "recovery",
    ),
}  # spellings of an earlier release
