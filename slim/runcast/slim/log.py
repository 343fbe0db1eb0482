"""The log of threads: append, read, restore, attach. Everything else is derived from it.

Knows what is promised to whoever writes and reads; the work is done by its neighbours (`log_core` and what that
names). Does not know frameworks, sockets or envelopes.

**What is durable when.** `append` answers with a `seq` at once and writes within `flush_ms` or `flush_events`,
whichever comes first; so a crash costs at most that much, from the end. The first event of a run, one that ends or
interrupts it, `append_many` and `flush` return when everything is durable. Readers, here and in other processes, see
only what is durable, so that a `seq` they have seen never comes to mean something else.

**Whose a run is.** Who appends has the thread's lease, and renews it while the run goes on; a second owner gets
`Conflict`. When the owner dies its lease runs out and the run is *truncated*: it is given no end, and going on is a
new run. Which run goes on from which is told by `start_run`, `branch` and `resume`, never by the wire.

**What RUN_STARTED holds.** Its input is stored without the messages that its history holds already, and entries
show it so; `input` gives back exactly what the user sent.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from copy import copy
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from uuid import uuid4

from ag_ui.core import RunAgentInput, RunStartedEvent

from runcast.slim.entry import Entry
from runcast.slim.errors import Conflict, ReaderTooSlow, StoreError
from runcast.slim.lineage import denormalize_started
from runcast.slim.log_core import Core, Settings
from runcast.slim.log_files import read_file, write_file
from runcast.slim.log_info import (
    Compacted,
    LogStats,
    Portion,
    Pruned,
    RunInfo,
    Snapshot,
    ThreadInfo,
    ThreadSize,
)
from runcast.slim.log_join import join_thread
from runcast.slim.log_keep import keep_snapshot, newest_snapshot, raw_entries, thread_size
from runcast.slim.log_notes import Notes
from runcast.slim.log_outbox import Timing
from runcast.slim.log_pages import run_info, thread_info
from runcast.slim.log_prune import Pruner, What
from runcast.slim.log_redaction import Redaction, for_threads
from runcast.slim.log_transfer import Importer, export_lines
from runcast.slim.log_writer import Plan
from runcast.slim.stores import Store, refuse
from runcast.slim.stores.codec import Codec, chosen
from runcast.slim.stores.records import Edge, Key
from runcast.slim.wire import AnyEvent


class RunLog:
    """A log over a store. Use it as `async with RunLog(open_store(url)) as log`, or `close` it."""

    def __init__(
        self,
        store: Store,
        *,
        redactor: Redaction | None = None,
        verify: Literal["off", "warn", "reject"] = "warn",  # what to do with an event that breaks a rule
        raw: Literal[
            "drop", "keep"
        ] = "drop",  # RAW events and `rawEvent`; kept, they are read by `raws` alone
        on_store_error: Literal["raise", "continue"] = "raise",  # or let the run go on, and try again later
        patience_ms: int = 0,  # how long an append waits for a store that is away, before it raises
        flush_ms: int = 20,
        flush_events: int = 256,
        buffer_events: int = 10_000,  # what may wait for a store that refuses
        reader_queue: int = 1_000,  # how far a reader may fall behind the live end
        lease_ms: int = 15_000,
        codec: Codec = "auto",  # of what is derived: "xz", "gzip", "zstd" or "none"
        derive: Literal["auto", "manual"] = "auto",  # compact a thread whenever a run of it ends
        owner: str | None = None,  # who holds the leases; one name per log
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        timing = Timing(owner or f"log-{new_id()}", clock, new_id, flush_ms, flush_events, lease_ms)
        self._core = Core(
            store,
            Settings(
                timing,
                for_threads(redactor),
                verify,
                raw,
                on_store_error,
                patience_ms,
                buffer_events,
                reader_queue,
                chosen(codec),
                derive,
            ),
        )
        self._timing = timing
        self._tenant = ""
        self._bound = False

    def for_tenant(self, name: str) -> RunLog:
        """The same log as one tenant sees it: it has other threads, and no way to those of anybody else."""
        if self._bound:
            raise StoreError("this log is bound to a tenant already: ask the log it was made from")
        if not name:
            raise StoreError("a tenant needs a name")
        view = copy(self)
        view._tenant, view._bound = name, True
        return view

    @property
    def owner(self) -> str:
        """Who holds the leases that this log takes."""
        return self._timing.owner

    @property
    def lease_ms(self) -> int:
        """How long a lease runs that is not renewed."""
        return self._timing.lease_ms

    @property
    def notes(self) -> Notes:
        """What the processes that share the store tell each other."""
        return Notes(self._core.store, self._timing.clock, self._tenant, bound=self._bound)

    def _key(self, thread_id: str) -> Key:
        return Key(self._tenant, refuse.unless_text("a thread id", thread_id))

    async def __aenter__(self) -> Self:
        await self._core.store.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Write what is unflushed, give all leases back, end all readers and close the store.

        A run that is still open is cut short. A tenant's view only flushes.
        """
        await (self.flush() if self._bound else self._core.close())

    # writing

    async def append(self, thread_id: str, event: AnyEvent, *, seq: int | None = None) -> Entry | None:
        """Append an event to the thread's run; RUN_STARTED begins one. None for what leaves no entry: raw parts,
        text that a redactor still holds, and events of a run that goes on unrecorded.

        With `seq` the event goes just there or not at all: the same event again gives its entry again, another
        one is a `Conflict`. Raises `Conflict` when somebody else owns the thread, `InvalidStream` under
        `verify="reject"`, `LineageError` for an unknown parent. After any other `StoreError` what was appended is
        still here, and the next call tries again to write it.
        """
        return await self._core.writer(self._key(thread_id)).append(event, seq)

    async def append_many(self, thread_id: str, events: Iterable[AnyEvent]) -> list[Entry]:
        """Append events in order and make them durable."""
        return await self._core.writer(self._key(thread_id)).append_many(events)

    async def flush(self, thread_id: str | None = None) -> None:
        """Make everything durable that was appended here to this thread, or to all; raises when that failed, or when
        entries of a run that is under way were lost."""
        only = None if thread_id is None else self._key(thread_id)

        def meant(key: Key) -> bool:
            return key == only if only else key.tenant == self._tenant or not self._bound

        await self._core.flush(meant)

    async def start_run(
        self, thread_id: str, run_id: str, *, parent: str | None = None, edge: Edge = "continue"
    ) -> None:
        """Say where a run belongs before its RUN_STARTED comes, and take the thread's lease for it.

        Without a parent it goes on from the newest run; a run nobody announced does the same.
        """
        plan = Plan(refuse.unless_text("a run id", run_id), parent, edge)
        await self._core.writer(self._key(thread_id)).plan(plan)

    async def branch(self, thread_id: str, from_run: str, run_id: str) -> None:
        """The coming run goes on from an earlier one, as if nothing had come after that."""
        await self._known(thread_id, from_run)
        await self.start_run(thread_id, run_id, parent=from_run, edge="branch")

    async def resume(self, thread_id: str, run_id: str, *, of: str | None = None) -> None:
        """The coming run takes up one that was interrupted, cut short or failed: the newest, or `of`."""
        found = await self._known(thread_id, of)
        await self.start_run(thread_id, run_id, parent=found, edge="resume")

    async def abandon(self, thread_id: str) -> None:
        """Give up the run that is under way here, as if its process had died: it is truncated, the thread is free."""
        await self._core.abandon(self._key(thread_id))

    async def hand_over(self, thread_id: str) -> None:
        """Give the thread's lease back with the run that is under way here still open: whoever looks for runs that
        lost their owner finds it at once, and can take it up."""
        await self._core.abandon(self._key(thread_id), cut=False)

    async def _known(self, thread_id: str, run_id: str | None) -> str:
        return (await self._core.derived.chain(self._key(thread_id), run_id))[-1].run_id

    # reading

    async def thread(self, thread_id: str) -> ThreadInfo | None:
        """The thread, or None."""
        found = await self._core.store.thread(self._key(thread_id))
        return None if found is None else thread_info(found, self._timing.clock())

    async def threads(self, *, limit: int = 100, after: str = "") -> list[ThreadInfo]:
        """Threads by their ids, those behind `after`."""
        found = await self._core.store.threads(self._tenant, limit=limit, after=after)
        return [thread_info(thread, self._timing.clock()) for thread in found]

    async def runs(self, thread_id: str) -> list[RunInfo]:
        """All runs of the thread, oldest first; `parent` makes them a tree."""
        key = self._key(thread_id)
        thread, runs = await self._core.store.thread(key), await self._core.store.runs(key)
        leased = thread is not None and thread_info(thread, self._timing.clock()).owner is not None
        names = {run.seq: run.run_id for run in runs}
        return [run_info(run, names, leased=leased) for run in runs]

    async def find(self, run_id: str) -> list[tuple[ThreadInfo, RunInfo]]:
        """The runs of this id, oldest first, each with its thread: ids of runs are unique in a thread alone."""
        now = self._timing.clock()
        found: list[tuple[ThreadInfo, RunInfo]] = []
        for thread, run in await self._core.store.named(self._tenant, refuse.unless_text("a run id", run_id)):
            told = thread_info(thread, now)
            found.append((told, run_info(run, {}, leased=told.owner is not None)))
        return found

    async def entries(self, thread_id: str, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Entries behind `after`, about `limit` of them: a pruned run is given whole or, from inside it, refused
        with `UnknownThread`. Empty for a thread that is not there."""
        return await self._core.pages.entries(self._key(thread_id), after, limit)

    async def attach(
        self, thread_id: str, after: int | None = None, *, epoch: str | None = None
    ) -> AsyncGenerator[Entry]:
        """Entries behind `after`, and then every new one as soon as it is durable, for as long as somebody reads.

        The thread need not exist yet. Raises `ReaderTooSlow` when a reader that had caught up falls more than
        `reader_queue` entries behind: attach again with `after`. Raises `UnknownThread` when `after` means
        nothing here any more: another `epoch`, beyond the end, or inside a pruned run. Restore then.
        """
        key = self._key(thread_id)
        feed = self._core.feed(key)
        try:
            async with aclosing(feed.attach(after or 0, epoch)) as entries:
                async for entry in entries:
                    yield entry
        except ReaderTooSlow:
            self._core.readers_cut += 1
            raise
        finally:
            await self._core.leave(key, feed)

    async def join(
        self, thread_id: str, *, at: int | None = None, after: int | None = None
    ) -> AsyncGenerator[Portion]:
        """For an empty client that comes late: first all it needs to stand where the thread stands, what is open
        opened again, then what comes. A portion's `seq` holds once all its events were taken.

        To come back after a break, say `at` which seq it joined (the first portion's) and `after` which it has.
        """
        key = self._key(thread_id)
        await self._core.settle(key)
        core = self._core
        portions = join_thread(
            core.store, core.derived, key, lambda cut: self.attach(thread_id, cut), at=at, after=after
        )
        async with aclosing(portions):
            async for portion in portions:
                yield portion

    async def restore(
        self, thread_id: str, run_id: str | None = None, *, compacted: bool = True
    ) -> list[AnyEvent]:
        """A stream that brings an empty client to where a run stands: the newest, or the one that is named.

        Only the run's ancestors count; siblings and spawned runs do not. Compacted it is a handful of events;
        otherwise every event there is. A run that is under way or was cut short has no end in it.
        """
        key = self._key(thread_id)
        await self._core.settle(key)
        return await self._core.derived.restore(key, run_id, compacted=compacted)

    async def input(self, thread_id: str, run_id: str) -> RunAgentInput | None:
        """What the run was started with, exactly as RUN_STARTED echoed it; None if it did not."""
        key, derived = self._key(thread_id), self._core.derived
        await self._core.settle(key)
        chain = await derived.chain(key, run_id)
        started = (await anext(derived.pieces(key, chain[-1:], folded=False)))[0]
        if not isinstance(started, RunStartedEvent):
            return None
        parent = chain[-2].run_id if len(chain) > 1 else None
        return denormalize_started(started, await derived.messages(key, parent)).input

    async def raws(self, thread_id: str, after: int = 0, limit: int | None = None) -> list[Entry]:
        """What was kept apart under `raw="keep"`, each under the seq of the entry it came with or before."""
        key = self._key(thread_id)
        return await raw_entries(self._core.store, key, after, limit)

    # keeping

    async def save_snapshot(
        self, thread_id: str, data: Mapping[str, Any], *, run_id: str | None = None, keep: int = 3
    ) -> Snapshot:
        """Keep a picture of the thread as it is now; the newest `keep` of them stay."""
        key = self._key(thread_id)
        await self._core.settle(key)
        chain = await self._core.derived.chain(key, run_id)
        return await keep_snapshot(
            self._core.store, key, chain[-1], data, self._core.settings.codec, self._timing.clock(), keep
        )

    async def snapshot(self, thread_id: str) -> Snapshot | None:
        """The newest sound snapshot of the thread."""
        return await newest_snapshot(self._core.store, self._key(thread_id))

    async def size(self, thread_id: str) -> ThreadSize:
        """What the thread weighs in the store."""
        return await thread_size(self._core.store, self._key(thread_id))

    async def compact(self, thread_id: str) -> Compacted:
        """Derive segments and a checkpoint from what has ended, as `derive="auto"` does by itself."""
        return await self._core.derived.compact(self._key(thread_id))

    async def prune(
        self, *, older_than: timedelta | None = None, keep_bytes: int | None = None, what: What = "raw"
    ) -> Pruned:
        """Let go of old things, in all threads: `raw` events of ended runs, whose segments stay and stand for them;
        `derived` things, which can be made anew; or whole `threads`. `keep_bytes` bounds the raw events that stay.
        """
        age = None if older_than is None else round(older_than / timedelta(milliseconds=1))
        if what != "raw" and keep_bytes is not None:
            raise StoreError("keep_bytes goes with raw events: prune others by older_than")
        pruner = Pruner(self._core.store, self._core.derived, self._tenant, self._timing.clock())
        match what:
            case "raw":
                return await pruner.raw(age, keep_bytes)
            case "derived":
                return await pruner.derived(age)
            case "threads":
                return await pruner.threads(age)

    async def stranded(self) -> list[tuple[str, str, str]]:
        """Runs whose owner died, as tenant, thread id and run id: everybody's, or those of the tenant of this view."""
        tenant = self._tenant if self._bound else None
        found = await self._core.store.stranded(tenant, now=self._timing.clock())
        return [(key.tenant, key.thread_id, run.run_id) for key, run in found if not self._core.owns(key)]

    async def left(self, since_ms: int) -> list[tuple[str, str, str]]:
        """Runs that were truncated in the last `since_ms` and that nobody went on from, as `stranded` tells them."""
        tenant, now = self._tenant if self._bound else None, self._timing.clock()
        found = await self._core.store.left(tenant, now=now, since=now - since_ms)
        return [(key.tenant, key.thread_id, run.run_id) for key, run in found if not self._core.owns(key)]

    async def reclaim(self, thread_id: str) -> list[RunInfo]:
        """Mark the run of a thread whose owner died as truncated; of all who try at once, one is told which it was."""
        key = self._key(thread_id)
        if self._core.owns(key):
            return []
        try:
            cut = await self._core.writer(key).reclaim()
        except Conflict:  # somebody else was quicker
            return []
        return [each for each in await self.runs(thread_id) if each.run_id in cut] if cut else []

    async def recover(self) -> list[tuple[str, RunInfo]]:
        """Mark the runs whose owner died as truncated, and say which: thread id and run. This tenant's alone."""
        stranded = await self._core.store.stranded(self._tenant, now=self._timing.clock())
        threads = [key.thread_id for key, _ in stranded]
        return [(thread_id, run) for thread_id in threads for run in await self.reclaim(thread_id)]

    async def delete(self, thread_id: str) -> bool:
        """Forget the thread; a new one of this id will have another epoch. `Conflict` while it is written."""
        key = self._key(thread_id)
        gone = await self._core.store.delete(key, now=self._timing.clock())
        self._core.forget(key)
        return gone

    # carrying

    async def export_lines(self, thread_id: str) -> AsyncIterator[bytes]:
        """The thread as JSON Lines; without raw parts, derived things and snapshots."""
        key = self._key(thread_id)
        await self._core.settle(key)
        async for line in export_lines(self._core.store, self._core.derived, key):
            yield line

    async def import_lines(self, lines: AsyncIterator[bytes]) -> str:
        """Put an exported thread in here; answers its id. The same one again is no error, another one a `Conflict`."""
        timing = self._timing
        importer = Importer(
            self._core.store,
            self._tenant,
            owner=f"{timing.owner}-import-{timing.new_id()}",
            now=timing.clock(),
            lease_ms=timing.lease_ms,
            new_id=timing.new_id,
        )
        return await importer.read(lines)

    async def export_file(self, thread_id: str, path: str | Path) -> int:
        """Write the thread to a file, compressed when its name ends in `.gz`; answers how many lines."""
        return await write_file(Path(path), self.export_lines(thread_id))

    async def import_file(self, path: str | Path) -> str:
        """Read a thread from such a file."""
        async with aclosing(read_file(Path(path))) as lines:
            return await self.import_lines(lines)

    def stats(self) -> LogStats:
        """Counters of all tenants since the log was made, and what it holds right now."""
        return self._core.stats()
