"""The ancestors of a run, and inputs without the messages that those ancestors already hold.

Lineage is recorded in the store: each run's parent and the edge to it. It is never read from `parentRunId` on the wire,
which since AG-UI 1.0 names the run that *spawned* this one, where it once named the run to continue or
branch from. A spawned run starts from its own input, so its spawner is not part of its history.

An input is made small against the messages that its ancestors' events amount to, at that very point: a message goes
only if the same id stands there with deep-equal content. So one that was edited, or deleted and sent again, stays.
What went is listed in order, with a digest of the whole, so that the exact input can be had back or is refused.

Knows no store and no events but RUN_STARTED.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ag_ui.core import Message, RunAgentInput, RunStartedEvent

from runcast.slim.errors import LineageError
from runcast.slim.folding.run_metadata import INPUT_KEY

# How a run hangs on its parent: all but `spawn` make the parent's history its own.
EdgeKind = Literal["continue", "branch", "resume", "spawn"]
Lookup = Mapping[str, "RunNode"] | Callable[[str], "RunNode | None"]


@dataclass(frozen=True, slots=True)
class RunNode:
    """A run and its parent, as a store recorded them."""

    run_id: str
    thread_id: str
    parent_run_id: str | None = None
    edge: EdgeKind = "continue"


@dataclass(frozen=True, slots=True)
class NormalizedInput:
    """An input without the messages its history holds. `denormalize_input` gives back the whole."""

    input: RunAgentInput
    # for each message of the whole: its id in the history, or None for the next kept one
    order: tuple[str | None, ...]
    digest: str  # SHA-256 of all messages of the whole


def ancestors(run_id: str, runs: Lookup) -> list[RunNode]:
    """The runs with events before this one's, oldest first, without the run itself.

    Raises LineageError when a run is unknown, belongs to another thread, or is its own ancestor.
    """
    node = _known(run_id, runs, "it was asked for")
    thread_id, seen = node.thread_id, {run_id}
    chain: list[RunNode] = []
    while node.parent_run_id is not None and node.edge != "spawn":
        child, node = node, _known(node.parent_run_id, runs, f"run {node.run_id!r} names it as its parent")
        if node.run_id in seen:
            raise LineageError(
                f"run {node.run_id!r} is its own ancestor; correct the parent of {child.run_id!r}"
            )
        if node.thread_id != thread_id:
            raise LineageError(
                f"run {child.run_id!r} of thread {thread_id!r} cannot build on run {node.run_id!r} of thread"
                f" {node.thread_id!r}; copy what it needs into its input"
            )
        seen.add(node.run_id)
        chain.append(node)
    chain.reverse()
    return chain


def _known(run_id: str, runs: Lookup, why: str) -> RunNode:
    node = runs(run_id) if callable(runs) else runs.get(run_id)
    if node is None:
        raise LineageError(f"run {run_id!r} is unknown, though {why}")
    return node


def input_messages(messages: Iterable[Message]) -> list[Message]:
    """The messages that go to the agent: all but activities, which exist for the user alone."""
    return [message for message in messages if message.role != "activity"]


def normalize_input(input: RunAgentInput, history: Iterable[Message]) -> NormalizedInput:
    """Leave out the messages that the history holds unchanged. `history` is the outcome of the run's ancestors."""
    held = _by_id(input_messages(history))
    kept: list[Message] = []
    order: list[str | None] = []
    whole = hashlib.sha256()
    for message in input.messages:
        text, known = _canonical(message), held.get(message.id)
        same = known is message or (known is not None and _canonical(known) == text)
        order.append(message.id if same else None)
        if not same:
            kept.append(message)
        whole.update(_line(text))
    small = input if len(kept) == len(order) else input.model_copy(update={"messages": kept})
    return NormalizedInput(small, tuple(order), whole.hexdigest())


def denormalize_input(normalized: NormalizedInput, history: Iterable[Message]) -> RunAgentInput:
    """The exact input. Raises LineageError when this history is not the one it was made small against."""
    held = _by_id(input_messages(history))
    kept = iter(normalized.input.messages)
    messages = [_take(key, held, kept) for key in normalized.order]
    if next(kept, None) is not None or _digest(messages) != normalized.digest:
        raise LineageError("this history is not the one the input was made small against; use the raw events")
    return normalized.input.model_copy(update={"messages": messages})


def normalize_started(event: RunStartedEvent, history: Iterable[Message]) -> RunStartedEvent:
    """RUN_STARTED with its input made small; what went is noted in its metadata, under `INPUT_KEY`.

    An input that begins with its whole history, as most do, is noted so (`whole`): a list of ids would grow with each turn.
    """
    history = input_messages(history)
    metadata = event.metadata
    if event.input is None or INPUT_KEY in (metadata or {}):
        return event
    small = normalize_input(event.input, history)
    if small.input is event.input:
        return event
    whole = small.order == _behind(history, small.input)
    order: dict[str, Any] = {"whole": True} if whole else {"order": list(small.order)}
    note = {**order, "sha256": small.digest, "alone": metadata is None}
    return event.model_copy(update={"input": small.input, "metadata": {**(metadata or {}), INPUT_KEY: note}})


def denormalize_started(event: RunStartedEvent, history: Iterable[Message]) -> RunStartedEvent:
    """The exact RUN_STARTED again. Raises LineageError when this history does not fit."""
    metadata = dict(event.metadata or {})
    note = metadata.pop(INPUT_KEY, None)
    if event.input is None or note is None:
        return event
    history = input_messages(history)
    order = _behind(history, event.input) if "whole" in note else tuple(note["order"])
    whole = denormalize_input(NormalizedInput(event.input, order, note["sha256"]), history)
    return event.model_copy(update={"input": whole, "metadata": None if note["alone"] else metadata})


def _behind(history: Iterable[Message], input: RunAgentInput) -> tuple[str | None, ...]:
    """The order of an input in which its own messages follow all those of its history."""
    return (*(message.id for message in history), *(None for _ in input.messages))


def _take(key: str | None, held: Mapping[str, Message], kept: Iterator[Message]) -> Message:
    message = next(kept, None) if key is None else held.get(key)
    if message is None:
        raise LineageError("this history is not the one the input was made small against; use the raw events")
    return message


def _by_id(messages: Iterable[Message]) -> dict[str, Message]:
    held: dict[str, Message] = {}
    for message in messages:
        held.setdefault(message.id, message)
    return held


def _canonical(message: Message) -> str:
    """Text that is equal exactly if the JSON is: 1, 1.0 and true are three values."""
    return json.dumps(message.model_dump(mode="json", by_alias=True), sort_keys=True)


def _digest(messages: Iterable[Message]) -> str:
    whole = hashlib.sha256()
    for message in messages:
        whole.update(_line(_canonical(message)))
    return whole.hexdigest()


def _line(text: str) -> bytes:
    """A message's text as the digest takes it."""
    return f"{text}\n".encode()
