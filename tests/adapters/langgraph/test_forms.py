"""Messages that nodes give in other forms: what is told when, and what is not, part by part."""

from __future__ import annotations

import operator
from itertools import count
from typing import Annotated, Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import RetryPolicy
from typing_extensions import TypedDict

from runcast.adapters import RunIds
from runcast.adapters.langgraph import (
    LangGraphAdapter,
    LangGraphCallbacks,
    LangGraphOptions,
    LangGraphTranslator,
)
from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.stream.graph_messages import GraphMessages
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import StreamingModel, say
from tests.adapters.langgraph.scenes.forms import gave, texts
from tests.adapters.langgraph.scenes.state import steps
from tests.adapters.langgraph.stage import Stage
from tests.adapters.langgraph.wide.book import call, model

CALL = {"name": "echo", "args": {}, "id": "c"}


def values(*messages: Any, ns: tuple[str, ...] = ()) -> Any:
    return {"type": "values", "ns": ns, "data": {"messages": list(messages)}}


def told(*parts: Any, **settings: Any) -> list[tuple[str, str]]:
    """(id, text) of every message that these parts tell."""
    translator = LangGraphTranslator(RunIds("t", "r"), **settings)
    events = translator.start()
    for part in parts:
        events += translator.feed(part)
    events += translator.finish()
    assert not verify(events)
    return [(event.message_id, event.delta) for event in events if event.type == "TEXT_MESSAGE_CONTENT"]


def test_what_was_there_at_first_is_history():
    old, new = AIMessage("old", id="a"), AIMessage("new", id="b")
    assert told(values(old), values(old, new), values(old, new)) == [("b", "new")]


def test_history_that_a_reducer_copies_is_no_news():
    old, copy = AIMessage("old", id="a"), AIMessage("old", id="a")
    assert told(values(old), values(copy, AIMessage("new", id="b"))) == [("b", "new")]


@pytest.mark.parametrize(("stored", "restated"), [("[REDACTED]", True), ("a@b.com", False)])
def test_a_result_of_a_broken_run_is_shown_as_the_step_that_ran_again_stored_it(stored: str, restated: bool):
    user, asked = HumanMessage("hi", id="u"), AIMessage("", id="a", tool_calls=[CALL])
    shown = to_agui([user, asked, ToolMessage("a@b.com", id="t", tool_call_id="c")])
    translator = LangGraphTranslator(
        RunIds("t", "r"), shown=shown, known={"u", "a", "t"}, to_messages=to_agui
    )
    events = [*translator.start(), *translator.feed(values(user, asked))]
    events += translator.feed(values(user, asked, ToolMessage(stored, id="t", tool_call_id="c")))
    found = [event.messages for event in events if event.type == "MESSAGES_SNAPSHOT"]
    assert [messages[-1].content for messages in found] == ([stored] if restated else [])


def test_what_the_client_knows_is_not_told():
    assert not told(values(), values(AIMessage("known", id="a")), known={"a"})


def test_a_conversation_that_appears_later_began_empty():
    empty = {"type": "values", "ns": (), "data": {"other": 1}}
    assert told(empty, values(AIMessage("new", id="a"))) == [("a", "new")]


def test_what_the_first_task_was_given_is_history():
    old, new = HumanMessage("old", id="a"), AIMessage("new", id="b")
    task = {"id": "1", "name": "n", "input": {"messages": [old]}, "triggers": ()}
    assert told({"type": "tasks", "ns": (), "data": task}, values(old, new)) == [("b", "new")]


def test_messages_without_an_id_in_a_sliding_window():
    asked, one, two = HumanMessage("hi", id="u"), AIMessage("one"), AIMessage("two")
    window = [values(asked), values(asked, one), values(one, two), values(two, HumanMessage("nobody's"))]
    options = LangGraphOptions(snapshot_on_rewrite=False)
    assert told(*window, options=options) == [("r:said:1", "one"), ("r:said:2", "two")]


def test_a_hidden_agents_forms_stay_hidden():
    call = {"type": "tool_call", "name": "task", "args": {}, "id": "c1"}
    outer = {"id": "1", "name": "tools", "input": [call], "triggers": ()}
    inner = {"id": "2", "name": "n", "input": {"messages": []}, "triggers": ()}
    formed = AIMessage("secret", id="a")
    ns = ("tools:1",)
    parts = [
        values(),
        {"type": "tasks", "ns": (), "data": outer},
        values(ns=ns),
        {"type": "tasks", "ns": ns, "data": inner},
        values(formed, ns=ns),
        values(formed),
    ]
    assert not told(*parts, options=LangGraphOptions(subagents="hidden"))
    assert told(*parts) == [("a", "secret")]


def test_a_graph_inside_may_have_no_conversation():
    assert not told({"type": "values", "ns": ("n:1",), "data": {"other": 1}})


def test_results_come_before_what_follows_them_in_the_state():
    asks = [{"name": "f", "args": {}, "id": key} for key in ("c1", "c2")]
    asking = AIMessage("", id="a", tool_calls=asks)
    second = ToolMessage("second", tool_call_id="c2", id="t2")
    after = AIMessage("after", id="b")
    translator = LangGraphTranslator(RunIds("t", "r"))
    meta = {"langgraph_checkpoint_ns": "n:1"}
    events = translator.start() + translator.feed(values())
    for message in (asking, second):
        events += translator.feed({"type": "messages", "ns": (), "data": (message, meta)})
    events += translator.feed(values(asking, second, after)) + translator.finish()
    assert not verify(events)
    ends = [each.type.value for each in events if each.type in ("TOOL_CALL_RESULT", "TEXT_MESSAGE_END")]
    assert ends[-2:] == ["TOOL_CALL_RESULT", "TEXT_MESSAGE_END"]


def test_a_step_costs_what_it_adds():
    """A history of any length is passed over by identity: no message of it is asked for anything."""

    class Touchy:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was asked for")

    history = [Touchy() for _ in range(1_000)]
    transcript = GraphMessages()
    transcript.values(history)
    new = AIMessage("new", id="a")
    assert not transcript.values([*history, new])
    assert transcript.news == [new]


@pytest.mark.oracle
class Raw(TypedDict):
    messages: Annotated[list[Any], operator.add]


@pytest.mark.parametrize("forms", [["plain"], [("ai", "one"), {"role": "assistant", "content": "x"}]])
@pytest.mark.parametrize("last", [(), ("two",)])
async def test_what_a_reducer_keeps_raw_is_no_message_and_breaks_no_run(
    forms: list[Any], last: tuple[str, ...]
):
    said = count()

    def node(state: Raw) -> dict[str, Any]:
        return {"messages": [*forms, *(AIMessage(text, id=f"m{next(said)}") for text in last)]}

    graph = (
        StateGraph(Raw).add_node("node", node).add_edge(START, "node").compile(checkpointer=InMemorySaver())
    )
    adapter = LangGraphAdapter(graph)
    for turn in ("1", "2"):
        question = UserMessage(id=f"u{turn}", content="hi")
        given = RunAgentInput(thread_id="t", run_id=f"r{turn}", messages=[question], tools=[], context=[])
        events = [event async for event in adapter.run(given)]
        assert events[-1].type == "RUN_FINISHED"
        assert [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"] == list(last)


async def test_a_reply_kept_beside_a_dict_of_its_words(oracle: Any):
    model = StreamingModel(turns=[say("Hello")])

    async def answer(state: MessagesState) -> Any:
        reply = await model.ainvoke(state["messages"])
        return {"messages": [reply, {"role": "assistant", "content": reply.content}]}

    stage = Stage(oracle).play(steps(answer, state=MessagesState))
    await stage.send("hi")
    await stage.holds()


@pytest.mark.oracle
async def test_a_subgraph_that_is_tried_again_begins_anew(oracle: Any):
    attempts = count()

    async def shaky(state: MessagesState) -> Any:
        if not next(attempts):
            raise ValueError("once")
        return {"messages": [("ai", "at last")]}

    inner = steps(shaky, state=MessagesState, checkpointer=None)

    async def call(state: MessagesState) -> Any:
        found = await inner.ainvoke({"messages": [("user", "asked anew")]})
        return {"messages": [("ai", "heard: " + found["messages"][-1].content)]}

    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, retry_on=ValueError)
    builder = StateGraph(MessagesState).add_node("call", call, retry_policy=policy).add_edge(START, "call")
    stage = Stage(oracle).play(builder.compile())
    events = await stage.send("hi")
    said = [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"]
    assert said == ["at last", "heard: at last"]  # no state keeps the first
    assert [text for _, text in texts(stage)] == ["hi", "heard: at last"]


async def test_callbacks_tell_them_at_the_end():
    graph = steps(gave(("ai", "one")), gave(AIMessage("two")), state=MessagesState)
    where: Any = {"configurable": {"thread_id": "t"}}
    for turn in range(2):
        events: list[Any] = []
        callbacks = LangGraphCallbacks(events.append, thread_id="t")
        asked = {"messages": [HumanMessage("hi", id=f"u{turn}")]}
        held = (await graph.ainvoke(asked, {**where, "callbacks": [callbacks]}))["messages"]
        assert await callbacks.aflush(5)
        assert not verify(events)
        heard = [event.message_id for event in events if event.type == "TEXT_MESSAGE_START"]
        assert heard == [message.id for message in held[-2:]]


async def test_a_call_that_was_taken_back_is_not_waited_for(oracle: Any):
    """Else the end names the calls that wait, and clients before 1.0 refuse it."""
    router, worker = model(call("Route", "r1")), model(call("Done", "d1"))

    async def route(state: Any) -> Any:
        await router.ainvoke(state["messages"])
        return {}

    async def work(state: Any) -> Any:
        return {"messages": [await worker.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("route", route).add_node("work", work)
    graph = builder.add_edge(START, "route").add_edge("route", "work").compile(checkpointer=InMemorySaver())
    stage = Stage(oracle).play(graph)
    await stage.send("hi")
    stage.judge(oracle)
    await stage.holds()


@pytest.mark.parametrize("clears", [True, False])
async def test_what_a_node_of_ones_own_rewrites_is_held_until_it_has(clears: bool):
    one = model(say("ra", "w"))

    async def answer(state: Any) -> Any:
        return {"messages": [await one.ainvoke(state["messages"])]}

    def check(state: Any) -> Any:
        return {}

    def clear(state: Any) -> Any:
        return {"messages": [AIMessage("clean", id=state["messages"][-1].id)]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_node("check", check)
    builder.add_node("clear", clear).add_edge(START, "answer").add_edge("answer", "check")
    builder.add_conditional_edges("check", lambda state: "clear" if clears else END, ["clear", END])
    options = LangGraphOptions(hold_text_of={"answer"}, released_by={"clear"})
    stage = Stage().play(builder.compile(checkpointer=InMemorySaver()), options=options)
    for words in ("hi", "again"):
        events = await stage.send(words)
        said = [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"]
        assert said == ["clean" if clears else "raw"]
