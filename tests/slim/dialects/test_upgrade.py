"""Older dialects, each beside what 1.0 says: the upgraded JSON is valid to the letter, and `decode` reads it as such."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from typing import Any

import pytest
from ag_ui.core import ReasoningMessageContentEvent, RunAgentInput, UserMessage

from runcast.slim.dialects.upgrade import Upgrader, upgrade, upgrade_input
from runcast.slim.errors import WireError
from runcast.slim.wire.codec import UnknownEvent, decode, decode_input, encode
from runcast.slim.wire.strict import strict_problems
from tests.slim import samples

Json = dict[str, Any]

RUN = {"threadId": "t", "runId": "r"}


def said(text: str, at: int = 0, **more: Any) -> Json:
    return {"id": f"r:input:{at}", "role": "user", "content": text, **more}


def with_input(given: Json) -> Json:
    return {"type": "RUN_STARTED", **RUN, "input": given}


def with_parts(*parts: Json) -> Json:
    return {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "user", "content": list(parts)}]}


def with_calls(*calls: Json, key: str = "toolCalls") -> Json:
    return {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "assistant", key: list(calls)}]}


def interrupted(**interrupt: Any) -> Json:
    return {"type": "RUN_FINISHED", **RUN, "outcome": {"type": "interrupt", "interrupts": [interrupt]}}


CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"q":"é"}'}}

DIALECTS: dict[str, tuple[Json, Json]] = {
    "thinking starts": ({"type": "THINKING_START"}, {"type": "REASONING_START", "messageId": "thinking:1"}),
    "thinking has a title": (
        {"type": "THINKING_START", "title": "Plan", "metadata": {"a": 1}},
        {"type": "REASONING_START", "messageId": "thinking:1", "metadata": {"title": "Plan", "a": 1}},
    ),
    "a thought starts": (
        {"type": "THINKING_TEXT_MESSAGE_START", "timestamp": 1},
        {"type": "REASONING_MESSAGE_START", "timestamp": 1, "messageId": "thought:1", "role": "reasoning"},
    ),
    "a thought goes on": (
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "thought:1", "delta": "hm"},
    ),
    "a thought ends": (
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "REASONING_MESSAGE_END", "messageId": "thought:1"},
    ),
    "thinking ends": (
        {"type": "THINKING_END", "timestamp": None},
        {"type": "REASONING_END", "messageId": "thinking:1"},
    ),
    "reasoning in the assistant's name": (
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"},
    ),
    "reasoning in nobody's name": (
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": None},
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"},
    ),
    "nulls for what is absent": (
        {
            "type": "TOOL_CALL_START",
            "timestamp": None,
            "rawEvent": None,
            "metadata": None,
            "toolCallId": "c",
            "toolCallName": "n",
            "parentMessageId": None,
        },
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"},
    ),
    "snake case": (
        {"type": "TOOL_CALL_START", "tool_call_id": "c", "tool_call_name": "n", "parent_message_id": None},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"},
    ),
    "snake case of what may be absent": (
        {"type": "STEP_STARTED", "stepName": "a", "raw_event": {"b": None}},
        {"type": "STEP_STARTED", "stepName": "a", "rawEvent": {"b": None}},
    ),
    "a side channel": (
        {"type": "META", "metaType": "thumbs_up", "payload": {"messageId": "m"}},
        {"type": "CUSTOM", "name": "thumbs_up", "value": {"messageId": "m"}},
    ),
    "a side channel in snake case without payload": (
        {"type": "META", "meta_type": "tag"},
        {"type": "CUSTOM", "name": "tag", "value": None},
    ),
    "a custom event whose value was undefined": (
        {"type": "CUSTOM", "name": "ping"},
        {"type": "CUSTOM", "name": "ping", "value": None},
    ),
    "a patch under its own name": (
        {"type": "STATE_DELTA", "patch": [{"op": "remove", "path": "/a"}]},
        {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/a"}]},
    ),
    "one operation for a patch": (
        {"type": "STATE_DELTA", "patch": {"op": "add", "path": "/a", "value": None}},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": None}]},
    ),
    "one operation for a delta": (
        {"type": "STATE_DELTA", "delta": {"op": "remove", "path": "/a"}},
        {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/a"}]},
    ),
    "one operation on an activity": (
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "m",
            "activityType": "A",
            "delta": {"op": "remove", "path": "/a"},
        },
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "m",
            "activityType": "A",
            "patch": [{"op": "remove", "path": "/a"}],
        },
    ),
    "a state under its own name": (
        {"type": "STATE_SNAPSHOT", "state": None},
        {"type": "STATE_SNAPSHOT", "snapshot": None},
    ),
    "a result that is a value": (
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": {"a": "é"}},
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": '{"a":"é"}'},
    ),
    "a result with a binary part": (
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "m",
            "toolCallId": "c",
            "content": [{"type": "binary", "mimeType": "image/png", "data": "AA=="}],
        },
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "m",
            "toolCallId": "c",
            "content": [
                {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}}
            ],
        },
    ),
    "an image as bytes": (
        with_parts({"type": "binary", "mimeType": "image/png", "data": "AA==", "filename": "a.png"}),
        with_parts(
            {
                "type": "image",
                "source": {"type": "data", "value": "AA==", "mimeType": "image/png"},
                "metadata": {"filename": "a.png"},
            }
        ),
    ),
    "a sound by address": (
        with_parts({"type": "binary", "mimeType": "audio/ogg", "url": "u", "data": "", "id": "f"}),
        with_parts({"type": "audio", "source": {"type": "url", "value": "u", "mimeType": "audio/ogg"}}),
    ),
    "a film by handle, in snake case": (
        with_parts({"type": "binary", "mime_type": "video/mp4", "id": "f", "url": None}),
        with_parts({"type": "video", "source": {"type": "file", "value": "f", "mimeType": "video/mp4"}}),
    ),
    "anything else is a document": (
        with_parts(
            {"type": "binary", "mimeType": "application/pdf", "url": "u"},
            {"type": "binary", "mimeType": "image", "url": "v"},
        ),
        with_parts(
            {"type": "document", "source": {"type": "url", "value": "u", "mimeType": "application/pdf"}},
            {"type": "document", "source": {"type": "url", "value": "v", "mimeType": "image"}},
        ),
    ),
    "a part and its modern mirror": (
        with_parts(
            {"type": "binary", "mimeType": "image/png", "url": "u", "filename": "f"},
            {
                "type": "image",
                "source": {"type": "url", "value": "u", "mimeType": "image/png"},
                "metadata": {"filename": "f"},
            },
        ),
        with_parts(
            {
                "type": "image",
                "source": {"type": "url", "value": "u", "mimeType": "image/png"},
                "metadata": {"filename": "f"},
            }
        ),
    ),
    "a part beside others that are no mirror of it": (
        with_parts(
            {"type": "binary", "mimeType": "image/png", "url": "u", "filename": "f"},
            {"type": "image", "source": {"type": "url", "value": "u", "mimeType": "image/png"}},
            {
                "type": "image",
                "source": {"type": "url", "value": "v", "mimeType": "image/png"},
                "metadata": {"filename": "f"},
            },
            {"type": "text", "text": "u"},
        ),
        with_parts(
            {
                "type": "image",
                "source": {"type": "url", "value": "u", "mimeType": "image/png"},
                "metadata": {"filename": "f"},
            },
            {"type": "image", "source": {"type": "url", "value": "u", "mimeType": "image/png"}},
            {
                "type": "image",
                "source": {"type": "url", "value": "v", "mimeType": "image/png"},
                "metadata": {"filename": "f"},
            },
            {"type": "text", "text": "u"},
        ),
    ),
    "calls in snake case": (
        with_calls({**CALL, "encrypted_value": "e"}, key="tool_calls"),
        with_calls({**CALL, "encryptedValue": "e"}),
    ),
    "a call without its type": (
        with_calls({**CALL, "type": None}),
        with_calls({k: CALL[k] for k in ("id", "function")}),
    ),
    "arguments that are a value": (
        with_calls({**CALL, "function": {"name": "find", "arguments": {"q": "é"}}}),
        with_calls(CALL),
    ),
    "a flat call": (
        with_calls({"id": "c", "name": "find", "args": {"q": "é"}, "type": "tool_call"}),
        with_calls(CALL),
    ),
    "a flat call by its event's names": (
        with_calls(
            {"toolCallId": "c", "toolCallName": "find", "arguments": '{"q":"é"}', "metadata": {"a": None}}
        ),
        with_calls({**CALL, "metadata": {"a": None}}),
    ),
    "a flat call in snake case without arguments": (
        with_calls({"tool_call_id": "c", "tool_name": "find"}),
        with_calls({**CALL, "function": {"name": "find", "arguments": "{}"}}),
    ),
    "an outcome that is a word": (
        {"type": "RUN_FINISHED", **RUN, "outcome": "success"},
        {"type": "RUN_FINISHED", **RUN, "outcome": {"type": "success"}},
    ),
    "a run that was cancelled": (
        {"type": "RUN_FINISHED", **RUN, "outcome": "cancelled"},
        {"type": "RUN_FINISHED", **RUN, "outcome": {"type": "cancelled"}},
    ),
    "an outcome of null": (
        {"type": "RUN_FINISHED", **RUN, "outcome": None, "result": None},
        {"type": "RUN_FINISHED", **RUN},
    ),
    "an interrupt with a payload": (
        {
            "type": "RUN_FINISHED",
            **RUN,
            "outcome": "interrupt",
            "interrupt": {"id": "i", "payload": {"ask": None}},
        },
        interrupted(id="i", reason="interrupt", metadata={"payload": {"ask": None}}),
    ),
    "an interrupt whose outcome was left out": (
        {
            "type": "RUN_FINISHED",
            **RUN,
            "interrupt": {"reason": "approval", "metadata": {"a": 1}, "payload": 0},
        },
        interrupted(id="r:interrupt", reason="approval", metadata={"payload": 0, "a": 1}),
    ),
    "an interrupt that says nothing": (
        {"type": "RUN_FINISHED", **RUN, "outcome": "interrupt", "interrupt": None},
        interrupted(id="r:interrupt", reason="interrupt"),
    ),
    "an interrupt of nulls": (
        {"type": "RUN_FINISHED", **RUN, "outcome": "interrupt", "interrupt": {"id": None, "payload": None}},
        interrupted(id="r:interrupt", reason="interrupt"),
    ),
    "an input without its ids": (with_input({"messages": []}), with_input({**RUN, "messages": []})),
    "ids that only the input has": (
        {"type": "RUN_STARTED", "input": {**RUN, "messages": []}},
        with_input({**RUN, "messages": []}),
    ),
    "an input of nothing": (with_input({}), with_input({**RUN, "messages": []})),
    "messages that are texts": (
        with_input({"messages": ["Tell me", "more"]}),
        with_input({**RUN, "messages": [said("Tell me"), said("more", 1)]}),
    ),
    "messages without id and role": (
        with_input(
            {"messages": [{"content": "Tell me", "name": None}, {"id": None, "role": None, "content": "x"}]}
        ),
        with_input({**RUN, "messages": [said("Tell me"), said("x", 1)]}),
    ),
    "one answer to one interrupt": (
        with_input({"messages": [], "resume": {"interruptId": "i", "payload": {"ok": True}}}),
        with_input(
            {
                **RUN,
                "messages": [],
                "resume": [{"interruptId": "i", "status": "resolved", "payload": {"ok": True}}],
            }
        ),
    ),
    "answers without a status, in snake case": (
        with_input({"messages": [], "resume": [{"interrupt_id": "i", "payload": None}]}),
        with_input({**RUN, "messages": [], "resume": [{"interruptId": "i", "status": "resolved"}]}),
    ),
    "an input full of nulls": (
        with_input(
            {
                **RUN,
                "state": None,
                "messages": [],
                "tools": [{"name": "n", "description": "d", "parameters": None}],
                "context": None,
                "forwarded_props": None,
            }
        ),
        with_input({**RUN, "messages": [], "tools": [{"name": "n", "description": "d"}]}),
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_an_older_event_becomes_the_one_of_1_0(name: str):
    given, wanted = DIALECTS[name]
    before = copy.deepcopy(given)
    assert upgrade(given) == wanted
    assert given == before
    assert upgrade(wanted) == wanted
    if name != "a call without its type":  # which the models fill in, and the schema wants
        assert strict_problems(wanted) == []


@pytest.mark.parametrize("name", DIALECTS)
def test_an_older_event_is_read_as_the_one_of_1_0(name: str):
    given, wanted = DIALECTS[name]
    event = decode(json.dumps(given).encode())
    assert event == decode(json.dumps(wanted).encode(), legacy=False)
    assert decode(encode(event), legacy=False) == event


def test_reading_1_0_alone_upgrades_nothing():
    assert decode('{"type":"THINKING_START"}', legacy=False) == UnknownEvent(type="THINKING_START")
    with pytest.raises(WireError, match="no `delta` in STATE_DELTA"):
        decode('{"type":"STATE_DELTA","patch":[]}', legacy=False)
    beside = decode({"type": "RUN_FINISHED", **RUN, "interrupt": {"id": "i"}}, legacy=False)
    assert json.loads(encode(beside)) == {"type": "RUN_FINISHED", **RUN, "interrupt": {"id": "i"}}


NOT_UNDERSTOOD: list[Json] = [
    {"type": "RUN_FINISHED", **RUN, "outcome": "paused"},
    {"type": "RUN_FINISHED", **RUN, "outcome": "interrupt", "interrupt": {"metadata": 5, "payload": 1}},
    {"type": "RUN_STARTED", "runId": "r"},
    {"type": "RUN_STARTED", **RUN, "input": []},
    with_input({"messages": "hi"}),
    with_input({"messages": [5]}),
    with_input({"messages": [], "resume": [5]}),
    with_input({"messages": [], "resume": {"payload": 1}}),
    with_calls({"id": "c"}),
    with_calls(5),  # type: ignore[arg-type]  # what a broken producer sends
    {"type": "MESSAGES_SNAPSHOT", "messages": {}},
    {"type": "MESSAGES_SNAPSHOT", "messages": ["text"]},
    {"type": "THINKING_START", "title": "t", "metadata": 5},
    {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "user"},
    {"type": "TEXT_MESSAGE_CONTENT", "delta": "x"},
    {"type": "STATE_SNAPSHOT"},
    {"type": "META", "payload": {}},
]


@pytest.mark.parametrize("given", NOT_UNDERSTOOD, ids=lambda given: json.dumps(given)[:60])
def test_what_no_rule_understands_is_refused_with_its_type(given: Json):
    with pytest.raises(WireError) as caught:
        decode(given)
    assert caught.value.type is not None
    assert caught.value.expected is not None


def test_an_activity_may_hold_what_looks_like_parts():
    given = {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [
            {"id": "1", "role": "activity", "activityType": "A", "content": {"tool_calls": [{"name": None}]}}
        ],
    }
    assert upgrade(given) == given


def test_free_values_keep_their_nulls_and_their_spelling():
    given = {
        "type": "STATE_SNAPSHOT",
        "snapshot": {"tool_call_id": None, "messages": ["x"]},
        "metadata": {"a_b": None},
    }
    assert upgrade(given) == given


def test_an_unknown_type_is_left_alone():
    assert upgrade({"type": "WARP", "a_b": None}) == {"type": "WARP", "a_b": None}
    assert upgrade({"a": 1}) == {"a": 1}
    assert upgrade({"type": 5}) == {"type": 5}


def test_thoughts_of_one_stream_are_told_apart_and_named_after_their_run():
    upgrader = Upgrader()
    stream = [
        {"type": "RUN_STARTED", **RUN},
        {"type": "THINKING_START"},
        *({"type": f"THINKING_TEXT_MESSAGE_{part}", "delta": "x"} for part in ("START", "CONTENT", "END")),
        *({"type": f"THINKING_TEXT_MESSAGE_{part}", "delta": "y"} for part in ("START", "CONTENT", "END")),
        {"type": "THINKING_END"},
        {"type": "THINKING_START"},
        {"type": "THINKING_END"},
    ]
    ids = [upgrader.upgrade(event).get("messageId") for event in stream]
    span, other = "r:thinking:1", "r:thinking:2"
    assert ids == [None, span, *["r:thought:1"] * 3, *["r:thought:2"] * 3, span, other, other]


def test_a_continuation_is_given_an_id_only_where_one_thing_is_open():
    upgrader = Upgrader()
    for id in ("a", "b"):
        upgrader.upgrade({"type": "TEXT_MESSAGE_START", "messageId": id})
    assert upgrader.upgrade({"type": "TEXT_MESSAGE_CONTENT", "delta": "x"}) == {
        "type": "TEXT_MESSAGE_CONTENT",
        "delta": "x",
    }
    upgrader.note({"type": "TEXT_MESSAGE_END", "messageId": "a"})
    assert upgrader.upgrade({"type": "TEXT_MESSAGE_CONTENT", "delta": "x"})["messageId"] == "b"
    assert upgrader.upgrade({"type": "TEXT_MESSAGE_END", "messageId": "z"})["messageId"] == "z"
    assert upgrader.upgrade({"type": "TEXT_MESSAGE_END"})["messageId"] == "b"
    assert "messageId" not in upgrader.upgrade({"type": "TEXT_MESSAGE_END"})


def test_a_new_run_forgets_what_the_last_one_left_open():
    upgrader = Upgrader()
    upgrader.upgrade({"type": "REASONING_MESSAGE_START", "messageId": "m"})
    upgrader.upgrade({"type": "RUN_STARTED", **RUN})
    assert "messageId" not in upgrader.upgrade({"type": "REASONING_MESSAGE_CONTENT", "delta": "x"})


def test_ends_without_ids_end_the_run_that_started():
    upgrader = Upgrader(thread_id="t")
    assert upgrader.upgrade({"type": "RUN_STARTED", "runId": "r"}) == {"type": "RUN_STARTED", **RUN}
    assert upgrader.upgrade({"type": "RUN_FINISHED"}) == {"type": "RUN_FINISHED", **RUN}
    assert upgrader.upgrade({"type": "RUN_FINISHED", "threadId": "u", "runId": "s"})["threadId"] == "u"


def test_reasoning_read_alone_has_an_id_that_its_neighbours_get_too():
    event = decode('{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"hm"}')
    assert event == ReasoningMessageContentEvent(message_id="thought:1", delta="hm")


def test_an_input_is_upgraded_too():
    given = {"threadId": "t", "runId": "r", "messages": ["hi"], "resume": {"interruptId": "i"}, "tools": None}
    read = decode_input(json.dumps(given))
    assert read.messages == [UserMessage(id="r:input:0", content="hi")]
    assert read.resume is not None
    assert read.resume[0].status == "resolved"
    assert upgrade_input({"thread_id": "t", "run_id": "r"}) == {**RUN, "messages": []}
    assert decode_input({"threadId": "t", "runId": "r"}) == RunAgentInput(
        thread_id="t", run_id="r", messages=[]
    )


def test_no_mutation_of_an_older_event_breaks_an_upgrader():
    rng = random.Random(7)
    olds = [given for given, _ in DIALECTS.values()] + NOT_UNDERSTOOD
    upgrader = Upgrader()
    for _ in range(6000):
        given = rng.choice(olds)
        for _ in range(rng.randrange(1, 4)):
            given = samples.mutated(rng, given) if given else {"type": "META"}
        upgrader.upgrade(given)
        with contextlib.suppress(WireError):
            event = decode(given)
            assert decode(encode(event), legacy=False) == event
