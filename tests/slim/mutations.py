"""Streams that break rules, as they stand on the wire: valid ones with accidents, and plain babble.

`broken` damages a stream the way producers do; `babble` sends whatever comes, from so few ids that everything
collides. Both only make events that have their shape, so what is wrong is always a matter of order or ownership.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.slim.wires import (
    Wire,
    activity,
    activity_delta,
    args,
    asks,
    call,
    call_chunk,
    call_end,
    custom,
    echo,
    event,
    failed,
    finished,
    holding,
    message,
    result,
    says,
    signed,
    snapshot,
    span,
    span_end,
    started,
    step,
    step_end,
    subagent,
    subagent_end,
    subagent_error,
    text,
    text_chunk,
    text_end,
    thinks,
    thought,
    thought_chunk,
    thought_end,
)

IDS = ("a", "b", "")
TAGS: tuple[str | None, ...] = ("s1", "s2", "", None)
RUN_LEVEL = {"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"}
TWINS = {
    "TEXT_MESSAGE_START": text_end,
    "TEXT_MESSAGE_END": text,
    "TOOL_CALL_START": call_end,
    "TOOL_CALL_END": call,
    "REASONING_START": span_end,
    "REASONING_END": span,
    "REASONING_MESSAGE_START": thought_end,
    "REASONING_MESSAGE_END": thought,
}
NAMED = ("messageId", "toolCallId", "stepName", "parentMessageId", "entityId", "parentSubagentRunId")
NULLABLE = {
    "SUBAGENT_STARTED": ("description", "parentSubagentRunId", "parentToolCallId", "parentMessageId"),
    "SUBAGENT_FINISHED": ("outcome",),
    "SUBAGENT_ERROR": ("code",),
}
KEYED: tuple[Callable[..., Wire], ...] = (
    *(text, says, text_end, call, args, call_end, span, span_end, thought, thinks, thought_end),
    *(step, step_end, activity, activity_delta, signed, result),
)
ROLES = ("assistant", "assistant", "user", "tool", "reasoning", "activity")


def broken(rng: random.Random, events: Sequence[Wire]) -> list[Wire]:
    """The stream with one to three accidents."""
    out = list(events)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(6):
            case 0:
                out.insert(at, anything(rng))
            case 1:
                out.insert(at, rng.choice(out or [anything(rng)]))  # an event once more, far from the first
            case _:
                out[at : at + 1] = [each for it in out[at : at + 1] for each in _accident(rng, it)]
    return out


def _accident(rng: random.Random, it: Wire) -> list[Wire]:
    """What became of this event: nothing, two of it, its counterpart, or itself with another id, tag or null."""
    match rng.randrange(7):
        case 0:
            return []
        case 1:
            return [it, it]
        case 2 if it["type"] in TWINS:
            return [TWINS[it["type"]](next(iter(it[name] for name in NAMED if name in it)))]
        case 3:
            return [{**it, **{name: rng.choice(IDS) for name in NAMED if name in it}}]
        case 4 if it["type"] not in RUN_LEVEL:
            return [{**it, "subagentRunId": rng.choice(("s1", "s2", ""))}]
        case 5:
            return [_nulled(rng, it)]
        case _:
            return [{key: value for key, value in it.items() if key != "subagentRunId"}] * _tag_may_go(it)


def _tag_may_go(it: Wire) -> bool:
    return not it["type"].startswith("SUBAGENT_")


def _nulled(rng: random.Random, it: Wire) -> Wire:
    if it["type"] in NULLABLE:
        return {**it, rng.choice(NULLABLE[it["type"]]): None}
    if it["type"] == "MESSAGES_SNAPSHOT":
        return {**it, "messages": [*it["messages"], message("z", subagentRunId=None)]}
    borders = RUN_LEVEL - {"MESSAGES_SNAPSHOT"}  # a tag is unknown material there, and the client strips it
    return it if it["type"] in borders else {**it, "subagentRunId": None}


def babble(rng: random.Random) -> list[Wire]:
    """A run in which anything may come next."""
    return [started(), *(anything(rng) for _ in range(rng.choice((3, 8, 20))))]


def anything(rng: random.Random) -> Wire:
    """Some event; most are about one of few ids, some are borders, some carry nulls."""
    tag: dict[str, Any] = {}
    if rng.random() < 0.4:
        tag = {"subagentRunId": rng.choice(TAGS[:3])}
    elif rng.random() < 0.02:
        tag = {"subagentRunId": None}
    chance = rng.random()
    if chance < 0.65:
        return _keyed(rng, tag)
    if chance < 0.8:
        return _of_subagent(rng)
    if chance < 0.87:
        return _border(rng)
    if chance < 0.94:
        return snapshot(*_messages(rng))
    return event("NEWS", **tag) if chance < 0.95 else chunk(rng, tag)


def chunk(rng: random.Random, tag: Wire) -> Wire:
    """Some chunk: of a known id, of a new one, or of the one before; with fields that may contradict its opener."""
    key = rng.choice((*IDS, None, None, None))
    body = {} if rng.random() < 0.8 else {"delta": None}
    match rng.randrange(5):
        case 0 | 1:
            role = rng.choice(({}, {}, {"role": "user"}, {"role": "assistant"}, {"name": "A"}))
            made = text_chunk(key, **role, **tag, **body)
        case 2 | 3:
            name = rng.choice(({}, {"toolCallName": "f"}, {"toolCallName": "f"}, {"toolCallName": "g"}))
            parent = rng.choice(({}, {}, {"parentMessageId": rng.choice(IDS)}))
            made = call_chunk(key, **name, **parent, **tag, **body)
        case _:
            made = thought_chunk(key, **tag, **body)
    return {name: value for name, value in made.items() if name == "subagentRunId" or value is not None}


def chunked(rng: random.Random) -> list[Wire]:
    """A run of mostly chunks, and of events that end chunked streams or leave them open."""
    out = [started()]
    for _ in range(rng.choice((3, 8, 20))):
        tag = {"subagentRunId": rng.choice(("s1", "s2"))} if rng.random() < 0.3 else {}
        between = (
            custom(),
            step(),
            step_end(),
            activity("x"),
            subagent("s1"),
            subagent_end("s1"),
            anything(rng),
        )
        out.append(chunk(rng, tag) if rng.random() < 0.8 else rng.choice(between))
    return [*out, finished()]


def _keyed(rng: random.Random, tag: dict[str, Any]) -> Wire:
    key, make = rng.choice(IDS), rng.choice(KEYED)
    if make is call and rng.random() < 0.6:
        return call(key, parentMessageId=rng.choice((*IDS, None)), **tag)
    if make is signed:
        return signed(key, rng.choice(("message", "tool-call")), **tag)
    if make is activity:
        return activity(key, replace=rng.choice((True, False, None)), **tag)
    return make(key, **tag)


def _of_subagent(rng: random.Random) -> Wire:
    key = rng.choice(("s1", "s2", ""))
    match rng.randrange(4):
        case 0:
            return subagent_end(key, outcome={"type": "suspended", "interruptIds": rng.choice((["i"], None))})
        case 1:
            return subagent_end(key)
        case 2:
            return subagent_error(key, **rng.choice(({}, {"code": None}, {"code": "E"})))
        case _:
            more = [{}, {}, {"parentSubagentRunId": rng.choice(("s1", "s2", ""))}, {"description": None}]
            return subagent(key, **rng.choice(more))


def _border(rng: random.Random) -> Wire:
    key, thread = rng.choice(("r1", "r2", "r3")), rng.choice(("t1", "t1", "t2"))
    match rng.randrange(4):
        case 0:
            return failed()
        case 1:
            return finished(key, thread)
        case 2:
            nulls = rng.choice(({}, {}, {"subagentRunId": None}))
            return finished(key, thread, **asks({"id": "i1"}, {"id": rng.choice(("i1", "i2")), **nulls}))
        case _:
            return started(key, thread, **rng.choice(({}, echo(*_messages(rng)))))


def _messages(rng: random.Random) -> list[Wire]:
    out: list[Wire] = []
    for _ in range(rng.randint(0, 3)):
        role = rng.choice(ROLES)
        tag = rng.choice(({}, {"subagentRunId": "s1"}, {"subagentRunId": "s2"}))
        tag = {"subagentRunId": None} if rng.random() < 0.03 else tag
        calls = holding(rng.choice(IDS)) if role == "assistant" and rng.random() < 0.5 else {}
        out.append(message(rng.choice(IDS), role, **tag, **calls))
    return out
