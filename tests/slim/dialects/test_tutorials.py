"""Streams as tutorials on AG-UI write them: short, lacking ids, with the shapes of drafts. All of them can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runcast.slim.wire.codec import encode
from runcast.slim.wire.streams import decode_array, decode_lines
from runcast.slim.wire.strict import strict_problems

Json = dict[str, Any]


def user(id: str, content: str) -> Json:
    return {"id": id, "role": "user", "content": content}


HELLO = [
    {"type": "TEXT_MESSAGE_START", "messageId": "msg1", "role": "user"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "msg1", "delta": "Hello "},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "msg1", "delta": "world"},
    {"type": "TEXT_MESSAGE_END", "messageId": "msg1"},
]
HELLO_SNAPSHOT = {"type": "MESSAGES_SNAPSHOT", "messages": [user("msg1", "Hello world")]}
COUNTED = [
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/count", "value": 1}]},
    {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/count", "value": 2}]},
]
T1 = {"threadId": "thread1"}


def started(run: str, *messages: Json, **more: Any) -> Json:
    given = {"threadId": "thread1", "runId": run, "messages": list(messages)}
    return {"type": "RUN_STARTED", **T1, "runId": run, **more, "input": given}


# What the tutorial shows, and what 1.0 says; None where it is 1.0 already.
EXAMPLES: dict[str, tuple[list[Json], list[Json] | None]] = {
    "a session that is saved, without ids on what continues": (
        [
            {"type": "RUN_STARTED", "runId": "run1"},
            {"type": "TEXT_MESSAGE_START", "messageId": "msg1"},
            {"type": "TEXT_MESSAGE_CONTENT", "delta": "Hello"},
            {"type": "TEXT_MESSAGE_END"},
            {"type": "RUN_FINISHED"},
        ],
        [
            {"type": "RUN_STARTED", **T1, "runId": "run1"},
            {"type": "TEXT_MESSAGE_START", "messageId": "msg1"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "msg1", "delta": "Hello"},
            {"type": "TEXT_MESSAGE_END", "messageId": "msg1"},
            {"type": "RUN_FINISHED", **T1, "runId": "run1"},
        ],
    ),
    "hello world in four events": (HELLO, None),
    "hello world in one": ([HELLO_SNAPSHOT], None),
    "hello world and a counter": ([*HELLO, *COUNTED], None),
    "hello world and a counter, compacted": (
        [HELLO_SNAPSHOT, {"type": "STATE_SNAPSHOT", "snapshot": {"count": 2}}],
        None,
    ),
    "Paris, then London from the same start": (
        [
            {
                "type": "RUN_STARTED",
                **T1,
                "runId": "run1",
                "input": {"messages": [{"content": "Tell me about Paris"}]},
            },
            {"type": "RUN_FINISHED", "runId": "run1"},
            {
                "type": "RUN_STARTED",
                **T1,
                "runId": "run2",
                "parentRunId": "run1",
                "input": {"messages": [{"content": "Tell me about London instead"}]},
            },
        ],
        [
            started("run1", user("run1:input:0", "Tell me about Paris")),
            {"type": "RUN_FINISHED", **T1, "runId": "run1"},
            started("run2", user("run2:input:0", "Tell me about London instead"), parentRunId="run1"),
        ],
    ),
    "a start with all its fields": (
        [
            {
                "type": "RUN_STARTED",
                **T1,
                "runId": "run2",
                "parentRunId": "run1",
                "input": {"messages": [user("msg2", "New question")]},
            }
        ],
        [started("run2", user("msg2", "New question"), parentRunId="run1")],
    ),
    "inputs that leave out what history has, and the thread": (
        [
            {"type": "RUN_STARTED", "runId": "run1", "input": {"messages": [user("msg1", "Hello")]}},
            {
                "type": "RUN_STARTED",
                "runId": "run2",
                "parentRunId": "run1",
                "input": {"messages": [user("msg2", "How are you?")]},
            },
        ],
        [
            started("run1", user("msg1", "Hello")),
            started("run2", user("msg2", "How are you?"), parentRunId="run1"),
        ],
    ),
    "a session and the run that goes on from it": (
        [
            {"type": "RUN_STARTED", "runId": "run1", **T1, "input": {}},
            {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "user"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hello"},
            {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
            {"type": "RUN_FINISHED", "runId": "run1"},
            {
                "type": "RUN_STARTED",
                "runId": "run2",
                "parentRunId": "run1",
                "input": {"messages": [user("m2", "And you?")]},
            },
        ],
        [
            started("run1"),
            {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "user"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hello"},
            {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
            {"type": "RUN_FINISHED", **T1, "runId": "run1"},
            started("run2", user("m2", "And you?"), parentRunId="run1"),
        ],
    ),
    "patches of one operation, under a draft's name": (
        [
            *HELLO,
            {"type": "STATE_DELTA", "patch": {"op": "add", "path": "/foo", "value": 1}},
            {"type": "STATE_DELTA", "patch": {"op": "replace", "path": "/foo", "value": 2}},
        ],
        [
            *HELLO,
            {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/foo", "value": 1}]},
            {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/foo", "value": 2}]},
        ],
    ),
    "a state under a draft's name": (
        [HELLO_SNAPSHOT, {"type": "STATE_SNAPSHOT", "state": {"foo": 2}}],
        [HELLO_SNAPSHOT, {"type": "STATE_SNAPSHOT", "snapshot": {"foo": 2}}],
    ),
    "messages that are bare texts": (
        [
            {"type": "RUN_STARTED", **T1, "runId": "run1", "input": {"messages": ["Tell me about Paris"]}},
            {
                "type": "RUN_STARTED",
                **T1,
                "runId": "run2",
                "parentRunId": "run1",
                "input": {"messages": ["Actually, tell me about London instead"]},
            },
        ],
        [
            started("run1", user("run1:input:0", "Tell me about Paris")),
            started(
                "run2", user("run2:input:0", "Actually, tell me about London instead"), parentRunId="run1"
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_tutorial_s_stream_reads_as_1_0(name: str):
    given, wanted = EXAMPLES[name]
    expected = given if wanted is None else wanted
    stringified = [json.dumps(given).encode()]
    lines = [json.dumps(event).encode() + b"\n" for event in given]
    for reader in (decode_array(stringified, thread_id="thread1"), decode_lines(lines, thread_id="thread1")):
        assert [json.loads(encode(event)) for event in reader] == expected
        assert reader.unknown == {}
    assert [problem for event in expected for problem in strict_problems(event)] == []
