"""Case 37: what both frameworks do, as a watcher sees it; from their recordings, and from the stories they share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event

from runcast.broadcast import BroadcastConfig, Envelope
from tests.adapters.adk.test_contract import PLAYED
from tests.adapters.contract import STORIES
from tests.adapters.langgraph.stage import Stage
from tests.adapters.langgraph.test_contract import GRAPHS, stopped
from tests.broadcast.entries import mapped
from tests.broadcast.envelopes.test_mapper_laws import unbroken
from tests.broadcast.goldens import HERE, TRANSCRIPTS, envelopes, recorded, transcript

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK's own, once a process
ENDINGS = {"completed", "failed", "interrupted", "cancelled"}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_case_37_a_recording_gives_the_transcript_that_was_looked_at(name: str) -> None:
    assert transcript(name) == (HERE / f"{name}.jsonl").read_text("utf-8")


def test_case_37_every_kind_of_run_is_among_the_transcripts() -> None:
    kinds: dict[str, set[str]] = {"langgraph": set(), "adk": set()}
    for name in TRANSCRIPTS:
        for line in (HERE / f"{name}.jsonl").read_text("utf-8").splitlines():
            wire = json.loads(line)
            kinds[name.partition("-")[0]].add(wire["payload"].get("status") or wire["type"])
    shared = {
        "completed",
        "failed",
        "interrupted",
        "agent.custom",
        "agent.subagent.completed",
        "agent.interrupt",
    }
    assert shared <= kinds["langgraph"] & kinds["adk"]
    assert "agent.reasoning.chunk" in kinds["langgraph"] & kinds["adk"]


@pytest.mark.parametrize("path", recorded(), ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_every_recording_is_a_chain_with_one_end_a_run(path: Path) -> None:
    for config in (BroadcastConfig.standard(), BroadcastConfig.debug(), BroadcastConfig.agui()):
        told = envelopes(path, config)
        assert unbroken(told)
        ends = [
            each.execution_id
            for each in told
            if each.type == "agent.status" and each.payload["status"] in ENDINGS
        ]
        assert len(ends) == len(set(ends))
        calls = [each.payload for each in told if each.type.startswith("agent.tool.")]
        assert all(each["tool_call_id"] and each["tool_name"] for each in calls)


# ------------------------------------------------------------------- stories

# What one framework knows and the other does not: numbers of tokens, who decided, why a model stopped.
UNEQUAL = {
    "usage",
    "tokens_delta",
    "duration_ms",
    "finish_reason",
    "message_count",
    "available_tools",
    "error_code",
}
# What is named by the framework, or by the agent that plays the story.
NAMED = {"tool_name", "step_name", "message_id", "tool_call_id", "subagent_run_id", "name", "args_summary"}
SAID = {"error_message", "last_response", "chunk", "result_summary", "description", "id"}


def outline(envelope: Envelope) -> tuple[str, dict[str, Any]]:
    """Type and payload without what differs by nature; what is named is there or not."""
    payload = {key: value for key, value in envelope.payload.items() if key not in UNEQUAL}
    for key in NAMED | SAID:
        if key in payload:
            payload[key] = payload[key] is not None
    if "interrupts" in payload:
        payload["interrupts"] = len(payload["interrupts"])
    payload.pop("chunk_index", None)
    return envelope.type, payload


def outlines(run: Iterable[Event]) -> list[tuple[str, dict[str, Any]]]:
    """A run's envelopes in outline, however the model cut its words, and without the framework's own events."""
    told: list[tuple[str, dict[str, Any]]] = []
    for envelope in mapped(run):
        shape = outline(envelope)
        if envelope.type != "agent.custom" and not (
            shape[0] == "agent.stream.chunk" and told and told[-1] == shape
        ):
            told.append(shape)
    return told


async def on_langgraph(story: str) -> list[list[Event]]:
    stage = Stage().play(GRAPHS[story]())
    runs = [await stopped(stage) if story == "cancel" else await stage.send("hi")]
    if len(STORIES[story]) > 1:
        [asked] = runs[0][-1].outcome.interrupts
        runs.append(await stage.answer((asked.id, "yes")))
    return runs


def without_the_nodes_step(run: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """A graph's node around an agent is a step of its own; a workflow's node that is an agent is not.

    That is right on both sides. LangGraph's node is a task around the agent: it has an id, attempts and a place in the
    checkpoint, and may do more than call the agent. ADK's node is the agent itself, whose steps are its turns.
    """
    at = next(n for n, (kind, _) in enumerate(run) if kind == "agent.subagent.started")
    kind, outer = run[at - 1]
    assert (kind, outer.get("subagent_run_id")) == ("agent.step.started", None)
    number = outer["step_number"]
    found: list[tuple[str, dict[str, Any]]] = []
    for kind, payload in run:
        if kind.startswith("agent.step.") and payload["step_number"] == number:
            continue
        shifted = {"step_number": -1} if payload.get("step_number", 0) > number else {}
        shifted |= {"step_count": -1} if payload.get("step_count", 0) > number else {}
        found.append(
            (
                kind,
                {
                    key: value + shifted.get(key, 0) if key in shifted else value
                    for key, value in payload.items()
                },
            )
        )
    return found


@pytest.mark.parametrize("story", STORIES)
async def test_case_37_a_story_gives_the_same_envelopes_on_every_framework(story: str) -> None:
    theirs = [outlines(run) for run in await on_langgraph(story)]
    if story == "subagent":
        theirs = [without_the_nodes_step(run) for run in theirs]
    for play in PLAYED[story]:
        assert [outlines(run) for run in (await play()).runs] == theirs
