"""Scenes of tools: calls in every cut, results in every order and shape."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, echo, scene
from tests.adapters.langgraph.stage import Stage, types

DONE = say("do", "ne")


async def answered(stage: Stage, *turn: Any, tools: Any = (add, echo), options: Any = None) -> list[Any]:
    """One turn that asks, one that ends; the client must hold what the graph holds."""
    stage.play(agent(list(turn), DONE, tools=tools), options=options)
    events = await stage.send("hi")
    await stage.holds()
    return events


@scene("06_args_split")
async def args_split(stage: Stage) -> None:
    chunks = [
        calls(piece("add", "", "c1")),
        *(calls(piece(args=part)) for part in ('{"a"', ": 1, ", '"b": 2}')),
    ]
    await answered(stage, *chunks)


@scene("07_name_and_args_in_one_chunk")
async def one_chunk(stage: Stage) -> None:
    events = await answered(stage, calls(piece("add", '{"a":1,"b":2}', "c1")))
    assert types(events)[1:4] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


@scene("08_whole_call_in_the_last_chunk")
async def last_chunk(stage: Stage) -> None:
    last = calls(
        piece("add", '{"a":1,"b":2}', "c1"),
        content="!",
        response_metadata={"finish_reason": "tool_calls"},
        chunk_position="last",
    )
    events = await answered(stage, *say("well"), last)
    end = next(event for event in events if event.type == "TEXT_MESSAGE_END")
    assert end.metadata["runcast"]["finish_reason"] == "tool_calls"


@scene("09_two_calls_interleaved")
async def interleaved(stage: Stage) -> None:
    await answered(
        stage,
        *(calls(piece("add", "", "c1", 0)), calls(piece("echo", "", "c2", 1))),
        *(calls(piece(args='{"a":1,', index=0)), calls(piece(args='{"text":', index=1))),
        *(calls(piece(args='"b":2}', index=0)), calls(piece(args='"x"}', index=1))),
    )


@scene("10_two_calls_in_one_chunk")
async def two_in_one(stage: Stage) -> None:
    await answered(
        stage, calls(piece("add", '{"a":1,"b":2}', "c1", 0), piece("echo", '{"text":"x"}', "c2", 1))
    )


@scene("11_index_used_again")
async def index_again(stage: Stage) -> None:
    model = StreamingModel(
        turns=[[calls(piece("echo", '{"text":"x"}', "c1", 0)), calls(piece("echo", "{}", "c2", 0))]]
    )

    async def answer(state: MessagesState) -> Any:
        await model.ainvoke(state["messages"])
        return {}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")  # LangChain would merge the two; the client sees what the model said
    started = [event.tool_call_id for event in events if event.type == "TOOL_CALL_START"]
    assert started == ["c1", "c2"]
    assert [event.delta for event in events if event.type == "TOOL_CALL_ARGS"] == ['{"text":"x"}', "{}"]


@scene("12_no_index")
async def no_index(stage: Stage) -> None:
    await answered(
        stage,
        *say("so"),
        calls(piece("add", '{"a":1,"b":2}', "c1", None), piece("echo", '{"text":"x"}', "c2", None)),
        calls(piece("echo", '{"text":"y"}', "c3", None), response_metadata={"finish_reason": "STOP"}),
    )


@scene("13_text_tool_text")
async def text_tool_text(stage: Stage) -> None:
    await answered(stage, *say("be", "fore"), calls(piece("echo", '{"text":"x"}', "c1")), *say(" af", "ter"))


@scene("14_empty_args")
async def empty_args(stage: Stage) -> None:
    await answered(stage, calls(piece("echo", "", "c1", 0), piece("echo", None, "c2", 1)))


@scene("15_invalid_args")
async def invalid_args(stage: Stage) -> None:
    events = await answered(stage, calls(piece("add", "oops, no JSON", "c1")))
    assert [event.delta for event in events if event.type == "TOOL_CALL_ARGS"] == ["oops, no JSON"]


@scene("15_args_cut_short")
async def cut_args(stage: Stage) -> None:
    """LangChain mends what it can; the client sees what the model said, and the graph what was mended."""
    stage.play(agent([calls(piece("add", '{"a": 1, "b": 2', "c1"))], DONE, tools=[add]))
    events = await stage.send("hi")
    assert [event.delta for event in events if event.type == "TOOL_CALL_ARGS"] == ['{"a": 1, "b": 2']
    assert next(event.content for event in events if event.type == "TOOL_CALL_RESULT") == "3"


@tool
async def slow(text: str) -> str:
    """Take your time."""
    await asyncio.sleep(0.03)
    return text


def loop(*turns: Any, tools: Any, **settings: Any) -> Any:
    """A model and a ToolNode, by hand."""
    model = StreamingModel(turns=list(turns))

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = (
        StateGraph(MessagesState).add_node("answer", answer).add_node("tools", ToolNode(tools, **settings))
    )
    builder.add_edge(START, "answer").add_conditional_edges("answer", tools_condition).add_edge(
        "tools", "answer"
    )
    return builder.compile(checkpointer=InMemorySaver())


OUT_OF_ORDER = calls(piece("slow", '{"text":"1"}', "c1", 0), piece("echo", '{"text":"2"}', "c2", 1))


@scene("16_results_out_of_order_in_a_tool_node")
async def out_of_order_node(stage: Stage) -> None:
    stage.play(loop([OUT_OF_ORDER], DONE, tools=[slow, echo]))
    await stage.send("hi")
    await stage.holds()


@scene("16_results_out_of_order_in_an_agent")
async def out_of_order_agent(stage: Stage) -> None:
    await answered(stage, OUT_OF_ORDER, tools=(slow, echo))


@tool
async def fragile(text: str = "") -> str:
    """Break."""
    raise ValueError("broken glass")


@scene("17_handled_tool_error")
async def handled_error(stage: Stage) -> None:
    stage.play(loop([calls(piece("fragile", "{}", "c1"))], DONE, tools=[fragile], handle_tool_errors=True))
    events = await stage.send("hi")
    result = next(event for event in events if event.type == "TOOL_CALL_RESULT")
    assert result.metadata["runcast"]["error"] is True
    step = [event for event in events if event.type == "STEP_FINISHED"][1]
    assert step.metadata["runcast"]["errors"] == 1
    await stage.holds()


@scene("18_unhandled_tool_error")
async def unhandled_error(stage: Stage) -> None:
    asks = [
        calls(
            piece("fragile", "{}", "c1"),
            usage_metadata={"input_tokens": 4, "output_tokens": 1, "total_tokens": 5},
        )
    ]
    stage.play(loop(asks, DONE, tools=[fragile], handle_tool_errors=False))
    events = await stage.send("hi")
    assert events[-1].type == "RUN_ERROR"
    assert events[-1].usage[0].total_tokens == 5
    assert "STEP_FINISHED" in types(events, steps=True)[-2]


@tool
async def commanding(runtime: ToolRuntime) -> Command[Any]:
    """Answer through a Command."""
    answer = ToolMessage("by command", tool_call_id=runtime.tool_call_id, name="commanding")
    return Command(update={"messages": [answer]})


@tool
async def listing() -> Any:
    """Answer with parts."""
    return [{"type": "text", "text": "see"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]


@tool(response_format="content_and_artifact")
async def crafting() -> Any:
    """Answer with an artifact."""
    return "made", {"big": [1, 2, 3]}


@scene("19_command_list_and_artifact")
async def shapes_of_results(stage: Stage) -> None:
    asked = calls(
        *(piece(name, "{}", f"c{n}", n) for n, name in enumerate(("commanding", "listing", "crafting")))
    )
    events = await answered(stage, asked, tools=(commanding, listing, crafting))
    results = [event.content for event in events if event.type == "TOOL_CALL_RESULT"]
    assert results[0] == "by command"
    assert [part.type for part in results[1]] == ["text", "image"]
    assert results[2] == "made"


@tool
async def chatty(runtime: ToolRuntime) -> str:
    """Tell what is going on."""
    for at in range(3):
        runtime.emit_output_delta({"at": at})
    return "told"


@scene("20_output_deltas")
async def output_deltas(stage: Stage) -> None:
    events = await answered(stage, calls(piece("chatty", "{}", "c1")), tools=(chatty,))
    told = [
        event.value
        for event in events
        if event.type == "CUSTOM" and event.name == "langgraph.tool-output-delta"
    ]
    assert told == [{"toolCallId": "c1", "delta": {"at": at}} for at in range(3)]


@scene("20_tool_called_by_a_node")
async def called_by_a_node(stage: Stage) -> None:
    async def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessageChunk(content=str(await add.ainvoke({"a": 1, "b": 2})), id="m1")]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    told = [event.name for event in events if event.type == "CUSTOM"]
    assert told == ["langgraph.tool-started", "langgraph.tool-finished"]


@scene("69_one_call_id_in_two_messages")
async def repeated_call_id(stage: Stage) -> None:
    first, second = calls(piece("add", '{"a":1,"b":2}', "c1")), calls(piece("add", '{"a":3,"b":4}', "c1"))
    turns = ([first], [second], say("done"), [first, AIMessageChunk(content="again")], say("and done"))
    stage.play(agent(*turns, tools=[add]))
    await stage.send("hi")
    await stage.holds()
    await stage.send("again")
    await stage.holds()
