"""Runs that lost their owner, and owners that give up a run: `RunLog.recovery`.

Knows when a run counts as orphaned or truncated; does not know how the host continues one.
"""

from __future__ import annotations

from runcast.slim.archive.info import RunInfo
from runcast.slim.archive.pages import runs_of
from runcast.slim.errors import Conflict
from runcast.slim.log.engine import Core
from runcast.slim.log.log_options import Scope

Found = tuple[str, str, str]  # tenant, thread id, run id


class Recovery:
    """Finds and marks runs whose owner died, for one view of a log."""

    def __init__(self, core: Core, scope: Scope) -> None:
        self._core = core
        self._scope = scope

    async def abandon(self, thread_id: str) -> None:
        """Give up the active run of this log, as if its process had died: truncate it and release the lease."""
        await self._core.abandon(self._scope.key(thread_id))

    async def release_running(self, thread_id: str) -> None:
        """Release the lease and leave the active run open: the next search for orphaned runs finds it at once."""
        await self._core.abandon(self._scope.key(thread_id), cut=False)

    async def orphaned_runs(self) -> list[Found]:
        """Runs in progress whose owner died, as tenant, thread id and run id: of all tenants, or of this view's."""
        found = await self._core.store.orphaned_runs(self._scope.only, now=self._core.options.clock())
        return [(key.tenant, key.thread_id, run.run_id) for key, run in found if not self._core.owns(key)]

    async def truncated_unresumed(self, since_ms: int) -> list[Found]:
        """Runs truncated in the last `since_ms` that no run continues, in the form of `orphaned_runs`."""
        now = self._core.options.clock()
        found = await self._core.store.truncated_unresumed(self._scope.only, now=now, since=now - since_ms)
        return [(key.tenant, key.thread_id, run.run_id) for key, run in found if not self._core.owns(key)]

    async def mark_truncated(self, thread_id: str) -> list[RunInfo]:
        """Mark the thread's orphaned run as truncated. Of several callers at once, one receives the run."""
        key = self._scope.key(thread_id)
        try:
            cut = await self._core.writer(key).mark_truncated()
        except Conflict:  # another process was quicker
            return []
        if not cut:
            return []
        runs = await runs_of(self._core.store, key, self._core.options.clock())
        return [run for run in runs if run.run_id in cut]

    async def recover(self) -> list[tuple[str, RunInfo]]:
        """Mark every orphaned run of this tenant as truncated; returns thread ids and runs."""
        now = self._core.options.clock()
        found = await self._core.store.orphaned_runs(self._scope.tenant, now=now)
        threads = [key.thread_id for key, _ in found]
        return [(thread_id, run) for thread_id in threads for run in await self.mark_truncated(thread_id)]
