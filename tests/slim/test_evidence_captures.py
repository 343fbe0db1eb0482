"""Real runs of both frameworks are exported: what they said, with what the artifact cannot hold named beside it."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from google.adk.agents import LlmAgent
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.adk import AdkAdapter, AdkOptions
from runcast.adapters.langgraph import LangGraphAdapter
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
