"""Events of newer producers: what 1.0 cannot hold is dropped as the client's boundary drops it, and counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runcast.slim.errors import WireError
from runcast.slim.folding.checkpoint import checkpoint
from runcast.slim.folding.conversation import fold
from runcast.slim.wire.codec import decode, decode_input, encode
from runcast.slim.wire.streams import decode_array, decode_lines
from tests.e2e.oracle import Oracle

Json = dict[str, Any]
STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ADD = {"op": "add", "path": "/a", "value": 1}
MERGE = {"op": "merge", "path": "/a", "value": {}}
TEXT = {"type": "text", "text": "hi"}
HOLOGRAM = {"type": "hologram", "of": "a cat"}
ELSEWHERE = {"type": "image", "source": {"type": "bucket", "value": "b/1", "mimeType": "image/png"}}


def user(*parts: Json, id: str = "m1") -> Json:
    return {"id": id, "role": "user", "content": list(parts)}


def said(*messages: Json) -> Json:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def patch(*operations: Json) -> Json:
    return {"type": "STATE_DELTA", "delta": list(operations)}


def plan(*operations: Json) -> Json:
    return {"type": "ACTIVITY_DELTA", "messageId": "x", "activityType": "PLAN", "patch": list(operations)}


# What came, what is read, and the places that are counted.
CASES: list[tuple[Json, Json, dict[str, int]]] = [
    (patch(MERGE, ADD, MERGE), patch(ADD), {"STATE_DELTA.delta.*": 2}),
    (patch({"path": "/a"}), patch(), {"STATE_DELTA.delta.*": 1}),
    (plan(ADD, MERGE), plan(ADD), {"ACTIVITY_DELTA.patch.*": 1}),
    (said(user(HOLOGRAM, TEXT)), said(user(TEXT)), {"MESSAGES_SNAPSHOT.messages.*.content.*": 1}),
    (said(user(TEXT, ELSEWHERE)), said(user(TEXT)), {"MESSAGES_SNAPSHOT.messages.*.content.*": 1}),
    (
        said(user(TEXT), {"id": "n", "role": "narrator", "content": "x"}),
        said(user(TEXT)),
        {"MESSAGES_SNAPSHOT.messages.*": 1},
    ),
    *(
        (said(user(part, TEXT)), said(user(TEXT)), {"MESSAGES_SNAPSHOT.messages.*.content.*": 1})
        for part in (  # no rule for older dialects knows these either
            {"type": "binary", "mimeType": "image/png"},
            {"type": "binary", "data": "AA=="},
            {"type": "binary", "mimeType": 5, "data": "AA=="},
        )
    ),
    (
        said({"id": "1", "role": "pirate", "content": "arr"}),
        said(),
        {"MESSAGES_SNAPSHOT.messages.*": 1},
    ),
]


def stream(event: Json) -> list[Json]:
    """The event inside a valid stream."""
    return [STARTED, event, FINISHED]


@pytest.mark.parametrize(("given", "kept", "counted"), CASES)
def test_a_part_of_an_unknown_kind_is_dropped_and_counted(given: Json, kept: Json, counted: dict[str, int]):
    reader = decode_array([json.dumps(stream(given)).encode()])
    assert [json.loads(encode(event)) for event in reader] == stream(kept)
    assert reader.dropped == counted
    assert json.loads(encode(decode(given))) == kept
    with pytest.raises(WireError):
        decode(given, legacy=False)


@pytest.mark.parametrize(("given", "kept", "counted"), CASES)
@pytest.mark.oracle
def test_the_client_keeps_and_drops_the_same(
    given: Json, kept: Json, counted: dict[str, int], oracle: Oracle
):
    answer = oracle.pipeline(stream(given))
    assert (answer["ok"], answer["events"]) == (True, stream(kept))


@pytest.mark.parametrize(
    "wrong",
    [
        patch({"op": "add", "path": 5, "value": 1}),
        patch(MERGE, {"op": "add", "path": 5, "value": 1}),
        {"type": "STATE_DELTA", "delta": "x"},
        {**FINISHED, "outcome": {"type": "paused", "until": 5}},
        said(user("text")),  # type: ignore[arg-type]
        {"type": "MESSAGES_SNAPSHOT", "messages": [HOLOGRAM, {"id": 1, "role": "user", "content": "x"}]},
    ],
)
def test_what_is_wrong_besides_is_still_refused(wrong: Json):
    with pytest.raises(WireError):
        decode(wrong)


def test_an_input_is_read_without_its_unknown_parts():
    dropped: list[str] = []
    given = {
        "threadId": "t",
        "runId": "r",
        "messages": [user(HOLOGRAM, TEXT), {"id": "n", "role": "narrator"}],
    }
    read = decode_input(given, dropped=dropped)
    assert [message.content for message in read.messages] == [decode(said(user(TEXT))).messages[0].content]
    assert dropped == ["messages.0.content.0", "messages.1"]
    assert decode_input({"threadId": "t", "runId": "r", "messages": []}, dropped=dropped).messages == []
    assert len(dropped) == 2


def test_the_kinds_of_encrypted_values_survive_a_fold_and_a_checkpoint():
    def sealed(subtype: str, id: str, **more: str) -> Json:
        event = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": id}
        return {**event, "encryptedValue": "e", **more}

    lines = [
        STARTED,
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f", "parentMessageId": "m1"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        sealed("message", "m1", encryptedValueType="thought-signature"),
        sealed("tool-call", "c1", encryptedValueType="call-signature"),
        FINISHED,
    ]
    events = list(decode_lines([b"\n".join(json.dumps(line).encode() for line in lines)]))
    again = [decode(encode(event)) for event in checkpoint(events)]
    for conversation in (fold(events), fold(again)):
        [message] = conversation.wire_messages()
        assert (message["encryptedValue"], message["encryptedValueType"]) == ("e", "thought-signature")
        assert message["toolCalls"][0]["encryptedValueType"] == "call-signature"


def test_an_end_without_its_thread_belongs_to_the_run_around_it():
    lines = [STARTED, {"type": "RUN_FINISHED"}]
    events = list(decode_lines([b"\n".join(json.dumps(line).encode() for line in lines)]))
    assert json.loads(encode(events[-1])) == FINISHED
