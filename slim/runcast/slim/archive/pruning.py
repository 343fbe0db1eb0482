"""Removal of old data, by policy.

Knows which data may be removed so that every run can still be restored; does not know the policy: ages and bytes are
arguments.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal

from runcast.slim.archive.derived import RUNS_AT_ONCE, Derived
from runcast.slim.archive.info import Pruned
from runcast.slim.errors import Conflict
from runcast.slim.stores import Store
from runcast.slim.stores.records import BlobKind, Key, RunSize, StoredRun, StoredThread

What = Literal["raw", "derived", "threads"]
PAGE = 200
DERIVED: tuple[BlobKind, ...] = ("segment", "checkpoint")


@dataclass(frozen=True, slots=True)
class _Old:
    """A run that may be pruned."""

    key: Key
    run: StoredRun
    size: RunSize


class Pruner:
    """Prunes one tenant's threads, or one of them; a dry run only counts what would go."""

    def __init__(
        self, store: Store, derived: Derived, tenant: str, now: int, *, thread_id: str | None, dry_run: bool
    ) -> None:
        self._store = store
        self._derived = derived
        self._tenant = tenant
        self._now = now
        self._thread_id = thread_id
        self._dry_run = dry_run

    async def raw(self, older_than_ms: int | None, keep_bytes: int | None) -> Pruned:
        """Drop raw events of ended runs: those older than an age, and the oldest beyond a number of bytes."""
        candidates: list[_Old] = []
        weight = 0
        async for thread in self._threads():
            if not self._dry_run:
                await self._derived.compact(thread.key)
            sizes = {size.run: size for size in await self._store.sizes(thread.key)}
            weight += sum(size.bytes + size.raw_bytes for size in sizes.values())
            runs = [run for run in await self._store.runs(thread.key) if run.ended_at is not None]
            candidates += [_Old(thread.key, run, sizes[run.seq]) for run in runs if not run.pruned]
        going = self._going(candidates, weight, older_than_ms, keep_bytes)
        return await self._drop(going)

    def _going(
        self, candidates: Sequence[_Old], weight: int, older_than_ms: int | None, keep_bytes: int | None
    ) -> list[_Old]:
        going: list[_Old] = []
        for old in sorted(candidates, key=lambda old: old.run.ended_at or 0):
            aged = older_than_ms is not None and (old.run.ended_at or 0) < self._now - older_than_ms
            if not aged and (keep_bytes is None or weight <= keep_bytes):
                continue
            going.append(old)
            weight -= old.size.bytes + old.size.raw_bytes
        return going

    async def _drop(self, going: Sequence[_Old]) -> Pruned:
        """Delete only events that a sound segment replaces."""
        if self._dry_run:
            sizes = [old.size for old in going]
            weight = sum(each.bytes + each.raw_bytes for each in sizes)
            return Pruned(len(going), 0, sum(each.events for each in sizes), weight)
        events = size = runs = 0
        for key in dict.fromkeys(old.key for old in going):
            mine = [old for old in going if old.key == key]
            for at in range(0, len(mine), RUNS_AT_ONCE):
                some = mine[at : at + RUNS_AT_ONCE]
                sound = await self._derived.segments(key, [old.run for old in some])
                gone = [old for old in some if old.run.seq in sound]
                await self._store.drop_events(key, [old.run.seq for old in gone])
                runs += len(gone)
                events += sum(old.size.events for old in gone)
                size += sum(old.size.bytes + old.size.raw_bytes for old in gone)
        return Pruned(runs, 0, events, size)

    async def derived(self, older_than_ms: int | None) -> Pruned:
        """Drop segments and checkpoints older than an age that can be derived again."""
        size = 0
        runs: set[int] = set()
        async for thread in self._threads():
            pruned = {run.seq for run in await self._store.runs(thread.key) if run.pruned}
            for kind in DERIVED:
                index = await self._store.blob_index(thread.key, kind)
                going = [
                    info
                    for info in index
                    if info.run not in pruned and info.at <= self._now - (older_than_ms or 0)
                ]
                if not self._dry_run:
                    await self._store.drop_blobs(thread.key, kind, [info.seq for info in going])
                runs |= {info.run for info in going}
                size += sum(info.size for info in going)
        return Pruned(len(runs), 0, 0, size)

    async def threads(self, older_than_ms: int | None) -> Pruned:
        """Drop whole threads without a write for an age; their ids may be used again."""
        count = 0
        async for thread in self._threads():
            oldest = self._now - (older_than_ms or 0)
            if thread.updated_at <= oldest:
                if self._dry_run:
                    count += 1
                    continue
                try:
                    count += await self._store.delete(thread.key, now=self._now, idle_since=oldest)
                except Conflict:  # it is being written again
                    continue
        return Pruned(0, count, 0, 0)

    async def _threads(self) -> AsyncIterator[StoredThread]:
        if self._thread_id is not None:
            one = await self._store.thread(Key(self._tenant, self._thread_id))
            if one is not None:
                yield one
            return
        after = ""
        while page := await self._store.threads(self._tenant, limit=PAGE, after=after):
            for thread in page:
                yield thread
            after = page[-1].key.thread_id
