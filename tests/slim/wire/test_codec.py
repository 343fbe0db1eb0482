"""Events to bytes and back: the same JSON as the protocol's own encoder, and nothing lost on the way."""

from __future__ import annotations

import dataclasses
import enum
import json
import random
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    Event,
    EventType,
    MessagesSnapshotEvent,
    RawEvent,
    RunAgentInput,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    ToolCallResultEvent,
    UserMessage,
)
from ag_ui.encoder import EventEncoder
from pydantic import BaseModel, TypeAdapter

from runcast.slim.errors import WireError
from runcast.slim.values.protocol_shapes import EVENT_SHAPES, ListOf, Tagged
from runcast.slim.wire.codec import (
    AnyEvent,
    UnknownEvent,
    decode,
    decode_input,
    encode,
    encode_input,
    encode_sse,
    is_known,
)
from tests.slim import samples

OFFICIAL: TypeAdapter[Any] = TypeAdapter(Event)


def official(event: AnyEvent) -> Any:
    """What the protocol's own encoder makes of an event."""
    return json.loads(EventEncoder().encode(event).removeprefix("data: "))


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def test_every_event_and_message_of_the_protocol_has_a_shape():
    assert set(EVENT_SHAPES) == {tag.value for tag in EventType}
    [messages] = [
        field.kind for field in EVENT_SHAPES["MESSAGES_SNAPSHOT"].fields if field.name == "messages"
    ]
    assert isinstance(messages, ListOf)
    assert isinstance(messages.item, Tagged)
    assert set(messages.item.records) == {
        "developer",
        "system",
        "assistant",
        "user",
        "tool",
        "activity",
        "reasoning",
    }


@pytest.mark.parametrize("tag", EVENT_SHAPES)
def test_bytes_are_read_and_written_as_the_official_package_does(tag: str):
    rng = random.Random(tag)
    for _ in range(150):
        given = samples.event(rng, tag)
        data = compact(given)
        event = decode(data)
        peer = OFFICIAL.validate_json(data)
        assert event == peer
        assert event.model_fields_set == peer.model_fields_set
        assert json.loads(encode(event)) == official(peer) == given


@pytest.mark.parametrize("tag", EVENT_SHAPES)
def test_every_way_to_hand_it_over_reads_the_same(tag: str):
    given = samples.event(random.Random(f"{tag} ways"), tag)
    data = compact(given)
    event = decode(data)
    for way in (
        bytearray(data),
        memoryview(data),
        data.decode(),
        given,
        b"\xef\xbb\xbf" + data,
        b" \n" + data + b"\n",
    ):
        assert decode(way) == event


@pytest.mark.parametrize("tag", EVENT_SHAPES)
def test_unknown_keys_survive_at_every_level(tag: str):
    rng = random.Random(f"{tag} unknown")
    for _ in range(40):
        given = samples.event(rng, tag)
        for found in samples.objects(given):
            if rng.random() < 0.5:
                found["x-new"] = samples.value(rng)
        assert json.loads(encode(decode(compact(given)))) == given


# Each is read and must be written without a null for what is not there, and with every null that is a value.
NULLS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "a run without parent and input": ({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, None),
    "a run with its input": (
        {
            "type": "RUN_STARTED",
            "threadId": "t",
            "runId": "r",
            "input": {
                "threadId": "t",
                "runId": "r",
                "state": {},
                "messages": [],
                "tools": [{"name": "find", "description": "Finds"}],
                "context": [{"description": "language", "value": "de"}],
                "forwardedProps": {},
            },
        },
        None,
    ),
    "an input whose state is null reads as one without": (
        {
            "type": "RUN_STARTED",
            "threadId": "t",
            "runId": "r",
            "input": {
                "threadId": "t",
                "runId": "r",
                "state": None,
                "messages": [],
                "tools": [],
                "context": [],
            },
        },
        {
            "type": "RUN_STARTED",
            "threadId": "t",
            "runId": "r",
            "input": {"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": []},
        },
    ),
    "a step": ({"type": "STEP_STARTED", "stepName": "plan"}, None),
    "a text start without name": (
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        None,
    ),
    "a text delta": ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Looking."}, None),
    "an empty text delta": ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": ""}, None),
    "a text end": ({"type": "TEXT_MESSAGE_END", "messageId": "m"}, None),
    "a text chunk of nothing": ({"type": "TEXT_MESSAGE_CHUNK"}, None),
    "a call without parent": ({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "find"}, None),
    "arguments": ({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"q":null}'}, None),
    "a call's end": ({"type": "TOOL_CALL_END", "toolCallId": "c"}, None),
    "a call chunk without parent": ({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": "{}"}, None),
    "a result without role": (
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": '{"hits":2}'},
        None,
    ),
    "nulls inside a state": (
        {"type": "STATE_SNAPSHOT", "snapshot": {"picked": None, "items": [None, 1], "page": {"next": None}}},
        None,
    ),
    "a state that is null": ({"type": "STATE_SNAPSHOT", "snapshot": None}, None),
    "a raw event that is null": ({"type": "RAW", "event": None}, None),
    "a custom value that is null": ({"type": "CUSTOM", "name": "ping", "value": None}, None),
    "a patch to null": (
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/picked", "value": None}]},
        None,
    ),
    "a test for null": (
        {"type": "STATE_DELTA", "delta": [{"op": "test", "path": "/picked", "value": None}]},
        None,
    ),
    "an activity patched to null": (
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "m",
            "activityType": "PLAN",
            "patch": [{"op": "add", "path": "/done", "value": None}],
        },
        None,
    ),
    "sparse messages": (
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [
                {"id": "0", "role": "system", "content": "Be brief."},
                {"id": "1", "role": "user", "content": "Find it."},
                {"id": "2", "role": "assistant", "content": "Looking."},
                {"id": "3", "role": "tool", "content": "{}", "toolCallId": "c"},
                {"id": "4", "role": "reasoning", "content": "Two of them."},
                {"id": "5", "role": "developer", "content": "Use tools."},
                {"id": "6", "role": "activity", "activityType": "PLAN", "content": {"steps": None}},
            ],
        },
        None,
    ),
    "a call in a message": (
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [
                {
                    "id": "5",
                    "role": "assistant",
                    "toolCalls": [
                        {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
                    ],
                }
            ],
        },
        None,
    ),
    "an activity with a null inside": (
        {
            "type": "ACTIVITY_SNAPSHOT",
            "messageId": "m",
            "activityType": "PLAN",
            "content": {"query": "x", "hits": None},
            "replace": True,
        },
        None,
    ),
    "a reasoning chunk of nothing": ({"type": "REASONING_MESSAGE_CHUNK"}, None),
    "a raw event without source": ({"type": "RAW", "event": {"kind": "probe", "detail": None}}, None),
    "nulls inside a custom value": ({"type": "CUSTOM", "name": "ping", "value": {"ms": None}}, None),
    "an error without code": ({"type": "RUN_ERROR", "message": "gone"}, None),
    "a run's end without outcome": ({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}, None),
    "a success": (
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}},
        None,
    ),
    "a sparse interrupt with a null in its metadata": (
        {
            "type": "RUN_FINISHED",
            "threadId": "t",
            "runId": "r",
            "outcome": {
                "type": "interrupt",
                "interrupts": [{"id": "i", "reason": "input_required", "metadata": {"trace": None}}],
            },
        },
        None,
    ),
    "interrupts of two owners": (
        {
            "type": "RUN_FINISHED",
            "threadId": "t",
            "runId": "r",
            "outcome": {
                "type": "interrupt",
                "interrupts": [
                    {"id": "i", "reason": "ok?", "subagentRunId": "s"},
                    {"id": "j", "reason": "ok?"},
                ],
            },
        },
        None,
    ),
    "a subagent without parents": ({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "scout"}, None),
    "a subagent with all its parents": (
        {
            "type": "SUBAGENT_STARTED",
            "subagentRunId": "s",
            "name": "scout",
            "description": "looks ahead",
            "parentSubagentRunId": "p",
            "parentToolCallId": "c",
            "parentMessageId": "m",
        },
        None,
    ),
    "a subagent's end without outcome": ({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}, None),
    "a suspended subagent": (
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": {"type": "suspended"}},
        None,
    ),
    "a subagent's error without code": (
        {"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "boom"},
        None,
    ),
}


@pytest.mark.parametrize("name", NULLS)
def test_nulls_are_written_where_they_are_values_and_nowhere_else(name: str):
    given, wanted = NULLS[name]
    assert json.loads(encode(decode(compact(given)))) == (given if wanted is None else wanted)


def _plain_models() -> list[BaseEvent]:
    @dataclasses.dataclass
    class Point:
        x: int
        at: datetime

    class Colour(enum.Enum):
        RED = "red"

    class Inner(BaseModel):
        some_name: int | None = None

    at = datetime(2026, 1, 16, 10, 5, 0, 123000, tzinfo=UTC)
    odd: dict[Any, Any] = {
        "datetime": at,
        "naive": at.replace(tzinfo=None),
        "date": date(2026, 1, 16),
        "span": timedelta(minutes=1),
        "uuid": uuid.UUID(int=7),
        "decimal": Decimal("1.50"),
        "bytes": b"abc",
        "tuple": (1, 2),
        "set": {3},
        "path": Path("a/b"),
        "enum": Colour.RED,
        "point": Point(1, at),
        "model": Inner(),
        "message": UserMessage(id="u", content="hi"),
        "not a number": float("nan"),
        "infinite": float("-inf"),
    }
    return [
        StateSnapshotEvent(snapshot=odd),
        CustomEvent(name="n", value=odd["point"]),
        RawEvent(event={1: {2.5: True, None: [], True: 1}}, source="s"),
        TextMessageContentEvent(message_id="m", delta="d", timestamp=5, raw_event=odd, metadata={"a": None}),
        MessagesSnapshotEvent(messages=[AssistantMessage(id="a"), UserMessage(id="u", content=[])]),
    ]


@pytest.mark.parametrize("event", _plain_models(), ids=lambda event: type(event).__name__)
def test_values_that_json_lacks_are_written_as_the_official_encoder_does(event: BaseEvent):
    assert json.loads(encode(event)) == official(event)  # type: ignore[arg-type]


def test_a_value_with_no_json_is_refused_and_named():
    with pytest.raises(WireError, match=r"not JSON.*in STATE_SNAPSHOT"):
        encode(StateSnapshotEvent(snapshot={"socket": object()}))


def test_changes_after_construction_are_written():
    event = TextMessageContentEvent(message_id="m", delta="d")
    event.timestamp = 7
    event.subagent_run_id = "s"
    event.extra_key = None  # type: ignore[attr-defined]  # unknown keys are allowed
    assert json.loads(encode(event)) == official(event)
    copy = event.model_copy(update={"delta": "e", "timestamp": None})
    assert json.loads(encode(copy)) == official(copy)


def test_a_model_that_was_never_completed_is_refused():
    with pytest.raises(WireError, match="'delta' was never set in TEXT_MESSAGE_CONTENT"):
        encode(TextMessageContentEvent.model_construct(message_id="m"))


def test_a_class_of_one_s_own_is_written_by_its_own_fields():
    class Own(BaseEvent):
        my_field: int = 1

    event = Own(type=EventType.CUSTOM)
    assert json.loads(encode(event)) == official(event)  # type: ignore[arg-type]


@pytest.mark.parametrize("no_event", [None, 5, "text", {"type": "CUSTOM"}, EventType.CUSTOM])
def test_what_is_no_event_cannot_be_written(no_event: Any):
    with pytest.raises(WireError, match="is no event"):
        encode(no_event)


def test_a_type_that_the_protocol_lacks_passes_through_whole_and_is_told_apart():
    data = b'{"type":"TELEPATHY","timestamp":null,"thought":{"deep":[1,null,2.5]},"n":123456789012345678901234567890}'
    event = decode(data)
    assert isinstance(event, UnknownEvent)
    assert not is_known(event)
    assert is_known(decode(b'{"type":"RAW","event":1}'))
    assert encode(event) == data
    assert decode(encode(event), legacy=False) == event


def test_written_events_are_one_line_and_open_with_their_type():
    event = TextMessageContentEvent(message_id="m", delta="a\nb\r\u2028", timestamp=1, metadata={"k": "v\n"})
    data = encode(event)
    assert b"\n" not in data
    assert b"\r" not in data
    assert data.startswith(b'{"type":"TEXT_MESSAGE_CONTENT",')


def test_server_sent_events_are_the_official_ones_with_an_id_where_wanted():
    event = TextMessageEndEvent(message_id="m")
    assert encode_sse(event) == EventEncoder().encode(event).encode()
    assert encode_sse(event, 17) == b'id: 17\ndata: {"type":"TEXT_MESSAGE_END","messageId":"m"}\n\n'
    assert encode_sse(event, "e:17").startswith(b"id: e:17\ndata: ")


@pytest.mark.parametrize("id", ["a\nb", "a\rb", "\0"])
def test_an_id_cannot_forge_a_line(id: str):
    with pytest.raises(WireError, match="line breaks"):
        encode_sse(TextMessageEndEvent(message_id="m"), id)


def test_a_run_s_input_goes_both_ways():
    rng = random.Random(5)
    for _ in range(100):
        given = samples.described(rng, EVENT_SHAPES["RUN_STARTED"])
        given["input"] = samples.of_kind(
            rng, next(f.kind for f in EVENT_SHAPES["RUN_STARTED"].fields if f.wire == "input")
        )
        read = decode_input(compact(given["input"]))
        assert read == RunStartedEvent.model_validate(given).input
        assert json.loads(encode_input(read)) == given["input"]


def test_an_input_that_is_none_is_refused():
    with pytest.raises(WireError, match="no `threadId` in RunAgentInput"):
        decode_input({"runId": "r", "messages": []}, legacy=False)
    with pytest.raises(WireError, match="a list is not a run's input"):
        decode_input(b"[]")
    assert decode_input('{"threadId":"t","runId":"r","messages":[]}', legacy=False) == RunAgentInput(
        thread_id="t", run_id="r", messages=[]
    )


def test_a_patch_keeps_members_that_its_operation_does_not_define():
    data = b'{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/a","value":1}]}'
    event = decode(data)
    assert isinstance(event, StateDeltaEvent)
    assert encode(event) == data


def test_results_may_be_parts():
    parts = [{"type": "image", "source": {"type": "file", "value": "f_1"}}, {"type": "text", "text": "x"}]
    event = decode({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": parts})
    assert isinstance(event, ToolCallResultEvent)
    assert json.loads(encode(event))["content"] == parts
