"""What a broken attempt said does not stay: not after a crash, a failure or a stop, and not after a retry in the run.

Every story is played before the official client, which must hold at the end what the graph holds.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from ag_ui.core import RunErrorEvent
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import RetryPolicy, interrupt

from runcast.adapters.langgraph import LangGraphOptions
from runcast.adapters.langgraph.stream.positions import Level, is_done, stops
from runcast.slim.folding.retraction import TAKEN_BACK
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, answering
from tests.adapters.langgraph.scenes.graphs import helper, tasks
from tests.adapters.langgraph.stage import Stage, types
from tests.adapters.langgraph.wide.book import WideStage

pytestmark = pytest.mark.oracle

BROKEN = [AIMessageChunk(content="par"), AIMessageChunk(content="tly"), ConnectionError("net")]


async def cut(stage: Stage, words: str, text: str = "hi") -> list[Any]:
    """A run whose process dies when these words are out: the client has no end."""
    input = stage.input(text)
    events: list[Any] = []
    run = stage.adapter.run(input)
    async for event in run:
        events.append(event)
        if words in (getattr(event, "delta", None) or ""):
            break
    await run.aclose()
    events.append(RunErrorEvent(message="the run was cut short", code="truncated"))  # as a log restores it
    stage.took(input, events)
    return events


def texts(stage: Stage) -> list[str]:
    return [each.get("content") or "" for each in stage.view["messages"] if each["role"] != "user"]


def snapshots(events: list[Any]) -> list[Any]:
    return [event for event in events if event.type == "MESSAGES_SNAPSHOT"]


def slowly(*turns: Any) -> Any:
    return answering(StreamingModel(turns=list(turns), delay=0.001))


async def test_a_crash_in_mid_text(oracle: Any):
    stage = Stage(oracle).play(slowly(say("half ", "of it"), say("the ", "whole")))
    await cut(stage, "half")
    assert texts(stage) == ["half "]
    events = await stage.send()
    assert types(events)[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
    assert texts(stage) == ["the whole"]
    await stage.holds()


async def test_a_failure_in_mid_text(oracle: Any):
    stage = Stage(oracle).play(slowly(BROKEN, say("whole")))
    await stage.send("hi")
    assert texts(stage) == ["partly"]
    await stage.send()
    await stage.holds()


@pytest.mark.parametrize("text", [None, "never mind"])
async def test_a_hard_stop_in_mid_text(oracle: Any, text: str | None):
    stage = Stage(oracle).play(slowly(say("half ", "of it"), say("whole")))
    input, events = stage.input("hi"), []
    async for event in stage.adapter.run(input):
        events.append(event)
        if event.type == "TEXT_MESSAGE_CONTENT":
            await stage.adapter.stop("r1", hard=True)
    stage.took(input, events)
    [torn] = [event for event in events if event.type == "TEXT_MESSAGE_END"]
    assert torn.metadata["runcast"]["discarded"] == "cancelled"
    await stage.send(text)
    assert texts(stage) == ["whole"]
    await stage.holds()


async def test_an_ordinary_turn_restates_nothing(oracle: Any):
    first, second = ([calls(piece("add", '{"a":1,"b":2}', key))] for key in ("c1", "c2"))
    stage = Stage(oracle).play(agent(first, say("three"), second, say("three"), tools=[add]))
    for text in ("hi", "again"):
        assert not snapshots(await stage.send(text))


async def test_a_call_half_streamed(oracle: Any):
    asked = [calls(piece("add", '{"a":1,', "c1")), calls(piece(None, '"b":2}', None))]
    broken = [asked[0], ConnectionError("net")]
    stage = Stage(oracle).play(agent(broken, asked, say("three"), tools=[add]))
    await stage.send("hi")
    await stage.send()
    assert stage.runs[-1][-1].outcome.pending_tool_call_ids is None
    await stage.holds()


def branches(*, fails: bool = True) -> Any:
    """Two at once: one done, one that breaks off in its first attempt."""
    good, bad = StreamingModel(turns=[say("done")]), StreamingModel(turns=[BROKEN, say("whole")], delay=0.02)

    async def quick(state: MessagesState) -> Any:
        return {"messages": [await good.ainvoke(state["messages"])]}

    async def slow(state: MessagesState) -> Any:
        return {"messages": [await bad.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("quick", quick).add_node("slow", slow)
    return builder.add_edge(START, "quick").add_edge(START, "slow").compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("text", [None, "never mind"])
async def test_a_branch_that_was_done_is_told_once(oracle: Any, text: str | None):
    """Who goes on keeps it; LangGraph lets go of it when a new message begins anew."""
    stage = Stage(oracle).play(branches())
    await stage.send("hi")
    assert sorted(texts(stage)) == ["done", "partly"]
    await stage.send(text)
    await stage.holds()
    assert sorted(texts(stage)) == ["done", "whole"]


async def test_a_graph_inside_goes_on_where_it_was(oracle: Any):
    first, second = StreamingModel(turns=[say("first")]), StreamingModel(turns=[BROKEN, say("second")])

    async def one(state: MessagesState) -> Any:
        return {"messages": [await first.ainvoke(state["messages"])]}

    async def two(state: MessagesState) -> Any:
        return {"messages": [await second.ainvoke(state["messages"])]}

    inner = StateGraph(MessagesState).add_node("one", one).add_node("two", two)
    inner = inner.add_edge(START, "one").add_edge("one", "two").compile()
    builder = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    stage = Stage(oracle).play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    assert texts(stage) == ["first", "partly"]
    await stage.send()
    assert texts(stage) == ["first", "second"]
    await stage.holds()


async def test_what_was_said_before_a_question_is_not_said_twice(oracle: Any):
    model = StreamingModel(turns=[say("let me ask"), say("let me ask")])

    async def asks(state: MessagesState) -> Any:
        said = await model.ainvoke(state["messages"])
        interrupt("Sure?")
        return {"messages": [said]}

    builder = StateGraph(MessagesState).add_node("asks", asks).add_edge(START, "asks")
    stage = Stage(oracle).play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    [asked] = stage.runs[0][-1].outcome.interrupts
    await stage.answer((asked.id, "yes"))
    assert texts(stage) == ["let me ask"]
    await stage.holds()


async def test_a_draft_that_no_state_holds_is_taken_back(oracle: Any):
    """The conversation is the root state's, also behind a node that is done and a run that failed."""
    draft, answer = StreamingModel(turns=[say("draft")]), StreamingModel(turns=[BROKEN, say("whole")])

    async def drafts(state: MessagesState) -> Any:
        await draft.ainvoke(state["messages"])
        return {}

    async def answers(state: MessagesState) -> Any:
        return {"messages": [await answer.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("drafts", drafts).add_node("answers", answers)
    builder.add_edge(START, "drafts").add_edge("drafts", "answers")
    stage = Stage(oracle).play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    await stage.send()
    assert texts(stage) == ["whole"]
    await stage.holds()


async def test_a_retry_is_told_when_it_begins(oracle: Any):
    gate = asyncio.Event()

    class Gated(StreamingModel):
        async def _astream(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
        ) -> Any:
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                yield chunk
                if chunk.text == "who":
                    await asyncio.wait_for(gate.wait(), 60)

    policy = RetryPolicy(initial_interval=0.01, jitter=False)
    model = Gated(turns=[BROKEN, say("who", "le")])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer, retry_policy=policy)
    stage = Stage(oracle).play(builder.add_edge(START, "answer").compile(checkpointer=InMemorySaver()))
    input, events = stage.input("hi"), []
    async for event in stage.adapter.run(input):
        events.append(event)
        if getattr(event, "delta", None) == "who":  # the node is at work, and the retry was told
            attempts = [each.metadata["runcast"]["attempt"] for each in events if each.type == "STEP_STARTED"]
            assert attempts == [1, 2]
            assert len(snapshots(events)) == 1
            gate.set()
    stage.took(input, events)
    assert texts(stage) == ["whole"]
    await stage.holds()


async def test_a_call_of_a_broken_attempt_is_made_anew_by_the_retry(oracle: Any):
    """Under the same id, as a provider may have it: it waits for its result again, and its order is its own."""
    broken = [calls(piece("add", '{"a":1,', "c1")), ConnectionError("net")]
    model = StreamingModel(turns=[broken, [calls(piece("add", '{"a":1,"b":2}', "c1"))], say("three")])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    policy = RetryPolicy(initial_interval=0.01, jitter=False)
    builder = StateGraph(MessagesState).add_node("answer", answer, retry_policy=policy)
    builder.add_node("tools", ToolNode([add])).add_edge(START, "answer").add_edge("tools", "answer")
    builder.add_conditional_edges("answer", tools_condition)
    stage = Stage(oracle).play(builder.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    results = [event.content for event in events if event.type == "TOOL_CALL_RESULT"]
    assert results == [TAKEN_BACK, "3"]
    assert events[-1].outcome.pending_tool_call_ids is None
    await stage.holds()


async def test_what_a_graph_inside_had_not_stored_is_said_again(oracle: Any):
    """It broke in its first step: of its own checkpoints there is none that says what is done."""
    model = StreamingModel(turns=[BROKEN, say("whole")])

    async def one(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    inner = StateGraph(MessagesState).add_node("one", one).add_edge(START, "one").compile(checkpointer=False)
    builder = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    stage = Stage(oracle).play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    assert texts(stage) == ["partly"]
    await stage.send()
    assert texts(stage) == ["whole"]
    await stage.holds()


async def test_what_a_forgotten_thread_is_not_told_again_goes(oracle: Any):
    """Its checkpoints are pruned: the graph is told what the snapshot remembers, and the client shows no more."""
    stage = Stage(oracle).play(slowly(say("one"), BROKEN, say("two")))
    await stage.send("hi")
    await stage.send("more")
    assert texts(stage) == ["one", "partly"]
    history = stage.input().messages
    whole = [message for message in history if message.content != "partly"]
    point = SimpleNamespace(messages=whole, history=history, state={}, interrupts=[], framework={})
    await stage.graph.checkpointer.adelete_thread("t")
    input = stage.input("and?")
    stage.took(input, [event async for event in stage.adapter.run(input, resume=point)])
    assert texts(stage) == ["one", "two"]


def test_of_a_graph_whose_progress_nobody_knows_nothing_is_done():
    way = stops("tools:t1|model:m1#3.1")
    assert way == [("", 3, "t1"), ("tools:t1", 1, "m1")]
    assert not is_done(way, {})
    assert not is_done(way, {"": Level(2)})
    assert is_done(way, {"": Level(3)})
    assert is_done(way, {"": Level(2), "tools:t1": Level(0, {"m1"})})


async def test_what_a_subagent_in_a_tool_had_half_said_goes(oracle: Any):
    """The tool runs again, and its agent with it; what is its own is found by the task it was called in."""
    stage = Stage(oracle).play(agent([tasks("x")], say("done"), tools=[helper(BROKEN, say("whole"))]))
    await stage.send("hi")
    assert texts(stage) == ["", "partly"]
    await stage.send()
    assert sorted(texts(stage)) == ["", "done", "whole", "whole"]
    owned = [each["content"] for each in stage.view["messages"] if each.get("subagentRunId")]
    assert owned == ["whole"]
    await stage.holds()


@pytest.mark.parametrize("text", [None, "never mind"])
async def test_a_result_that_was_told_and_not_kept(oracle: Any, text: str | None):
    """The checkpointer's last word is the call: a tool ran, and the process died before that was written.

    Who goes on has the tool run again. A new message lets go of the step, and the call has the result that was told.
    """

    class Dying(InMemorySaver):
        dead = False

        async def aput(self, config: Any, *given: Any) -> Any:
            return config if self.dead else await super().aput(config, *given)

        async def aput_writes(self, *given: Any) -> None:
            if not self.dead:
                await super().aput_writes(*given)

    saver, ran = Dying(), list[str]()

    @tool
    async def charge(amount: int) -> str:
        """Charge the customer."""
        ran.append(f"charge {amount}")
        saver.dead = len(ran) == 1
        return f"charged {amount}, {len(ran)}"

    asked = [calls(piece("charge", '{"amount":5}', "c1"))]
    graph = agent(asked, say("done"), tools=[charge], checkpointer=saver)
    stage = Stage(oracle).play(graph, options=LangGraphOptions(durability="sync"))
    input, events = stage.input("hi"), list[Any]()
    run = stage.adapter.run(input)
    async for event in run:
        events.append(event)
        if event.type == "TOOL_CALL_RESULT":
            break
    await run.aclose()
    stage.took(input, [*events, RunErrorEvent(message="the run was cut short", code="truncated")])
    assert texts(stage) == ["", "charged 5, 1"]
    saver.dead = False
    told = await stage.send(text)
    assert len(snapshots(told)) == (text is None)
    assert texts(stage) == ["", f"charged 5, {1 if text else 2}", "done"]
    await stage.holds()


async def test_what_the_log_lost_is_shown_before_the_message_that_follows(oracle: Any):
    """The checkpointer has the call, and the process died before the log had it: the graph has the new message behind it."""
    entered = asyncio.Event()

    @tool
    async def waits() -> str:
        """Wait."""
        entered.set()
        await asyncio.Event().wait()
        return "never"

    graph = agent(
        [calls(piece("waits", "{}", "c1"))], say("done"), tools=[waits], checkpointer=InMemorySaver()
    )
    stage = Stage(oracle).play(graph, options=LangGraphOptions(durability="sync"))
    input, events = stage.input("hi"), list[Any]()

    async def plays() -> None:
        async for event in stage.adapter.run(input):
            events.append(event)

    playing = asyncio.ensure_future(plays())
    async with asyncio.timeout(60):
        await entered.wait()
    playing.cancel()
    await asyncio.wait({playing})
    at = next(at for at, event in enumerate(events) if event.type == "STEP_STARTED")
    stage.took(input, [*events[: at + 1], RunErrorEvent(message="the run was cut short", code="truncated")])
    await stage.send("never mind")
    assert [each["role"] for each in stage.view["messages"]] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    await stage.holds()


async def test_a_result_of_a_subagent_that_the_thread_knows_nothing_of_is_no_news(oracle: Any):
    """Its call is in no state of the thread: the client holds it because the graph said so."""
    inner = [calls(piece("add", '{"a":1,"b":2}', "c9"))]
    delegate = helper(inner, BROKEN, inner, say("whole"), tools=[add])
    stage = Stage(oracle).play(agent([tasks("x")], say("done"), tools=[delegate]))
    await stage.send("hi")
    assert texts(stage) == ["", "", "3", "partly"]
    await stage.send()
    assert stage.runs[-1][-1].type == "RUN_FINISHED"
    owned = [each.get("content") or "" for each in stage.view["messages"] if each.get("subagentRunId")]
    assert owned[-1] == "whole"
    assert "partly" not in owned
    await stage.holds()


async def test_a_run_goes_on_behind_a_message_that_the_graph_has_under_another_id(oracle: Any):
    """A node's copy of its model's answer: the client keeps the streamed id, and the thread is the same."""
    model = StreamingModel(turns=[say("shall ", "I?")], heard=[])

    async def speak(state: Any) -> Any:
        return {"messages": [AIMessage((await model.ainvoke(state["messages"])).text)]}

    async def ask(state: Any) -> Any:
        return {"messages": [AIMessage(f"so {interrupt('really?')}")]}

    builder = StateGraph(MessagesState).add_node("speak", speak).add_node("again", speak).add_node("ask", ask)
    builder.add_edge(START, "speak").add_edge("speak", "again").add_edge("again", "ask")
    stage = WideStage(oracle)
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    stage.decision = "be it"
    await stage.turn("hi")
    stage.until = 1
    await stage.turn("yes")
    await stage.go_on()
    while stage.interrupts:  # the answer was lost with its process
        await stage.turn("yes")
    assert texts(stage) == ["shall I?", "shall I?", "so be it"]
    assert len(model.heard) == 2
