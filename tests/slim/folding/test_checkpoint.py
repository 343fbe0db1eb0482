"""Checkpoints: what they hold, what they refuse, and that an empty client is led where the history led it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import CustomEvent, Event

from runcast.slim.compaction.compactor import checkpoint, compact
from runcast.slim.errors import CheckpointRefused, SlimError
from runcast.slim.folding.checkpoint import Checkpoint
from runcast.slim.folding.conversation import fold
from tests import streams
from tests.conftest import share
from tests.e2e.oracle import Oracle
from tests.slim.scripts import FINISHED, STARTED, activity, call, result, snapshot, text, user
from tests.slim.views import applied, events, in_batches, judged, plain, where_it_led

ERROR = {"type": "RUN_ERROR", "message": "broke"}
ASKS = {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "approval"}]}}
DELTAS = [
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/count", "value": 1}]},
    {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/count", "value": 2}]},
]


def of(*wire: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return [plain(event) for event in checkpoint(events(*wire), **options)]


def types(wire: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in wire]


def test_a_text_becomes_one_message():
    hello = text("msg1", "Hello ", "world", role="user")
    assert of(*hello) == [snapshot({"id": "msg1", "role": "user", "content": "Hello world"})]


def test_two_deltas_become_one_state():
    assert of(*DELTAS) == [{"type": "STATE_SNAPSHOT", "snapshot": {"count": 2}}]


def test_a_message_and_a_state_become_two_events():
    assert types(of(*text("msg1", "Hello ", "world", role="user"), *DELTAS)) == [
        "MESSAGES_SNAPSHOT",
        "STATE_SNAPSHOT",
    ]


def test_a_whole_run_becomes_its_borders_and_its_snapshots():
    started = {**STARTED, "protocolVersion": "1.0", "parentRunId": "r0", "metadata": {"k": 1}, "timestamp": 1}
    echoed = {"threadId": "t", "runId": "r", "messages": [user("u1")]}
    finished = {**FINISHED, "result": {"n": 1}, "usage": [{"inputTokens": 1}], "timestamp": 9}
    stream = [
        {**started, "input": echoed, "rawEvent": 1},
        *text("m1", "a", "b"),
        *DELTAS,
        {**finished, "rawEvent": 1},
    ]
    assert of(*stream) == [
        started,
        snapshot(user("u1"), {"id": "m1", "role": "assistant", "content": "ab"}),
        {"type": "STATE_SNAPSHOT", "snapshot": {"count": 2}},
        finished,
    ]


def test_nothing_is_said_of_what_was_never_touched():
    assert of(STARTED, FINISHED) == [STARTED, FINISHED]
    assert of() == []


def test_a_run_that_was_cut_short_gets_no_end():
    assert types(of(STARTED, *text("m1", "a"))) == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]


def test_case_48_the_calls_left_unanswered_are_named_in_the_outcome():
    stream = [STARTED, *call("c1"), *call("c2"), result("t1", "c1")]
    for finished in (FINISHED, {**FINISHED, "outcome": {"type": "success"}}):
        assert of(*stream, finished)[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c2"]}
    assert of(*stream, {**FINISHED, "outcome": {"type": "cancelled"}})[-1]["outcome"] == {"type": "cancelled"}
    answered = [*stream, result("t2", "c2"), FINISHED]
    assert of(*answered)[-1] == FINISHED


def test_case_49_interrupts_of_an_earlier_run_come_first():
    later = {**STARTED, "runId": "r2"}
    assert of(STARTED, ASKS) == [STARTED, ASKS]
    assert of(STARTED, ASKS, later, ERROR) == [STARTED, ASKS, later, ERROR]
    assert of(STARTED, ASKS, later) == [STARTED, ASKS, later]
    assert of(STARTED, ASKS, STARTED) == [STARTED, ASKS, STARTED]
    assert of(STARTED, ASKS, later, {**FINISHED, "runId": "r2"}) == [later, {**FINISHED, "runId": "r2"}]


def test_case_51_an_error_behind_the_end_is_kept_behind_it():
    assert of(STARTED, FINISHED, ERROR) == [STARTED, FINISHED, ERROR]


def test_ends_without_a_run_are_kept():
    assert of(ERROR) == [ERROR]
    assert of(ASKS) == [ASKS]


def test_case_50_two_messages_with_one_id_are_refused_unless_kept_on_purpose():
    stream = [STARTED, result("t1", "c1"), result("t1", "c1"), FINISHED]
    with pytest.raises(CheckpointRefused, match="two messages share the id 't1'") as refused:
        of(*stream)
    assert isinstance(refused.value, SlimError)
    kept = of(*stream, duplicates="keep")
    assert [each["id"] for each in kept[1]["messages"]] == ["t1", "t1"]


def test_an_activity_that_no_snapshot_can_hold_is_refused():
    emptied = {
        "type": "ACTIVITY_DELTA",
        "messageId": "x1",
        "activityType": "PLAN",
        "patch": [{"op": "replace", "path": "", "value": 5}],
    }
    with pytest.raises(CheckpointRefused, match="activity 'x1'"):
        of(STARTED, activity("x1"), emptied)


def test_a_checkpoint_keeps_up_with_its_history():
    it = Checkpoint()
    seen: list[bool] = []
    for event in [*events(STARTED, *text("m1", "a"), FINISHED), CustomEvent(name="n", value=1)]:
        it.feed(event)
        seen.append(it.running)
    assert seen == [True, True, True, True, False, False]
    assert it.conversation.messages[0].content == "a"
    assert it.started is not None
    assert it.events() == [*it.borders(), *it.snapshots(), *events(FINISHED)]


Draw = Callable[..., list[Event]]


@pytest.mark.oracle
@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
@pytest.mark.parametrize("draw", [streams.structured, streams.adversarial])
def test_cases_6_and_7_an_empty_client_is_led_where_the_history_led(oracle: Oracle, draw: Draw, chunks: bool):
    drawn = [draw(random.Random(seed), chunks=chunks) for seed in range(share(400))]
    whole = 0
    for some in in_batches(drawn):
        requests: list[Any] = []
        sayable: list[bool] = []
        for stream in some:
            try:
                small = checkpoint(stream)
                sayable.append(True)
            except CheckpointRefused:
                small = checkpoint(stream, duplicates="keep")
                sayable.append(False)
            assert checkpoint(compact(stream), duplicates="keep") == small
            requests += [
                applied(stream),
                applied(small),
                applied([*stream, *small]),
                applied([*small, *small]),
                judged(small),
            ]
        answers = oracle.batch(requests)
        for at, stream in enumerate(some):
            led, again, behind, twice, valid = answers[5 * at : 5 * at + 5]
            assert where_it_led(again) == where_it_led(led), stream
            assert valid["ok"], stream
            if sayable[at]:
                whole += 1
                assert where_it_led(behind) == where_it_led(led), stream
                assert where_it_led(twice) == where_it_led(led), stream
    assert whole > len(drawn) / 3


def test_case_7_a_checkpoint_of_a_checkpoint_is_the_checkpoint():
    for seed in range(300):
        small = checkpoint(streams.structured(random.Random(seed)), duplicates="keep")
        assert checkpoint(small, duplicates="keep") == small
        assert len(small) <= 7
        assert fold(small).wire_messages() == fold(streams.structured(random.Random(seed))).wire_messages()
