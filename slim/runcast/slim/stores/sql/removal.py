"""Removal in SQL: events that were folded, threads that are deleted or forgotten.

Knows the statements; does not know a driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from runcast.slim.stores import refusals
from runcast.slim.stores.records import Key
from runcast.slim.stores.sql import statements as say
from runcast.slim.stores.sql.database import Database, Query, Script, Wake
from runcast.slim.stores.wakeups import thread_topic


class SqlRemoval:
    """What leaves the store."""

    _db: Database

    async def drop_events(self, key: Key, runs: Sequence[int]) -> None:
        """Delete the events and raw parts of runs, and mark the runs pruned."""

        def script() -> Script[None]:
            for run in runs:
                for thread, first in (yield Query(say.MARK_PRUNED, (run, *key))):
                    last = (yield Query(say.NEXT_RUN, (thread, first)))[0][0]
                    stretch = (thread, first, say.ENDLESS if last is None else last - 1)
                    yield Query(f"DELETE FROM runcast_events {say.STRETCH}", stretch)
                    yield Query(f"DELETE FROM runcast_raws {say.STRETCH}", stretch)

        await self._db.run(script())

    async def delete(
        self, key: Key, *, now: int, tombstone: bool = False, idle_since: int | None = None
    ) -> bool:
        """Delete the thread; see `Store.delete`."""

        def script() -> Script[bool]:
            latest = say.ENDLESS if idle_since is None else idle_since
            claim = (
                (say.BURY, (*key, now, now, now, latest))
                if tombstone
                else (say.FREE_THREAD, (*key, now, latest))
            )
            free = yield Query(*claim)
            if not free:
                held = yield Query(say.HOLDER, key)
                if held:
                    raise refusals.busy(key, held[0][0]) if held[0][0] else refusals.not_idle(key)
                return False
            thread, epoch = free[0]
            for table in ("events", "raws", "blobs", "runs"):
                yield Query(f"DELETE FROM runcast_{table} WHERE thread = ?", (thread,))
            yield Query(say.DROP_NOTES, key)
            if tombstone:
                yield Query(say.TOMBSTONE, (now, thread))
            else:
                yield Query("DELETE FROM runcast_threads WHERE id = ?", (thread,))
            yield Wake([thread_topic(key)])
            return bool(epoch) or not tombstone

        return await self._db.run(script())

    async def forgotten(self, key: Key) -> bool:
        """Whether a tombstone stands for the thread."""
        return bool(await self._db.rows(say.FORGOTTEN, key))
