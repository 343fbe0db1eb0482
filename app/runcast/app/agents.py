"""Anything that can be run, as an adapter: a LangGraph graph, an ADK agent, a function of events.

Frameworks are recognised by where their classes come from and imported only then. Knows how to wrap; does not run.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Protocol, cast, runtime_checkable

from ag_ui.core import (
    AgentCapabilities,
    Event,
    IdentityCapabilities,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
)

from runcast.adapters import Adapter, ResumePoint, UnknownRun, failure
from runcast.adapters.pump import Pump
from runcast.app.errors import BadRequest
from runcast.app.mending import settles

EventSource = Callable[[RunAgentInput], AsyncIterator[Event]]

_TERMINAL = (RunFinishedEvent, RunErrorEvent)


def as_adapter(agent: Any, *, name: str | None = None) -> Adapter:
    """What `Cast` can drive: an adapter as it is, anything else wrapped by the adapter it needs."""
    if isinstance(agent, Adapter):
        return agent
    homes = {cls.__module__.split(".")[0] for cls in type(agent).__mro__}
    given: dict[str, Any] = {} if name is None else {"name": name}
    if "langgraph" in homes:
        from runcast.adapters.langgraph import LangGraphAdapter

        own = getattr(agent, "name", None)  # LangGraph calls every graph LangGraph that was given no name
        if name is None and isinstance(own, str) and own not in ("", "LangGraph"):
            given = {"name": own}
        return LangGraphAdapter(agent, **given)
    if any(cls.__module__.startswith("google.adk") for cls in type(agent).__mro__):
        from runcast.adapters.adk import AdkAdapter

        return AdkAdapter(agent)
    if callable(agent):
        return EventFunction(
            cast("EventSource", agent), name=name or str(getattr(agent, "__name__", "agent"))
        )
    raise BadRequest(
        f"a {type(agent).__name__} is no agent: give a compiled graph, an ADK agent, App or Runner, an adapter, "
        "or an async generator function that takes RunAgentInput and yields AG-UI events"
    )


@runtime_checkable
class Checkpointed(Protocol):
    """An adapter whose framework keeps checkpoints, or could."""

    @property
    def saver(self) -> Any:
        """What keeps them; None where nothing does."""
        ...

    @property
    def durability(self) -> str | None:
        """When they are written; None leaves it to the framework."""
        ...


def cautions(adapter: Adapter) -> list[str]:
    """What will not survive a crash of this agent, said before a run and not after it."""
    if not isinstance(adapter, Checkpointed):
        return []
    if adapter.saver is None:
        return [
            "the graph has no checkpointer: a run that is cut short starts over, and questions cannot be answered; "
            "compile it with one"
        ]
    told: list[str] = []
    if type(adapter.saver).__name__ in ("InMemorySaver", "MemorySaver"):
        told.append("the checkpointer forgets when its process dies: take the SQLite or PostgreSQL saver")
    if adapter.durability == "exit":
        told.append(
            'durability="exit" writes at the end alone: a run that is cut short starts over; take "sync" or "async"'
        )
    return told


class EventFunction:
    """An async generator function of AG-UI events as an adapter. What it forgets at either end is added."""

    def __init__(self, function: EventSource, *, name: str = "agent") -> None:
        self.name = name
        self.settles = settles(function)  # else it is asked without what a broken run had half said
        self._function = function
        self._pumps: dict[str, Pump[Event]] = {}  # by run

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        """The function's events, from RUN_STARTED to one terminal event, whatever it does."""
        run_id = input.run_id

        async def opened() -> tuple[AsyncIterator[Event], _Whole]:
            return _closable(self._function(input)), _Whole(input)

        def closed() -> None:
            self._pumps.pop(run_id, None)

        pump = Pump(opened, closed=closed)
        self._pumps[run_id] = pump
        return pump.events()

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Cancel the run: a plain function has no border to stop at."""
        pump = self._pumps.get(run_id)
        if pump is None:
            raise UnknownRun(f"no run {run_id!r} is active here")
        pump.cancel()

    def capabilities(self) -> AgentCapabilities:
        """Its name; a function cannot be asked for more."""
        return AgentCapabilities(identity=IdentityCapabilities(name=self.name))


class _Whole:
    """A translator that passes events on, and adds the ends that a home-made stream leaves out.

    A stop is told as RUN_ERROR with the code `cancelled`: nobody here knows what the function had open, and only an
    error may leave things open.
    """

    def __init__(self, input: RunAgentInput) -> None:
        self._input = input
        self._started = False
        self._ended = False

    def start(self) -> list[Event]:
        return []

    def feed(self, part: Event) -> list[Event]:
        if self._ended:
            return []
        if isinstance(part, RunStartedEvent):
            self._started = True
            return [part]
        self._ended = isinstance(part, _TERMINAL)
        return [*self._opened(), part]

    def finish(self) -> list[Event]:
        given = self._input
        return self._end(RunFinishedEvent(thread_id=given.thread_id, run_id=given.run_id, timestamp=_now()))

    def fail(self, error: BaseException) -> list[Event]:
        told = failure(error)
        return self._end(RunErrorEvent(message=told.message, code=told.code, timestamp=_now()))

    def cancel(self) -> list[Event]:
        return self._end(RunErrorEvent(message="the run was stopped", code="cancelled", timestamp=_now()))

    def _end(self, event: Event) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        return [*self._opened(), event]

    def _opened(self) -> list[Event]:
        if self._started:
            return []
        self._started = True
        given = self._input
        return [
            RunStartedEvent(
                thread_id=given.thread_id,
                run_id=given.run_id,
                protocol_version="1.0",
                input=given,
                timestamp=_now(),
            )
        ]


async def _closable(events: AsyncIterator[Event]) -> AsyncGenerator[Event]:
    """So that it can be closed, whatever kind of iterator the function gave."""
    async for event in events:
        yield event


def _now() -> int:
    return time.time_ns() // 1_000_000
