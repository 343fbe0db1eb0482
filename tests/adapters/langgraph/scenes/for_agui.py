"""Scenes of graphs written for AG-UI's own server, or with CopilotKit's SDK: what they read of the client, and show by hand."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.fakes import StreamingModel, say
from tests.adapters.langgraph.scenes.book import scene
from tests.adapters.langgraph.stage import Stage, types

TOOL = {"name": "paint", "description": "Paint it.", "parameters": {"type": "object", "properties": {}}}
BOB = {"description": "user", "value": "Bob"}


class Shared(MessagesState):
    tools: list[Any]
    copilotkit: dict[str, Any]
    recipe: dict[str, Any]


class Working(MessagesState):
    steps: list[str]


def one(node: Any, state: Any) -> Any:
    return (
        StateGraph(state).add_node("work", node).add_edge(START, "work").compile(checkpointer=InMemorySaver())
    )


def texts(events: Any) -> list[str]:
    shown = ("TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS")
    return [event.delta for event in events if event.type in shown]


def deltas(events: Any) -> list[Any]:
    return [each.value for event in events if event.type == "STATE_DELTA" for each in event.delta]


@scene("70_what_a_client_sends_is_in_its_channels")
async def channels(stage: Stage) -> None:
    async def work(state: Shared) -> Any:
        seen = [each["name"] for each in state["tools"]], state["copilotkit"], state.get("recipe")
        return {"messages": [AIMessage(str(seen))]}

    stage.play(one(work, Shared), options=LangGraphOptions(client_config=True))
    for sent in (
        {"tools": [TOOL], "context": [BOB], "state": {"recipe": {"egg": 1}, "tools": ["forged"]}},
        {},
    ):
        events = await stage.send("hi", **sent)
        assert "forged" not in str(events[1:])
    assert [each for run in stage.runs for each in texts(run)] == [
        str((["paint"], {"actions": [TOOL], "context": [BOB]}, {"egg": 1})),
        str(([], {"actions": [], "context": []}, {"egg": 1})),
    ]
    await stage.holds(state={"recipe": {"egg": 1}})


@scene("70_state_by_hand")
async def state_by_hand(stage: Stage) -> None:
    async def work(state: Working, config: RunnableConfig) -> Any:
        for done in (["plan"], ["plan", "bake"]):
            await adispatch_custom_event(
                "manually_emit_state", {**state, "steps": done, "x": 1}, config=config
            )
        await adispatch_custom_event(
            "copilotkit_manually_emit_intermediate_state", {"steps": done}, config=config
        )
        return {"steps": ["served"]}

    stage.play(one(work, Working))
    events = await stage.send("hi")
    assert [each for each in types(events) if each.startswith("STATE")] == [
        "STATE_SNAPSHOT",
        "STATE_DELTA",
        "STATE_DELTA",
    ]
    assert deltas(events)[0] == "bake"
    await stage.holds()
    await stage.send("again")
    await stage.holds()


@scene("70_messages_by_hand")
async def messages_by_hand(stage: Stage) -> None:
    async def work(state: MessagesState, config: RunnableConfig) -> Any:
        for key, words in (("kept", "Half way."), ("lost", "Never mind.")):
            message = {"message": words, "message_id": key, "role": "assistant"}
            await adispatch_custom_event("copilotkit_manually_emit_message", message, config=config)
        for key, args in (("c1", {"at": 1}), ("c2", '{"at": 2}')):
            call = {"name": "look", "id": key, "args": args}
            await adispatch_custom_event("manually_emit_tool_call", call, config=config)
        for name, data in (("manually_emit_message", {"text": "?"}), ("manually_emit_tool_call", None)):
            await adispatch_custom_event(name, data, config=config)
        return {"messages": [AIMessage("Half way.")]}

    stage.play(one(work, MessagesState))
    events = await stage.send("hi")
    assert texts(events) == ["Half way.", "Never mind.", '{"at": 1}', '{"at": 2}']
    odd = [event.name for event in events if event.type == "CUSTOM"]
    assert odd == ["manually_emit_message", "manually_emit_tool_call"]
    if stage.oracle:
        assert [each["id"] for each in stage.view["messages"]] == ["u1", "kept"]


@scene("70_a_model_that_is_not_streamed")
async def not_streamed(stage: Stage) -> None:
    thinking, answering = StreamingModel(turns=[say("in", "ner")]), StreamingModel(turns=[say("out", "er")])

    async def work(state: MessagesState, config: RunnableConfig) -> Any:
        quiet: Any = {"metadata": {"copilotkit:emit-messages": False}}
        await thinking.ainvoke(state["messages"], quiet)
        return {
            "messages": [await answering.ainvoke(state["messages"], {"metadata": {"emit-tool-calls": False}})]
        }

    stage.play(one(work, MessagesState))
    events = await stage.send("hi")
    assert texts(events) == ["outer"]
    await stage.holds()
