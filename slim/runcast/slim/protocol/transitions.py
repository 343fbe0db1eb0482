"""The rules inside a run: what each event needs to be open, and what it opens, closes or owns.

`MOVES` is the table: the type of an event, and the move it makes on the `Run`. A move returns a complaint and leaves the
run as it was, or takes effect and returns nothing. Knows the inside of one run; the borders between runs, the profiles
and what follows from a complaint are in `verifier.py`, which explains the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    CustomEvent,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from runcast.slim.protocol.ownership import Book, Owners
from runcast.slim.protocol.rules import Complaint, complain, listed, owner, quoted
from runcast.slim.values.lifecycles import CALL, REASONING, SPAN, TEXT, Lifecycle

Step = tuple[str | None, str]  # owner and name: parent and subagent often run the same graph
_OPENED = (TEXT, REASONING, SPAN, CALL)  # in the order in which open ones are listed


@dataclass(slots=True)
class Run:
    """What is open in one run, and the owners; a new run starts empty."""

    nulls: bool  # whether None given for an optional field was a null
    thread_id: str = ""
    run_id: str = ""
    open: dict[Lifecycle, dict[str, None]] = field(default_factory=lambda: {life: {} for life in _OPENED})
    steps: dict[Step, None] = field(default_factory=dict[Step, None])
    subagents: dict[str, None] = field(default_factory=dict[str, None])  # active
    ended: set[str] = field(default_factory=set[str])  # subagents that are over in this run
    owners: Owners = field(default_factory=Owners)

    def still_open(self) -> str:
        """The open things, in words; empty when there are none."""
        if not (self.steps or self.subagents or any(self.open.values())):
            return ""
        found = [
            ("step", listed(_step_named(step) for step in self.steps)),
            *((life.noun, listed(map(quoted, self.open[life]))) for life in _OPENED),
            ("subagent", listed(map(quoted, self.subagents))),
        ]
        return "; ".join(f"{noun} {names}" for noun, names in found if names)


Move = Callable[[Run, Any], Complaint | None]


# ---------------------------------------------------------------- open, go on, close


def _opens(life: Lifecycle) -> Move:
    key = life.key

    def move(run: Run, event: Any) -> Complaint | None:
        ident, tag, book = key(event), event.subagent_run_id, run.owners.book(life)
        if ident in run.open[life]:
            return complain(f"{life.name}-already-open", ident)
        complaint = _continues(life.noun, ident, book, tag)
        if complaint is None:
            run.open[life][ident] = None
            book.setdefault(ident, tag)
        return complaint

    return move


def _goes_on(life: Lifecycle) -> Move:
    key = life.key

    def move(run: Run, event: Any) -> Complaint | None:
        ident = key(event)
        if ident not in run.open[life]:
            found = listed(map(quoted, run.open[life])) or "none"
            return complain(f"{life.name}-not-open", ident, open=found)
        tag = event.subagent_run_id
        return None if tag is None else _continues(life.noun, ident, run.owners.book(life), tag)

    return move


def _closes(life: Lifecycle) -> Move:
    goes_on = _goes_on(life)

    def move(run: Run, event: Any) -> Complaint | None:
        complaint = goes_on(run, event)
        if complaint is None:
            del run.open[life][life.key(event)]
        return complaint

    return move


def _opens_call(run: Run, event: ToolCallStartEvent) -> Complaint | None:
    """A tool call has no tag of its own: its owner is the owner of the message that carries it."""
    ident, tag, carrier = event.tool_call_id, event.subagent_run_id, event.parent_message_id
    if ident in run.open[CALL]:
        return complain("call-already-open", ident)
    messages, calls = run.owners.messages, run.owners.calls
    holder = tag
    if carrier is None or carrier not in messages:
        if complaint := _continues(CALL.noun, ident, calls, tag):
            return complaint
    else:
        holder = messages[carrier]
        for claimer in (holder if tag is None else tag, calls.get(ident, holder)):
            if claimer != holder:
                found = {"claimer": owner(claimer), "carrier": quoted(carrier), "owner": owner(holder)}
                return complain("parent-of-another", ident, **found)
    run.open[CALL][ident] = None
    calls.setdefault(ident, holder)
    return None


# ---------------------------------------------------------------- steps and subagents


def _opens_step(run: Run, event: StepStartedEvent) -> Complaint | None:
    step = (event.subagent_run_id, event.step_name)
    if step in run.steps:
        return complain("step-already-open", event.step_name)
    run.steps[step] = None
    return None


def _closes_step(run: Run, event: StepFinishedEvent) -> Complaint | None:
    tag, name = step = (event.subagent_run_id, event.step_name)
    if step in run.steps:
        del run.steps[step]
        return None
    holders = listed(owner(holder) for holder, other in run.steps if other == name)
    if holders:
        # Not a missing STEP_STARTED: attribution by "which agent is active now" is the likelier mistake.
        return complain("step-of-another", name, holder=holders, claimer=owner(tag))
    return complain("step-not-open", name, open=listed(map(_step_named, run.steps)) or "none")


def _starts_subagent(run: Run, event: SubagentStartedEvent) -> Complaint | None:
    ident, above = event.subagent_run_id, event.parent_subagent_run_id
    if ident in run.subagents:
        return complain("subagent-already-active", ident)
    if ident in run.ended:
        return complain("subagent-reused", ident)
    if above is not None and above not in run.subagents and above not in run.ended:
        return complain("subagent-parent-unknown", ident, parent=quoted(above))
    run.subagents[ident] = None
    return None


def _ends_subagent(run: Run, event: SubagentFinishedEvent | SubagentErrorEvent) -> Complaint | None:
    ident = event.subagent_run_id
    if ident not in run.subagents:
        return complain("subagent-not-active", ident, open=listed(map(quoted, run.subagents)) or "none")
    del run.subagents[ident]
    run.ended.add(ident)
    return None


def _finishes_subagent(run: Run, event: SubagentFinishedEvent) -> Complaint | None:
    complaint = null_field(event.outcome) if run.nulls and event.outcome is not None else None
    return complaint or _ends_subagent(run, event)


# ---------------------------------------------------------------- other events


def _passes(run: Run, event: Any) -> None:
    """Their tag only names their source; they have no owner."""


def _patches(run: Run, event: ActivityDeltaEvent) -> Complaint | None:
    return _continues("activity", event.message_id, run.owners.activities, event.subagent_run_id)


def _signs(run: Run, event: ReasoningEncryptedValueEvent) -> Complaint | None:
    noun = CALL.noun if event.subtype == "tool-call" else "message"
    return _continues(noun, event.entity_id, run.owners.entity_book(event), event.subagent_run_id)


def _restates(run: Run, event: MessagesSnapshotEvent) -> Complaint | None:
    """The client replaces each message by its restated form, so its owner is the new one too."""
    complaint = null_extra(event) or null_tag(run, event.messages)
    if complaint is None:
        run.owners.enter(event.messages, rewrite=True)
    return complaint


MOVES: Mapping[type, Move] = {
    **{life.start: _opens(life) for life in _OPENED},
    **{life.content: _goes_on(life) for life in _OPENED if life.content is not None},
    **{life.end: _closes(life) for life in _OPENED},
    ToolCallStartEvent: _opens_call,
    ToolCallResultEvent: lambda run, event: run.owners.result(event),
    ReasoningEncryptedValueEvent: _signs,
    StepStartedEvent: _opens_step,
    StepFinishedEvent: _closes_step,
    SubagentStartedEvent: _starts_subagent,
    SubagentFinishedEvent: _finishes_subagent,
    SubagentErrorEvent: _ends_subagent,
    MessagesSnapshotEvent: _restates,
    ActivitySnapshotEvent: lambda run, event: run.owners.activity(event),
    ActivityDeltaEvent: _patches,
    StateSnapshotEvent: _passes,
    StateDeltaEvent: _passes,
    CustomEvent: _passes,
    RawEvent: _passes,
}
"""The move of each event that belongs inside a run; chunks have none before they are expanded."""


# ---------------------------------------------------------------- owners and nulls


def _continues(noun: str, ident: str, owners: Book, tag: str | None) -> Complaint | None:
    """An absent tag agrees with every owner; so does any tag where there is no owner yet."""
    if tag is None or owners.get(ident, tag) == tag:
        return None
    return complain("wrong-owner", ident, noun=noun, owner=owner(owners[ident]), claimer=owner(tag))


def null_field(model: BaseModel) -> Complaint | None:
    """The first optional field that is null: by the client's schemas no such field may be, a required value may."""
    for name, optional in type(model).model_fields.items():
        if name in model.model_fields_set and getattr(model, name) is None and not optional.is_required():
            if name == "subagent_run_id":
                return complain("null-tag", where="the event")
            return complain("null-field", name=to_camel(name))
    return None


def null_tag(run: Run, tagged: Iterable[Any]) -> Complaint | None:
    """Of these messages or interrupts, the first one whose `subagentRunId` is null."""
    for each in tagged:
        if run.nulls and each.subagent_run_id is None and "subagent_run_id" in each.model_fields_set:
            return complain("null-tag", each.id, where=quoted(each.id))
    return None


def null_extra(event: BaseModel) -> Complaint | None:
    """The tag as null where none belongs: an extra is written as it is, so this null is always one."""
    extra = event.model_extra or {}
    if "subagentRunId" in extra and extra["subagentRunId"] is None:
        return complain("null-tag", where="the event")
    return None


def _step_named(step: Step) -> str:
    tag, name = step
    return quoted(name) if tag is None else f"{quoted(name)} of {owner(tag)}"
