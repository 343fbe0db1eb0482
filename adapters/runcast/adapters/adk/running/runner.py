"""ADK runners: the adapter's own, and one for each run that reads the session once.

Does not decide what is run.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.plugin_manager import PluginManager
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.workflow import Workflow

from runcast.adapters.adk.intake.late_events import stamp
from runcast.adapters.adk.running.unread import Unread

Runnable = BaseAgent | Workflow | App | Runner


def as_runner(agent: Runnable, app_name: str | None, service: BaseSessionService | None) -> Runner:
    """A runner for any of ADK's runnable things; a bare agent gets a resumable App."""
    if isinstance(agent, Runner):
        if app_name is None and service is None:
            return agent
        agent = copy.copy(agent)
        agent.app_name = app_name or agent.app_name
        agent.session_service = service or agent.session_service
        return agent
    if not isinstance(agent, App):
        with warnings.catch_warnings():  # the user did not ask for the experimental feature
            warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]", UserWarning)
            resumable = ResumabilityConfig(is_resumable=True)
        agent = App(name=app_name or agent.name, root_agent=agent, resumability_config=resumable)
    return Runner(app=agent, app_name=app_name, session_service=service or InMemorySessionService())


def for_one_run(
    runner: Runner,
    service: BaseSessionService,
    plugins: Sequence[BasePlugin],
    *,
    first: Sequence[BasePlugin] = (),
) -> Runner:
    """A copy of the runner with a session service and plugins for one run alone; `first` go before the user's."""
    own = copy.copy(runner)
    own.session_service = service
    if plugins:
        own.plugin_manager = _RunPlugins(runner.plugin_manager, first, [*plugins, Unread(own)])
    return own


def overrides(callback: str, plugins: Iterable[BasePlugin], agents: Iterable[Any]) -> bool:
    """Whether a plugin or an agent has this callback."""
    bare = getattr(BasePlugin, callback)
    return any(getattr(type(one), callback) is not bare for one in plugins) or any(
        getattr(one, callback, None) for one in agents
    )


class _RunPlugins(PluginManager):
    """The user's plugins and those of one run, which need no callback for each streamed event."""

    def __init__(self, users: PluginManager, first: Sequence[BasePlugin], last: Sequence[BasePlugin]) -> None:
        super().__init__()
        self.plugins = [*first, *users.plugins, *last]  # registering each would log a line in every run
        self._users = users
        self._first = first

    async def run_after_model_callback(self, **given: Any) -> LlmResponse | None:
        """As ADK calls it for every streamed chunk: none of the run's own plugins answers."""
        return await self._users.run_after_model_callback(**given) if self._users.plugins else None

    async def run_on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        if event.partial and not self._users.plugins:
            return None
        given: dict[str, Any] = {"invocation_context": invocation_context}
        changed: Event | None = None
        if self._users.plugins:
            changed = await self._users.run_on_event_callback(event=event, **given)
        if event.partial:
            return changed
        for plugin in self._first:
            changed = await plugin.on_event_callback(event=changed or event, **given) or changed
        return changed


class ReadOnce(BaseSessionService):
    """The user's session service for one run, whose mark all stored events get: a run loads its events once."""

    def __init__(self, service: BaseSessionService, run: str) -> None:
        self._service = service
        self._run = run
        self._session: Session | None = None

    def offer(self, session: Session) -> None:
        """Answer the next read with this session."""
        self._session = session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: Any = None
    ) -> Session | None:
        """The offered session once; the service's own after that."""
        held, self._session = self._session, None
        if held is not None and held.id == session_id:
            return held
        return await self._service.get_session(
            app_name=app_name, user_id=user_id, session_id=session_id, config=config
        )

    async def create_session(self, **given: Any) -> Session:
        """As the service does."""
        return await self._service.create_session(**given)

    async def list_sessions(self, **given: Any) -> Any:
        """As the service does."""
        return await self._service.list_sessions(**given)

    async def delete_session(self, **given: Any) -> None:
        """As the service does."""
        await self._service.delete_session(**given)

    async def get_user_state(self, **given: Any) -> dict[str, Any]:
        """As the service does."""
        return await self._service.get_user_state(**given)

    async def append_event(self, session: Session, event: Event) -> Event:
        """As the service does, with the run's mark."""
        stamp(event, self._run)
        return await self._service.append_event(session, event)

    async def flush(self) -> None:
        """As the service does."""
        await self._service.flush()


class Rewinding(ReadOnce):
    """A service that marks a rewind, and keeps the state that a session began with: ADK's rewind would lose it."""

    def __init__(self, service: BaseSessionService, run: str, mark: dict[str, Any]) -> None:
        super().__init__(service, run)
        self._mark = mark

    async def append_event(self, session: Session, event: Event) -> Event:
        """As the service does, with the mark."""
        changed = {key for each in session.events for key in each.actions.state_delta}
        kept = {key: value for key, value in event.actions.state_delta.items() if key in changed}
        actions = event.actions.model_copy(update={"state_delta": kept})
        return await super().append_event(
            session, event.model_copy(update={"actions": actions, "custom_metadata": self._mark})
        )
