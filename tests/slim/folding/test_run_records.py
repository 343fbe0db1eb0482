"""What a fold says of runs: how they ended, what they asked, and which calls they left unanswered."""

from __future__ import annotations

from runcast.slim.folding.conversation import Conversation
from tests.slim.scripts import FINISHED, STARTED, call, folded, result


def test_runs_are_told_one_by_one():
    conversation = folded(
        {**STARTED, "parentRunId": "r0"},
        {**FINISHED, "result": {"n": 1}, "usage": [{"inputTokens": 1}]},
        {**STARTED, "runId": "r2"},
        {**FINISHED, "runId": "r2", "outcome": {"type": "cancelled"}},
        {**STARTED, "runId": "r3"},
        {"type": "RUN_ERROR", "message": "broke"},
        {**STARTED, "runId": "r4"},
    )
    assert [(run.run_id, run.status) for run in conversation.runs] == [
        ("r", "success"), ("r2", "cancelled"), ("r3", "failed"), ("r4", "running"),
    ]  # fmt: skip
    first = conversation.runs[0]
    assert (first.parent_run_id, first.result, first.pending_tool_call_ids) == ("r0", {"n": 1}, ())
    assert first.usage is not None
    assert first.usage[0].input_tokens == 1


def test_case_51_an_error_behind_the_end_fails_the_run():
    conversation = folded(STARTED, FINISHED, {"type": "RUN_ERROR", "message": "broke"})
    (run,) = conversation.runs
    assert (run.outcome, run.status) == ("success", "failed")


def test_an_error_without_a_run_is_a_run_without_a_name():
    (run,) = folded({"type": "RUN_ERROR", "message": "broke"}).runs
    assert (run.run_id, run.status) == (None, "failed")


def test_case_49_interrupts_wait_until_a_run_succeeds_or_is_cancelled():
    asks = {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "approval"}]}}
    conversation = folded(STARTED, asks)
    assert [each.id for each in conversation.pending_interrupts] == ["i1"]
    assert conversation.runs[0].status == "interrupt"
    folded(STARTED, {"type": "RUN_ERROR", "message": "broke"}, into=conversation)
    assert [each.id for each in conversation.pending_interrupts] == ["i1"]
    folded(STARTED, {**FINISHED, "outcome": {"type": "cancelled"}}, into=conversation)
    assert conversation.pending_interrupts == []


def test_case_48_unanswered_calls_are_those_of_the_run():
    conversation = folded(STARTED, *call("c1"), *call("c2"), result("t1", "c1"))
    assert conversation.pending_tool_call_ids == ["c2"]
    assert [each.id for each in conversation.pending_tool_calls] == ["c2"]
    folded({**FINISHED, "outcome": {"type": "success", "pendingToolCallIds": ["c9"]}}, into=conversation)
    assert conversation.pending_tool_call_ids == ["c9"]
    assert conversation.pending_tool_calls == []
    folded({**STARTED, "runId": "r2"}, into=conversation)
    assert conversation.pending_tool_call_ids == []
    assert Conversation().pending_tool_call_ids == []
