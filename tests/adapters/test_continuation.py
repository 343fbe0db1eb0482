"""The words of a decision, and the criteria that hold."""

from __future__ import annotations

from runcast.adapters.continuation import continuation


def test_only_criteria_with_a_reason_hold():
    assert continuation(True, "graph", None, next=["a", "b"], limit=()) == {
        "should_continue": True,
        "resolved_by": "graph",
        "evaluations": [{"criterion": "next", "decision": "continue", "reason": "a, b"}],
    }


def test_a_decision_without_criteria_has_no_evaluations():
    assert continuation(False, "adk", "completed") == {
        "should_continue": False,
        "resolved_by": "adk",
        "stop_reason": "completed",
    }
