"""The plan of a run: an input compared with its session, before anything runs.

The session is the truth. A client sends its whole history each time; only messages that the session lacks are new.
Raises `InvalidInput` for an input that cannot run. Does not know runners and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    DeveloperMessage,
    Interrupt,
    Message,
    ResumeEntry,
    RunAgentInput,
    SystemMessage,
    ToolMessage,
    UserMessage,
)

from runcast.adapters.adk.intake.answers import Questions
from runcast.adapters.adk.intake.fork import Fork, fork, torn_fork
from runcast.adapters.adk.intake.messages import user_parts
from runcast.adapters.adk.intake.session_conversation import live_events, messages_from_events
from runcast.adapters.adk.interrupts import names, open_interrupts
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.stream.complete_event import Answer
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.adapters.errors import InvalidInput

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

ROLES = frozenset({"user", "assistant", "tool", "system", "developer", "reasoning", "activity"})
INSTRUCTIONS = frozenset({"system", "developer"})
DERIVED = frozenset({"reasoning", "activity"})  # the session has its own


def _no_turns() -> list[list[types.Part]]:
    return []


@dataclass(slots=True)
class Plan:
    """The runner's arguments, and the facts for the start of the stream."""

    turns: list[list[types.Part]] = field(default_factory=_no_turns)
    """New messages in order; empty if nothing is new."""
    mark: dict[str, Any] = field(default_factory=dict[str, Any])
    """The client's ids, stored with the event."""
    answers: list[Answer] = field(default_factory=list[Answer])
    """Results that the client does not hold as messages."""
    news: list[Message] = field(default_factory=list[Message])
    """The input's messages that the session lacks, and those that run again."""
    history: list[Message] = field(default_factory=list[Message])
    """The input's messages before them."""
    resumes: bool = False
    logins: set[str] = field(default_factory=set[str])
    """Interrupts with a secret answer."""
    before: str | None = None
    """The invocation to undo first, with all after it: a fork."""
    undone: list[Message] = field(default_factory=list[Message])
    """The messages that a fork removes."""
    stored: list[list[types.Part]] = field(default_factory=_no_turns)
    """Answers that are stored without a turn of the agent, because other answers or a new message follow them."""
    stored_mark: dict[str, Any] = field(default_factory=dict[str, Any])
    """The client's ids of those answers."""

    def take_one_turn(self) -> None:
        """Store all answers but the last: an invocation that resumes continues each branch that has its answer.

        With a turn for each branch, a sequence goes on behind its branches in the first one, and the others stay unanswered.
        """
        if len(self.turns) > 1:
            self.stored, self.turns = self.turns[:-1], self.turns[-1:]
            self.stored_mark = self.mark


def plan(
    input: RunAgentInput,
    events: Sequence[Event],
    *,
    options: AdkOptions,
    now: datetime,
    frontend: Collection[str] = (),
    remembered: Sequence[Interrupt] = (),
    continues: bool = False,
    anew: bool = False,
) -> Plan:
    """Compare an input with a session's events. Raises `InvalidInput`.

    `remembered` are the original questions of a session that was made again; their expiry counts. `continues`: the
    run continues one that stopped, so a message that waits for its answer is not asked again. `anew`: the run begins
    before everything that is held.
    """
    torn = torn_fork(input.messages, events) if continues else None
    calls = DistinctCalls()
    live = calls.all(live_events(events if torn is None else events[:-1]))
    held = messages_from_events(live, options=options)
    made = Plan()
    made.history, made.news = _news(input.messages, {it.id for it in held})
    made.news = [it for it in made.news if not _is_inner_result(it, live)]
    ever = {call_id for event in live for call_id in event.long_running_tool_ids or ()}
    answers = any(entry.status == "resolved" for entry in input.resume or ())
    # A client that cancels what stands behind its message does not ask for another answer to the message.
    behind = bool(input.resume and held and not made.news and not anew) and held[-1].role == "user"
    forked = (
        torn if continues or answers or behind else fork(input.messages, made.news, held, live, anew=anew)
    )
    if forked is not None:
        live = _undo(made, forked, held, live, options)
    skip = frontend if options.frontend_tools == "pending" else ()
    waiting = {it.id: it for it in open_interrupts(live, ttl=options.interrupt_ttl, skip=skip)}
    waiting |= {it.id: it for it in remembered if it.id in waiting}
    # An answer to a parallel branch stands before the call of another one; a broken run may not have stored it.
    late = [it for it in made.history if isinstance(it, ToolMessage) and it.tool_call_id in waiting]
    made.news[:0] = late
    messages = [it for it in made.news if isinstance(it, UserMessage)]
    results = [it for it in made.news if isinstance(it, ToolMessage)]
    given = Questions(waiting, live, ever, now).answers(input.resume or [], results, let_go=bool(messages))
    made.turns, made.mark, made.resumes = given.by_branch(live), given.mark, bool(given.replies)
    made.answers, made.logins = given.unseen, given.logins
    given.under(calls)
    if messages:
        _new_message(made, messages, waiting, input, options)
    return made


def _undo(
    made: Plan, forked: Fork, held: Sequence[Message], live: Sequence[Event], options: AdkOptions
) -> list[Event]:
    """Plan a fork; the events before it."""
    made.before, made.news = forked.before, list(forked.messages)
    before = list(takewhile(lambda event: event.invocation_id != forked.before, live))
    kept = {it.id for it in (*messages_from_events(before, options=options), *made.news)}
    made.undone = [it for it in held if it.id not in kept]
    return before


def _new_message(
    made: Plan,
    messages: Sequence[UserMessage],
    waiting: Mapping[str, Interrupt],
    input: RunAgentInput,
    options: AdkOptions,
) -> None:
    """A new message lets open questions go; answers that come with it are stored before it."""
    results = {it.tool_call_id for it in made.news if isinstance(it, ToolMessage)}
    if any(it.status == "resolved" and it.interrupt_id in waiting for it in input.resume or ()):
        raise InvalidInput("answers and a new message do not go into one run: send the answers first")
    left = [key for key in waiting if key not in results | {it.interrupt_id for it in input.resume or ()}]
    if left and options.on_new_message == "refuse":
        raise InvalidInput(f"this thread waits for answers: send `resume` entries for {', '.join(left)}")
    made.stored, made.stored_mark = made.turns, made.mark
    parts, made.mark = user_parts(messages)
    if not parts:
        raise InvalidInput(f"message {messages[-1].id!r} has no content: send text or a file")
    made.turns = [parts]


def echo(input: RunAgentInput, made: Plan) -> RunAgentInput:
    """The input in RUN_STARTED: its ids and new messages, without the payload of a login."""
    given: dict[str, Any] = {} if input.parent_run_id is None else {"parent_run_id": input.parent_run_id}
    if input.resume:
        given["resume"] = [
            ResumeEntry(interrupt_id=it.interrupt_id, status=it.status)
            if it.interrupt_id in made.logins
            else it
            for it in input.resume
        ]
    return RunAgentInput(thread_id=input.thread_id, run_id=input.run_id, messages=made.news, **given)


def instructions(input: RunAgentInput) -> list[str]:
    """The texts of system and developer messages."""
    return [it.content for it in input.messages if isinstance(it, SystemMessage | DeveloperMessage)]


def check_place(framework: Mapping[str, Any], **ours: str) -> None:
    """Refuse a resume point that belongs to another session, app or user."""
    for name, own in ours.items():
        theirs = framework.get(name)
        if theirs is not None and theirs != own:
            raise InvalidInput(f"the resume point belongs to another thread ({name} {theirs!r}, not {own!r})")


def _news(messages: Sequence[Message], known: Collection[str]) -> tuple[list[Message], list[Message]]:
    """The messages before the first one that the session lacks, and the new ones from there."""
    for message in messages:
        if message.role not in ROLES:
            raise InvalidInput(f"unknown message role {message.role!r}: send a role of the protocol")
    begin = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.id in known or message.role == "assistant":
            break
        if message.role in ("user", "tool"):
            begin = index
    news = [it for it in messages[begin:] if it.role not in DERIVED | INSTRUCTIONS]
    return list(messages[:begin]), news


def _is_inner_result(message: Message, live: Sequence[Event]) -> bool:
    """Whether this is a result inside an agent that runs as a tool: no session of this thread holds its call."""
    if not isinstance(message, ToolMessage) or message.subagent_run_id is None:
        return False
    return message.tool_call_id not in names(live)
