"""What a new message finds in a thread: calls that a stop left open get results, and a run may begin before everything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ag_ui.core import ResumeEntry, RunAgentInput, ToolMessage, UserMessage

from runcast.adapters import InvalidInput
from runcast.adapters.langgraph.intake.plan import (
    STOPPED,
    Plan,
    StoredMessage,
    Thread,
    from_beginning,
    plan,
    with_results,
)
from runcast.adapters.langgraph.options import LangGraphOptions

NEW = UserMessage(id="u2", content="two")
OPEN = Thread(
    [
        StoredMessage("u1", "user"),
        StoredMessage("a1", "assistant", ("c1", "c2", "c3", "c4")),
        StoredMessage("t1", "tool", answers="c1"),
    ],
    unfinished=True,
)


def result(call: str, text: str = "done") -> ToolMessage:
    return ToolMessage(id=f"t-{call}", tool_call_id=call, content=text)


def test_every_open_call_gets_the_result_it_returned_or_the_word_that_it_was_stopped() -> None:
    asked = with_results(Plan("start", [result("c3"), NEW]), OPEN, [result("c2"), NEW])
    assert [(each.id, each.content) for each in (*asked.results, *asked.messages)] == [
        ("t-c2", "done"),  # new input drops it
        ("stopped-c4", STOPPED),
        ("t-c3", "done"),  # the client's own
        ("u2", "two"),
    ]


def test_nothing_is_added_where_no_call_is_dropped() -> None:
    no_calls = Thread([StoredMessage("u1", "user")], unfinished=True)
    over = Thread(OPEN.messages)
    for asked, thread in (
        (Plan("continue"), OPEN),
        (Plan("start"), OPEN),
        (Plan("start", [NEW]), no_calls),
    ):
        assert with_results(asked, thread, [result("c2")]) is asked
    asked = Plan("start", [NEW])
    assert with_results(asked, over, []) is asked


def test_a_first_run_that_was_taken_back_is_forked_before_its_message() -> None:
    given = RunAgentInput(thread_id="t", run_id="r", messages=[NEW], tools=[], context=[])
    assert from_beginning(given, OPEN) == Plan("fork", [NEW], before="u1")
    assert from_beginning(given, Thread()) == Plan("start", [NEW])


def test_a_step_whose_tasks_have_all_returned_is_answered_though_its_thread_looks_finished():
    returned = [result(call) for call in OPEN.messages[1].calls]
    thread = replace(OPEN, messages=OPEN.messages[:2], unfinished=False)
    asked = with_results(Plan("start", [NEW]), thread, returned)
    assert list(asked.results) == returned


def test_where_nothing_is_stored_no_question_is_answered() -> None:
    answer = ResumeEntry(interrupt_id="i1", status="resolved", payload=True)
    given = RunAgentInput(thread_id="t", run_id="r", messages=[], tools=[], context=[], resume=[answer])
    with pytest.raises(InvalidInput, match="the graph has no checkpointer"):
        plan(given, None, LangGraphOptions())
