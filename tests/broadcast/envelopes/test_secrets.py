"""Case 36: what a log with a redactor has taken out is in no envelope, whatever is asked for; and values no JSON has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from ag_ui.core import (
    ActivitySnapshotEvent,
    CustomEvent,
    Event,
    Interrupt,
    MessagesSnapshotEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)

from runcast.broadcast import (
    BroadcastConfig,
    Broadcaster,
    BroadcastError,
    HubError,
    LogHistory,
    MemoryPublisher,
    Position,
)
from runcast.slim import Redactor, RunLog, open_store
from tests.broadcast.entries import mapped, payloads
from tests.broadcast.hub.fakes import Reader
from tests.e2e.stage import a_hub
from tests.slim.planted import BY_FORM, BY_NAME, PASSWORD

CONFIGS = {
    "minimal": BroadcastConfig.minimal(),
    "standard": BroadcastConfig.standard(),
    "debug": BroadcastConfig.debug(),
    "agui": BroadcastConfig.agui(),
}


def everywhere(leak: str, name: str) -> Iterator[Event]:
    """A run that says one thing in every place that an envelope is made of."""
    nested = {
        "deep": [{"er": [leak]}],
        "password": PASSWORD,
        "headers": {"Authorization": f"Bearer {PASSWORD}"},
    }
    note: Any = {
        "runcast": {"continuation": {"should_continue": False, "stop_reason": leak, "resolved_by": "x"}}
    }
    half = len(leak) // 2
    yield RunStartedEvent(thread_id="s1", run_id=f"r-{name}")
    yield StepStartedEvent(step_name="s")
    yield SubagentStartedEvent(subagent_run_id="sub", name="scout", description=f"uses {leak} to look")
    yield SubagentErrorEvent(subagent_run_id="sub", message=f"refused: {leak} is wrong")
    yield ToolCallStartEvent(tool_call_id=f"c-{name}", tool_call_name="fetch")
    arguments = json.dumps(nested)
    yield ToolCallArgsEvent(tool_call_id=f"c-{name}", delta=arguments[: len(arguments) // 2])
    yield ToolCallArgsEvent(tool_call_id=f"c-{name}", delta=arguments[len(arguments) // 2 :])
    yield ToolCallEndEvent(tool_call_id=f"c-{name}")
    error: Any = {"runcast": {"error": True}}
    yield ToolCallResultEvent(
        message_id=f"t-{name}", tool_call_id=f"c-{name}", content=f"failed with {leak} !", metadata=error
    )
    yield TextMessageStartEvent(message_id=f"m-{name}")
    yield TextMessageContentEvent(message_id=f"m-{name}", delta=f"it is {leak[:half]}")
    yield TextMessageContentEvent(message_id=f"m-{name}", delta=f"{leak[half:]} you know")
    yield TextMessageEndEvent(message_id=f"m-{name}")
    yield ReasoningMessageStartEvent(message_id=f"h-{name}", role="reasoning")
    yield ReasoningMessageContentEvent(message_id=f"h-{name}", delta=f"so {leak} then")
    yield ReasoningMessageEndEvent(message_id=f"h-{name}")
    yield StateSnapshotEvent(snapshot=nested)
    yield StateDeltaEvent(delta=[{"op": "add", "path": "/password", "value": PASSWORD}])
    yield ActivitySnapshotEvent(message_id=f"a-{name}", activity_type="plan", content=nested)
    yield CustomEvent(name="note", value=[nested, leak])
    yield MessagesSnapshotEvent(messages=[UserMessage(id=f"u-{name}", content=f"my {leak} here")])
    yield StepFinishedEvent(step_name="s", metadata=note)
    asked = Interrupt(
        id=f"i-{name}", reason="confirm", message=f"use {leak} ?", metadata={"runcast": {"value": nested}}
    )
    yield RunFinishedEvent(
        thread_id="s1", run_id=f"r-{name}", outcome=RunFinishedInterruptOutcome(interrupts=[asked])
    )
    yield RunErrorEvent(message=f"boom: {leak} ")


LEAKS = {
    **{name: (secret, secret) for name, secret in BY_FORM.items()},
    **{name: BY_NAME[name] for name in ("bearer", "url")},
}


@pytest.mark.parametrize("preset", CONFIGS)
async def test_case_36_no_planted_secret_is_in_any_envelope_frame_or_replay(preset: str) -> None:
    config = CONFIGS[preset]
    target = MemoryPublisher()
    async with RunLog(open_store("memory://"), redactor=Redactor()) as log:
        history = LogHistory(log, config=config)
        hub = a_hub(history=history)
        reader = Reader("watcher")
        await reader.come(hub, Position("", 0))
        it = Broadcaster([target, hub], config=config)
        for name, (leak, _) in LEAKS.items():
            for event in everywhere(leak, name.replace(" ", "-")):
                await log.append("s1", event)
        await log.flush()
        for entry in await log.entries("s1"):
            await it.publish(entry)
        assert await it.flush(5)
        replay = await history("s1", Position("", 0), until=None, most=10_000)
        await it.aclose()
    frames = [each.encode().decode() for each in (*target.envelopes("private-agent.s1"), *replay.envelopes)]
    frames += [json.dumps(frame) for frame in reader.frames]
    assert len(frames) > 100
    found = {
        planted for frame in frames for _, planted in (*LEAKS.values(), ("", PASSWORD)) if planted in frame
    }
    assert found == set()
    assert "[redacted]" in "".join(frames) or preset == "minimal"


def test_errors_have_one_root() -> None:
    assert issubclass(HubError, BroadcastError)


@pytest.mark.parametrize("preset", CONFIGS)
async def test_case_36_values_that_json_does_not_have_do_not_stop_a_run(preset: str) -> None:
    circle: dict[str, Any] = {"n": 1}
    circle["self"] = circle
    odd = [
        float("nan"),
        float("inf"),
        datetime(2026, 1, 16, tzinfo=UTC),
        b"bytes",
        {1, 2},
        2**80,
        "\ud83d",
        1j,
        circle,
    ]
    target = MemoryPublisher()
    it = Broadcaster(target, config=CONFIGS[preset])
    sink = it.sink("s1")
    sink(RunStartedEvent(thread_id="s1", run_id="r1"))
    for value in odd:
        sink(CustomEvent(name="odd", value=value))
        sink(StateSnapshotEvent(snapshot={"value": value}))
    sink(RunFinishedEvent(thread_id="s1", run_id="r1"))
    assert await it.flush(5)
    told = target.envelopes("private-agent.s1")
    for each in told:
        json.loads(each.encode(), parse_constant=pytest.fail)
    last = told[-1].payload
    assert last.get("status", last.get("type")) in ("completed", "RUN_FINISHED")
    assert it.stats()["failures"] == 0
    await it.aclose()


def test_case_36_a_cut_never_falls_inside_a_visible_character() -> None:
    family = "👨‍👩‍👧‍👦"
    events: list[Event] = [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="f"),
        ToolCallArgsEvent(tool_call_id="c", delta=json.dumps({"q": family * 20}, ensure_ascii=False)),
        ToolCallEndEvent(tool_call_id="c"),
        ToolCallResultEvent(message_id="m", tool_call_id="c", content=family * 40),
        RunErrorEvent(message=family * 100),
    ]
    envelopes = mapped(events)
    (call,) = payloads(envelopes, "agent.tool.started")
    (done,) = payloads(envelopes, "agent.tool.completed")
    for said in (call["args_summary"], done["result_summary"], envelopes[-1].payload["error_message"]):
        kept = str(said).removeprefix("q: '").removesuffix("...")
        assert kept == family * (len(kept) // len(family)) != ""
