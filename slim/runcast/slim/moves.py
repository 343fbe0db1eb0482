"""What every event inside a run needs to find open, and what it opens, closes or owns.

`MOVES` is the table: the type of an event, and the move it makes on the `Run`. A move answers with a complaint
and leaves the run as it was, or takes effect and answers nothing. Knows the inside of one run; the borders
between runs, the profiles and what follows from a complaint are `verify.py`'s, where the rules are explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    CustomEvent,
    Message,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from runcast.slim.rules import Complaint, complain, listed, owner, quoted

__all__ = ["MOVES", "Run", "null_extra", "null_tag"]

Owners = dict[str, str | None]  # id -> subagentRunId of who opened it; None is the parent agent
Step = tuple[str | None, str]  # owner and name: parent and subagent often run the same graph


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of thing that is opened, goes on and is closed."""

    rule: str  # how its rules are called
    noun: str
    names: Callable[[Any], str]  # the id an event of this kind carries
    book: str  # where its owners are entered


_by_message: Callable[[Any], str] = attrgetter("message_id")
TEXT = Kind("text", "text message", _by_message, "message")
CALL = Kind("call", "tool call", attrgetter("tool_call_id"), "call")
REASONING = Kind("reasoning", "reasoning message", _by_message, "reasoning")
SPAN = Kind("span", "reasoning span", _by_message, "reasoning")
KINDS = (TEXT, REASONING, SPAN, CALL)

_BOOK_OF_ROLE = {"reasoning": "reasoning", "activity": "activity"}  # every other role is a plain message


@dataclass(slots=True)
class Run:
    """What is open in one run, and who owns what; a new run starts with nothing."""

    nulls: bool  # whether None given for an optional field was a null
    thread_id: str = ""
    run_id: str = ""
    open: dict[Kind, dict[str, None]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    steps: dict[Step, None] = field(default_factory=dict[Step, None])
    subagents: dict[str, None] = field(default_factory=dict[str, None])  # active
    ended: set[str] = field(default_factory=set[str])  # subagents that are over in this run
    owners: dict[str, Owners] = field(
        default_factory=lambda: {"message": {}, "call": {}, "activity": {}, "reasoning": {}}
    )

    def still_open(self) -> str:
        """What is open, in words; empty when nothing is."""
        if not (self.steps or self.subagents or any(self.open.values())):
            return ""
        found = [
            ("step", listed(_step_named(step) for step in self.steps)),
            *((kind.noun, listed(map(quoted, self.open[kind]))) for kind in KINDS),
            ("subagent", listed(map(quoted, self.subagents))),
        ]
        return "; ".join(f"{noun} {names}" for noun, names in found if names)

    def enter(self, messages: Sequence[Message], *, rewrite: bool) -> None:
        """Enter the owners that these messages name; `rewrite` also those that are known already."""
        for message in messages:
            entries = [(_BOOK_OF_ROLE.get(message.role, "message"), message.id)]
            if isinstance(message, AssistantMessage):
                entries += [("call", call.id) for call in message.tool_calls or ()]
            for book, ident in entries:
                if rewrite or ident not in self.owners[book]:
                    self.owners[book][ident] = message.subagent_run_id


Move = Callable[[Run, Any], Complaint | None]


# ---------------------------------------------------------------- open, go on, close


def _opens(kind: Kind) -> Move:
    def move(run: Run, event: Any) -> Complaint | None:
        ident, tag = kind.names(event), event.subagent_run_id
        if ident in run.open[kind]:
            return complain(f"{kind.rule}-already-open", ident)
        complaint = _continues(kind.noun, ident, run.owners[kind.book], tag)
        if complaint is None:
            run.open[kind][ident] = None
            run.owners[kind.book].setdefault(ident, tag)
        return complaint

    return move


def _goes_on(kind: Kind) -> Move:
    names, book = kind.names, kind.book

    def move(run: Run, event: Any) -> Complaint | None:
        ident = names(event)
        if ident not in run.open[kind]:
            found = listed(map(quoted, run.open[kind])) or "none"
            return complain(f"{kind.rule}-not-open", ident, open=found)
        tag = event.subagent_run_id
        return None if tag is None else _continues(kind.noun, ident, run.owners[book], tag)

    return move


def _closes(kind: Kind) -> Move:
    goes_on = _goes_on(kind)

    def move(run: Run, event: Any) -> Complaint | None:
        complaint = goes_on(run, event)
        if complaint is None:
            del run.open[kind][kind.names(event)]
        return complaint

    return move


def _opens_call(run: Run, event: ToolCallStartEvent) -> Complaint | None:
    """A ToolCall has no tag of its own: it belongs to whom the message that carries it belongs to."""
    ident, tag, carrier = event.tool_call_id, event.subagent_run_id, event.parent_message_id
    if ident in run.open[CALL]:
        return complain("call-already-open", ident)
    messages, calls = run.owners["message"], run.owners["call"]
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
        # Told apart from a missing STEP_STARTED: an attribution by "who is active now" is the likelier mistake.
        return complain("step-of-another", name, holder=holders, claimer=owner(tag))
    return complain("step-not-open", name, open=listed(map(_step_named, run.steps)) or "none")


def _starts_subagent(run: Run, event: SubagentStartedEvent) -> Complaint | None:
    ident, above = event.subagent_run_id, event.parent_subagent_run_id
    if complaint := _null_field(run, event, ident):
        return complaint
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
    if complaint := _null_field(run, event, ident):
        return complaint
    if ident not in run.subagents:
        return complain("subagent-not-active", ident, open=listed(map(quoted, run.subagents)) or "none")
    del run.subagents[ident]
    run.ended.add(ident)
    return None


def _finishes_subagent(run: Run, event: SubagentFinishedEvent) -> Complaint | None:
    outcome = event.outcome
    complaint = None if outcome is None else _null_field(run, outcome, event.subagent_run_id)
    return complaint or _ends_subagent(run, event)


# ---------------------------------------------------------------- what opens and closes nothing


def _passes(run: Run, event: Any) -> None:
    """A tag on these says where they come from; nobody owns them."""


def _answers(run: Run, event: ToolCallResultEvent) -> None:
    """A result mints a message of its own. Who executes may be another than who called; the newest holds."""
    run.owners["message"][event.message_id] = event.subagent_run_id


def _shows(run: Run, event: ActivitySnapshotEvent) -> None:
    """Only a snapshot that replaces mints the activity anew; else a known one keeps its owner."""
    owners = run.owners["activity"]
    if event.replace is not False or event.message_id not in owners:
        owners[event.message_id] = event.subagent_run_id


def _patches(run: Run, event: ActivityDeltaEvent) -> Complaint | None:
    return _continues("activity", event.message_id, run.owners["activity"], event.subagent_run_id)


def _signs(run: Run, event: ReasoningEncryptedValueEvent) -> Complaint | None:
    """The subtype says what `entityId` names; "message" may be a text or a reasoning message."""
    ident, tag = event.entity_id, event.subagent_run_id
    if event.subtype == "tool-call":
        return _continues(CALL.noun, ident, run.owners["call"], tag)
    book = "message" if ident in run.owners["message"] else "reasoning"
    return _continues("message", ident, run.owners[book], tag)


def _restates(run: Run, event: MessagesSnapshotEvent) -> Complaint | None:
    """The client replaces each message by its restated form, so its owner is the new one too."""
    complaint = null_extra(event) or null_tag(run, event.messages)
    if complaint is None:
        run.enter(event.messages, rewrite=True)
    return complaint


MOVES: Mapping[type, Move] = {
    TextMessageStartEvent: _opens(TEXT),
    TextMessageContentEvent: _goes_on(TEXT),
    TextMessageEndEvent: _closes(TEXT),
    ToolCallStartEvent: _opens_call,
    ToolCallArgsEvent: _goes_on(CALL),
    ToolCallEndEvent: _closes(CALL),
    ToolCallResultEvent: _answers,
    ReasoningStartEvent: _opens(SPAN),
    ReasoningEndEvent: _closes(SPAN),
    ReasoningMessageStartEvent: _opens(REASONING),
    ReasoningMessageContentEvent: _goes_on(REASONING),
    ReasoningMessageEndEvent: _closes(REASONING),
    ReasoningEncryptedValueEvent: _signs,
    StepStartedEvent: _opens_step,
    StepFinishedEvent: _closes_step,
    SubagentStartedEvent: _starts_subagent,
    SubagentFinishedEvent: _finishes_subagent,
    SubagentErrorEvent: _ends_subagent,
    MessagesSnapshotEvent: _restates,
    ActivitySnapshotEvent: _shows,
    ActivityDeltaEvent: _patches,
    StateSnapshotEvent: _passes,
    StateDeltaEvent: _passes,
    CustomEvent: _passes,
    RawEvent: _passes,
}
"""The move of each event that belongs inside a run; chunks have none before they are expanded."""


# ---------------------------------------------------------------- owners and nulls


def _continues(noun: str, ident: str, owners: Owners, tag: str | None) -> Complaint | None:
    """An absent tag agrees with every owner; so does any tag with a thing that nobody owns yet."""
    if tag is None or owners.get(ident, tag) == tag:
        return None
    return complain("wrong-owner", ident, noun=noun, owner=owner(owners[ident]), claimer=owner(tag))


# The optional fields that the client refuses as null, for what says them.
_NEVER_NULL: Mapping[type[BaseModel], Sequence[str]] = {
    SubagentStartedEvent: (
        "description",
        "parent_subagent_run_id",
        "parent_tool_call_id",
        "parent_message_id",
    ),
    SubagentFinishedEvent: ("outcome",),
    SubagentFinishedSuspendedOutcome: ("interrupt_ids",),
    SubagentErrorEvent: ("code",),
}


def _null_field(run: Run, said: BaseModel, subagent: str) -> Complaint | None:
    names = [name for kind, fields in _NEVER_NULL.items() if isinstance(said, kind) for name in fields]
    for name in names:
        if run.nulls and name in said.model_fields_set and getattr(said, name) is None:
            return complain("null-field", subagent, name=to_camel(name))
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
