"""A thread goes on in a fresh process, from its snapshot and what the framework keeps, wherever the first one died."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runcast.slim.protocol.verifier import verify
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer
from runcast.slim.wire.codec import decode
from tests.forked import nursery
from tests.resume.worker import THANKS, life

NEVER = 10_000


def work(framework: str, folder: Path, cut: int = NEVER) -> AgentState:
    """One process, up to its end or the cut; gives what its snapshot says."""
    process = nursery().Process(target=life, args=(framework, folder, cut))
    process.start()
    process.join(120)
    assert process.exitcode in (0, 7)
    return SlimSerializer().deserialize(json.loads((folder / "snapshot.json").read_bytes()))


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def events(folder: Path) -> list[Any]:
    return [decode(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def seconds(folder: Path) -> float:
    """What all processes together were heard of."""
    total, since, last = 0, 0, 0
    for event in events(folder):
        if event.type == "RUN_STARTED":
            total += last - since
            since = event.timestamp
        last = event.timestamp
    return (total + last - since) / 1000


def resumed(folder: Path) -> list[str | None]:
    """Where each run said it went on from."""
    started = [event for event in events(folder) if event.type == "RUN_STARTED"]
    return [event.metadata["runcast"].get("resumed_from") for event in started]


def valid(shown: list[Any]) -> bool:
    """Whether a model may be shown this: every call answered right behind it, every answer asked for."""
    waiting: list[str] = []
    for role, said in shown:
        if role == "tool":
            if not waiting or said != waiting.pop(0):
                return False
            continue
        if waiting:
            return False
        waiting = list(said) if role == "assistant" else []
    return not waiting and shown[0][0] in ("human", "user")


CUTS = [("langgraph", 3), ("langgraph", 11), ("langgraph", NEVER), ("graph", 9), ("adk", 9), ("adk", NEVER)]


FROM = {"langgraph": "checkpoint", "graph": "snapshot", "adk": "session"}


@pytest.mark.parametrize(("framework", "cut"), CUTS)
def test_a_thread_goes_on_wherever_its_process_died(framework: str, cut: int, tmp_path: Path):
    state = work(framework, tmp_path, cut)
    assert state.status in ("in_progress", "interrupted")
    for _ in range(4):
        if state.status == "completed":
            break
        state = work(framework, tmp_path)
    assert state.status == "completed"
    assert (tmp_path / "done.txt").read_text().split() == ["charge", "confirm"]
    assert all(map(valid, lines(tmp_path / "shown.jsonl")))
    assert state.cumulative_seconds == pytest.approx(seconds(tmp_path), abs=0.005)
    assert [message.role for message in state.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert set(resumed(tmp_path)[1:]) == {FROM[framework]}
    if cut == NEVER:
        assert not verify(events(tmp_path), "strict")


@pytest.mark.parametrize("framework", ["adk", "graph"])
def test_a_thread_that_its_framework_forgot_goes_on_from_its_messages(framework: str, tmp_path: Path):
    state = work(framework, tmp_path)
    while state.status != "completed":
        state = work(framework, tmp_path)
    for file in tmp_path.glob("sessions.db*"):
        file.unlink()
    assert work(framework, tmp_path).status == "completed"
    assert (tmp_path / "done.txt").read_text().split() == ["charge", "confirm"]
    last = lines(tmp_path / "shown.jsonl")[-1]
    assert valid(last)
    assert last[-1][1] == THANKS
    assert [role in ("user", "human") for role, _ in last] == [True, *[False] * 5, True]
    assert resumed(tmp_path)[-1] == "snapshot"


@pytest.mark.parametrize("framework", ["adk", "adk-approval"])
def test_a_question_is_answered_although_its_session_is_lost(framework: str, tmp_path: Path):
    assert work(framework, tmp_path).status == "interrupted"
    for file in tmp_path.glob("sessions.db*"):
        file.unlink()
    assert work(framework, tmp_path).status == "completed"
    assert (tmp_path / "done.txt").read_text().split() == ["charge", "confirm"]
    assert all(map(valid, lines(tmp_path / "shown.jsonl")))
    assert [role for role, _ in lines(tmp_path / "shown.jsonl")[-1]] == [
        "user",
        *["assistant", "tool"] * 2,
    ]
    assert resumed(tmp_path) == [None, "snapshot"]
    assert not verify(events(tmp_path), "strict")


def test_a_pruned_checkpoint_gives_way_to_the_messages(tmp_path: Path):
    work("langgraph", tmp_path, 11)
    for file in tmp_path.glob("threads.db*"):
        file.unlink()
    assert work("langgraph", tmp_path).status == "interrupted"
    assert (tmp_path / "done.txt").read_text().split() == ["charge"]
    assert all(map(valid, lines(tmp_path / "shown.jsonl")))
    assert resumed(tmp_path) == [None, "snapshot"]
