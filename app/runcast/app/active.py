"""The runs that are active in this process, of all tenants of a host: one a thread, and so many in all.

Pure bookkeeping; does not know how a run is started or stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runcast.app.errors import Busy, Full

if TYPE_CHECKING:
    from runcast.app.run import Run


class Active:
    """Threads that are taken here, each by a run id, and the runs that have begun."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: dict[tuple[str, str], str] = {}  # tenant and thread -> run id
        self._runs: dict[tuple[str, str], Run] = {}

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def full(self) -> bool:
        """Whether no more runs are taken."""
        return len(self._taken) >= self.most

    def take(self, tenant: str, thread_id: str, run_id: str) -> None:
        """Reserve a thread for a run, or raise `Busy` or `Full`."""
        other = self._taken.get((tenant, thread_id))
        if other is not None:
            raise Busy(f"run {other} of this thread is active: wait for it, or stop it")
        if self.full:
            raise Full(f"{self.most} runs are active; ask again in a moment")
        self._taken[tenant, thread_id] = run_id

    def began(self, tenant: str, run: Run) -> None:
        """The run that the thread was reserved for is there."""
        self._runs[tenant, run.thread_id] = run

    def free(self, tenant: str, thread_id: str, run_id: str) -> None:
        """The run is over, or did not begin. Harmless to say twice."""
        key = (tenant, thread_id)
        if self._taken.get(key) == run_id:
            del self._taken[key]
            self._runs.pop(key, None)

    def in_thread(self, tenant: str, thread_id: str) -> Run | None:
        """The thread's run, once it is there."""
        return self._runs.get((tenant, thread_id))

    def named(self, tenant: str, run_id: str) -> list[Run]:
        """Runs of this id, in whichever threads of the tenant."""
        return [run for (owner, _), run in self._runs.items() if owner == tenant and run.run_id == run_id]

    def is_starting(self, tenant: str, thread_id: str) -> bool:
        """Whether the thread is reserved for a run that is not there yet."""
        return (tenant, thread_id) in self._taken and (tenant, thread_id) not in self._runs

    def of(self, tenant: str) -> list[Run]:
        """A tenant's runs."""
        return [run for (owner, _), run in self._runs.items() if owner == tenant]

    def has(self, tenant: str) -> bool:
        """Whether the tenant has a run here, or one that is about to begin."""
        return any(owner == tenant for owner, _ in self._taken)
