"""Random threads for the laws of snapshots: streams as agents send them, of any length, in any script."""

from __future__ import annotations

import random
from typing import Any

from ag_ui.core import (
    Event,
    Interrupt,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

SCRIPTS = (
    "The quick brown fox jumps over the lazy dog. ",
    "ascii " * 3,
    "漢字かな交じり文をたくさん書く。",
    "한국어 문장도 있다 ",
    "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪👍🏽 ",
    "مرحبا بالعالم שלום ",
    "e\u0301\u0323a\u030a",
    "\ud83d",
    "\x00\x1f\u2028",
    'quote " and \\ slash\n',
    "हिन्दी क्षत्रिय ",
)


def prose(rng: random.Random, length: int) -> str:
    """About this many characters of one script or several."""
    if length < 1:
        return ""
    picked = [rng.choice(SCRIPTS) for _ in range(rng.randint(1, 3))]
    unit = "".join(picked)
    return (unit * (length // len(unit) + 1))[:length]


def nested(rng: random.Random, depth: int) -> Any:
    """JSON of this depth."""
    value: Any = rng.choice((None, 1, 2.5, float("nan"), 2**70, True, prose(rng, rng.randint(0, 30))))
    for level in range(depth):
        value = {f"k{level}": value, "n": level} if rng.random() < 0.5 else [value, level]
    return value


class Teller:
    """Tells one thread, with a clock of its own."""

    def __init__(self, rng: random.Random, *, longest: int = 400) -> None:
        self.rng = rng
        self.longest = longest  # characters of one text
        self.now = 1_768_557_600_000
        self.count = 0
        self.out: list[Event] = []

    def thread(self, turns: int) -> list[Event]:
        """So many runs, each a question and what came of it."""
        for number in range(turns):
            self.run(f"r{number}")
        return self.out

    def run(self, run_id: str) -> None:
        rng = self.rng
        self._say(RunStartedEvent(thread_id="t1", run_id=run_id))
        self._message("user")
        for step in range(rng.randint(0, 3)):
            self._step(step + 1)
        if rng.random() < 0.3:
            self._say(StateSnapshotEvent(snapshot=self._state()))
        if rng.random() < 0.2:
            patch = [{"op": "add", "path": "/k", "value": prose(rng, 20)}]
            self._say(StateDeltaEvent.model_validate({"delta": patch}))
        self._end(run_id)

    def _end(self, run_id: str) -> None:
        rng = self.rng
        roll = rng.random()
        if roll < 0.1:
            self._say(RunErrorEvent(message=prose(rng, 50)))
            return
        outcome: Any = None
        if roll < 0.2:
            outcome = RunFinishedCancelledOutcome()
        elif roll < 0.35:
            asks = [
                Interrupt(id=f"i{n}", reason="confirm", message=prose(rng, rng.randint(0, self.longest)))
                for n in range(rng.randint(1, 3))
            ]
            asks[0].response_schema = {"properties": {"password": {"type": "string"}}}
            outcome = RunFinishedInterruptOutcome(interrupts=asks)
        self._say(RunFinishedEvent(thread_id="t1", run_id=run_id, outcome=outcome))

    def _state(self) -> Any:
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice((None, 0, [], "text", prose(rng, self.longest)))
        return {f"key{n}": nested(rng, rng.choice((0, 1, 3, 30))) for n in range(rng.randint(0, 6))}

    def _step(self, number: int) -> None:
        rng = self.rng
        self._say(StepStartedEvent(step_name=f"node{number}", metadata={"runcast": {"step_number": number}}))
        calls = rng.choice((0, 0, 1, 2, 5))
        parent = self._message("assistant", empty=bool(calls) and rng.random() < 0.5)
        names = [self._call(parent) for _ in range(calls)]
        for call_id in names:
            if rng.random() < 0.9:
                self._result(call_id)
        usage = {"prompt": 10, "completion": 5, "total": 15}
        said = {"step_number": number, "usage": usage, "errors": int(rng.random() < 0.1)}
        self._say(StepFinishedEvent(step_name=f"node{number}", metadata={"runcast": said}))
        if rng.random() < 0.05:
            self._say(MessagesSnapshotEvent(messages=[]))

    def _message(self, role: Any, *, empty: bool = False) -> str:
        message_id = self._id("m")
        self._say(TextMessageStartEvent(message_id=message_id, role=role))
        text = "" if empty else prose(self.rng, self.rng.choice((0, 5, 60, self.longest)))
        for at in range(0, len(text), 1 + len(text) // 4):
            piece = text[at : at + 1 + len(text) // 4]
            self._say(TextMessageContentEvent(message_id=message_id, delta=piece))
        self._say(TextMessageEndEvent(message_id=message_id, metadata={"runcast": {"finish_reason": "stop"}}))
        return message_id

    def _call(self, parent: str) -> str:
        call_id = self._id("c")
        self._say(ToolCallStartEvent(tool_call_id=call_id, tool_call_name="search", parent_message_id=parent))
        text = prose(self.rng, self.rng.choice((3, 50, self.longest))).replace('"', "").replace("\\", "")
        self._say(ToolCallArgsEvent(tool_call_id=call_id, delta='{"query": "'))
        self._say(ToolCallArgsEvent(tool_call_id=call_id, delta=text + '"}'))
        self._say(ToolCallEndEvent(tool_call_id=call_id))
        return call_id

    def _result(self, call_id: str) -> None:
        text = prose(self.rng, self.rng.choice((5, 300, self.longest)))
        self._say(ToolCallResultEvent(message_id=self._id("x"), tool_call_id=call_id, content=text))

    def _id(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def _say(self, event: Event) -> None:
        self.now += self.rng.randint(0, 400)
        event.timestamp = self.now
        self.out.append(event)
