"""The runs that are active in this process, of all tenants of a host: one a thread, and a maximum in all.

Pure bookkeeping; does not know how a run is started or stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runcast.app.errors import Busy, Full

if TYPE_CHECKING:
    from runcast.app.runs.run import LocalRun


class RunSlots:
    """Threads that are reserved here, each by a run id, and the runs that have begun."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._reserved: dict[tuple[str, str], str] = {}  # tenant and thread -> run id
        self._runs: dict[tuple[str, str], LocalRun] = {}
        self._noted: set[tuple[str, str]] = set()  # reserved threads in which something may wait

    def __len__(self) -> int:
        return len(self._reserved)

    @property
    def full(self) -> bool:
        """Whether there is no room for another run."""
        return len(self._reserved) >= self.most

    def reserve(self, tenant: str, thread_id: str, run_id: str) -> None:
        """Reserve a thread for a run, or raise `Busy` or `Full`."""
        other = self._reserved.get((tenant, thread_id))
        if other is not None:
            raise Busy(f"run {other} of this thread is active: wait for it, or stop it")
        if self.full:
            raise Full(f"{self.most} runs are active; ask again in a moment")
        self._reserved[tenant, thread_id] = run_id

    def add(self, tenant: str, run: LocalRun) -> None:
        """Enter the run that its thread was reserved for."""
        self._runs[tenant, run.thread_id] = run

    def free(self, tenant: str, thread_id: str, run_id: str) -> None:
        """Free the thread when its run is over or did not begin; harmless to repeat."""
        key = (tenant, thread_id)
        if self._reserved.get(key) == run_id:
            del self._reserved[key]
            self._runs.pop(key, None)
            self._noted.discard(key)

    def note(self, tenant: str, thread_id: str) -> None:
        """Remember that something may wait in a reserved thread."""
        if (tenant, thread_id) in self._reserved:
            self._noted.add((tenant, thread_id))

    def is_noted(self, tenant: str, thread_id: str) -> bool:
        """Whether something may wait in the thread that is reserved."""
        return (tenant, thread_id) in self._noted

    def in_thread(self, tenant: str, thread_id: str) -> LocalRun | None:
        """The thread's run, once it was added."""
        return self._runs.get((tenant, thread_id))

    def named(self, tenant: str, run_id: str) -> list[LocalRun]:
        """The tenant's runs of this id, in any thread."""
        return [run for run in self.of(tenant) if run.run_id == run_id]

    def is_starting(self, tenant: str, thread_id: str) -> bool:
        """Whether the thread is reserved for a run that was not added yet."""
        return (tenant, thread_id) in self._reserved and (tenant, thread_id) not in self._runs

    def of(self, tenant: str) -> list[LocalRun]:
        """A tenant's runs."""
        return [run for (owner, _), run in self._runs.items() if owner == tenant]

    def has(self, tenant: str) -> bool:
        """Whether the tenant has a run here, or a reserved thread."""
        return any(owner == tenant for owner, _ in self._reserved)
