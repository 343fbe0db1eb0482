"""Joining a run at any moment: the late client sees what all others see, and its verifier has nothing to say."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ag_ui.core import Event

from runcast.slim.compaction.compactor import compact
from runcast.slim.compaction.late_join import Join
from runcast.slim.errors import CheckpointRefused
from runcast.slim.folding.conversation import fold
from runcast.slim.wire.codec import AnyEvent
from tests import streams
from tests.conftest import share
from tests.e2e.oracle import Oracle
from tests.slim.scripts import FINISHED, STARTED, call, result, snapshot, text, user
from tests.slim.views import applied, events, judged, plain, where_it_led

LATER = {**STARTED, "runId": "r2"}


def seen(stream: list[Event], cut: int, **options: Any) -> tuple[list[AnyEvent], list[AnyEvent]]:
    """What the client gets first, and what it gets then."""
    join = Join(stream[:cut], **options)
    return join.prelude(), [each for event in stream[cut:] for each in join.feed(event)]


def wires(given: list[AnyEvent]) -> list[dict[str, Any]]:
    return [plain(each) for each in given]


def agrees(oracle: Oracle, stream: list[Event], cut: int) -> list[dict[str, Any]]:
    """Check one cut, and give what the late client gets."""
    prelude, tail = seen(stream, cut)
    led, late, valid = oracle.batch([applied(stream), applied([*prelude, *tail]), judged([*prelude, *tail])])
    assert valid["ok"], valid
    assert where_it_led(late) == where_it_led(led)
    return wires([*prelude, *tail])


def every_cut(oracle: Oracle, stream: list[Event]) -> None:
    for cut in range(len(stream) + 1):
        agrees(oracle, stream, cut)


def test_a_client_that_joins_before_anything_happened_gets_it_all():
    stream = events(STARTED, *text("m1", "a"), FINISHED)
    assert seen(stream, 0) == ([], stream)


def test_a_client_that_joins_after_the_end_gets_a_checkpoint_and_then_everything():
    stream = events(STARTED, *text("m1", "a"), FINISHED, LATER, {"type": "RUN_ERROR", "message": "broke"})
    prelude, tail = seen(stream, 5)
    assert wires(prelude) == [STARTED, snapshot({"id": "m1", "role": "assistant", "content": "a"}), FINISHED]
    assert tail == stream[5:]


def test_what_is_open_is_opened_again_in_order():
    stream = events(
        STARTED,
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "done"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1", "result": 1},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s2", "name": "live", "parentSubagentRunId": "s1", "metadata": {"k": 1}},
        *call("c1", "{}"),
        *call("c2", "{")[:2],
        {"type": "REASONING_MESSAGE_START", "messageId": "g1"},
        {"type": "REASONING_START", "messageId": "g0"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "user", "name": "Ada", "metadata": {"k": 1}, "rawEvent": 1},
        {"type": "STEP_STARTED", "stepName": "over"},
        {"type": "STEP_FINISHED", "stepName": "over"},
        {"type": "STEP_STARTED", "stepName": "think", "subagentRunId": "s2"},
        {"type": "STATE_SNAPSHOT", "snapshot": 1},
    )  # fmt: skip
    prelude, _ = seen(stream, len(stream))
    assert wires(prelude)[:1] + wires(prelude)[2:] == [
        STARTED,
        {"type": "STATE_SNAPSHOT", "snapshot": 1},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "done"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1", "result": 1},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s2", "name": "live", "parentSubagentRunId": "s1"},
        {"type": "STEP_STARTED", "stepName": "think", "subagentRunId": "s2"},
        {"type": "REASONING_START", "messageId": "g0"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "user", "name": "Ada"},
        {"type": "REASONING_MESSAGE_START", "messageId": "g1", "role": "reasoning"},
        {"type": "TOOL_CALL_START", "toolCallId": "c2", "toolCallName": "f"},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    ]
    assert fold(prelude).wire_messages() == fold(stream).wire_messages()


def test_interrupts_of_an_earlier_run_are_told_to_a_client_that_joins_a_later_one():
    asks = {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "approval"}]}}
    prelude, _ = seen(events(STARTED, asks, LATER), 3)
    assert wires(prelude) == [STARTED, asks, LATER]


@pytest.mark.oracle
def test_the_calls_that_nobody_answered_are_named_at_the_end(oracle: Oracle):
    stream = events(STARTED, *call("c1", "{}"), *call("c2"), snapshot(user("u1")), {**FINISHED, "result": 1})
    assert agrees(oracle, stream, 4)[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1", "c2"]}
    every_cut(oracle, stream)


@pytest.mark.oracle
def test_a_stream_whose_message_was_removed_is_not_opened_and_comes_to_nothing(oracle: Oracle):
    stream = events(STARTED, *text("m1", "a", "b", "c"), *call("c1", "1", "2"), FINISHED)
    stream[4:4] = events(snapshot(user("u1")))
    assert not any(each.get("messageId") == "m1" for each in agrees(oracle, stream, 5))
    every_cut(oracle, stream)


@pytest.mark.oracle
def test_a_stream_whose_message_comes_back_is_opened_at_that_moment(oracle: Oracle):
    stream = events(
        STARTED, *text("m1", "a", "lost", "b"), {"type": "STEP_STARTED", "stepName": "s"}, {"type": "STEP_FINISHED", "stepName": "s"}, FINISHED
    )  # fmt: skip
    stream[3:3] = events(snapshot(user("u1")))
    stream[5:5] = events(*call("c1", "{}", parentMessageId="m1"))
    given = agrees(oracle, stream, 4)
    assert [each["type"] for each in given if each.get("messageId") == "m1"] == [
        "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    ]  # fmt: skip
    every_cut(oracle, stream)


@pytest.mark.oracle
def test_a_call_that_was_answered_before_its_end_does_not_count_as_unanswered(oracle: Oracle):
    opened, more, ended = call("c1", "{}")
    stream = events(STARTED, *text("m1", "x"), opened, result("t1", "c1"), more, ended, FINISHED)
    every_cut(oracle, stream)
    again = events(STARTED, *call("c1"), result("t1", "c1"), *text("m1", "x"), *call("c1", "{}"), FINISHED)
    every_cut(oracle, again)
    answered_anew = [*again[:-1], *events(result("t2", "c1"), FINISHED)]
    every_cut(oracle, answered_anew)


@pytest.mark.oracle
def test_a_call_that_was_answered_removed_and_brought_back(oracle: Oracle):
    opened, more, ended = call("c1", "{}")
    held = {"id": "m1", "role": "assistant", "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]}  # fmt: skip
    stream = events(
        STARTED, opened, result("t1", "c1"), snapshot(user("u1")), more, snapshot(user("u1"), held), more, ended, FINISHED
    )  # fmt: skip
    every_cut(oracle, stream)


@pytest.mark.oracle
def test_tags_that_contradict_what_the_late_client_was_told_are_left_out(oracle: Oracle):
    def tagged(wire: list[dict[str, Any]], tag: str) -> list[dict[str, Any]]:
        return [{**each, "subagentRunId": tag} for each in wire]

    thought = [
        {"type": "REASONING_MESSAGE_START", "messageId": "g1"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "g1", "delta": "x"},
        {"type": "REASONING_MESSAGE_END", "messageId": "g1"},
    ]
    plan = {"type": "ACTIVITY_SNAPSHOT", "messageId": "x1", "activityType": "PLAN", "content": {}}
    planned = {"type": "ACTIVITY_DELTA", "messageId": "x1", "activityType": "PLAN", "patch": []}
    value = {"type": "REASONING_ENCRYPTED_VALUE", "encryptedValue": "e"}
    first = [*text("m1", "a"), *thought, plan, *call("c1", parentMessageId="m1")]
    second = [
        *text("m1", "b"),
        *thought,
        planned,
        {**plan, "replace": False},
        *call("c1", "{}", parentMessageId="m1"),
        {**value, "subtype": "tool-call", "entityId": "c1"},
        {**value, "subtype": "message", "entityId": "m1"},
        {**value, "subtype": "message", "entityId": "g1"},
    ]
    stream = events(
        STARTED, *tagged(first, "s1"), FINISHED, LATER, *tagged(second, "s2"), {**FINISHED, "runId": "r2"}
    )
    every_cut(oracle, stream)


@pytest.mark.oracle
def test_a_message_that_is_made_anew_keeps_the_owner_it_should_have(oracle: Oracle):
    first = [
        STARTED,
        {**text("m1", "a")[0], "subagentRunId": "s1"},
        text("m1")[1],
        *call("c1", subagentRunId="s1"),
    ]
    removed = snapshot(user("u1"))
    second = [
        *text("m1", "b", subagentRunId="s2")[:2],
        text("m1")[1],
        *call("c1", "{}", subagentRunId="s2"),
        *call("c3", parentMessageId="m1"),
    ]
    stream = events(*first, FINISHED, LATER, removed, *second, {**FINISHED, "runId": "r2"})
    assert agrees(oracle, stream, len(first) + 2)
    every_cut(oracle, stream)


@pytest.mark.oracle
def test_a_call_whose_parent_has_another_owner_still_gets_a_message_of_its_own(oracle: Oracle):
    first = [STARTED, snapshot(user("u1")), *call("c0", subagentRunId="s1"), FINISHED]
    second = [*call("c2", parentMessageId="u1", subagentRunId="s2"), *call("c0", parentMessageId="u1")]
    every_cut(oracle, events(*first, LATER, *second, {**FINISHED, "runId": "r2"}))


@pytest.mark.oracle
def test_chunks_go_on_where_the_client_joined(oracle: Oracle):
    chunk = {"type": "TEXT_MESSAGE_CHUNK"}
    stream = events(
        STARTED,
        {**chunk, "messageId": "m1", "delta": "a"},
        {**chunk, "delta": "b"},
        {**chunk, "delta": "c"},
        FINISHED,
    )
    every_cut(oracle, stream)


def test_a_chunk_that_continues_nothing_is_passed_on_for_the_client_to_judge():
    stream = events(
        STARTED, {"type": "TEXT_MESSAGE_CHUNK", "delta": "a"}, {"type": "TEXT_MESSAGE_CHUNK", "delta": "b"}
    )
    assert seen(stream, 2)[1] == stream[2:]


def test_doubled_ids_are_refused_unless_kept_on_purpose():
    stream = events(STARTED, *call("c1"), result("t1", "c1"), result("t1", "c1"), *call("c1", "{}"), FINISHED)
    with pytest.raises(CheckpointRefused):
        Join(stream[:5])
    prelude, tail = seen(stream, 5, duplicates="keep")
    assert [message.id for message in fold(prelude).messages] == ["c1", "t1", "t1"]
    assert tail == stream[5:]  # no snapshot can restate this conversation, so none is sent


@pytest.mark.oracle
@pytest.mark.parametrize(("draw", "count"), [(streams.structured, 40), (streams.adversarial, 60)])
@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
def test_case_8_every_cut_of_many_streams(oracle: Oracle, draw: Any, count: int, chunks: bool):
    cuts = 0
    for seed in range(share(count)):
        stream = draw(random.Random(seed), chunks=chunks)
        (led,) = oracle.batch([applied(stream)])
        if len({each["id"] for each in led["messages"]}) < len(led["messages"]):
            continue
        requests: list[Any] = []
        tails: list[list[Event]] = []
        for cut in range(len(stream) + 1):
            history = stream[:cut] if chunks or cut % 2 else compact(stream[:cut])
            try:
                join = Join(history)
            except CheckpointRefused:
                continue
            given = join.prelude() + [each for event in stream[cut:] for each in join.feed(event)]
            requests += [applied(given), judged(given)]
            tails.append(stream[cut:])
        answers = oracle.batch(requests)
        for at, tail in enumerate(tails):
            late, valid = answers[2 * at : 2 * at + 2]
            whole = sum(event.type.value == "RUN_STARTED" for event in tail)
            runs = min(max(1, whole), len(led["runs"]))
            assert valid["ok"], (seed, valid)
            assert where_it_led(late, runs) == where_it_led(led, runs), seed
            cuts += 1
    assert cuts > share(300)
