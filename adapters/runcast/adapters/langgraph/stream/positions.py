"""The place in a graph that emitted a message, and whether the graph has passed it or will emit the message again.

A place is a task's namespace with the superstep of each graph on the way: `tools:<id>|model:<id>#3.1`; `!` marks a task
whose graph keeps its state between runs. It travels with
the message (`metadata["runcast.place"]`), because nothing else shows afterwards which task emitted what: a checkpoint
knows which tasks are done, and a client knows messages. The messages of a task that is not done are emitted again when
the task runs again. A graph inside a task has checkpoints of its own: its finished tasks stay done although the task
around them runs again. Reads no checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import Message

from runcast.adapters.langgraph.stream.parts import SEPARATOR, Namespace, namespace_of, task_of
from runcast.slim.folding.run_metadata import PLACE_KEY

STEPS = "#"
UNKNOWN = -1
STATE = "__state__"  # in a place, where a task would be: only the graph's state brought the message
UNFINISHED = frozenset(("__error__", "__interrupt__", "__resume__"))  # writes that do not make a task done
Stop = tuple[str, int, str]  # a graph's namespace, its superstep, the task


@dataclass(slots=True)
class Level:
    """How far a graph has come: its last whole superstep, and the tasks of the next that are done."""

    step: int
    done: set[str] = field(default_factory=set[str])


def level_of(metadata: Mapping[str, Any], writes: Iterable[Any]) -> Level:
    """A stored checkpoint's level. `writes` are what tasks of the next superstep gave so far: task, channel, value."""
    done = {str(task) for task, channel, _ in writes if channel not in UNFINISHED}
    return Level(int(metadata.get("step", UNKNOWN)), done)


def place_of(message: Message) -> str | None:
    """The place that emitted this message, by its metadata."""
    calls: Sequence[Any] = getattr(message, "tool_calls", None) or ()
    for noted in (message, *calls):
        place = (noted.metadata or {}).get(PLACE_KEY)
        if isinstance(place, str):
            return place
    return None


def stops(place: str) -> list[Stop]:
    """The way to a place, outermost graph first."""
    namespace, _, steps = place.rpartition(STEPS)
    numbers = iter(steps.split(".") if steps else ())
    segments = namespace.split(SEPARATOR)
    return [
        (namespace_of(segments[:at]), int(next(numbers, UNKNOWN)), task_of(segment))
        for at, segment in enumerate(segments)
        if ":" in segment
    ]


def is_done(way: Iterable[Stop], levels: Mapping[str, Level]) -> bool:
    """Whether the task at the end of this way is done, so that its messages are not emitted again."""
    for namespace, step, task in way:
        level = levels.get(namespace)
        if level is None:
            return False
        if step <= level.step or task in level.done:
            return True
    return False


class Progress:
    """The levels of a run's graphs, by its parts, and the places of what they emit."""

    def __init__(self) -> None:
        self._levels: dict[str, Level] = {}

    @property
    def stored(self) -> bool:
        """Whether checkpoints are kept, so that a place means something after the run."""
        return "" in self._levels

    def checkpoint(self, namespace: Namespace, step: int) -> None:
        """A graph has made another checkpoint."""
        self._levels[SEPARATOR.join(namespace)] = Level(step)

    def done(self, namespace: Namespace, task_id: str) -> None:
        """A task returned its result."""
        level = self._levels.get(SEPARATOR.join(namespace))
        if level is not None:
            level.done.add(task_id)

    def place(self, namespace: str, step: Any) -> str:
        """The place of a task; `step` is its graph's superstep."""
        way = stops(namespace + STEPS)
        around = [self._levels.get(graph) for graph, _, _ in way[:-1]]
        steps = [UNKNOWN if level is None else level.step + 1 for level in around]
        return namespace + STEPS + ".".join(map(str, [*steps, step]))

    def committed(self, namespace: str) -> dict[str, Any]:
        """As a node's metadata: the superstep that this graph's state has just taken in; a state names no task."""
        level = self._levels.get(namespace_of(namespace.split(SEPARATOR)))
        step = UNKNOWN if level is None else level.step + 1
        place = SEPARATOR.join([each for each in (namespace, f"{STATE}:{step}") if each])
        return {"langgraph_checkpoint_ns": place, "langgraph_step": step}

    def again(self, place: str, task_id: str) -> bool:
        """Whether a retry of this task emits again what this place emitted."""
        way = stops(place)
        at = next((n for n, (_, _, task) in enumerate(way) if task == task_id), None)
        return at is not None and not is_done(way[at + 1 :], self._levels)
