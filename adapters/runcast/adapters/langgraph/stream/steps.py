"""Steps: the running nodes of a graph, as the client counts them.

Knows tasks (a node's run in one superstep) and what happened in them. The last finished step of a superstep is held
until the graph decides what comes next, so that it can carry the decision; all others are emitted at once. Does not
know how tasks run. Subagents' steps carry their owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import Event

from runcast.adapters.continuation import continuation
from runcast.adapters.langgraph.stream.parts import messages_of
from runcast.adapters.open_blocks import Meta, OpenBlocks
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.values.type_guards import as_mapping

HOOKS = ("before_agent", "before_model", "after_model", "after_agent")  # nodes of langchain's middleware
LIMITS = frozenset(  # finish reasons, and the code of an error
    ("length", "max_tokens", "model_length", "model_context_window_exceeded", "recursion_limit")
)
USAGE = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}


@dataclass(slots=True)
class Task:
    """A running node. The tasks of a fan-out share one."""

    name: str
    owner: str | None
    number: int
    attempt: int = 1
    calls: list[str] = field(default_factory=list[str])  # names of the tools that its models called
    errors: int = 0
    finish_reason: str | None = None
    usage: dict[str, int] = field(default_factory=dict[str, int])


class Steps:
    """The steps of one run. `count` is the number of emitted steps, `decision` the graph's latest decision."""

    def __init__(
        self,
        blocks: OpenBlocks,
        *,
        messages_key: str = "messages",
        hooks: bool = False,
        tools: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`hooks` gives middleware's own nodes steps; else they are part of their agent's. `tools` are those of a node."""
        self._tools = tools or {}
        self._hooks = hooks
        self.count = 0
        self.decision: dict[str, Any] | None = None
        self._blocks = blocks
        self._messages_key = messages_key
        self._tasks: dict[str, Task] = {}
        self._held: Task | None = None  # the superstep's last one, until the decision
        self._called: list[str] = []  # names of the tools that the latest model of any agent called

    def started(self, data: Mapping[str, Any], owner: str | None) -> list[Event]:
        """A task starts."""
        name = str(data["name"])
        if self._folds(name):
            return []
        events = self.decided([name]) if owner is None else []
        twin = next((each for each in self._tasks.values() if (each.name, each.owner) == (name, owner)), None)
        if twin is None:
            self.count += 1
        task = twin or Task(name, owner, self.count)
        self._tasks[str(data["id"])] = task
        history = messages_of(data.get("input"), self._messages_key)
        return events + self._begin(task, str(data["id"]), None if history is None else len(history))

    def _begin(self, task: Task, task_id: str, message_count: int | None) -> list[Event]:
        facts = run_metadata(
            step_number=task.number,
            attempt=task.attempt,
            node=task.name,
            task_id=task_id,
            message_count=message_count,
            available_tools=None if task.owner else list(self._tools.get(task.name, ())) or None,
        )
        return self._blocks.step_started(task.name, owner=task.owner, metadata=facts)

    def retried(self, task_id: str) -> list[Event]:
        """A task's attempt failed, and it is tried again."""
        task = self._tasks.get(task_id)
        if task is None:
            return []
        task.errors += 1
        events = self._finish(task, None)
        task.attempt += 1
        task.errors, task.calls, task.finish_reason = 0, [], None
        return events + self._begin(task, task_id, None)

    def finished(self, task_id: str, name: str, *, failed: bool = False) -> list[Event]:
        """A task is over. One that `cached` took for another of its fan-out ends under the other's id."""
        if task_id not in self._tasks:
            task_id = next((key for key, task in self._tasks.items() if task.name == name), "")
        task = self._tasks.pop(task_id, None)
        if task is None:
            return []
        task.errors += failed
        if task.owner is None and not self._busy():
            before = self._held
            self._held = task
            return [] if before is None else self._finish(before, None)
        return self._finish(task, None)

    def cached(self, name: str) -> list[Event]:
        """A task's result was there already (a resumed step): one task of this name is over."""
        return self.finished("", name)

    def _folds(self, name: str) -> bool:
        return is_hook(name) and not self._hooks

    def _busy(self) -> bool:
        return any(task.owner is None for task in self._tasks.values())

    def decided(
        self, following: Sequence[str], *, stop_reason: str | None = None, waiting: Sequence[str] = ()
    ) -> list[Event]:
        """The graph continues with these nodes, or ends: the held step can be emitted. `waiting` questions stop it."""
        if following and all(map(self._folds, following)):
            return []  # what follows the hooks decides
        task, self._held = self._held, None
        reason = None if task is None else (task.finish_reason or "").lower()
        self.decision = decision(
            stop_reason or (None if following else "completed"),
            reason,
            next=list(dict.fromkeys(following)),
            calls_pending=task.calls if task is not None and following else (),
            transfer=[node for node in following if _handoff(node) in self._called],
            interrupt=waiting,
        )
        return [] if task is None else self._finish(task, self.decision)

    def _finish(self, task: Task, continuation: dict[str, Any] | None) -> list[Event]:
        return self._blocks.step_finished(
            task.name, owner=task.owner, metadata=self._facts(task, continuation)
        )

    @staticmethod
    def _facts(task: Task, continuation: dict[str, Any] | None) -> Meta | None:
        return run_metadata(
            step_number=task.number,
            attempt=task.attempt,
            has_tool_calls=bool(task.calls),
            errors=task.errors,
            finish_reason=task.finish_reason,
            usage=task.usage or None,
            continuation=continuation,
        )

    def model_ended(self, task_id: str, message: Any) -> None:
        """A model returned its final message in this task."""
        self._called = [str(call["name"]) for call in (*message.tool_calls, *message.invalid_tool_calls)]
        task = self._tasks.get(task_id)
        if task is None:
            return
        facts = as_mapping(message.response_metadata)
        reason = facts.get("finish_reason") or facts.get("stop_reason")
        task.finish_reason = str(reason) if reason else task.finish_reason
        task.calls += self._called
        usage = as_mapping(message.usage_metadata)
        for ours, theirs in USAGE.items() if usage else ():
            task.usage[ours] = task.usage.get(ours, 0) + int(usage.get(theirs) or 0)

    def failed_tool(self, task_id: str) -> None:
        """A tool of this task returned an error."""
        task = self._tasks.get(task_id)
        if task is not None:
            task.errors += 1


def is_hook(name: str) -> bool:
    """Whether a node is a hook of langchain's middleware."""
    middleware, _, hook = name.rpartition(".")
    return hook in HOOKS and bool(middleware)


def _handoff(node: str) -> str:
    """The tool by which a model of a supervisor or a swarm hands over to this node."""
    return "transfer_to_" + "_".join(node.split()).lower()


def decision(stop_reason: str | None, ended_by: str | None = None, **why: Iterable[str]) -> dict[str, Any]:
    """Whether the run continues (without a reason to stop it does), and why. `ended_by` may be a limit."""
    limit = [ended_by] if ended_by in LIMITS else []
    return continuation(stop_reason is None, "graph", stop_reason, limit=limit, **why)
