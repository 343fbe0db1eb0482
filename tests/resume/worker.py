"""One process of an agent's life: takes up a thread from its snapshot alone, works, and dies where it is told to.

`life` plays one run and writes the snapshot of its first `cut` events; everything the next process may know is that
file, and what the framework keeps for itself. Beside it, for the test to read: what tools did, what the model was shown,
and the run's events.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ag_ui.core import Interrupt, ResumeEntry, RunAgentInput, UserMessage

from runcast.adapters import Adapter
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.agent_state import AgentState, StateBuilder
from runcast.slim.snapshots.serializer import SlimSerializer
from runcast.slim.wire.codec import encode

SERIALIZER = SlimSerializer(redactor=Redactor())
FRAMEWORKS = {
    "langgraph": "tests.resume.langgraph_agent",
    "graph": "tests.resume.plain_graph",  # no checkpointer: the snapshot is all there is
    "adk": "tests.resume.adk_agent",
    "adk-approval": "tests.resume.adk_approval",
}
QUESTION = "please charge 5 for ada"
THANKS = "thank you"

Opened = AbstractAsyncContextManager[Adapter]
Make = Callable[[Path], Opened]


def did(folder: Path, what: str) -> None:
    """Note what a tool has done, where no crash takes it back."""
    with (folder / "done.txt").open("a") as file:
        file.write(what + "\n")


def shown(folder: Path, messages: list[Any]) -> None:
    """Note what a model was shown."""
    with (folder / "shown.jsonl").open("a") as file:
        file.write(json.dumps(messages) + "\n")


def given(
    state: AgentState | None, answer: Callable[[Interrupt], Any]
) -> tuple[RunAgentInput, AgentState | None]:
    """What a host sends: a question first, then answers, or the wish to go on, or at the end another question."""
    run_id = "r1" if state is None or state.run_id is None else f"r{int(state.run_id[1:]) + 1}"
    fields: dict[str, Any] = {
        "thread_id": "t",
        "run_id": run_id,
        "state": {},
        "tools": [],
        "context": [],
        "forwarded_props": {},
    }
    if state is None:
        return RunAgentInput(messages=[UserMessage(id="u1", content=QUESTION)], **fields), None
    if state.status == "completed":
        return RunAgentInput(
            messages=[*state.messages, UserMessage(id="u2", content=THANKS)], **fields
        ), state
    if state.interrupts:
        fields["resume"] = [
            ResumeEntry(interrupt_id=each.id, status="resolved", payload=answer(each))
            for each in state.interrupts
        ]
        return RunAgentInput(messages=state.messages, **fields), state
    return RunAgentInput(messages=state.messages, **fields), replace(
        state, framework={**state.framework, "unfinished": True}
    )


async def play(make: Make, answer: Callable[[Interrupt], Any], folder: Path, cut: int) -> None:
    kept = folder / "snapshot.json"
    state = SERIALIZER.deserialize(json.loads(kept.read_bytes())) if kept.exists() else None
    input, point = given(state, answer)
    builder = StateBuilder("agent", base=state)
    async with make(folder) as adapter:
        count = 0
        async for event in _events(adapter, input, point):
            builder.feed(event)
            count += 1
            with (folder / "events.jsonl").open("ab") as file:
                file.write(encode(event) + b"\n")
            if count == cut:
                break
        kept.write_text(json.dumps(SERIALIZER.serialize(builder.state())))
        if count == cut:
            os._exit(7)  # as a process dies that nobody asked


def _events(adapter: Adapter, input: RunAgentInput, point: AgentState | None) -> AsyncIterator[Any]:
    return adapter.run(input, resume=point)


def life(framework: str, folder: Path, cut: int) -> None:
    """All that one process does."""
    agent = importlib.import_module(FRAMEWORKS[framework])
    asyncio.run(play(agent.opened, agent.answer, folder, cut))
