"""Compaction case by case: what folds, what bars it, and what stays. The laws are in `test_compact_laws`."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ag_ui.core import TextMessageContentEvent

from runcast.slim.compaction.compactor import Compactor, compact
from runcast.slim.folding.conversation import fold
from tests import streams
from tests.slim.scripts import FINISHED, STARTED, activity, call, ids, result, snapshot, text, user
from tests.slim.views import events, plain

ERROR = {"type": "RUN_ERROR", "message": "broke"}
STEP = {"type": "STEP_STARTED", "stepName": "a"}


def compacted(*wire: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """Wire shapes in, wire shapes out."""
    return [plain(event) for event in compact(events(*wire), **options)]


def brief(*wire: dict[str, Any], **options: Any) -> list[str]:
    """The outcome in words: type without its family, and the delta where there is one."""
    return [
        " ".join([each["type"], *(str(each[key]) for key in ("delta", "snapshot") if key in each)])
        for each in compacted(*wire, **options)
    ]


def content(key: str, delta: str, **more: Any) -> dict[str, Any]:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": key, "delta": delta, **more}


def thought(key: str, delta: str) -> dict[str, Any]:
    return {"type": "REASONING_MESSAGE_CONTENT", "messageId": key, "delta": delta}


def opened(key: str, kind: str = "TEXT_MESSAGE") -> dict[str, Any]:
    return {"type": f"{kind}_START", "messageId": key}


def closed(key: str, kind: str = "TEXT_MESSAGE") -> dict[str, Any]:
    return {"type": f"{kind}_END", "messageId": key}


def args(key: str, delta: str) -> dict[str, Any]:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": key, "delta": delta}


def delta(*operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "STATE_DELTA", "delta": list(operations), **more}


def state(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "STATE_SNAPSHOT", "snapshot": value, **more}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def patched(key: str, *operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "ACTIVITY_DELTA",
        "messageId": key,
        "activityType": "PLAN",
        "patch": list(operations),
        **more,
    }


def test_deltas_of_a_message_become_one():
    assert brief(STARTED, *text("m1", "Hello ", "wor", "ld"), FINISHED)[1:4] == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT Hello world",
        "TEXT_MESSAGE_END",
    ]


def test_a_run_of_a_hundred_events_becomes_a_handful():
    stream = [
        STARTED,
        *text("m1", *["word "] * 60),
        *call("c1", *["{}"] * 30, parentMessageId="m1"),
        result("t1", "c1"),
        FINISHED,
    ]
    assert len(stream) > 95
    assert len(compacted(*stream)) == 9


def test_reasoning_folds_like_text():
    kind = "REASONING_MESSAGE"
    assert brief(STARTED, opened("g", kind), thought("g", "a"), STEP, thought("g", "b"), closed("g", kind))[
        2:4
    ] == [
        "REASONING_MESSAGE_CONTENT ab",
        "STEP_STARTED",
    ]


def test_case_11_interleaved_texts_keep_the_order_of_their_starts():
    stream = [STARTED, opened("a"), opened("b"), content("a", "1"), content("b", "2"), content("a", "3"), content("b", "4"), closed("b"), closed("a"), FINISHED]  # fmt: skip
    assert brief(*stream)[3:5] == ["TEXT_MESSAGE_CONTENT 13", "TEXT_MESSAGE_CONTENT 24"]
    assert ids(fold(compact(events(*stream)))) == ["a", "b"]


def test_case_12_parallel_calls_keep_their_order_though_their_ends_are_reversed():
    one, two = call("c1", parentMessageId="m"), call("c2", parentMessageId="m")
    stream = [
        STARTED,
        one[0],
        two[0],
        args("c2", "["),
        args("c1", "{"),
        args("c2", "]"),
        args("c1", "}"),
        two[-1],
        one[-1],
        FINISHED,
    ]
    (message,) = fold(compact(events(*stream))).wire_messages()
    assert [(each["id"], each["function"]["arguments"]) for each in message["toolCalls"]] == [
        ("c1", "{}"),
        ("c2", "[]"),
    ]
    assert len(compacted(*stream)) == 8


def test_case_13_a_call_inside_a_text_leaves_its_name_owner_and_role():
    stream = [STARTED, *text("m", "a", "b", role="user", name="Ada", subagentRunId="s1")]
    stream[3:3] = call("c1", "{", "}", parentMessageId="m")
    stream.append(FINISHED)
    first = fold(compact(events(*stream))).wire_messages()[0]
    assert (first["role"], first["name"], first["subagentRunId"], first["content"]) == (
        "user",
        "Ada",
        "s1",
        "ab",
    )


def test_case_14_a_snapshot_in_the_middle_of_a_text_stays_there():
    stream = [
        STARTED,
        opened("m"),
        content("m", "a"),
        snapshot(user("m", "FULL")),
        content("m", "b"),
        closed("m"),
        FINISHED,
    ]
    assert fold(compact(events(*stream))).messages[0].content == "FULLb"
    assert brief(*stream) == brief(*compacted(*stream))


def test_a_snapshot_lets_a_stream_fold_on_only_if_it_restates_it():
    restated = [
        STARTED,
        opened("m"),
        content("m", "a"),
        snapshot(user("m", "x")),
        content("m", "b"),
        content("m", "c"),
    ]
    assert brief(*restated)[-1] == "TEXT_MESSAGE_CONTENT bc"
    removed = [
        STARTED,
        opened("m"),
        content("m", "a"),
        snapshot(user("n")),
        content("m", "b"),
        content("m", "c"),
    ]
    assert brief(*removed)[-2:] == ["TEXT_MESSAGE_CONTENT b", "TEXT_MESSAGE_CONTENT c"]
    held = {"id": "m", "role": "assistant", "toolCalls": [call_in_message("c1")]}
    kept = [STARTED, *call("c1", "{"), snapshot(held), args("c1", "1"), args("c1", "2")]
    del kept[3]  # the call is still open
    assert brief(*kept)[-1] == "TOOL_CALL_ARGS 12"


def call_in_message(key: str) -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": "f", "arguments": ""}}


def test_case_15_a_text_that_is_open_at_an_error_stays_before_it():
    stream = [STARTED, opened("m"), content("m", "a"), STEP, content("m", "b"), ERROR]
    assert brief(*stream) == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT ab",
        "STEP_STARTED",
        "RUN_ERROR",
    ]


def test_case_16_a_text_that_is_open_at_an_error_is_not_the_next_runs_text():
    first = [STARTED, opened("m"), content("m", "a"), ERROR]
    second = [{**STARTED, "runId": "r2"}, *text("m", "b"), {**FINISHED, "runId": "r2"}]
    assert compacted(*first, *second) == [*first, *second]


def test_case_17_the_next_runs_events_do_not_wait_for_an_open_text():
    first = [STARTED, opened("m"), content("m", "a"), ERROR]
    second = [
        {**STARTED, "runId": "r2"},
        STEP,
        *call("c1", "{"),
        {"type": "STEP_FINISHED", "stepName": "a"},
        {**FINISHED, "runId": "r2"},
    ]
    assert compacted(*first, *second) == [*first, *second]


def test_case_18_deltas_that_continue_nothing_are_left_alone():
    for orphan in (content("m", "a"), thought("m", "a"), args("c", "a")):
        assert compacted(STARTED, orphan, orphan, FINISHED) == [STARTED, orphan, orphan, FINISHED]


def test_case_19_a_text_that_a_snapshot_removed_and_a_call_brought_back():
    stream = [
        STARTED, opened("m"), content("m", "a"), snapshot(), content("m", "lost"),
        *call("c1", "{", "}", parentMessageId="m"), content("m", "b"), closed("m"), FINISHED,
    ]  # fmt: skip
    (message,) = fold(compact(events(*stream))).wire_messages()
    assert message["content"] == "b"
    assert fold(compact(events(*stream))).wire_messages() == fold(events(*stream)).wire_messages()


def test_case_20_text_and_reasoning_with_one_id_keep_their_turns():
    kind = "REASONING_MESSAGE"
    stream = [
        STARTED, opened("m"), opened("m", kind), content("m", "1"), thought("m", "2"), content("m", "3"),
        content("m", "4"), thought("m", "5"), closed("m"), closed("m", kind), FINISHED,
    ]  # fmt: skip
    assert fold(compact(events(*stream))).messages[0].content == "12345"
    assert brief(*stream)[3:7] == [
        "TEXT_MESSAGE_CONTENT 1", "REASONING_MESSAGE_CONTENT 2", "TEXT_MESSAGE_CONTENT 34", "REASONING_MESSAGE_CONTENT 5",
    ]  # fmt: skip


def test_a_result_or_an_activity_with_the_same_id_comes_between():
    for between in (result("m", "c9"), activity("m"), activity("m", replace=False)):
        stream = [STARTED, opened("m"), content("m", "a"), between, content("m", "b"), closed("m"), FINISHED]
        assert len(compacted(*stream)) == len(stream)


def test_an_activity_that_may_replace_a_message_bars_its_calls_but_a_known_one_does_not():
    one = call("c1", parentMessageId="m")[0]
    stream = [STARTED, one, args("c1", "1"), activity("x"), args("c1", "2"), activity("x"), args("c1", "3")]
    assert brief(*stream)[2:] == ["TOOL_CALL_ARGS 1", "ACTIVITY_SNAPSHOT", "TOOL_CALL_ARGS 23"]


def test_metadata_of_folded_deltas_is_merged_and_the_first_timestamp_and_tag_stay():
    stream = [
        STARTED,
        {**opened("m"), "subagentRunId": "s1"},
        content(
            "m",
            "a",
            timestamp=1,
            metadata={"k": 1, "n": None},
            subagentRunId="s1",
            rawEvent={"n": 1},
            novel=1,
        ),
        content("m", "b", timestamp=2, metadata={"k": 2}),
        content("m", "c", timestamp=3),
        closed("m"),
    ]
    assert compacted(*stream)[2] == content(
        "m", "abc", timestamp=1, metadata={"k": 2, "n": None}, subagentRunId="s1"
    )


def test_a_single_delta_stays_the_event_it_was():
    only = TextMessageContentEvent(message_id="m", delta="a", raw_event={"n": 1})
    out = compact([*events(STARTED, opened("m")), only])
    assert out[2] is only


def test_case_21_a_state_snapshot_takes_in_its_deltas_at_the_last_ones_place():
    stream = [
        STARTED,
        delta(add("/gone", 1)),
        state({"n": 1}),
        STEP,
        delta(add("/m", 2), timestamp=5),
        FINISHED,
    ]
    assert compacted(*stream)[1:3] == [STEP, state({"n": 1, "m": 2}, timestamp=5)]


def test_state_metadata_is_merged_and_a_tag_stays_only_if_all_agree():
    one, two = {"subagentRunId": "s1"}, {"subagentRunId": "s2"}
    stream = [
        STARTED,
        delta(metadata={"a": 1}),
        state({}, metadata={"b": None}, **one),
        delta(add("/n", 1), **one),
    ]
    assert compacted(*stream)[1] == state({"n": 1}, metadata={"a": 1, "b": None}, **one)
    assert compacted(*stream, delta(add("/m", 1), **two))[1] == state(
        {"n": 1, "m": 1}, metadata={"a": 1, "b": None}
    )


def test_a_snapshot_that_only_overtook_others_stays_the_event_it_was():
    last = state({"n": 2}, rawEvent=1, metadata={"k": 1})
    assert compacted(STARTED, state({"n": 1}), last, FINISHED) == [STARTED, last, FINISHED]
    assert compacted(STARTED, state({"n": 1}, metadata={"k": 0}), last)[1] == last


def test_case_22_deltas_alone_stay_since_nobody_knows_what_they_change():
    stream = [
        STARTED,
        delta(add("/count", 1)),
        STEP,
        delta({"op": "replace", "path": "/count", "value": 2}),
        FINISHED,
    ]
    assert compacted(*stream) == stream


def test_case_22_with_the_state_before_them_two_deltas_become_one_snapshot():
    stream = [delta(add("/count", 1)), delta({"op": "replace", "path": "/count", "value": 2})]
    assert compacted(*stream, base_state={}) == [state({"count": 2})]


def test_a_known_state_is_carried_from_run_to_run():
    second = [
        {**STARTED, "runId": "r2"},
        delta(add("/b", 1)),
        delta(add("/c", 1)),
        {**FINISHED, "runId": "r2"},
    ]
    stream = [STARTED, delta(add("/a", 1)), FINISHED, *second]
    assert compacted(*stream, base_state={"keep": 1})[4] == state({"keep": 1, "a": 1, "b": 1, "c": 1})
    assert compacted(*stream) == stream


def test_deltas_that_are_shorter_than_the_state_stay():
    stream = [STARTED, delta(add("/a", 1)), delta(add("/b", 1)), FINISHED]
    assert compacted(*stream, base_state={"long": "x" * 200}) == stream


def test_case_23_a_patch_that_fails_is_dropped_whole():
    partly = delta(add("/b", 1), {"op": "remove", "path": "/absent"})
    assert compacted(STARTED, state({"a": 1}), partly, delta(add("/c", 1)))[1] == state({"a": 1, "c": 1})


def test_case_25_a_patch_that_the_client_may_read_differently_stays_and_so_do_those_behind_it():
    odd = delta({"op": "remove", "path": ""})
    stream = [STARTED, state({"a": 1}), delta(add("/b", 1)), odd, delta(add("/c", 1)), FINISHED]
    assert compacted(*stream) == [STARTED, state({"a": 1, "b": 1}), odd, delta(add("/c", 1)), FINISHED]
    again = [*stream, {**STARTED, "runId": "r2"}, delta(add("/d", 1)), delta(add("/e", 1))]
    assert compacted(*again, base_state={})[-2:] == again[-2:]


def test_a_copy_that_would_make_the_state_longer_stays_a_copy():
    copy = delta({"op": "copy", "from": "/a", "path": "/b"})
    small, large = state({"a": 1}), state({"a": "x" * 500})
    assert compacted(STARTED, small, copy)[1:] == [state({"a": 1, "b": 1})]
    assert compacted(STARTED, large, copy)[1:] == [large, copy]


def test_a_patch_that_doubles_stays_and_so_do_those_behind_it():
    bomb = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    stream = [STARTED, state({"a": [1]}), delta(*bomb), delta(add("/c", 1)), FINISHED]
    assert compacted(*stream) == stream
    shown = [STARTED, activity("x"), patched("x", add("/a", [1])), patched("x", *bomb), FINISHED]
    assert compacted(*shown) == [STARTED, activity("x", content={"a": [1]}), patched("x", *bomb), FINISHED]


@pytest.mark.parametrize("value", [None, 0, [], "s", False, 2.5])
def test_case_24_state_may_be_any_json(value: Any):
    idle = delta(add("/a", 1))
    assert compacted(STARTED, state({"a": 1}), state(value), idle, FINISHED)[1] == state(value)


def test_activity_deltas_go_into_their_snapshot():
    stream = [
        STARTED,
        activity("x", metadata={"a": 1}),
        STEP,
        patched("x", add("/b", 2), metadata={"c": None}),
    ]
    assert compacted(*stream)[1:] == [
        activity("x", content={"a": 1, "b": 2}, metadata={"a": 1, "c": None}),
        STEP,
    ]


def test_a_later_activity_snapshot_says_all_anew_at_the_first_ones_place():
    later = activity("x", activityType="DONE", content={"z": 1}, subagentRunId="s1")
    stream = [STARTED, activity("x", metadata={"a": 1}), patched("x", add("/b", 2)), STEP, later]
    assert compacted(*stream)[1:] == [{**later, "metadata": {"a": 1}}, STEP]


def test_case_26_an_activity_snapshot_that_does_not_replace_is_no_base():
    stream = [STARTED, activity("x", replace=False), patched("x", add("/b", 2)), FINISHED]
    assert compacted(*stream) == stream
    stream = [
        STARTED,
        activity("x"),
        activity("x", replace=False, content={"other": 1}, metadata={"m": 1}),
        FINISHED,
    ]
    assert compacted(*stream)[1] == activity("x", metadata={"m": 1})


def test_case_26_an_activity_patch_that_fails_still_leaves_its_metadata():
    failing = patched("x", {"op": "remove", "path": "/absent"}, metadata={"m": 1}, activityType="DONE")
    assert compacted(STARTED, activity("x"), failing, FINISHED)[1] == activity("x", metadata={"m": 1})


def test_an_activity_patch_that_cannot_be_folded_ends_the_folding_of_that_activity():
    odd = patched("x", {"op": "remove", "path": "/toString"})  # JavaScript's objects have one
    stream = [STARTED, activity("x"), odd, patched("x", add("/b", 2)), activity("x"), FINISHED]
    assert compacted(*stream) == stream


def test_a_patch_of_an_activitys_root_stays_since_a_snapshot_could_not_hold_what_it_makes():
    stream = [STARTED, activity("x"), patched("x", {"op": "replace", "path": "", "value": [1]}), FINISHED]
    assert compacted(*stream) == stream


def test_a_result_with_an_activitys_id_ends_what_was_known_of_it():
    stream = [STARTED, activity("x"), result("x", "c1"), patched("x", add("/b", 2)), FINISHED]
    assert compacted(*stream) == stream


def test_case_27_null_in_metadata_is_a_value():
    stream = [
        STARTED,
        opened("m"),
        content("m", "a", metadata={"k": 1}),
        content("m", "b", metadata={"k": None}),
    ]
    assert compacted(*stream)[2]["metadata"] == {"k": None}


def test_case_28_two_snapshots_of_the_messages_are_both_kept():
    stream = [STARTED, snapshot(user("a"), user("b")), snapshot(user("b"), user("a")), FINISHED]
    assert compacted(*stream) == stream


def test_case_31_halves_of_a_character_meet():
    assert brief(STARTED, *text("m", "\ud83d", "\ude00"))[2] == "TEXT_MESSAGE_CONTENT 😀"


def test_chunks_are_spelled_out_and_folded():
    chunk = {"type": "TEXT_MESSAGE_CHUNK"}
    stream = [
        STARTED,
        {**chunk, "messageId": "m", "delta": "a"},
        {**chunk, "delta": "b"},
        {**chunk, "delta": "c"},
        FINISHED,
    ]
    assert brief(*stream)[1:4] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT abc", "TEXT_MESSAGE_END"]
    assert brief(*stream[:-1])[1:] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT abc"]


def test_a_chunk_that_continues_nothing_stays_for_whoever_reads_the_stream():
    lost = {"type": "TEXT_MESSAGE_CHUNK", "delta": "a"}
    assert compacted(STARTED, lost, FINISHED) == [STARTED, lost, FINISHED]


def test_a_subclass_of_an_event_is_that_event():
    class Word(TextMessageContentEvent):
        pass

    out = compact(
        [*events(STARTED, opened("m")), Word(message_id="m", delta="a"), Word(message_id="m", delta="b")]
    )
    assert isinstance(out[2], Word)
    assert out[2].delta == "ab"


def test_one_by_one_is_all_at_once():
    for seed in range(200):
        stream = streams.structured(random.Random(seed), chunks=seed % 2 == 0)
        compactor = Compactor()
        out = [each for event in stream for each in compactor.feed(event)]
        held = compactor.close()
        assert out + held == compact(stream)
        assert compactor.close() == []


def test_a_runs_events_come_out_when_it_ends():
    compactor = Compactor()
    stream = events(STARTED, *text("m", "a", "b"), FINISHED)
    assert [len(compactor.feed(event)) for event in stream] == [0, 0, 0, 0, 0, 5]
    assert compactor.extend(stream[:3]) == []
    assert len(compactor.close()) == 3
