"""Scenes of models that speak: text in every cut, ids that drift, models side by side, models that break."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy, Send
from typing_extensions import TypedDict

from runcast.slim.folding.conversation import fold
from tests.adapters.langgraph.fakes import FakeModel, StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import answering, chat, scene
from tests.adapters.langgraph.stage import Stage, types

TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]


@scene("01_plain_text")
async def plain_text(stage: Stage) -> None:
    stage.play(chat(say("Hel", "lo", usage=(3, 2)), say("again")))
    events = await stage.send("hi")
    assert types(events) == ["RUN_STARTED", TEXT[0], TEXT[1], TEXT[1], TEXT[2], "RUN_FINISHED"]
    await stage.holds()
    await stage.send("once more")
    await stage.holds()


@scene("02_text_in_the_last_chunk")
async def text_in_the_last_chunk(stage: Stage) -> None:
    last = AIMessageChunk(content="lo", response_metadata={"finish_reason": "STOP"}, chunk_position="last")
    stage.play(chat([AIMessageChunk(content="Hel"), last]))
    await stage.send("hi")
    await stage.holds()


@scene("03_empty_deltas")
async def empty_deltas(stage: Stage) -> None:
    stage.play(chat(say("", "Hel", "", "", "lo", ""), say("")))
    assert types(await stage.send("hi")).count(TEXT[1]) == 2
    await stage.send("and nothing?")
    await stage.holds()


@scene("04_several_text_blocks_in_one_chunk")
async def several_text_blocks(stage: Stage) -> None:
    blocks: list[Any] = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}, "C"]
    stage.play(chat([AIMessageChunk(content=blocks)]))
    await stage.send("hi")
    await stage.holds()


@scene("05_blocks_by_index_over_chunks")
async def blocks_by_index(stage: Stage) -> None:
    told = [("A", 0), ("a", 0), ("B", 1), ("b", 1)]
    turn = [AIMessageChunk(content=[{"type": "text", "text": text, "index": at}]) for text, at in told]
    stage.play(chat(turn))
    await stage.send("hi")
    await stage.holds()


@scene("26_model_that_does_not_stream")
async def does_not_stream(stage: Stage) -> None:
    turn = [
        AIMessageChunk(
            content="whole", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        )
    ]
    stage.play(chat(turn, streams=False))
    events = await stage.send("hi")
    assert events[-1].usage[0].total_tokens == 3
    await stage.holds()


@scene("27_static_message")
async def static_message(stage: Stage) -> None:
    async def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage("fixed")]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    await stage.holds()


@scene("28_nostream")
async def nostream(stage: Stage) -> None:
    hidden = StreamingModel(turns=[say("se", "cret")]).with_config(tags=["nostream"])
    loud = StreamingModel(turns=[say("o", "pen")])

    async def answer(state: MessagesState) -> Any:
        await hidden.ainvoke(state["messages"])
        return {"messages": [await loud.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    assert not [event for event in events if getattr(event, "delta", "") in ("se", "cret", "secret")]
    await stage.holds()


@scene("29_two_models_in_one_node")
async def two_models_in_one_node(stage: Stage) -> None:
    model = StreamingModel(turns=[say("fi", "rst"), say("sec", "ond")])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"]), await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    await stage.holds()


@scene("30_two_models_at_once_in_one_node")
async def two_models_at_once(stage: Stage) -> None:
    one = StreamingModel(turns=[[AIMessageChunk(content="", id="resp_1"), *say("a", "b", "c")]])
    two = StreamingModel(turns=[[AIMessageChunk(content="", id="resp_2"), *say("x", "y", "z")]])

    async def answer(state: MessagesState) -> Any:
        return {"messages": await asyncio.gather(one.ainvoke("?"), two.ainvoke("?"))}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    await stage.holds()


def branches(*turns: Any) -> Any:
    """As many nodes as turns, all at once."""
    builder = StateGraph(MessagesState)
    for at, turn in enumerate(turns):
        model = StreamingModel(turns=[turn])

        async def answer(state: MessagesState, model: StreamingModel = model) -> Any:
            return {"messages": [await model.ainvoke(state["messages"])]}

        builder.add_node(f"n{at}", answer).add_edge(START, f"n{at}")
    return builder.compile(checkpointer=InMemorySaver())


@scene("31_parallel_branches_with_text")
async def parallel_text(stage: Stage) -> None:
    stage.play(branches(say("a", "b", "c"), say("x", "y", "z"), say("1", "2")))
    await stage.send("hi")
    await stage.holds()


@scene("32_parallel_branches_with_calls")
async def parallel_calls(stage: Stage) -> None:
    turns = [[calls(piece("add", '{"a":', f"c{n}")), calls(piece(args=f'{n},"b":1}}'))] for n in range(3)]
    stage.play(branches(*turns))
    events = await stage.send("hi")
    assert sorted(fold(events).pending_tool_call_ids)[0] == "c0"
    await stage.holds()


class Topics(TypedDict):
    topics: Annotated[list[str], operator.add]


@scene("33_send_fan_out")
async def send_fan_out(stage: Stage) -> None:
    model = StreamingModel(turns=[say("j1"), say("j2"), say("j3")])

    async def joke(state: Any) -> Any:
        return {"topics": [(await model.ainvoke(state["topic"])).content]}

    builder = StateGraph(Topics).add_node("joke", joke)
    builder.add_conditional_edges(START, lambda state: [Send("joke", {"topic": each}) for each in "abc"])
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    events = await stage.send(None, state={})
    names = types(events, steps=True)
    assert names.count("STEP_STARTED") == names.count("STEP_FINISHED") == 1
    assert names.count(TEXT[0]) == 3
    assert len(stage.view["state"]["topics"]) == 3 if stage.oracle else True


@scene("34_model_error_mid_text")
async def error_mid_text(stage: Stage) -> None:
    stage.play(chat([AIMessageChunk(content="par"), ConnectionError("the net")]))
    events = await stage.send("hi")
    assert types(events)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert "the net" in events[-1].message


@scene("34_model_error_mid_args")
async def error_mid_args(stage: Stage) -> None:
    first = say("fine", usage=(5, 6))
    broken = [calls(piece("add", '{"a":', "c1")), ConnectionError("the net")]
    model = StreamingModel(turns=[first, broken])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"]), await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    assert types(events)[-2:] == ["TOOL_CALL_END", "RUN_ERROR"]
    assert events[-1].usage[0].total_tokens == 11


@scene("35_retry_after_partial_tokens")
async def retry(stage: Stage) -> None:
    model = StreamingModel(turns=[[AIMessageChunk(content="par"), ConnectionError("net")], say("whole")])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    policy = RetryPolicy(initial_interval=0.01, jitter=False)
    builder = (
        StateGraph(MessagesState).add_node("answer", answer, retry_policy=policy).add_edge(START, "answer")
    )
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    torn = next(event for event in events if event.type == TEXT[2])
    assert torn.metadata["runcast"]["discarded"] == "model_error"
    attempts = [event.metadata["runcast"]["attempt"] for event in events if event.type == "STEP_STARTED"]
    assert attempts == [1, 2]
    await stage.holds()


@scene("48_provider_id_first")
async def id_first(stage: Stage) -> None:
    stage.play(chat([AIMessageChunk(content="", id="resp_1"), *say("a", "b")], say("next")))
    events = await stage.send("hi")
    assert {event.message_id for event in events if hasattr(event, "message_id")} == {"resp_1"}
    await stage.holds()
    await stage.send("more")
    await stage.holds()


@scene("48_provider_id_late")
async def id_late(stage: Stage) -> None:
    stage.play(chat([*say("a", "b"), AIMessageChunk(content="c", id="msg_9")], say("next")))
    events = await stage.send("hi")
    assert len({event.message_id for event in events if hasattr(event, "message_id")}) == 1
    framework = events[-1].metadata["runcast"]["framework"]
    assert list(framework["aliases"].values()) == ["msg_9"]


@scene("48_provider_id_never")
async def id_never(stage: Stage) -> None:
    stage.play(answering(StreamingModel(turns=[say("a", "b")])))
    await stage.send("hi")
    await stage.holds()


@scene("48_node_keeps_it_under_another_id")
async def id_changed_by_node(stage: Stage) -> None:
    model = FakeModel(turns=[say("same words")])

    async def answer(state: MessagesState) -> Any:
        said = await model.ainvoke(state["messages"])
        return {"messages": [AIMessage(said.content, id="mine")]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    assert types(events).count(TEXT[0]) == 1
    assert list(events[-1].metadata["runcast"]["framework"]["aliases"].values()) == ["mine"]
