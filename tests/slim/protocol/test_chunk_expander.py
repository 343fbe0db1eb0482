"""The chunk shorthand spelled out as the official client spells it out, and refused where it refuses."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ag_ui.core import (
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallStartEvent,
)
from pydantic import ValidationError

from runcast.slim.compaction.compactor import compact
from runcast.slim.errors import InvalidStream
from runcast.slim.protocol.chunk_expander import ChunkExpander
from runcast.slim.values.model_construction import built
from runcast.slim.wire.codec import AnyEvent, UnknownEvent
from tests import streams
from tests.conftest import share
from tests.e2e.oracle import Oracle
from tests.slim.views import events, in_batches, plain

MADE = (
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallStartEvent,
)


def text(**fields: Any) -> dict[str, Any]:
    return {"type": "TEXT_MESSAGE_CHUNK", **fields}


def tool(**fields: Any) -> dict[str, Any]:
    return {"type": "TOOL_CALL_CHUNK", **fields}


def reasoning(**fields: Any) -> dict[str, Any]:
    return {"type": "REASONING_MESSAGE_CHUNK", **fields}


def spelled_out(stream: list[Any]) -> list[AnyEvent]:
    expander = ChunkExpander()
    return [each for event in stream for each in expander.feed(event)]


def in_brief(*wire: dict[str, Any]) -> list[str]:
    """Types alone, without what they all have in common."""
    return [str(getattr(each.type, "value", each.type)) for each in spelled_out(events(*wire))]


def timeless(event: Any) -> dict[str, Any]:
    """Without the timestamp, which we keep on what a chunk becomes and the client does not."""
    said = plain(event) if not isinstance(event, dict) else dict(event)
    said.pop("timestamp", None)
    return said


@pytest.mark.oracle
def test_chunks_are_spelled_out_as_the_client_does(oracle: Oracle):
    drawn = [streams.structured(random.Random(seed), chunks=True) for seed in range(share(1_500))]
    drawn += [streams.adversarial(random.Random(seed), chunks=True) for seed in range(share(500))]
    for some in in_batches(drawn):
        answers = oracle.batch([{"op": "chunks", "events": stream} for stream in some])
        for stream, theirs in zip(some, answers, strict=True):
            assert theirs["ok"]
            assert list(map(timeless, spelled_out(stream))) == list(map(timeless, theirs["events"]))


@pytest.mark.oracle
def test_broken_chunks_are_refused_where_the_client_refuses(oracle: Oracle):
    drawn = []
    for seed in range(share(1_500)):
        rng = random.Random(seed)
        drawn.append(streams.mutated(rng, streams.structured(rng, chunks=True)))
    refused = 0
    for some in in_batches(drawn):
        for stream, theirs in zip(
            some, oracle.batch([{"op": "chunks", "events": each} for each in some]), strict=True
        ):
            if theirs["ok"]:
                assert len(spelled_out(stream)) == len(theirs["events"])
            else:
                refused += 1
                with pytest.raises(InvalidStream):
                    spelled_out(stream)
    assert refused > 50


ODD: list[tuple[str, list[dict[str, Any]]]] = [
    ("metadata alone", [text(messageId="m"), text(metadata={"usage": 1})]),
    ("the provider's event alone", [text(messageId="m"), text(rawEvent={"n": 1})]),
    ("an opener with the provider's event", [tool(toolCallId="c", toolCallName="f", rawEvent=1)]),
    ("unknown fields on a continuation", [reasoning(messageId="m"), reasoning(novel=1)]),
    ("unknown fields on an opener", [tool(toolCallId="c", toolCallName="f", novel=1)]),
    ("an unknown field that the opener has", [reasoning(messageId="m", role="wizard", novel=1)]),
    ("unknown fields beside a delta", [text(messageId="m", delta="x", novel=1)]),
    ("nothing at all", [text(messageId="m"), text()]),
    ("an opener's own fields again", [text(messageId="m", role="user", name="A"), text(role="user", name="A")]),
    ("two lanes side by side", [text(messageId="m", subagentRunId="s"), text(messageId="n"), text(delta="x")]),
    ("the only stream it can mean", [text(messageId="m", subagentRunId="s"), text(delta="x")]),
    ("a tag names the lane", [text(messageId="m", subagentRunId="s"), text(subagentRunId="s", delta="x")]),
    ("an id names the lane", [text(messageId="m", subagentRunId="s"), text(messageId="m", delta="x")]),
    ("another kind in the lane", [text(messageId="m"), tool(toolCallId="c", toolCallName="f"), text(messageId="m")]),
    ("an explicit event in another lane", [text(messageId="m"), {"type": "STEP_STARTED", "stepName": "a", "subagentRunId": "s"}]),
    ("a subagent's end", [text(messageId="m", subagentRunId="s"), {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}]),
    ("what ends nothing", [text(messageId="m"), {"type": "RAW", "event": 1}, {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}]),
    ("a snapshot ends every lane", [text(messageId="m"), reasoning(messageId="g", subagentRunId="s"), {"type": "MESSAGES_SNAPSHOT", "messages": []}]),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "wire"), ODD, ids=[name for name, _ in ODD])
def test_odd_chunks_become_what_the_client_makes_of_them(
    oracle: Oracle, name: str, wire: list[dict[str, Any]]
):
    theirs = oracle.ask("chunks", events=wire)
    assert theirs["ok"]
    assert list(map(timeless, spelled_out(events(*wire)))) == list(map(timeless, theirs["events"])), name


REFUSED: list[tuple[str, list[dict[str, Any]]]] = [
    ("must carry its id", [text(delta="x")]),
    ("must carry its id", [reasoning(delta="x")]),
    ("must carry its id", [tool(delta="x", toolCallName="f")]),
    ("must carry its toolCallName", [tool(toolCallId="c", delta="x")]),
    ("has role 'user'", [text(messageId="m"), text(role="user")]),
    ("has name 'B'", [text(messageId="m", name="A"), text(name="B")]),
    ("has tool_call_name 'g'", [tool(toolCallId="c", toolCallName="f"), tool(toolCallName="g")]),
    ("has parent_message_id 'm'", [tool(toolCallId="c", toolCallName="f"), tool(parentMessageId="m")]),
    ("the parent agent opened it", [text(messageId="m"), text(messageId="m", subagentRunId="s")]),
    ("2 subagents have an open text message", [text(messageId="m", subagentRunId="s"), text(messageId="n", subagentRunId="t"), text(delta="x")]),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(("reason", "wire"), REFUSED, ids=[f"{at}" for at in range(len(REFUSED))])
def test_a_chunk_that_contradicts_is_refused_with_the_reason(
    oracle: Oracle, reason: str, wire: list[dict[str, Any]]
):
    with pytest.raises(InvalidStream, match=reason):
        spelled_out(events(*wire))
    assert not oracle.ask("chunks", events=wire)["ok"]


def test_what_a_chunk_becomes_keeps_its_timestamp():
    assert [
        event.timestamp
        for event in spelled_out([TextMessageChunkEvent(message_id="m", delta="x", timestamp=7)])
    ] == [7, 7]


def test_an_event_nobody_knows_ends_nothing():
    opened = TextMessageChunkEvent(message_id="m")
    novel = UnknownEvent.model_validate({"type": "NEW_THING"})
    assert spelled_out([opened, novel])[1:] == [novel]


def test_a_run_ends_every_lane_in_the_order_they_opened():
    assert in_brief(
        text(messageId="m"),
        tool(toolCallId="c", toolCallName="f", subagentRunId="s"),
        reasoning(messageId="g", subagentRunId="t"),
        {"type": "RUN_ERROR", "message": "broke"},
    )[3:] == ["TEXT_MESSAGE_END", "TOOL_CALL_END", "REASONING_MESSAGE_END", "RUN_ERROR"]


def test_half_a_surrogate_pair_is_text_like_any_other():
    """JavaScript producers end deltas in the middle of a character, and pydantic will not have that in a string."""
    half = "\ud83d"
    assert [event.get("delta") for event in map(plain, spelled_out(events(
        text(messageId=f"m{half}", delta=half), tool(toolCallId="c", toolCallName=half, delta=half), {"type": "RUN_ERROR", "message": "e"}
    )))] == [None, half, None, None, half, None, None]  # fmt: skip


def test_what_else_is_wrong_is_not_taken():
    with pytest.raises(ValidationError):
        built(TextMessageContentEvent, message_id=1, delta="\ud83d")
    assert built(TextMessageContentEvent, message_id="m", delta="\ud83d").type.value == "TEXT_MESSAGE_CONTENT"


def test_halves_survive_compaction_too():
    half = "\ud83d"
    halves = events(
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": f"a{half}"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "b"},
    )
    assert plain(compact(halves)[1])["delta"] == f"a{half}b"
