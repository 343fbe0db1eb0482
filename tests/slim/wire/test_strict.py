"""AG-UI 1.0 to the letter: what the Python models let pass and the protocol does not, judged by the official schemas."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from ag_ui.core import Event, TextMessageEndEvent
from pydantic import TypeAdapter

from runcast.slim.errors import WireError
from runcast.slim.values.protocol_shapes import EVENT_SHAPES
from runcast.slim.wire.strict import Problem, decode_strict, strict_problems
from tests.e2e.oracle import Oracle
from tests.slim import samples

Json = dict[str, Any]
OFFICIAL: TypeAdapter[Any] = TypeAdapter(Event)

RUN = {"threadId": "t", "runId": "r"}


def snapshot(message: Json) -> Json:
    return {"type": "MESSAGES_SNAPSHOT", "messages": [message]}


# The models take each of these; the schema takes none. The path is where it goes wrong.
LENIENT: dict[str, Json] = {
    "timestamp": {"type": "STEP_STARTED", "stepName": "s", "timestamp": None},
    "rawEvent": {"type": "STEP_STARTED", "stepName": "s", "rawEvent": None},
    "metadata": {"type": "STEP_STARTED", "stepName": "s", "metadata": None},
    "subagentRunId": {"type": "STEP_STARTED", "stepName": "s", "subagentRunId": None},
    "parentMessageId": {
        "type": "TOOL_CALL_START",
        "toolCallId": "c",
        "toolCallName": "n",
        "parentMessageId": None,
    },
    "outcome": {"type": "RUN_FINISHED", **RUN, "outcome": None},
    "result": {"type": "RUN_FINISHED", **RUN, "result": None},
    "usage.0.model": {"type": "RUN_ERROR", "message": "m", "usage": [{"model": None}]},
    "input.tools": {"type": "RUN_STARTED", **RUN, "input": {**RUN, "messages": [], "tools": None}},
    "input.forwardedProps": {
        "type": "RUN_STARTED",
        **RUN,
        "input": {**RUN, "messages": [], "forwardedProps": None},
    },
    "input.resume.0.payload": {
        "type": "RUN_STARTED",
        **RUN,
        "input": {
            **RUN,
            "messages": [],
            "resume": [{"interruptId": "i", "status": "resolved", "payload": None}],
        },
    },
    "unknownKey": {"type": "STEP_STARTED", "stepName": "s", "unknownKey": 1},
    "toString": {"type": "STEP_STARTED", "stepName": "s", "toString": 1},
    "step_name": {"type": "STEP_STARTED", "stepName": "s", "step_name": "s"},
    "outcome.interrupts": {"type": "RUN_FINISHED", **RUN, "outcome": {"type": "success", "interrupts": []}},
    "messages.0.unknown": snapshot({"id": "1", "role": "user", "content": "c", "unknown": 1}),
    "messages.0.content.0.source.unknown": snapshot(
        {
            "id": "1",
            "role": "user",
            "content": [{"type": "image", "source": {"type": "url", "value": "u", "unknown": 1}}],
        }
    ),
    "messages.0.content.0.metadata": snapshot(
        {"id": "1", "role": "user", "content": [{"type": "text", "text": "t", "metadata": None}]}
    ),
    "messages.0.name": snapshot({"id": "1", "role": "user", "content": "c", "name": None}),
    "messages.0.toolCalls.0.type": snapshot(
        {
            "id": "1",
            "role": "assistant",
            "toolCalls": [{"id": "c", "function": {"name": "n", "arguments": ""}}],
        }
    ),
    "role": {"type": "REASONING_MESSAGE_START", "messageId": "m"},
    "replace": {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": "m",
        "activityType": "A",
        "content": {},
        "replace": "yes",
    },
}


@pytest.mark.parametrize("path", LENIENT)
def test_what_the_models_let_pass_is_refused_at_its_path(path: str):
    event = LENIENT[path]
    OFFICIAL.validate_python(event)
    assert [problem.path for problem in strict_problems(event)] == [path]
    with pytest.raises(WireError, match=path.replace(".", r"\.")) as caught:
        decode_strict(json.dumps(event))
    assert caught.value.type == event["type"]


@pytest.mark.parametrize("timestamp", [1.5, True, "12", 2**53, -(2**53), [], {}])
def test_a_timestamp_is_a_whole_number_that_a_double_holds(timestamp: Any):
    problems = strict_problems({"type": "STEP_STARTED", "stepName": "s", "timestamp": timestamp})
    assert [problem.path for problem in problems] == ["timestamp"]


def test_a_problem_says_what_was_found_and_what_would_be_right():
    event = {"type": "TEXT_MESSAGE_CONTENT", "delta": 5, "role": "user"}
    assert strict_problems(event) == [
        Problem("messageId", "missing", "a string"),
        Problem("delta", "a number", "a string"),
        Problem("role", "unknown", "a key that AG-UI 1.0 has"),
    ]
    assert str(strict_problems(event)[1]) == "`delta` is a number; expected a string"


EXPECTED: list[tuple[Json, str]] = [
    ({"type": "STATE_DELTA"}, "`delta` is missing; expected a list"),
    ({"type": "STATE_DELTA", "delta": {}}, "`delta` is an object; expected a list"),
    ({"type": "STATE_DELTA", "delta": [5]}, "`delta.0` is a number; expected an object"),
    (
        {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "a"}]},
        "`delta.0.path` is a string; expected a string like ^(/([^/~]|~[01])*)*$",
    ),
    (
        {"type": "STATE_DELTA", "delta": [{"path": "/a"}]},
        "`delta.0.op` is missing; expected 'add' or 'remove' or 'replace' or 'move' or 'copy' or 'test'",
    ),
    ({"type": "STATE_DELTA", "delta": [{"op": "x"}]}, "`delta.0.op` is unknown; expected 'add' or"),
    ({"type": "STATE_DELTA", "delta": [{"op": []}]}, "`delta.0.op` is a list; expected 'add' or"),
    ({"type": "STATE_SNAPSHOT"}, "`snapshot` is missing; expected a value, which may be null"),
    ({"type": "RUN_STARTED", **RUN, "input": []}, "`input` is a list; expected an object"),
    ({"type": "RUN_FINISHED", **RUN, "outcome": []}, "`outcome` is a list; expected an object"),
    (
        {"type": "RUN_FINISHED", **RUN, "outcome": {"type": "interrupt", "interrupts": []}},
        "`outcome.interrupts` is a list of 0; expected at least 1",
    ),
    (
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": 5},
        "`content` is a number; expected a string or a list of parts",
    ),
    (
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c"},
        "`content` is missing; expected a string or",
    ),
    (
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "A", "replace": 1, "content": {}},
        "`replace` is a number; expected true or false",
    ),
    (
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "A"},
        "`content` is missing; expected an object",
    ),
    (
        {"type": "RUN_ERROR", "message": "m", "usage": [{"inputTokens": -1}]},
        "`usage.0.inputTokens` is a number; expected a whole number from 0 to 9007199254740991",
    ),
    (
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "x"},
        "`role` is a string; expected 'reasoning'",
    ),
    ({"type": "TELEPATHY"}, "`type` is unknown; expected one of the event types"),
    ({"type": None}, "`type` is null; expected one of the event types"),
    ({}, "`type` is missing; expected one of the event types"),
    (
        {"type": "CUSTOM", "name": "n", "value": 1, "metadata": (1,)},
        "`metadata` is something that is not JSON",
    ),
]


@pytest.mark.parametrize(("event", "said"), EXPECTED)
def test_each_kind_of_problem_is_said_in_a_sentence(event: Json, said: str):
    assert str(strict_problems(event)[0]).startswith(said)


def test_strict_bytes_are_read_and_others_are_not():
    assert decode_strict(b'{"type":"TEXT_MESSAGE_END","messageId":"m"}') == TextMessageEndEvent(
        message_id="m"
    )
    with pytest.raises(WireError, match="`type` is a number"):
        decode_strict({"type": 5})


def judged(oracle: Oracle, events: list[Json]) -> list[Json]:
    """What the official schema and the official enforcement stage say of each event."""
    verdicts: list[Json] = oracle.ask("schema", events=events)["verdicts"]
    return verdicts


@pytest.mark.oracle
def test_the_lenient_ones_are_refused_by_the_official_schemas_too(oracle: Oracle):
    assert [verdict["ok"] for verdict in judged(oracle, list(LENIENT.values()))] == [False] * len(LENIENT)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(4))
def test_the_checker_agrees_with_the_official_schemas(oracle: Oracle, seed: int):
    rng = random.Random(seed)
    events = [samples.event(rng, tag) for tag in EVENT_SHAPES for _ in range(60)]
    for event in list(events):
        for _ in range(rng.randrange(1, 3)):
            event = samples.mutated(rng, event) if event else event
        events.append(event)
    verdicts = judged(oracle, events)
    answers = [strict_problems(event) for event in events]
    differ = [
        (event, answer, verdict)
        for event, answer, verdict in zip(events, answers, verdicts, strict=True)
        if verdict["ok"] is bool(answer)
    ]
    assert differ == []
    refused = sum(not verdict["ok"] for verdict in verdicts)
    assert 1000 < refused < len(events) - 1000  # neither side says the same to everything
