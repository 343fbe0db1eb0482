"""What a new message finds in a thread: calls that a stop left open get results, and a run may begin before everything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ag_ui.core import AssistantMessage, ResumeEntry, RunAgentInput, ToolMessage, UserMessage

from runcast.adapters import InvalidInput
from runcast.adapters.langgraph.intake.corrections import unkept
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
from runcast.adapters.langgraph.stream.positions import Level

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


def test_a_message_that_a_node_wrote_is_no_news_and_is_not_answered_again() -> None:
    noted = {"runcast.place": "__state__:1#1"}
    wrote = UserMessage(id="w1", content="an e-mail came", metadata=noted)
    verdict = AssistantMessage(id="v1", content="to the post", metadata=noted)
    given = RunAgentInput(thread_id="t", run_id="r", messages=[verdict, wrote], tools=[], context=[])
    empty = Thread(unfinished=True, checkpoint_id="c1")
    assert plan(given, empty, LangGraphOptions()).ask == "continue"
    assert plan(given, replace(empty, unfinished=False), LangGraphOptions()) == Plan("start", [])
    stored = Thread([StoredMessage("w1", "user")], checkpoint_id="c1")
    assert plan(given, stored, LangGraphOptions()) == Plan("start", ())
    own = given.model_copy(update={"messages": [UserMessage(id="w1", content="mine")]})
    assert plan(own, stored, LangGraphOptions()) == Plan("fork", own.messages, before="w1")
    said = given.model_copy(update={"messages": [verdict, NEW]})
    assert plan(said, empty, LangGraphOptions()) == Plan("start", [NEW])


def test_nothing_is_unkept_where_a_reducer_gives_no_ids() -> None:
    noted = {"runcast.place": "n:1#1"}
    verdict = AssistantMessage(id="v1", content="to the post", metadata=noted)
    assert unkept([verdict], {"u1"}, {}, Level(1)) == ["v1"]
    assert unkept([verdict], {"u1", ""}, {}, Level(1)) == []
    assert unkept([verdict], {"u1"}, {}, Level(0)) == []  # its step is not over
    kept = verdict.model_copy(update={"id": "w1"})
    assert unkept([verdict], {"w1"}, {"w1": kept}, Level(1)) == []  # under another id


def test_where_nothing_is_stored_no_question_is_answered() -> None:
    answer = ResumeEntry(interrupt_id="i1", status="resolved", payload=True)
    given = RunAgentInput(thread_id="t", run_id="r", messages=[], tools=[], context=[], resume=[answer])
    with pytest.raises(InvalidInput, match="the graph has no checkpointer"):
        plan(given, None, LangGraphOptions())
