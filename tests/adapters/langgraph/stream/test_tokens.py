"""Tokens: the short way of one gives what the long way gives, and each call gets its own."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ag_ui.core import Event, RawEvent
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool

from runcast.adapters import RunIds, translate_sync
from runcast.adapters.langgraph import LangGraphTranslator
from runcast.adapters.langgraph.options import Stream
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.recordings import load, recordings
from tests.adapters.langgraph.scenes.book import agent
from tests.adapters.langgraph.stage import Stage, over_both_streams

INNER = ("tools:t1",)


def parts(rng: random.Random) -> list[Any]:
    """Chunks of three messages, at the root and in a subagent: mostly text, and what ends or interrupts it."""
    call = {"name": "ask", "args": {}, "id": "c1", "type": "tool_call"}
    made: list[Any] = [{"type": "tasks", "ns": (), "data": {"id": "t1", "name": "tools", "input": [call]}}]
    made.append({"type": "tasks", "ns": INNER, "data": {"id": "t2", "name": "model", "input": {}}})
    for _ in range(40):
        ns = rng.choice(((), (), INNER))
        fields: dict[str, Any] = {
            "id": f"m{rng.randrange(2)}{len(ns)}",
            "content": rng.choice(("a", "b ", "")),
        }
        match rng.randrange(12):
            case 0:
                fields["content"] = [{"type": "text", "text": "block"}]
            case 1:
                fields["additional_kwargs"] = {"reasoning_content": "hm"}
            case 2:
                fields["tool_call_chunks"] = [
                    {"name": "add", "args": "{", "id": f"k{rng.random()}", "index": 0}
                ]
            case 3:
                fields["usage_metadata"] = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
            case 4:
                fields["response_metadata"] = {"finish_reason": "stop"}
            case 5:
                fields["chunk_position"] = "last"
            case _:
                pass
        meta = {"langgraph_checkpoint_ns": "|".join((*ns, "model:t2" if ns else "tools:t1"))}
        whole = rng.randrange(30) == 0
        message = AIMessage("whole", id=fields["id"]) if whole else AIMessageChunk(**fields)
        made.append({"type": "messages", "ns": ns, "data": (message, meta)})
    return made


def translated(given: list[Any], *, raw: bool, **settings: Any) -> list[Event]:
    """With `raw`, every part goes the long way."""
    made = LangGraphTranslator(RunIds("t", "r"), raw=raw, shown=[], **settings)
    events = list(translate_sync(given, made))
    return [event for event in events if not isinstance(event, RawEvent)]


@pytest.mark.parametrize("clock", [None, lambda: 7])
def test_the_short_way_of_a_token_is_the_long_way(clock: Any):
    for seed in range(200):
        given = parts(random.Random(seed))
        short, long = (translated(given, raw=raw, clock=clock) for raw in (False, True))
        assert short == long, seed
        assert [each.model_fields_set for each in short] == [each.model_fields_set for each in long]
        assert [each.model_dump_json() for each in short] == [each.model_dump_json() for each in long]


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)
def test_what_was_recorded_is_the_same_by_both_ways(path: Any):
    recording = load(path)
    for run in range(len(recording.runs)):
        given = recording.parts(run)
        assert translated(given, raw=False) == translated(given, raw=True)


@tool
def look(q: str) -> str:
    """Look."""
    return f"found {q}"


@over_both_streams
@pytest.mark.parametrize("again", [False, True], ids=["once", "with each piece"])
async def test_arguments_of_a_subagents_call_that_has_its_callers_id(stream: Stream, again: bool) -> None:
    """Some models count their calls from one, and some servers send the id with each piece."""
    pieces = (piece("look", '{"q":', "c1"), piece(None, '"x"}', "c1" if again else None))
    turns = [[calls(each) for each in pieces], say("below")]
    below = create_agent(StreamingModel(turns=turns), [look], name="below")

    @tool
    async def ask(q: str) -> str:
        """Ask an agent below."""
        found = await below.ainvoke({"messages": [("user", q)]})
        return str(found["messages"][-1].content)

    stage = Stage(stream=stream).play(
        agent([calls(piece("ask", '{"q":"y"}', "c1"))], say("all"), tools=[ask])
    )
    told: dict[str, str] = {}
    for event in await stage.send("hi", messages=stage.input("hi").messages):
        if event.type == "TOOL_CALL_ARGS":
            told[event.tool_call_id] = told.get(event.tool_call_id, "") + event.delta
    assert sorted(told.values()) == ['{"q":"x"}', '{"q":"y"}'], told
