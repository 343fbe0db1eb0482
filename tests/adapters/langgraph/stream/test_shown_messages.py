"""The client's view of a run: what stays of a subagent when the root's state is shown anew."""

from __future__ import annotations

from ag_ui.core import AssistantMessage, MessagesSnapshotEvent, UserMessage
from langchain_core.messages import AIMessageChunk

from runcast.adapters import RunIds
from runcast.adapters.langgraph import LangGraphTranslator
from runcast.adapters.langgraph.stream.shown_messages import ShownMessages, Unsettled
from runcast.adapters.langgraph.stream.tool_results import Results
from runcast.adapters.open_blocks import OpenBlocks
from runcast.slim import fold


def test_a_subagents_message_keeps_its_place_behind_the_roots() -> None:
    first, last = UserMessage(id="u1", content="do"), UserMessage(id="u2", content="more")
    inner = AssistantMessage(id="s1", content="done", subagent_run_id="sub")  # type: ignore[call-arg]  # an extra field
    shown = ShownMessages([first, inner, last], Results(OpenBlocks()))
    (event,) = shown.settled(Unsettled(restated=[first, last]))
    assert isinstance(event, MessagesSnapshotEvent)
    assert [message.id for message in event.messages] == ["u1", "s1", "u2"]
    (event,) = shown.settled(Unsettled(restated=[first, last], removed=["s1"]))
    assert isinstance(event, MessagesSnapshotEvent)
    assert [message.id for message in event.messages] == ["u1", "u2"]


def test_what_a_subagent_thinks_stays_its_own() -> None:
    it = LangGraphTranslator(RunIds("t", "r"))
    begun = {"id": "9", "name": "n", "input": {}, "triggers": (), "metadata": {"lc_agent_name": "helper"}}
    thought = [{"type": "reasoning", "reasoning": "hm", "index": 0}]
    events = it.start() + it.feed({"type": "tasks", "ns": ("tools:1",), "data": begun})
    for chunk in (
        AIMessageChunk(content=thought, id="a"),
        AIMessageChunk(content="", id="a", chunk_position="last"),
    ):
        data = (chunk, {"langgraph_checkpoint_ns": "tools:1|n:9"})
        events += it.feed({"type": "messages", "ns": ("tools:1",), "data": data})
    events += it.finish()
    history = fold(events).history
    assert [each.role for each in history] == ["reasoning", "assistant"]
    assert all(each.subagent_run_id for each in history)
