"""Why a graph goes on or stops: the criteria that all adapters share, at each step and at the run's end."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import tool
from langgraph.types import interrupt

from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, chat
from tests.adapters.langgraph.stage import Stage

ADD = '{"a":1,"b":2}'


@tool
async def asking() -> str:
    """Ask before doing."""
    return f"told {interrupt('Do it?')}"


def decided(events: list[Any]) -> list[list[tuple[str, str, str]]]:
    """The evaluations of each step and of the end."""
    noted = [(event.metadata or {}).get("runcast", {}).get("continuation") for event in events]
    return [
        [(it["criterion"], it["decision"], it["reason"]) for it in each.get("evaluations", [])]
        for each in noted
        if each is not None
    ]


async def test_pending_calls_continue_the_run():
    turn = [calls(piece("add", ADD, "c1", 0), piece("add", ADD, "c2", 1))]
    stage = Stage().play(agent(turn, say("three"), tools=[add]))
    tools, model = ("next", "continue", "tools"), ("next", "continue", "model")
    pending = ("calls_pending", "continue", "add, add")
    assert decided(await stage.send("hi")) == [[pending, tools], [model], [], []]


async def test_a_question_stops_it():
    stage = Stage().play(agent([calls(piece("asking", "{}", "c1"))], say("done"), tools=[asking]))
    stops = [("interrupt", "stop", "interrupt")]
    assert decided(await stage.send("hi"))[1:] == [stops, stops]


async def test_a_limit_of_the_model_stops_it():
    turn = [AIMessageChunk(content="half", response_metadata={"finish_reason": "length"})]
    stage = Stage().play(chat(turn))
    stops = [("limit", "stop", "length")]
    assert decided(await stage.send("hi")) == [stops, stops]


async def test_a_limit_of_the_graph_stops_it():
    turns = [[calls(piece("add", ADD, f"c{number}"))] for number in range(9)]
    stage = Stage().play(agent(*turns, tools=[add]), config={"recursion_limit": 3})
    events = await stage.send("hi")
    assert events[-1].code == "recursion_limit"
    assert decided(events)[-1] == [("limit", "stop", "recursion_limit")]


async def test_tokens_are_noted_where_the_provider_streams_them():
    """Each chunk's tokens add to those before; a provider that reports them at the end has one note there."""
    turn = [
        AIMessageChunk(
            content=text, usage_metadata=UsageMetadata(input_tokens=0, output_tokens=n, total_tokens=n)
        )
        for text, n in (("a", 2), ("b", 3))
    ]
    events = await Stage().play(chat([*turn, AIMessageChunk(content="c")])).send("hi")
    noted = [(it.delta, it.metadata) for it in events if it.type == "TEXT_MESSAGE_CONTENT"]
    assert noted == [
        ("a", {"runcast": {"usage": {"completion": 2}}}),
        ("b", {"runcast": {"usage": {"completion": 5}}}),
        ("c", None),
    ]
