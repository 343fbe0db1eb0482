"""Writing and reading events against the protocol's own package: `EventEncoder` and `TypeAdapter(Event)`."""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ag_ui.core import Event
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

from runcast.slim.wire.codec import decode, encode

RECORDINGS = Path(__file__).resolve().parents[1] / "tests" / "adapters" / "langgraph" / "recordings"
WORDS = [
    "The",
    "weather",
    "in",
    "Lisbon",
    "is",
    "mild",
    "today,",
    "with",
    "a",
    "light",
    "wind",
    "from",
    "the",
    "west",
    "and",
    "some",
    "clouds",
    "later",
    ".",
]


def deltas(tag: str, key: str, id: str, texts: Iterable[str]) -> list[dict[str, Any]]:
    return [{"type": tag, key: id, "delta": text} for text in texts]


def text_message(id: str, words: int) -> list[dict[str, Any]]:
    texts = [f"{WORDS[at % len(WORDS)]} " for at in range(words)]
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
        *deltas("TEXT_MESSAGE_CONTENT", "messageId", id, texts),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def reasoning(id: str, words: int) -> list[dict[str, Any]]:
    texts = [f"{WORDS[at % len(WORDS)]} " for at in range(words)]
    return [
        {"type": "REASONING_START", "messageId": id},
        {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"},
        *deltas("REASONING_MESSAGE_CONTENT", "messageId", id, texts),
        {"type": "REASONING_MESSAGE_END", "messageId": id},
        {"type": "REASONING_END", "messageId": id},
    ]


def tool_call(at: int) -> list[dict[str, Any]]:
    arguments = json.dumps({"city": f"City {at}", "unit": "celsius", "days": 3})
    parts = [arguments[start : start + 4] for start in range(0, len(arguments), 4)]
    result = json.dumps({"days": [{"high": 20 + day, "low": 11.5, "sky": "clouds"} for day in range(3)]})
    id = f"call_{at:024}"
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "forecast", "parentMessageId": "msg_2"},
        *deltas("TOOL_CALL_ARGS", "toolCallId", id, parts),
        {"type": "TOOL_CALL_END", "toolCallId": id},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"res_{at}",
            "toolCallId": id,
            "content": result,
            "role": "tool",
        },
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "replace", "path": f"/steps/{at}/done", "value": True},
                {"op": "add", "path": "/found/-", "value": {"city": f"City {at}", "high": 20.5}},
            ],
        },
    ]


def history(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for at in range(turns):
        call = {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "forecast", "arguments": '{"days":3}'},
        }
        messages += [
            {"id": f"u{at}", "role": "user", "content": " ".join(WORDS)},
            {"id": f"a{at}", "role": "assistant", "toolCalls": [call]},
            {"id": f"t{at}", "role": "tool", "toolCallId": f"c{at}", "content": '{"high":21}'},
            {"id": f"b{at}", "role": "assistant", "content": " ".join(WORDS * 3)},
        ]
    return messages


def one_run() -> list[dict[str, Any]]:
    """A run as an assistant with tools makes it: it thinks, calls, answers, and tells its state and messages."""
    ids = {"threadId": "thread_1", "runId": "run_1"}
    state = {
        "steps": [{"name": f"step {at}", "done": False} for at in range(20)],
        "found": [],
        "user": {"id": 17},
    }
    return [
        {"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"},
        {"type": "STATE_SNAPSHOT", "snapshot": state},
        {"type": "STEP_STARTED", "stepName": "agent"},
        *reasoning("rs_1", 60),
        *text_message("msg_2", 30),
        *(event for at in range(3) for event in tool_call(at)),
        *text_message("msg_3", 150),
        {"type": "STEP_FINISHED", "stepName": "agent"},
        {"type": "STATE_SNAPSHOT", "snapshot": state},
        {"type": "MESSAGES_SNAPSHOT", "messages": history(4)},
        {"type": "RUN_FINISHED", **ids, "outcome": {"type": "success"}},
    ]


def recorded() -> list[dict[str, Any]]:
    """What the LangGraph adapter made of every recording there is."""
    lines = (line for path in sorted(RECORDINGS.glob("*.events")) for line in path.read_bytes().splitlines())
    return [json.loads(line) for line in lines]


SAMPLES: dict[str, list[dict[str, Any]]] = {
    "text delta": deltas("TEXT_MESSAGE_CONTENT", "messageId", "msg_01hxyz0123456789", ["weather "]),
    "arguments delta": deltas("TOOL_CALL_ARGS", "toolCallId", "call_01hxyz0123456789", ['"city": ']),
    "reasoning delta": deltas("REASONING_MESSAGE_CONTENT", "messageId", "rs_01hxyz0123456789", ["weather "]),
    "text delta with time": [
        {
            "type": "TEXT_MESSAGE_CONTENT",
            "timestamp": 1_768_557_900_123,
            "messageId": "msg_1",
            "delta": "weather ",
        }
    ],
    "one whole run": one_run(),
}


def streamed(each: Callable[[Any], object], items: list[Any]) -> Callable[[], None]:
    """Handle the items one after the other and let go of each result, as a stream does."""

    def pass_through() -> None:
        for item in items:
            each(item)

    return pass_through


def fastest(calls: dict[str, Callable[[], object]], seconds: float, rounds: int) -> dict[str, float]:
    """The best time of each call, in seconds; they take turns, so that a busy machine slows all of them.

    Every other round goes backwards: no call always comes second, and finds in the cache what the first left there.
    """
    counts = {
        name: max(1, int(seconds / max(timeit.timeit(call, number=3) / 3, 1e-7)))
        for name, call in calls.items()
    }
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(rounds):
        for name, call in list(calls.items())[:: -1 if turn % 2 else 1]:
            best[name] = min(best[name], timeit.timeit(call, number=counts[name]) / counts[name])
    return best


def row(name: str, ours: float, peer: float, events: int, least: float) -> dict[str, Any]:
    return {
        "name": name,
        "ours": ours / events * 1e6,
        "peer": peer / events * 1e6,
        "unit": "µs/event",
        "ratio": peer / ours,
        "bar": f">= {least:g}",
        "ok": peer / ours >= least,
    }


def run(quick: bool) -> list[dict[str, Any]]:
    """Each sample written and read, by us and by the official package."""
    adapter: TypeAdapter[Any] = TypeAdapter(Event)
    official = EventEncoder()
    rows = []
    for name, sample in (SAMPLES | {"a recorded mix": recorded()}).items():
        sample = sample * (1 if len(sample) > 1 else 100)
        events = [adapter.validate_python(event) for event in sample]
        lines = [json.dumps(event, separators=(",", ":")).encode() for event in sample]

        least = 5 if len(sample) > 100 else 8
        for verb, ours, theirs, items, bar in (
            ("encode", encode, official.encode, events, least),
            ("decode", decode, adapter.validate_json, lines, 1),
        ):
            calls = {"ours": streamed(ours, items), "peer": streamed(theirs, items)}
            took = fastest(calls, 0.002 if quick else 0.01, 2 if quick else 40)
            rows.append(row(f"{verb} {name}", took["ours"], took["peer"], len(items), bar))
    return rows
