"""The rules that a stream of events can break: name, and the message of a violation.

`RULES` is the table of record; documentation, logs and tests name a rule by its key. The rules without `strict`
are those of the official client (`transformChunks` and `verifyEvents` of `@ag-ui/client` 1.0.0); `strict` marks those that the text of AG-UI
1.0 has and that client does not check. Knows no events and no order: `verifier.py` finds the violations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Profile = Literal["strict", "client"]
"""`client` judges as the official TypeScript client 1.0.0 does, `strict` by the text of 1.0 as well."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The message of a violation: what was open, and what would have been right."""

    message: str  # with placeholders in braces
    strict: bool = False  # only the profile `strict` knows it


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken by one event: the rule, the place, and a sentence for people."""

    rule: str  # a key of RULES
    index: int  # place in the stream, from 0; for the end, the number of events there were
    type: str | None  # the event's type as on the wire; None when it is the end that came wrong
    subject: str | None  # the id or name it is about: distinguishes one repeated mistake from two
    message: str

    def __str__(self) -> str:
        return f"event {self.index} ({self.type or 'the end'}): {self.message} [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Complaint:
    """A violation without its place in the stream."""

    rule: str
    subject: str | None
    message: str


def complain(rule: str, subject: str | None = None, **found: str) -> Complaint:
    """A violation of this rule; `it` in its message is the subject."""
    it = "" if subject is None else quoted(subject)
    return Complaint(rule, subject, RULES[rule].message.format(it=it, **found))


def quoted(text: str) -> str:
    """An id as it may stand in a sentence: in quotes, escaped, never long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def listed(names: Iterable[str]) -> str:
    """The first few of these names; empty when there are none."""
    every = list(names)
    more = f" and {len(every) - 5} more" if len(every) > 5 else ""
    return ", ".join(every[:5]) + more


def owner(tag: str | None) -> str:
    """The owner that a `subagentRunId` names; its absence is the parent agent."""
    return "the parent agent" if tag is None else f"subagent {quoted(tag)}"


def _opening(noun: str, start: str, end: str) -> Rule:
    return Rule(f"{noun} {{it}} is already open; send {end} before opening it again")


def _going_on(noun: str, start: str) -> Rule:
    return Rule(f"no {noun} {{it}} is open (open: {{open}}); send {start} first")


RULES: Mapping[str, Rule] = {
    # where runs begin and end
    "first-event": Rule(
        "no run was started; begin with RUN_STARTED, or with RUN_ERROR when the run could not begin"
    ),
    "run-active": Rule(
        "run {it} has not ended (open: {open}); send RUN_FINISHED or RUN_ERROR before the next RUN_STARTED"
    ),
    "after-finish": Rule("run {it} has finished; only RUN_STARTED, or a late RUN_ERROR, may follow"),
    "after-error": Rule("the run before ended with RUN_ERROR; only RUN_STARTED may follow"),
    "open-at-finish": Rule("still open: {open}; end them before RUN_FINISHED, or send RUN_ERROR"),
    # open, continue, close
    "text-already-open": _opening("text message", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
    "text-not-open": _going_on("text message", "TEXT_MESSAGE_START"),
    "call-already-open": _opening("tool call", "TOOL_CALL_START", "TOOL_CALL_END"),
    "call-not-open": _going_on("tool call", "TOOL_CALL_START"),
    "reasoning-already-open": _opening(
        "reasoning message", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END"
    ),
    "reasoning-not-open": _going_on("reasoning message", "REASONING_MESSAGE_START"),
    "span-already-open": _opening("reasoning span", "REASONING_START", "REASONING_END"),
    "span-not-open": _going_on("reasoning span", "REASONING_START"),
    "step-already-open": _opening("step", "STEP_STARTED", "STEP_FINISHED"),
    "step-not-open": _going_on("step", "STEP_STARTED"),
    "step-of-another": Rule(
        "step {it} is open under {holder}, not under {claimer}; the agent that starts a step finishes it"
    ),
    # owners
    "null-tag": Rule("{where} carries subagentRunId: null; leave it out for the parent agent"),
    "wrong-owner": Rule(
        "{noun} {it} belongs to {owner}, not to {claimer}; carry the owner's subagentRunId, or none"
    ),
    "parent-of-another": Rule(
        "tool call {it} would belong to {claimer}, but the message {carrier} that carries it to {owner}; "
        "a call has the owner of its message",
    ),
    "null-field": Rule("{name} is null; leave it out"),
    # the life of a subagent
    "subagent-already-active": Rule(
        "subagent {it} is already active; send SUBAGENT_FINISHED or SUBAGENT_ERROR first"
    ),
    "subagent-reused": Rule(
        "subagent {it} has ended in this run; a new invocation needs a new subagentRunId"
    ),
    "subagent-parent-unknown": Rule(
        "the parent {parent} of subagent {it} was not started in this run; send its SUBAGENT_STARTED first"
    ),
    "subagent-not-active": Rule("no subagent {it} is active (active: {open}); send SUBAGENT_STARTED first"),
    # required by the text, not checked by the client 1.0.0
    "run-finished-wrong-run-id": Rule(
        "RUN_FINISHED names run {it}, but the open run is {run}; send the id of the run that ends",
        strict=True,
    ),
    "run-finished-wrong-thread-id": Rule(
        "RUN_FINISHED names thread {it}, but run {run} was started on {thread}; send the thread of the run",
        strict=True,
    ),
    "second-run-on-another-thread": Rule(
        "RUN_STARTED names thread {it}, but this stream belongs to {thread}; give each thread its own stream",
        strict=True,
    ),
    "run-id-reused": Rule(
        "run {it} was already in this stream; a new run needs a new runId",
        strict=True,
    ),
    "own-parent": Rule(
        "run {it} names itself as its parent; leave parentRunId out, or name the run that spawned it",
        strict=True,
    ),
    "duplicate-interrupt-id": Rule(
        "two interrupts carry the id {it}, so one answer would stand for both; give each its own",
        strict=True,
    ),
    "bad-chunk": Rule("{problem}"),
    "unknown-type": Rule(
        "{it} is no event type of AG-UI 1.0, and clients drop it; send data without a type of its own as CUSTOM",
        strict=True,
    ),
    "truncated-stream": Rule(
        "the stream ended inside run {it} (open: {open}), which so has no outcome; end it with RUN_FINISHED or "
        "RUN_ERROR",
        strict=True,
    ),
    "no-run": Rule(
        "the stream ended before it began; send RUN_STARTED, or RUN_ERROR when the run could not begin",
        strict=True,
    ),
}
"""Every rule, by its name."""
