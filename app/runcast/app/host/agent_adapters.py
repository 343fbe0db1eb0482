"""Wraps anything that can be run as an adapter: a LangGraph graph, an ADK agent, a function of events.

A framework's folder in `runcast.adapters` recognises its own agents. Does not run them.
"""

from __future__ import annotations

import inspect
import warnings
from types import ModuleType
from typing import Any, Protocol, cast, runtime_checkable

from runcast.adapters import Adapter
from runcast.adapters.frameworks import frameworks
from runcast.app.errors import BadRequest
from runcast.app.host.event_function import EventFunction, EventSource


def as_adapter(agent: Any, *, name: str | None = None) -> Adapter:
    """The agent as `Cast` drives it: an adapter unchanged, anything else wrapped by the adapter it needs."""
    if isinstance(agent, Adapter):
        return agent
    if all(hasattr(agent, name) for name in ("name", "run", "stop", "capabilities")):
        message = f"{type(agent).__name__} has no `reconciles_history`: add it to the adapter, False unless it settles unfinished messages itself"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        agent.reconciles_history = False
        return cast("Adapter", agent)
    for framework in frameworks():
        if framework.recognises(agent):
            return framework.wrap(agent, name)
    if _is_event_function(agent):
        return EventFunction(
            cast("EventSource", agent), name=name or str(getattr(agent, "__name__", "agent"))
        )
    raise BadRequest(
        f"{described(agent)} is no agent: give {', '.join(each.agents for each in frameworks())}, an adapter, "
        "or an async generator function that takes RunAgentInput and yields AG-UI events"
    )


def described(found: object) -> str:
    """An object in words, for an error about it."""
    if isinstance(found, type):
        return f"the class {found.__qualname__}"
    if isinstance(found, ModuleType):
        return f"the module {found.__name__}"
    if inspect.isroutine(found):
        return f"the function {found.__name__}"
    return "None" if found is None else f"an object of the class {type(found).__name__}"


def _is_event_function(agent: Any) -> bool:
    """Whether this can be called with a run's input alone, and may return events; only a call shows if it does."""
    if isinstance(agent, type) or not callable(agent):
        return False
    if inspect.iscoroutinefunction(agent) or inspect.isgeneratorfunction(agent):
        return False
    try:
        inspect.signature(agent).bind(object())
    except (TypeError, ValueError):
        return False
    return True


@runtime_checkable
class Checkpointed(Protocol):
    """An adapter whose framework keeps checkpoints, or could."""

    @property
    def saver(self) -> Any:
        """The object that keeps them; None if there is none."""
        ...

    @property
    def durability(self) -> str | None:
        """When they are written; None leaves it to the framework."""
        ...


def cautions(adapter: Adapter) -> list[str]:
    """Sentences about what a crash of this agent would lose, for the log at start."""
    if not isinstance(adapter, Checkpointed):
        return []
    if adapter.saver is None:
        return [
            "the graph has no checkpointer: a run that is cut short starts over, and questions cannot be answered; "
            "compile it with one"
        ]
    found: list[str] = []
    if type(adapter.saver).__name__ in ("InMemorySaver", "MemorySaver"):
        found.append(
            "the graph's checkpoints are in memory and end with this process: `pip install langgraph-checkpoint-sqlite` (or "
            "-postgres), which `runcast attach` then uses by itself; a graph with a checkpointer of its own needs one of them"
        )
    if adapter.durability == "exit":
        found.append(
            'durability="exit" writes only at the end: a run that is cut short starts over; use "sync" or "async"'
        )
    return found
