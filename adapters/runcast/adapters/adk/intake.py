"""What a RunAgentInput asks of a session: decided before anything runs, refused with a sentence when it cannot be.

The session is the truth. A client sends its whole history each time; only what the session does not know is news. It
does not know runners, and writes nothing: a refused input leaves no trace.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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

from runcast.adapters.adk.conversation import live_events, messages_from_events
from runcast.adapters.adk.interrupts import expired, names, open_interrupts, response
from runcast.adapters.adk.messages import tool_part, user_parts
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.reading import CREDENTIAL, HIDDEN, Answer, parts_of, result_text
from runcast.adapters.errors import InvalidInput

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

ROLES = frozenset({"user", "assistant", "tool", "system", "developer", "reasoning", "activity"})
INSTRUCTIONS = frozenset({"system", "developer"})
ASIDE = frozenset({"reasoning", "activity"})  # the client's views of a run; the session has its own


def _no_turns() -> list[list[types.Part]]:
    return []


def _no_parts() -> list[types.Part]:
    return []


@dataclass(slots=True)
class Plan:
    """What to hand the runner, and what to tell the client first."""

    turns: list[list[types.Part]] = field(
        default_factory=_no_turns
    )  # new messages in order; empty: nothing is new
    replies: list[types.Part] = field(default_factory=_no_parts)  # answers to open calls
    mark: dict[str, Any] = field(
        default_factory=dict[str, Any]
    )  # the client's ids, to be kept with the event
    answers: list[Answer] = field(
        default_factory=list[Answer]
    )  # results the client does not hold as messages
    news: list[Message] = field(default_factory=list[Message])  # the input's messages that the session lacks
    history: list[Message] = field(default_factory=list[Message])  # those before them
    resumes: bool = False
    logins: set[str] = field(default_factory=set[str])  # interrupts whose answer is a secret


def plan(
    input: RunAgentInput,
    events: Sequence[Event],
    *,
    options: AdkOptions,
    now: datetime,
    frontend: Collection[str] = (),
    told: Sequence[Interrupt] = (),
) -> Plan:
    """Read an input against a session's events. Raises `InvalidInput`.

    `told` are questions as they were asked, for a session that was made again: their time goes on running.
    """
    live = live_events(events)
    skip = frontend if options.frontend_tools == "pending" else ()
    waiting = {it.id: it for it in open_interrupts(live, ttl=options.interrupt_ttl, skip=skip)}
    waiting |= {it.id: it for it in told if it.id in waiting}
    made = Plan()
    made.history, made.news = _news(input.messages, live, options)
    spoken = [it for it in made.news if isinstance(it, UserMessage)]
    results = [it for it in made.news if isinstance(it, ToolMessage)]
    _resume(made, input.resume or [], waiting, live, now, {it.tool_call_id for it in results})
    _results(made, results, waiting, live, now)
    made.turns = _by_branch(made.replies, live)
    if spoken and made.turns:
        raise InvalidInput("answers and a new message do not go into one run: send the answers first")
    if spoken:
        if waiting:
            asked = ", ".join(waiting)
            raise InvalidInput(f"this thread waits for answers: send `resume` entries for {asked}")
        parts, made.mark = user_parts(spoken)
        if not parts:
            raise InvalidInput(f"message {spoken[-1].id!r} has no content: send text or a file")
        made.turns = [parts]
    return made


def echo(input: RunAgentInput, made: Plan) -> RunAgentInput:
    """The input as RUN_STARTED tells it: whose it is and what was new. A login that answers an interrupt is left out."""
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


def _news(
    messages: Sequence[Message], live: Sequence[Event], options: AdkOptions
) -> tuple[list[Message], list[Message]]:
    """The messages the session knows or cannot take, and the new ones behind them."""
    for message in messages:
        if message.role not in ROLES:
            raise InvalidInput(f"unknown message role {message.role!r}: send a role of the protocol")
    known = {it.id for it in messages_from_events(live, options=options)} if live else set[str]()
    begin = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.id in known or message.role == "assistant":
            break
        if message.role in ("user", "tool"):
            begin = index
    news = [it for it in messages[begin:] if it.role not in ASIDE | INSTRUCTIONS]
    return list(messages[:begin]), news


def _resume(
    made: Plan,
    entries: Sequence[ResumeEntry],
    waiting: Mapping[str, Interrupt],
    live: Sequence[Event],
    now: datetime,
    told: Collection[str],
) -> None:
    called = names(live)
    asked = {call_id for event in live for call_id in event.long_running_tool_ids or ()}
    seen: set[str] = set()
    for entry in entries:
        key = entry.interrupt_id
        if key not in waiting:
            if key in asked:
                continue  # answered before: a client whose resumed run broke must name it again to go on
            if not waiting:
                raise InvalidInput(
                    "nothing waits for an answer in this thread: send a message instead of `resume`"
                )
            known = ", ".join(waiting)
            raise InvalidInput(f"no interrupt {key!r} waits in this thread; waiting: {known}")
        if key in seen:
            raise InvalidInput(f"interrupt {key!r} is answered twice: send one entry for each")
        seen.add(key)
        if (
            entry.status == "resolved"
        ):  # one whose time is over can still be cancelled, or the thread were stuck
            _in_time(waiting[key], now)
        if called[key] == CREDENTIAL:
            made.logins.add(key)
        if key in told:
            continue  # the client answers with a tool message too, and that one says more
        part = response(key, called[key], entry.payload, cancelled=entry.status == "cancelled")
        made.replies.append(part)
        made.resumes = True
        answer = part.function_response
        if answer is not None and answer.name not in HIDDEN:
            body = answer.response
            made.answers.append(
                Answer(key, key, answer.name, result_text(body), bool(body and body.get("error")))
            )


def _results(
    made: Plan,
    results: Sequence[ToolMessage],
    waiting: Mapping[str, Interrupt],
    live: Sequence[Event],
    now: datetime,
) -> None:
    called = names(live) if results else {}
    long_running = (
        {it for event in live for it in event.long_running_tool_ids or ()} if results else set[str]()
    )
    for message in results:
        key = message.tool_call_id
        if key not in called:
            raise InvalidInput(f"tool result for unknown call {key!r}: send the call's own id")
        if key not in long_running or called[key] in HIDDEN:
            raise InvalidInput(f"call {key!r} has its result already: send each only once")
        if key in waiting:
            _in_time(waiting[key], now)
        made.replies.append(tool_part(message, called[key]))
        made.mark.setdefault("results", {})[key] = message.id
        made.resumes = True


def _by_branch(replies: Sequence[types.Part], live: Sequence[Event]) -> list[list[types.Part]]:
    """Answers to parallel branches go one branch at a time: ADK gives a message to the branch of its first answer."""
    branches = {
        part.function_call.id: event.branch
        for event in (live if len(replies) > 1 else ())
        for part in parts_of(event)
        if part.function_call is not None
    }
    groups: dict[str | None, list[types.Part]] = {}
    for part in replies:
        call_id = None if part.function_response is None else part.function_response.id
        groups.setdefault(branches.get(call_id), []).append(part)
    return list(groups.values())


def _in_time(interrupt: Interrupt, now: datetime) -> None:
    if expired(interrupt, now):
        raise InvalidInput(f"interrupt {interrupt.id!r} has expired: start a new run instead")
