"""A part that breaks the translator costs that part: the run goes on, the stream stays valid, the fault is logged."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from ag_ui.core import CustomEvent, Event, RunAgentInput, StateSnapshotEvent, TextMessageContentEvent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters import RunIds, translate_sync
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphTranslator
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import calls, piece
from tests.adapters.langgraph.recordings import load, recordings

ODD = {"part": "messages", "error": "AttributeError: 'str' object has no attribute 'type'"}
POISON: Any = {"type": "messages", "ns": (), "data": ("no message", {"secret": "sk-1234567890"})}


def part(kind: str, data: Any) -> Any:
    return {"type": kind, "ns": (), "data": data}


def marks(events: list[Event]) -> list[Any]:
    return [
        each.value for each in events if isinstance(each, CustomEvent) and each.name == "runcast.untranslated"
    ]


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)
def test_a_poisoned_part_anywhere_costs_nothing_else(path: Any):
    recording = load(path)
    for run in range(len(recording.runs)):
        whole, parts, error = recording.events(run), recording.parts(run), recording.error(run)
        for at in range(0, len(parts) + 1, max(1, len(parts) // 6)):

            def source(at: int = at, parts: Any = parts, error: Any = error) -> Any:
                yield from (*parts[:at], POISON, *parts[at:])
                if error is not None:
                    raise error

            events = list(translate_sync(source(), recording.translator(run)))
            assert not verify(events)
            assert marks(events) == [ODD]
            kept = [each.type for each in events if not (isinstance(each, CustomEvent) and marks([each]))]
            assert [kind for kind in kept if kind != "STATE_SNAPSHOT" and kind != "STATE_DELTA"] == [
                each.type for each in whole if each.type != "STATE_SNAPSHOT" and each.type != "STATE_DELTA"
            ]


def test_events_that_opened_something_before_the_fault_are_emitted():
    """A node's `predict_state` that is not a list of objects breaks between the call's start and its arguments."""
    chunk = calls(piece("add", '{"a":', "c1"), id="m1")
    end = AIMessageChunk(content="", id="m1", chunk_position="last")
    parts = [part("messages", (chunk, {"predict_state": ["no object"]})), part("messages", (end, {}))]
    events = list(translate_sync(parts, LangGraphTranslator(RunIds("t", "r"))))
    assert not verify(events)
    kinds = [each.type.value for each in events]
    assert kinds == [
        "RUN_STARTED",
        "TOOL_CALL_START",
        "CUSTOM",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "RUN_FINISHED",
    ]
    assert [mark["part"] for mark in marks(events)] == ["messages"]


def test_the_state_is_sent_whole_after_a_fault():
    parts = [part("values", {"a": 1}), POISON, part("values", {"a": 1, "b": 2})]
    events = list(translate_sync(parts, LangGraphTranslator(RunIds("t", "r"))))
    assert [each.snapshot for each in events if isinstance(each, StateSnapshotEvent)] == [
        {"a": 1},
        {"a": 1, "b": 2},
    ]


async def test_the_fault_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture):
    def odd(state: MessagesState) -> Any:
        get_stream_writer()({"runcast.activity": {"id": "sk-1234567890", "type": "PLAN"}})
        return {"messages": [("assistant", "done")]}

    graph = StateGraph(MessagesState).add_node("odd", odd).add_edge(START, "odd").compile()
    input = RunAgentInput(thread_id="t", run_id="r", messages=[], state={}, tools=[], context=[])
    with caplog.at_level(logging.ERROR):
        events = [event async for event in LangGraphAdapter(graph).run(input)]
    [record] = caplog.records
    assert record.exc_info is not None
    assert "could not translate a custom" in record.getMessage()
    assert not verify(events)
    assert marks(events) == [{"part": "custom", "error": "KeyError: 'content'"}]
    assert [each.delta for each in events if isinstance(each, TextMessageContentEvent)] == ["done"]
    assert "sk-1234567890" not in json.dumps([each.model_dump(mode="json") for each in events])


def test_a_stored_message_without_an_id_waits_for_the_state_that_gives_it_one():
    """An agent that was interrupted behind its handover: LangGraph shows its update again, before ids are given."""
    update = {"messages": [AIMessage("I hand over")]}
    shown = {"messages": [HumanMessage("hi", id="u1"), AIMessage("I hand over", id="given")]}
    parts = [
        part("values", {"messages": shown["messages"][:1]}),
        part("updates", {"first": update, "__metadata__": {"cached": True}}),
        part("values", shown),
    ]
    events = list(translate_sync(parts, LangGraphTranslator(RunIds("t", "r"), shown=[])))
    assert marks(events) == []
    assert [each.message_id for each in events if isinstance(each, TextMessageContentEvent)] == ["given"]
    assert not verify(events)
