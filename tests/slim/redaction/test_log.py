"""Secrets that stream through a log are nowhere in what it keeps: rows, pages, snapshots, exports."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    RunErrorEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.evidence import canonical, export_evidence
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer
from runcast.slim.wire.codec import encode
from tests.slim.logs import THREAD, finished, make_log, started
from tests.slim.planted import PLANTED

REDACTOR = Redactor()


def leaky_run(rng: random.Random) -> list[Any]:
    """Every secret in every place, in deltas of a few characters."""
    events: list[Any] = [started()]
    for number, (text, _) in enumerate(PLANTED.values()):
        message, call = f"m{number}", f"c{number}"
        size = rng.randint(1, 9)
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        events.append(TextMessageStartEvent(message_id=message, role="assistant"))
        events += [TextMessageContentEvent(message_id=message, delta=piece) for piece in pieces]
        events.append(TextMessageEndEvent(message_id=message))
        arguments = json.dumps({"note": text})
        events.append(ToolCallStartEvent(tool_call_id=call, tool_call_name="f", parent_message_id=message))
        events += [
            ToolCallArgsEvent(tool_call_id=call, delta=arguments[at : at + size])
            for at in range(0, len(arguments), size)
        ]
        events.append(ToolCallEndEvent(tool_call_id=call))
        events.append(ToolCallResultEvent(message_id=f"x{number}", tool_call_id=call, content=text))
        events.append(StateSnapshotEvent(snapshot={"seen": text}))
    return events


def leaks(data: bytes) -> list[str]:
    found = []
    for name, (_, secret) in PLANTED.items():
        spellings = {secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1]}
        found += [name for each in spellings if each.encode() in data]
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.mark.parametrize("seed", range(3))
async def test_secrets_split_over_deltas_are_nowhere_in_the_store(tmp_path: Path, seed: int):
    events = [*leaky_run(random.Random(seed)), RunErrorEvent(message=PLANTED["assignment"][0])]
    assert len(leaks(b"\n".join(map(encode, events)))) >= len(PLANTED) - 1
    path = tmp_path / "runs.db"
    log = make_log(f"sqlite:///{path}", redactor=REDACTOR)
    await log.append_many(THREAD, events)
    entries = await log.entries(THREAD)
    state = AgentState.from_events([entry.event for entry in entries], "agent")
    await log.save_snapshot(THREAD, SlimSerializer().serialize(state))
    kept = await log.snapshot(THREAD)
    exported = export_evidence(entries, projection="fold", policy="omit")
    await log.close()
    assert kept is not None
    assert not leaks(b"".join(encode(entry.event) for entry in entries))
    assert not leaks(json.dumps(kept.data, ensure_ascii=False).encode())
    assert not leaks(canonical(exported))
    assert not leaks(b"".join(file.read_bytes() for file in files(tmp_path)))


async def test_held_text_is_written_before_the_run_ends():
    log = make_log("memory://", redactor=REDACTOR)
    told = [
        started(),
        TextMessageStartEvent(message_id="m", role="assistant"),
        TextMessageContentEvent(message_id="m", delta="token=ab"),
        TextMessageEndEvent(message_id="m"),
        finished(),
    ]
    await log.append_many(THREAD, told)
    entries = await log.entries(THREAD)
    assert "".join(getattr(entry.event, "delta", "") for entry in entries) == "token=ab"
    assert entries[-1].event.type == "RUN_FINISHED"
    await log.close()
