"""An adapter for one tenant of a host: frameworks know threads by their ids only, so an agent gets ids that carry the
tenant, and its events get the tenant's own ids back.

Knows adapters; does not know users and their tenants (`access_policy.py`).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from ag_ui.core import AgentCapabilities, Event, RunAgentInput, RunFinishedEvent, RunStartedEvent

from runcast.adapters import (
    Adapter,
    AgentSchemas,
    Anchored,
    Askable,
    Described,
    Drawing,
    Forgetting,
    Kept,
    Portable,
    ResumePoint,
    Steerable,
    drawing_of,
)
from runcast.adapters.adapter import Take


class ForTenant:
    """An adapter as one tenant uses it: to the framework, two tenants' threads of one id are two threads."""

    def __init__(self, adapter: Adapter, tenant: str) -> None:
        self.name = adapter.name
        self.reconciles_history = adapter.reconciles_history
        self._adapter = adapter
        self._prefix = f"{coded(tenant)}:"

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        """The run: its ids carry the tenant inside the framework, and not outside."""
        return self._with_own_ids(self._adapter.run(self._inside(input), resume=resume))

    def run_after(
        self, place: Mapping[str, Any], input: RunAgentInput, *, resume: ResumePoint | None = None
    ) -> AsyncIterator[Event]:
        """As `run`, with the place where the thread's last run left the framework, if the adapter takes it."""
        if not isinstance(self._adapter, Anchored):
            return self.run(input, resume=resume)
        return self._with_own_ids(self._adapter.run_after(place, self._inside(input), resume=resume))

    def _inside(self, input: RunAgentInput) -> RunAgentInput:
        """The input as the framework sees it."""
        prefix = self._prefix
        parent = None if input.parent_run_id is None else prefix + input.parent_run_id
        ids = {"thread_id": prefix + input.thread_id, "run_id": prefix + input.run_id}
        given = {**ids, **({} if parent is None else {"parent_run_id": parent})}
        return input.model_copy(update=given)

    async def _with_own_ids(self, events: AsyncIterator[Event]) -> AsyncGenerator[Event]:
        async with aclosing(cast("AsyncGenerator[Event]", events)) as source:
            async for event in source:
                yield self._own(event) if isinstance(event, RunStartedEvent | RunFinishedEvent) else event

    def _own(self, event: RunStartedEvent | RunFinishedEvent) -> Event:
        update = self._ids(event)
        if isinstance(event, RunStartedEvent) and event.input is not None:
            update["input"] = event.input.model_copy(update=self._ids(event.input))
        return event.model_copy(update=update)

    def _ids(self, held: Event | RunAgentInput) -> dict[str, Any]:
        """The tenant's own ids, of those that are set."""
        found = {name: getattr(held, name, None) for name in ("thread_id", "run_id", "parent_run_id")}
        return {name: id.removeprefix(self._prefix) for name, id in found.items() if id is not None}

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """End a run of this tenant."""
        await self._adapter.stop(self._prefix + run_id, hard=hard)

    async def steer(self, run_id: str, take: Take) -> None:
        """Hand a run of this tenant what `take` gives, if the agent can be steered."""
        if isinstance(self._adapter, Steerable):
            await self._adapter.steer(self._prefix + run_id, take)

    async def forget(self, thread_id: str) -> None:
        """Delete what the framework keeps of this tenant's thread, if the adapter can."""
        if isinstance(self._adapter, Forgetting):
            await self._adapter.forget(self._prefix + thread_id)

    @property
    def kept(self) -> Kept:
        """What the framework keeps of this tenant's threads; no attribute where the adapter cannot export it."""
        if not isinstance(self._adapter, Portable):
            raise AttributeError("this agent's framework exports nothing")
        return _OwnKept(self._adapter.kept, self._prefix)

    def capabilities(self) -> AgentCapabilities:
        """The agent's capabilities, the same for all tenants."""
        return self._adapter.capabilities()

    def schemas(self) -> AgentSchemas:
        """The agent's schemas, the same for all tenants."""
        return self._adapter.schemas() if isinstance(self._adapter, Described) else AgentSchemas()

    async def ask(self) -> None:
        """Ask an agent elsewhere what it is."""
        if isinstance(self._adapter, Askable):
            await self._adapter.ask()

    def drawing(self) -> Drawing:
        """The agent's graph, the same for all tenants."""
        return drawing_of(self._adapter)


@dataclass(frozen=True, slots=True)
class _OwnKept:
    """What a framework keeps of one tenant's threads; rows carry the tenant's own ids."""

    kept: Kept
    prefix: str

    def rows(self, thread_id: str, *, prefix: str = "") -> AsyncIterator[dict[str, Any]]:
        return self.kept.rows(thread_id, prefix=self.prefix + prefix)

    async def store(self, thread_id: str, rows: Sequence[dict[str, Any]], *, prefix: str = "") -> None:
        await self.kept.store(thread_id, rows, prefix=self.prefix + prefix)


def coded(tenant: str) -> str:
    """A tenant's name as channel names and ids can hold it: different names stay different, and none has a dot."""
    return urlsafe_b64encode(tenant.encode("utf-8", "surrogatepass")).rstrip(b"=").decode()
