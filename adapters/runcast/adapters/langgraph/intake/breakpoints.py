"""Whether a graph that is to go on stands at a breakpoint without an answer, or runs one that has not begun.

LangGraph stops at a static breakpoint once, and notes nothing: the next run without input goes past it. A run that broke
off before its question was out must ask it again. Knows `interrupt_before`, `interrupt_after` and a checkpoint's versions; reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runcast.adapters.langgraph.stream.parts import SEPARATOR, STATEFUL, Part, namespace_of
from runcast.slim.values.type_guards import as_mapping

# LangGraph's key in a config: if False, the graphs inside begin with their input
RESUMING = "__pregel_resuming"
SAVER = "__pregel_checkpointer"  # and this: what keeps the checkpoints of a graph that has nothing of its own
INPUT = "__input__"  # under this name a checkpoint notes what its input wrote
START = "__start__"  # LangGraph's node for the input: `*` does not mean it
SEEN = "__interrupt__"  # under this name a checkpoint notes what was written when it was last gone past


def has_breakpoints(graphs: Iterable[Any]) -> bool:
    """Whether one of these graphs has any."""
    return any(each.interrupt_before_nodes or each.interrupt_after_nodes for each in graphs)


def ran(graph: Any, checkpoint: Mapping[str, Any]) -> bool:
    """Whether this checkpoint can be one of this graph: it has all nodes that have run."""
    return set(checkpoint["versions_seen"]) <= {*graph.nodes, INPUT, SEEN}


def inside(inner: Any, state: Any, task: Any, call: int) -> dict[str, Any]:
    """Where a graph that this task of the state runs keeps its checkpoints; a task may call several, one after the other."""
    held = state.config["configurable"]
    own = f"{task.name}:{task.id}" + (STATEFUL if inner.checkpointer is True else "")
    namespace = namespace_of(
        [each for each in (*held.get("checkpoint_ns", "").split(SEPARATOR), own) if each]
    )
    return {
        "thread_id": held["thread_id"],
        "checkpoint_ns": namespace + (f"{SEPARATOR}{call}" if call else ""),
    }


def moved(checkpoint: Mapping[str, Any]) -> bool:
    """Whether a channel was written since the graph last went past a breakpoint."""
    seen = as_mapping(checkpoint["versions_seen"].get(SEEN))
    return any(
        name not in seen or version > seen[name] for name, version in checkpoint["channel_versions"].items()
    )


def begun(state: Any, writes: Iterable[tuple[str, str, Any]]) -> bool:
    """Whether a task of this state has written something: the breakpoint before its step was answered."""
    return not {task.id for task in state.tasks}.isdisjoint(task_id for task_id, _, _ in writes)


def named(nodes: str | Sequence[str], state: Any) -> bool:
    """Whether a breakpoint is at one of the tasks of this state; `*` is every node."""
    return any(task.name in nodes or (nodes == "*" and task.name != START) for task in state.tasks)


def stepped(state: Any) -> bool:
    """Whether a step has led to this state, and not an input or an update from outside."""
    return as_mapping(state.metadata).get("source") == "loop" and state.parent_config is not None


def before_task(inner: Any, state: Any) -> bool:
    """Whether a graph inside was last run by an earlier step than the one of this state."""
    parents = as_mapping(as_mapping(inner.metadata).get("parents"))
    return "" in parents and parents[""] != state.config["configurable"]["checkpoint_id"]


def only_began(inner: Any) -> bool:
    """Whether a graph inside has its input alone: to begin it again repeats nothing."""
    return int(as_mapping(inner.metadata).get("step", 1)) <= 0


def asks(root: Any, stands: Any) -> tuple[Part, ...]:
    """What a graph sends that asks again: its questions, where the graph stands that a breakpoint holds, and the breakpoint."""
    ns = tuple(
        each for each in stands.config["configurable"].get("checkpoint_ns", "").split(SEPARATOR) if each
    )
    there: Part = {"config": stands.config, "metadata": stands.metadata, "next": stands.next}
    parts: list[Part] = [{"type": "updates", "ns": (), "data": {"__interrupt__": ()}}]
    if root.interrupts:
        parts.insert(0, {"type": "updates", "ns": (), "data": {"__interrupt__": root.interrupts}})
    return ({"type": "checkpoints", "ns": ns, "data": there}, *parts)
