"""The graphs inside of one that is to go on: do they stand at a breakpoint, or not begin?

Written as generators, as `Preparation` is: each yields a `Read` and is sent what was found. Knows where LangGraph keeps the
state of a graph inside; a graph that a node makes while it runs is not found.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from runcast.adapters.langgraph.capabilities import graphs_in
from runcast.adapters.langgraph.intake.breakpoints import (
    SAVER,
    before_task,
    begun,
    inside,
    moved,
    named,
    only_began,
    ran,
    stepped,
)
from runcast.slim.values.type_guards import as_mapping, is_list, is_object

NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Read:
    """A read of the graph or its checkpointer. `first`: of many results the first alone, older than `before` if given."""

    source: Any
    method: str
    config: Mapping[str, Any]
    filter: Mapping[str, Any] | None = None
    first: bool = False
    before: Mapping[str, Any] | None = None

    def _call(self, prefix: str) -> Any:
        given = {"filter": self.filter, "before": self.before, "limit": 1} if self.first else {}
        return getattr(self.source, prefix + self.method)(self.config, **given)

    def wait(self) -> Any:
        """What is found, on this thread."""
        try:
            found = self._call("")
        except Exception as error:  # noqa: BLE001  raised again unless it means that there is nothing
            return self._missing(error)
        return next(iter(found), None) if self.first else found

    async def result(self) -> Any:
        """What is found."""
        found = self._call("a")
        if not self.first:
            try:
                return await found
            except Exception as error:  # noqa: BLE001  likewise
                return self._missing(error)
        async for each in found:
            return each
        return None

    def _missing(self, error: Exception) -> StateSnapshot:
        """A server does not know a thread before its first run, which makes it; a graph here has an empty state then."""
        if getattr(getattr(error, "response", None), "status_code", None) != NOT_FOUND:
            raise error
        return StateSnapshot({}, (), RunnableConfig(configurable={}), None, None, None, (), ())


def revived(state: Any, key: str) -> Any:
    """A remote graph's state: its messages come as JSON."""
    held = as_mapping(state.values).get(key)
    if not is_list(held) or not all(map(is_object, held)):
        return state
    return state._replace(values={**state.values, key: convert_to_messages(held)})


class GraphsInside:
    """The graphs that a graph's nodes and tools name; `saver` keeps the checkpoints of all."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver

    def read(self, where: Mapping[str, Any]) -> Read:
        """The newest checkpoint there."""
        return Read(self._saver, "get_tuple", where)

    def _state_of(self, graph: Any, where: Mapping[str, Any]) -> Read:
        """A state of this graph, or of one inside: that has no checkpointer of its own."""
        return Read(graph, "get_state", {"configurable": {**where, SAVER: self._saver}})

    def begins(self, graph: Any, state: Any, root: Any) -> Generator[Read, Any, bool]:
        """Whether a task that is to go on runs a graph with a memory of its own (`checkpointer=True`) that has not begun:
        resumed, it would return its last answer, and the message that it was to answer would be lost.

        Below a graph that has done a step nothing can be begun: its own steps would run again.
        """
        for task in state.tasks:
            for inner, found in (yield from self._inside(graph, state, task)):
                if inner.checkpointer is True and not found.next and before_task(found, root):
                    return True
                if found.next and only_began(found) and (yield from self.begins(inner, found, root)):
                    return True
        return False

    def stands(self, graph: Any, state: Any) -> Generator[Read, Any, Any]:
        """The state of this graph, or of one inside, that an open breakpoint holds: LangGraph would go past it unasked."""
        found = yield Read(self._saver, "get_tuple", state.config)
        if found is None or not ran(graph, found.checkpoint):
            return None
        if moved(found.checkpoint) and not begun(state, found.pending_writes or ()):
            if named(graph.interrupt_before_nodes, state):
                return state
            if graph.interrupt_after_nodes and stepped(state):
                left = yield self._state_of(graph, state.parent_config["configurable"])
                if named(graph.interrupt_after_nodes, left):
                    return state
        for task in state.tasks:
            for inner, inside_it in (yield from self._inside(graph, state, task)):
                if inside_it.next and (stands := (yield from self.stands(inner, inside_it))):
                    return stands
        return None

    def _inside(self, graph: Any, state: Any, task: Any) -> Generator[Read, Any, list[tuple[Any, Any]]]:
        """The graphs that this task runs and has not finished, with their states, as far as its node and tools name them."""
        node, pairs = graph.nodes.get(task.name), list[tuple[Any, Any]]()
        if node is None or task.result is not None:
            return pairs
        for inner in graphs_in([node.bound, *node.subgraphs], set()):
            for call in count():
                found = yield self._state_of(inner, inside(inner, state, task, call))
                if found.metadata is None:
                    break
                pairs.append((inner, found))
        return pairs
