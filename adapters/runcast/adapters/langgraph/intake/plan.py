"""What a run has to do, by its input and what the thread holds already.

Knows the ways a client sends a conversation (all of it, only new messages, cut back to an earlier message, or answers)
and what each asks for. Reads nothing: the thread comes as an argument, from a snapshot or from the checkpointer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, Literal

from ag_ui.core import Interrupt, Message, RunAgentInput, ToolMessage

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph.intake.answers import answers
from runcast.adapters.langgraph.interrupts import is_meant
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.stream.positions import place_of

Ask = Literal["start", "resume", "continue", "fork"]
ALL_ROLES = ("user", "assistant", "tool", "system", "developer", "activity", "reasoning")
STOPPED = "This call was stopped before it returned."
NEW_ROLES = ("user", "tool", "system", "developer")  # what a client may add to a stored conversation


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of the thread, as far as planning needs it."""

    id: str
    role: str
    calls: tuple[str, ...] = ()
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """What is stored of a thread. `unfinished`: the graph stopped before its end."""

    messages: Sequence[StoredMessage] = ()
    interrupts: Sequence[Interrupt] = ()
    unfinished: bool = False
    checkpoint_id: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])  # the client's id -> the graph's
    pointed: bool = False  # known from a resume point


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: the messages for the graph, the answers, or the message before which the thread is forked."""

    ask: Ask
    messages: Sequence[Message] = ()
    answers: Mapping[str, Any] | None = None
    before: str | None = None
    results: Sequence[ToolMessage] = ()
    """Results of calls that a stopped step leaves open: the graph is given them before the messages."""


def plan(
    input: RunAgentInput, thread: Thread | None, options: LangGraphOptions, *, now: datetime | None = None
) -> Plan:
    """Decide. `thread` is None where nothing is ever stored; raises `InvalidInput` for what makes no sense."""
    for message in input.messages:
        if message.role not in ALL_ROLES:
            raise InvalidInput(f"unknown message role {message.role!r}: send a role of the protocol")
    if thread is None:
        if input.resume:
            raise InvalidInput(
                "nothing can be answered here: the graph has no checkpointer, or the thread's checkpoint is gone; "
                "send a message instead of `resume`"
            )
        _check_results(input.messages, [])
        return Plan("start", input.messages)
    news = _news(input.messages, thread)
    if input.resume:
        return Plan("resume", news, answers(input.resume, thread.interrupts, options, now=now))
    if not thread.messages:
        _check_results(news, [])
        return Plan("start", news) if news or not thread.unfinished else Plan("continue")
    _check_results(news, thread.messages)
    return _with_news(input, thread, news, options) if news else _without_news(input, thread)


def from_beginning(input: RunAgentInput, thread: Thread) -> Plan:
    """Start before everything that the thread holds: its first run was taken back."""
    before = next((each.id for each in thread.messages if each.role == "user" and each.id), None)
    return Plan("start" if before is None else "fork", input.messages, before=before)


def with_results(asked: Plan, thread: Thread, finished: Sequence[Message]) -> Plan:
    """The plan with a result for every call that a stopped step leaves open: no model takes a call without one.

    New input drops the step, with what its tasks have returned (`finished`): `thread` has the messages without it. When
    all have returned, it looks finished.
    """
    last = next((each for each in reversed(thread.messages) if each.calls), None)
    if asked.ask != "start" or not asked.messages or not (thread.unfinished or finished) or last is None:
        return asked
    returned = {each.tool_call_id: each for each in finished if isinstance(each, ToolMessage)}
    sent = {each.tool_call_id for each in asked.messages if isinstance(each, ToolMessage)}
    held = {each.answers for each in thread.messages}
    results = [
        returned.get(call) or ToolMessage(id=f"stopped-{call}", tool_call_id=call, content=STOPPED)
        for call in last.calls
        if call not in held | sent
    ]
    return replace(asked, results=results)


def brought_again(asked: Plan, brought: Sequence[Message]) -> Plan:
    """The plan of a fork with the results that came with the message before which it begins: they closed its calls."""
    sent = {each.tool_call_id for each in asked.messages if isinstance(each, ToolMessage)}
    results = [each for each in brought if isinstance(each, ToolMessage) and each.tool_call_id not in sent]
    return replace(asked, results=results)


def recalled(input: RunAgentInput, point: ResumePoint | None) -> RunAgentInput:
    """The input, behind the messages of a resume point: for a graph that holds nothing of the thread.

    From its first message that the point has as well, the client's own history counts: it may have been cut back.
    """
    if point is None:
        return input
    sent = {message.id for message in input.messages}
    before = takewhile(lambda message: message.id not in sent, point.messages)
    return input.model_copy(update={"messages": [*before, *input.messages]})


def _news(messages: Sequence[Message], thread: Thread) -> list[Message]:
    """The messages after the last one that the thread holds. Only the agent adds assistant messages.

    A graph whose state has no conversation (yet) is not given what it has shown itself.
    """
    held = {stored.id for stored in thread.messages} | set(thread.aliases)
    last = max((at for at, message in enumerate(messages) if message.id in held), default=-1)
    news = [each for each in messages[last + 1 :] if not thread.messages or each.role in NEW_ROLES]
    return _own(news, thread) if thread.messages or thread.checkpoint_id else news


def _own(news: Sequence[Message], thread: Thread) -> list[Message]:
    """Without what the graph itself gave and did not keep: it will give it again.

    If the client adds messages of its own, results that answer a call stay: the step that would return them is dropped.
    """
    open_calls: set[str] = set()
    if any(place_of(message) is None for message in news):
        open_calls = {call for each in thread.messages for call in each.calls} - {
            it.answers for it in thread.messages
        }
    return [it for it in news if place_of(it) is None or getattr(it, "tool_call_id", None) in open_calls]


def _with_news(input: RunAgentInput, thread: Thread, news: list[Message], options: LangGraphOptions) -> Plan:
    before = _overtaken(input.messages, thread)
    if before is not None:
        return Plan("fork", news, before=before)
    if thread.interrupts and options.on_new_message == "refuse":
        waiting = ", ".join(each.id for each in thread.interrupts)
        raise InvalidInput(f"this thread waits for answers: send `resume` entries for {waiting}")
    return Plan("start", news)


def _overtaken(messages: Sequence[Message], thread: Thread) -> str | None:
    """The stored user message that this history replaces: the first after the last message both hold."""
    at = _place(messages, thread)
    if at is None:
        return None
    return next((each.id for each in thread.messages[at + 1 :] if each.role == "user" and each.id), None)


def _place(messages: Sequence[Message], thread: Thread) -> int | None:
    """The place in the thread of the last message that both hold; a torn run may have left the client's in another order.

    A thread by a snapshot has the client's ids, one by the checkpointer the graph's.
    """
    places = {stored.id: at for at, stored in enumerate(thread.messages)}
    known = [places.get(each.id, places.get(thread.aliases.get(each.id, each.id))) for each in messages]
    return max((at for at in known if at is not None), default=None)


def _without_news(input: RunAgentInput, thread: Thread) -> Plan:
    """Nothing new: continue where the graph stopped, or answer the last user message again, unless a node has written it."""
    at = _place(input.messages, thread)
    last = at is not None and at == len(thread.messages) - 1
    if thread.unfinished and (last or not input.messages):
        return Plan("continue")
    if at is not None and thread.messages[at].role == "user" and place_of(input.messages[-1]) is None:
        return Plan("fork", [input.messages[-1]], before=thread.messages[at].id)
    return Plan("start", ())


def _check_results(news: Sequence[Message], stored: Sequence[StoredMessage]) -> None:
    """Every tool result must answer a call that was made, and only once."""
    asked = {call for each in stored for call in each.calls}
    answered = {each.answers for each in stored if each.answers is not None}
    for message in news:
        if message.role == "assistant":
            asked.update(call.id for call in message.tool_calls or ())
        elif message.role == "tool":
            if message.tool_call_id not in asked:
                raise InvalidInput(
                    f"tool result for unknown call {message.tool_call_id!r}: send the call's own id"
                )
            if message.tool_call_id in answered:
                raise InvalidInput(
                    f"call {message.tool_call_id!r} has its result already: send each only once"
                )
            answered.add(message.tool_call_id)


def of_client(messages: Sequence[Message]) -> list[StoredMessage]:
    """A snapshot's messages, for planning."""
    return [
        StoredMessage(
            message.id,
            message.role,
            tuple(call.id for call in getattr(message, "tool_calls", None) or ()),
            getattr(message, "tool_call_id", None),
        )
        for message in messages
        if message.role not in ("activity", "reasoning")
    ]


ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def of_graph(messages: Sequence[Any]) -> list[StoredMessage]:
    """A state's messages, for planning."""
    return [
        StoredMessage(
            str(message.id or ""),  # a custom reducer gives no ids
            ROLES.get(message.type, "assistant"),
            tuple(str(call["id"]) for call in getattr(message, "tool_calls", None) or ()),
            getattr(message, "tool_call_id", None),
        )
        for message in messages
    ]


def held_back(stored: Sequence[StoredMessage]) -> set[str]:
    """Results of an interrupted step that were not emitted: an earlier call of their message has none yet."""
    results: dict[str, str] = {}
    for each in reversed(stored):
        if each.answers is not None:
            results[each.answers] = each.id
        elif each.calls:
            waits = False
            held: set[str] = set()
            for call in each.calls:
                waits = waits or call not in results
                if waits and call in results:
                    held.add(results[call])
            return held
        else:
            return set()
    return set()


def known_ids(messages: Sequence[Message], thread: Thread | None, asked: Plan) -> set[str]:
    """Ids of messages the client has: those it sent, and those of the thread (of a fork: before its branch)."""
    sent = {message.id for message in messages}
    if thread is None:
        return sent
    ids = [stored.id for stored in thread.messages]
    if asked.before is not None:
        return sent | set(ids[: ids.index(asked.before)])
    return sent | (set(ids) - held_back(thread.messages) if thread.unfinished else set(ids))


def settled(input: RunAgentInput, pending: Sequence[Interrupt]) -> set[str]:
    """The calls about which this input answers a question, unless the client may have to carry them out itself."""
    answered = [entry.interrupt_id for entry in input.resume or ()]
    decided = {each.tool_call_id for each in pending if any(is_meant(given, each.id) for given in answered)}
    offered = {tool.name for tool in input.tools or ()}
    calls = [call for each in input.messages for call in getattr(each, "tool_calls", None) or ()]
    others = {call.id for call in calls if call.function.name not in offered}
    return {call for call in decided if call is not None and (call in others or not offered)}


def resumed_from(asked: Plan, thread: Thread | None) -> str | None:
    """Where a run continues, in the words that all adapters use; None for a new or an ordinary turn."""
    if asked.ask == "fork":
        return "fork"
    if thread is None:
        return None
    return "checkpoint" if asked.ask in ("resume", "continue") or thread.pointed else None
