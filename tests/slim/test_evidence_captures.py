"""Real runs are exported: of both frameworks, and of the official ADK middleware as it was captured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from google.adk.agents import LlmAgent
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.adk import AdkAdapter, AdkOptions
from runcast.adapters.langgraph import LangGraphAdapter
from runcast.slim import decode, fold
from runcast.slim.errors import EvidenceRefused
from runcast.slim.evidence import canonical, collect_evidence, export_evidence
from tests.adapters.adk.fakes import call, calls, llm, text
from tests.slim.contract import held


async def played(adapter: Any) -> list[Any]:
    given = RunAgentInput(
        thread_id="t1", run_id="r1", messages=[UserMessage(id="u1", content="What is it?")],
        state={}, tools=[], context=[], forwarded_props={},
    )  # fmt: skip
    return [event async for event in adapter.run(given)]


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


async def test_an_adk_run_with_its_messages_snapshot():
    script = [calls(call("look", {"q": "x"})), text("It is ", "x.")]
    root = LlmAgent(name="root", model=llm(*script), tools=[look])
    events = await played(AdkAdapter(root, options=AdkOptions(messages_snapshot="end")))
    with pytest.raises(EvidenceRefused, match="other_events"):
        export_evidence(events)
    with pytest.raises(EvidenceRefused, match="blank_content"):
        export_evidence(events, projection="snapshot")
    evidence = collect_evidence(events, projection="snapshot", policy="omit")
    held(evidence.artifact)
    assert [(row["role"], row["content"]) for row in evidence.artifact["messages"]] == [
        ("user", "What is it?"),
        ("tool", '{"found":"x"}'),
        ("assistant", "It is x."),
    ]
    assert [omission.reason for omission in evidence.omissions] == ["blank_content"]
    assert canonical(evidence.artifact) == canonical(
        export_evidence(events, projection="snapshot", policy="omit")
    )


async def test_a_langgraph_run_by_its_named_projection():
    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("It is x.", id="m1")]}

    graph = StateGraph(MessagesState).add_node("model", model).add_edge(START, "model").compile()
    events = await played(LangGraphAdapter(graph))
    with pytest.raises(EvidenceRefused, match="no_snapshot"):
        export_evidence(events, projection="snapshot")
    evidence = collect_evidence(events, projection="fold")
    held(evidence.artifact)
    assert evidence.omissions == ()
    assert evidence.artifact["messages"] == [
        {"id": "u1", "role": "user", "content": "What is it?"},
        {"id": "m1", "role": "assistant", "content": "It is x."},
    ]


# Two runs of ag_ui_adk 0.11.0 with emit_messages_snapshot=True: a tool call and its answer, then a second message.
CAPTURE = Path(__file__).parent / "captures" / "ag_ui_adk_0.11.0.jsonl"
ASKED = ("user", "What is it?")
FOUND = ("tool", '{"found": "x"}')
ANSWERED = ("assistant", "It is x.")
THANKED = [("user", "Thanks!"), ("assistant", "You are welcome.")]


def captured() -> list[Any]:
    return [decode(line) for line in CAPTURE.read_bytes().splitlines()]


def rows(evidence: Any) -> list[tuple[str, str]]:
    return [(row["role"], row["content"]) for row in evidence.artifact["messages"]]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "several_runs"),
        ({"run_id": "r1"}, "other_events"),
        ({"run_id": "r1", "projection": "snapshot"}, "blank_content"),
        ({"run_id": "r1", "projection": "snapshot", "policy": "omit"}, "no_time"),
    ],
)
def test_the_official_middleware_needs_every_choice_by_name(options: dict[str, Any], reason: str):
    with pytest.raises(EvidenceRefused) as refused:
        export_evidence(captured(), **options)
    assert refused.value.reason == reason


def test_the_official_middleware_by_its_own_snapshot():
    given: dict[str, Any] = {"projection": "snapshot", "policy": "omit", "started_at": 0}
    first = collect_evidence(captured(), run_id="r1", **given)
    second = collect_evidence(captured(), run_id="r2", parent_run_id="r1", **given)
    for evidence in (first, second):
        held(evidence.artifact)
        assert [omission.reason for omission in evidence.omissions] == ["blank_content"]
    assert rows(first) == [ASKED, FOUND, ANSWERED]
    assert rows(second) == [ASKED, FOUND, ANSWERED, *THANKED]  # a snapshot holds the thread, not the run
    assert second.artifact["parent_run_id_ref"] == "r1"  # which its events never name


def test_the_official_middleware_folded_moves_its_tool_message():
    """Its tool messages get another id in each snapshot, so a client keeps the result behind the answer."""
    evidence = collect_evidence(captured(), run_id="r2", projection="fold", policy="omit", started_at=0)
    held(evidence.artifact)
    assert rows(evidence) == [ASKED, ANSWERED, FOUND, *THANKED]
    streamed = {event.message_id for event in captured() if event.type.value == "TEXT_MESSAGE_START"}
    assert streamed.isdisjoint(message.id for message in fold(captured()).messages)
