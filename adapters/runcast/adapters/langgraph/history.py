"""What a run is asked to do, given what the thread holds already.

Knows the ways a client sends a conversation (all of it, the news alone, cut back to an earlier message, or
answers) and what each asks for. Reads nothing: the thread is handed in, from a snapshot or from the checkpointer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any, Literal

from ag_ui.core import Interrupt, Message, RunAgentInput

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph.interrupts import answers
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.standing import place_of

Ask = Literal["start", "resume", "continue", "fork"]
ALL_ROLES = ("user", "assistant", "tool", "system", "developer", "activity", "reasoning")
NEWS = ("user", "tool", "system", "developer")  # what a client may add to a stored conversation


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the thread, as far as planning needs it."""

    id: str
    role: str
    calls: tuple[str, ...] = ()
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """What is stored of a thread. `unfinished`: the graph stopped before its end."""

    said: Sequence[Said] = ()
    interrupts: Sequence[Interrupt] = ()
    unfinished: bool = False
    checkpoint_id: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])  # the client's id -> the graph's
    pointed: bool = False  # a resume point told of it


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: the messages to hand in, the answers, or the message to go back before."""

    ask: Ask
    messages: Sequence[Message] = ()
    answers: Mapping[str, Any] | None = None
    before: str | None = None


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
    if not thread.said:
        _check_results(input.messages, [])
        return Plan("start", input.messages) if not thread.unfinished or input.messages else Plan("continue")
    _check_results(news, thread.said)
    return _with_news(input, thread, news, options) if news else _without_news(input, thread)


def recalled(input: RunAgentInput, point: ResumePoint | None) -> RunAgentInput:
    """The input behind what a resume point remembers, for a graph that holds nothing of the thread.

    From its first message that the point has as well, the client's own history counts: it may have been cut back.
    """
    if point is None:
        return input
    sent = {message.id for message in input.messages}
    before = takewhile(lambda message: message.id not in sent, point.messages)
    return input.model_copy(update={"messages": [*before, *input.messages]})


def _news(messages: Sequence[Message], thread: Thread) -> list[Message]:
    """What follows the last message that the thread holds. Assistant messages are the agent's to say."""
    held = {said.id for said in thread.said} | set(thread.aliases)
    last = max((at for at, message in enumerate(messages) if message.id in held), default=-1)
    news = messages[last + 1 :]
    return _own([message for message in news if message.role in NEWS], thread) if thread.said else list(news)


def _own(news: Sequence[Message], thread: Thread) -> list[Message]:
    """Without results that the graph itself gave and did not keep, for it will give them again.

    Beside news of the client's own they stay where they answer a call: the step that would give them is let go.
    """
    open_calls: set[str] = set()
    if any(place_of(message) is None for message in news):
        open_calls = {call for each in thread.said for call in each.calls} - {
            it.answers for it in thread.said
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
    return next((said.id for said in thread.said[at + 1 :] if said.role == "user" and said.id), None)


def _place(messages: Sequence[Message], thread: Thread) -> int | None:
    places = {said.id: at for at, said in enumerate(thread.said)}
    for message in reversed(messages):
        at = places.get(thread.aliases.get(message.id, message.id))
        if at is not None:
            return at
    return None


def _without_news(input: RunAgentInput, thread: Thread) -> Plan:
    """Nothing new: go on where the graph stopped, or answer the last user message again."""
    at = _place(input.messages, thread)
    last = at is not None and at == len(thread.said) - 1
    if thread.unfinished and (last or not input.messages):
        return Plan("continue")
    if at is not None and thread.said[at].role == "user":
        return Plan("fork", [input.messages[-1]], before=thread.said[at].id)
    return Plan("start", ())


def _check_results(news: Sequence[Message], said: Sequence[Said]) -> None:
    """Every tool result must answer a call somebody made, and only once."""
    asked = {call for each in said for call in each.calls}
    answered = {each.answers for each in said if each.answers is not None}
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


def said_by_client(messages: Sequence[Message]) -> list[Said]:
    """A snapshot's messages, for planning."""
    return [
        Said(
            message.id,
            message.role,
            tuple(call.id for call in getattr(message, "tool_calls", None) or ()),
            getattr(message, "tool_call_id", None),
        )
        for message in messages
        if message.role not in ("activity", "reasoning")
    ]


ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def said_by_graph(messages: Sequence[Any]) -> list[Said]:
    """A state's messages, for planning."""
    return [
        Said(
            str(message.id or ""),  # a reducer of one's own gives no ids
            ROLES.get(message.type, "assistant"),
            tuple(str(call["id"]) for call in getattr(message, "tool_calls", None) or ()),
            getattr(message, "tool_call_id", None),
        )
        for message in messages
    ]


def held_back(said: Sequence[Said]) -> set[str]:
    """Results that an interrupted step has, but that were not told: an elder call of their message has none yet."""
    results: dict[str, str] = {}
    for each in reversed(said):
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


def told_before(messages: Sequence[Message], thread: Thread | None, asked: Plan) -> set[str]:
    """Ids of messages the client was told: what it sent, and what the thread holds (a fork: before its branch)."""
    sent = {message.id for message in messages}
    if thread is None:
        return sent
    ids = [said.id for said in thread.said]
    if asked.before is not None:
        return sent | set(ids[: ids.index(asked.before)])
    return sent | (set(ids) - held_back(thread.said) if thread.unfinished else set(ids))


def resumed_from(asked: Plan, thread: Thread | None) -> str | None:
    """Where a run goes on, in the words every adapter uses; None for one that begins, or just says more."""
    if asked.ask == "fork":
        return "fork"
    if thread is None:
        return None
    return "checkpoint" if asked.ask in ("resume", "continue") or thread.pointed else None
