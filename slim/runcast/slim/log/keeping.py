"""What is kept of threads, and for how long: `RunLog.archive`.

Knows the calls that weigh, compact, prune, delete and carry threads; the work is done in the room `archive`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

from runcast.slim.archive.blobs import raw_entries, thread_size
from runcast.slim.archive.info import Compacted, Pruned, ThreadInfo, ThreadSize
from runcast.slim.archive.line_files import read_file, write_file
from runcast.slim.archive.pages import thread_info
from runcast.slim.archive.pruning import Pruner, What
from runcast.slim.archive.thread_lines import export_lines
from runcast.slim.archive.transfer import Beside, Importer
from runcast.slim.entry import Entry
from runcast.slim.errors import StoreError, UnknownThread
from runcast.slim.log.engine import Core
from runcast.slim.log.lease_renewal import LeaseRenewal
from runcast.slim.log.log_options import Scope
from runcast.slim.stores.records import Key
from runcast.slim.wire.codec import AnyEvent


class Archive:
    """The stored threads of one view of a log."""

    def __init__(self, core: Core, scope: Scope) -> None:
        self._core = core
        self._scope = scope

    async def size(self, thread_id: str) -> ThreadSize:
        """The bytes that the thread takes in the store."""
        return await thread_size(self._core.store, self._scope.key(thread_id))

    async def raws(self, thread_id: str, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Raw parts kept under `raw="keep"`, each under the seq of the entry it came with or before."""
        return await raw_entries(self._core.store, self._scope.key(thread_id), after, limit)

    async def compact(self, thread_id: str) -> Compacted:
        """Derive segments and a checkpoint from ended runs; `derive="auto"` does so by itself."""
        return await self._core.derived.compact(self._scope.key(thread_id))

    async def prune(
        self,
        *,
        older_than: timedelta | None = None,
        keep_bytes: int | None = None,
        what: What = "raw",
        thread_id: str | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Remove old data from all threads or one: `raw` events of ended runs, which their segments replace; `derived`
        data, which can be made again; or whole `threads`. `keep_bytes` bounds the raw events that stay. A dry run
        removes nothing and counts what would go."""
        age = None if older_than is None else round(older_than / timedelta(milliseconds=1))
        if what != "raw" and keep_bytes is not None:
            raise StoreError("keep_bytes goes with raw events: prune others by older_than")
        core = self._core
        tenant, now = self._scope.tenant, core.options.clock()
        pruner = Pruner(core.store, core.derived, tenant, now, thread_id=thread_id, dry_run=dry_run)
        match what:
            case "raw":
                return await pruner.raw(age, keep_bytes)
            case "derived":
                return await pruner.derived(age)
            case "threads":
                return await pruner.threads(age)

    async def rename(self, thread_id: str, title: str | None) -> None:
        """Give the thread a title that people read, or take it away. Raises `UnknownThread`."""
        if not await self._core.store.rename(self._scope.key(thread_id), title):
            raise UnknownThread(f"there is no thread {thread_id!r} to rename")

    async def aside(self, thread_id: str, events: Sequence[AnyEvent]) -> list[Entry]:
        """Write a whole run that is no part of the thread's history and is in no list of its runs: readers receive its
        entries, and nothing else of the thread changes. Durable when this returns; `Conflict` while a run is active."""
        return await self._core.writer(self._scope.key(thread_id)).aside(events)

    async def begin_anew(self, thread_id: str) -> str:
        """Give the thread a new epoch, which is returned: every position is refused from then on, and readers start over
        from the snapshot. `Conflict` while it is written; raises `UnknownThread`."""
        key = self._scope.key(thread_id)
        if await self._core.store.thread(key) is None:
            raise UnknownThread(f"there is no thread {thread_id!r} to begin anew")
        return await self._core.writer(key).begin_anew()

    async def delete(self, thread_id: str) -> bool:
        """Delete the thread, or its tombstone; a new one of this id has another epoch. `Conflict` while it is written."""
        return await self._delete(thread_id, tombstone=False)

    async def forget(self, thread_id: str, *, idle_since: int | None = None) -> bool:
        """Delete the thread, and keep its id from being used again: a writer gets `Forgotten`. `Conflict` while it is
        written, or if it was since those milliseconds. False when nothing but the tombstone was there; a thread that never
        was gets one too."""
        return await self._delete(thread_id, tombstone=True, idle_since=idle_since)

    async def _delete(self, thread_id: str, *, tombstone: bool, idle_since: int | None = None) -> bool:
        key, now = self._scope.key(thread_id), self._core.options.clock()
        deleted = await self._core.store.delete(key, now=now, tombstone=tombstone, idle_since=idle_since)
        self._core.forget(key)
        return deleted

    async def is_forgotten(self, thread_id: str) -> bool:
        """Whether the thread was forgotten."""
        return await self._core.store.forgotten(self._scope.key(thread_id))

    async def every(self, *, limit: int, after: tuple[str, str] = ("", "")) -> list[tuple[str, ThreadInfo]]:
        """Threads of all tenants with their tenant, ordered by tenant and id, from behind such a pair."""
        if self._scope.bound:
            raise StoreError(
                "a tenant's log does not list the threads of others: ask the log it was made from"
            )
        now = self._core.options.clock()
        found = await self._core.store.every(limit=limit, after=Key(*after))
        return [(each.key.tenant, thread_info(each, now)) for each in found]

    async def export_lines(self, thread_id: str) -> AsyncIterator[bytes]:
        """The thread as JSON Lines: its runs, events and raw parts. Derived data and snapshots are made again."""
        key = self._scope.key(thread_id)
        await self._core.settle(key)
        async for line in export_lines(self._core.store, self._core.derived, key):
            yield line

    async def export_all(self) -> AsyncIterator[bytes]:
        """All threads of this tenant, one after the other, in one archive that `import_all` reads."""
        after = ""
        while page := await self._core.store.threads(self._scope.tenant, limit=100, after=after):
            for thread in page:
                async for line in self.export_lines(thread.key.thread_id):
                    yield line
            after = page[-1].key.thread_id

    async def import_lines(self, lines: AsyncIterator[bytes]) -> str:
        """Import an exported thread; returns its id. Importing it again changes nothing, however far the thread went on, or
        completes what a killed import has left; another thread of the same id is a `Conflict`."""
        return (await self.import_all(lines))[-1]

    async def import_all(self, lines: AsyncIterator[bytes], *, beside: Beside | None = None) -> list[str]:
        """Import an archive of any number of threads; returns their ids. Those before an error are whole, and stay; a thread
        that is a `Conflict` is passed over, and raises it when all others are imported.

        `beside` stores what the archive has outside the log: a thread counts as imported when that is there too.
        """
        store, options = self._core.store, self._core.options
        importer = Importer(
            store,
            self._scope.tenant,
            owner=f"{options.owner}-{options.new_id()}",
            clock=options.clock,
            lease_ms=options.lease_ms,
            new_id=options.new_id,
            beside=beside,
        )
        renewal = LeaseRenewal(store, options, lambda: importer.leases, lambda _: None)
        try:
            return await importer.read(lines)
        except BaseException:
            await renewal.close()
            await importer.undo()
            raise
        finally:
            await renewal.close()

    async def export_file(self, thread_id: str | None, path: str | Path) -> int:
        """Write a thread, or without an id all of them, to a file, compressed when its name ends in `.gz`; returns the
        number of lines."""
        lines = self.export_all() if thread_id is None else self.export_lines(thread_id)
        return await write_file(Path(path), lines)

    async def import_file(self, path: str | Path) -> str:
        """Import the thread of such a file, or all threads of an archive; returns the id of the last."""
        async with aclosing(read_file(Path(path))) as lines:
            return await self.import_lines(lines)
