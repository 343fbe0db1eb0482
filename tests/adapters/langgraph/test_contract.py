"""The stories that every framework tells alike, played on LangGraph."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import ResumeEntry, RunAgentInput, ToolMessage, UserMessage
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from runcast.adapters.langgraph import LangGraphOptions
from runcast.adapters.langgraph.options import Stream
from tests.adapters.contract import REFUSALS, STORIES, told
from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, chat
from tests.adapters.langgraph.scenes.reasoning import FORMATS
from tests.adapters.langgraph.stage import Stage, over_both_streams

ADD = '{"a":1,"b":2}'


@tool
async def careful() -> str:
    """Ask before doing."""
    return f"told {interrupt({'message': 'Do it?', 'expires_at': '2001-01-01T00:00:00Z'})}"


@tool
async def asking() -> str:
    """Ask before doing."""
    return f"told {interrupt('Do it?')}"


def handing_over() -> Any:
    """A node, then an agent of its own."""

    async def first(state: MessagesState) -> Any:
        return {}

    helper = agent(say("he", "lped"), checkpointer=None, name="helper")
    builder = StateGraph(MessagesState).add_node("first", first).add_node("helper", helper)
    return builder.add_edge(START, "first").add_edge("first", "helper").compile(checkpointer=InMemorySaver())


GRAPHS: dict[str, Any] = {
    "text": lambda: chat(say("Hel", "lo")),
    "tool": lambda: agent([calls(piece("add", ADD, "c1"))], say("three"), tools=[add]),
    "text and tool": lambda: agent([*say("hm"), calls(piece("add", ADD, "c1"))], say("three"), tools=[add]),
    "parallel tools": lambda: agent(
        [calls(piece("add", ADD, "c1", 0), piece("add", ADD, "c2", 1))], say("three"), tools=[add]
    ),
    "thought then answer": lambda: chat(FORMATS["anthropic"]),
    "interrupt and resume": lambda: agent([calls(piece("asking", "{}", "c1"))], say("done"), tools=[asking]),
    "error in mid text": lambda: chat([AIMessageChunk(content="par"), ConnectionError("net")]),
    "cancel": lambda: chat(say(*"abcdef")),
    "subagent": handing_over,
}


async def stopped(stage: Stage) -> list[Any]:
    events = []
    async for event in stage.adapter.run(stage.input("hi")):
        events.append(event)
        if event.type == "TEXT_MESSAGE_CONTENT":
            await stage.adapter.stop("r1", hard=True)
    return events


@over_both_streams
@pytest.mark.parametrize("story", STORIES)
async def test_a_story_is_told_as_on_every_framework(story: str, stream: Stream):
    stage = Stage(stream=stream).play(GRAPHS[story]())
    runs = [await stopped(stage) if story == "cancel" else await stage.send("hi")]
    if len(STORIES[story]) > 1:
        [asked] = runs[0][-1].outcome.interrupts
        runs.append(await stage.answer((asked.id, "yes")))
    assert [told(event.type.value for event in run) for run in runs] == STORIES[story]


async def wrongly(stage: Stage, refusal: str, waiting: str) -> list[Any]:
    """What the adapter says to this wrong input."""
    match refusal:
        case "new message":
            return await stage.send("never mind")
        case "unknown call":
            stray = ToolMessage(id="tm", tool_call_id="nope", content="x")
            return await stage.send(None, messages=[*stage.input().messages, stray])
        case "unknown role":
            strange = UserMessage.model_construct(id="m", role="wizard", content="hi")
            sent = RunAgentInput.model_construct(thread_id="t", run_id="r9", messages=[strange])
            return [event async for event in stage.adapter.run(sent)]
        case _:
            nobody = refusal in ("no question", "unknown question")
            ids = ["nope"] if nobody else [waiting] * (2 if refusal == "answered twice" else 1)
            entries = [ResumeEntry(interrupt_id=each, status="resolved", payload=1) for each in ids]
            return await stage.send(None, resume=entries)


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_wrong_input_is_refused_in_the_same_words(refusal: str):
    tools = [careful] if refusal == "too late" else [asking]
    asked = [calls(piece(tools[0].name, "{}", "c1"))]
    graph = chat(say("x")) if refusal == "no question" else agent(asked, say("done"), tools=tools)
    stage = Stage().play(graph, options=LangGraphOptions(on_new_message="refuse"))
    await stage.send("hi")
    outcome = stage.runs[0][-1].outcome
    waiting = outcome.interrupts[0].id if outcome.type == "interrupt" else ""
    events = await wrongly(stage, refusal, waiting)
    assert (events[-1].code, events[-1].message) == (
        "invalid_input",
        REFUSALS[refusal].format(waiting=waiting),
    )
