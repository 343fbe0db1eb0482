"""What a snapshot costs and weighs, and what always-on redaction adds to writing a run down."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ag_ui.core import (
    Event,
    MessagesSnapshotEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)
from ag_ui.encoder import EventEncoder

from runcast.slim.folding.conversation import fold
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.agent_state import AgentState, StateBuilder
from runcast.slim.snapshots.serializer import SlimSerializer
from runcast.slim.wire.codec import decode, encode
from tests.e2e import oracle as judge
from tests.slim.redaction.forms import COSTLIEST, usual

RECORDINGS = Path(__file__).resolve().parents[1] / "tests" / "adapters" / "langgraph" / "recordings"
Row = dict[str, Any]


def run(quick: bool) -> list[Row]:
    rounds = 5 if quick else 25
    return [*_by_length(rounds), *_redaction(rounds), *_worst(min(rounds, 8)), *_weights()]


def best(work: Callable[[], object], rounds: int) -> float:
    """Microseconds of the best round."""
    found = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        found = min(found, time.perf_counter() - began)
    return found * 1e6


# ---------------------------------------------------------------------- length


def _by_length(rounds: int) -> list[Row]:
    """A thread a hundred times as long, serialised."""
    serializer = SlimSerializer()
    few, many = _grown(1_000), _grown(100_000)
    for state in (few, many):
        serializer.serialize(state)
    short, long = (best(lambda state=state: serializer.serialize(state), rounds) for state in (few, many))
    ratio = long / short
    return [
        {
            "name": "serialize a thread of 100,000 messages against 1,000",
            "ours": round(long, 1), "peer": round(short, 1), "unit": "us",
            "ratio": round(ratio, 2), "bar": "<= 1.2", "ok": ratio <= 1.2,
        }
    ]  # fmt: skip


def _grown(count: int) -> AgentState:
    """A thread that was heard event by event."""
    builder = StateBuilder("agent")
    for number in range(count):
        message_id, role = f"m{number}", "user" if number % 2 == 0 else "assistant"
        builder.feed(TextMessageStartEvent(message_id=message_id, role=role))  # type: ignore[arg-type]  # one of two
        builder.feed(TextMessageContentEvent(message_id=message_id, delta=f"{number} " + "words " * 60))
        builder.feed(TextMessageEndEvent(message_id=message_id))
    return builder.state()


# ---------------------------------------------------------------------- redaction


def _redaction(rounds: int) -> list[Row]:
    """What redaction adds to what a log does anyway: it encodes each event once, with and without looking into it.

    The bar is held against the official encoder, which is what writing an event costs everybody else: on a run of the
    length that models give it, and on the recorded scenes of the tests, a dozen events each and hardly any text, where
    a look at each event weighs most. Shown beside it: the same against runcast's own encoder, several times faster.
    """
    redactor = Redactor()
    recorded = [
        [decode(line) for line in path.read_bytes().splitlines()]
        for path in sorted(RECORDINGS.glob("*.events"))
    ]
    streams = {"a run of 1,400 tokens with calls": [_told()], f"{len(recorded)} recorded runs": recorded}
    official = EventEncoder()
    rows: list[Row] = []
    for name, runs in streams.items():
        count = sum(map(len, runs))
        plain, theirs, both = (
            1_000 * sum(microseconds) / count
            for microseconds in zip(
                *(
                    in_turns(
                        [
                            lambda run=run: _write([run], None),
                            lambda run=run: _encode([run], official.encode),
                            lambda run=run: _write([run], redactor),
                        ],
                        16 * rounds,  # what is shown is a small difference of two times
                    )
                    for run in runs  # each by itself, since a short one is seldom interrupted
                ),
                strict=True,
            )
        )
        added = both - plain
        for peer, cost in (("the official encoder", theirs), ("runcast's encoder", plain)):
            held = peer == "the official encoder"
            rows.append(
                {
                    "name": f"redaction added to encoding, {name}, of {peer}",
                    "ours": round(added), "peer": round(cost), "unit": "ns/event",
                    "ratio": round(added / cost, 3),
                    "bar": "<= 0.15" if held else "shown", "ok": added <= 0.15 * cost if held else None,
                }
            )  # fmt: skip
    return rows


def _worst(rounds: int) -> list[Row]:
    """The costliest text that was found, against a body with a secret before each paragraph, and against what agents
    read all day: code, documents and events, each a text of its own."""
    redactor, length = Redactor(), 100_000
    home = RECORDINGS.parents[3]
    files = [*home.glob("slim/**/*.py"), *home.glob("docs/*.md"), *RECORDINGS.glob("*.events")]
    usual_texts = {
        "a usual one": [usual(length)],
        "code, documents and events": [path.read_text(encoding="utf-8") for path in sorted(files)],
    }
    worst = max(
        _each_character(redactor, [(unit * (length // len(unit) + 1))[:length]], rounds) for unit in COSTLIEST
    )
    rows: list[Row] = []
    for name, texts in usual_texts.items():
        common = _each_character(redactor, texts, rounds)
        ratio = worst / common
        rows.append(
            {
                "name": f"redaction of the worst text found, of {name}",
                "ours": round(worst), "peer": round(common), "unit": "ns/character",
                "ratio": round(ratio, 2), "bar": "<= 5", "ok": ratio <= 5,
            }
        )  # fmt: skip
    return rows


def _each_character(redactor: Redactor, texts: Sequence[str], rounds: int) -> float:
    """Nanoseconds a character in the best round."""
    best_round = min(
        sum(_busy(lambda text=text: redactor.text(text)) for text in texts) for _ in range(rounds)
    )
    return 1_000 * best_round / sum(map(len, texts))


def _busy(work: Callable[[], object]) -> float:
    """Microseconds of this process, whatever others do."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e6


def in_turns(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Microseconds of the best round of each; they take turns, so that a busy moment does not fall on one alone."""
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        found = [min(last, best(work, 1)) for last, work in zip(found, works, strict=True)]
    return found


def _encode(runs: Iterable[Iterable[Any]], write: Callable[[Any], object]) -> None:
    for events in runs:
        for event in events:
            write(event)


def _write(runs: Iterable[Iterable[Any]], redactor: Redactor | None) -> None:
    """As a log does it: what was encoded to be looked into is written as it is, unless something was found."""
    for events in runs:
        feed = None if redactor is None else redactor.stream().feed
        for event in events:
            data = encode(event)
            for kept in (event,) if feed is None else feed(event, data):
                if kept is not event:
                    encode(kept)


def _told() -> list[Event]:
    """A run as models stream it: words, a call, its result, words."""
    rng = random.Random(5)
    words = [
        "The",
        "quick",
        "brown",
        "fox",
        "jumps",
        "over",
        "the",
        "lazy",
        "dog",
        ",",
        "and",
        "then",
        "it",
        "goes",
    ]
    events: list[Event] = [RunStartedEvent(thread_id="t", run_id="r")]
    for turn in range(4):
        key = f"m{turn}"
        events.append(TextMessageStartEvent(message_id=key, role="assistant"))
        events += [TextMessageContentEvent(message_id=key, delta=f" {rng.choice(words)}") for _ in range(350)]
        events += [
            TextMessageEndEvent(message_id=key),
            *_called(key, '{"rows": [{"id": 1, "name": "Ada"}]}' * 60),
        ]
    return [*events, RunFinishedEvent(thread_id="t", run_id="r")]


def _called(parent: str, result: str) -> list[Event]:
    key = f"c-{parent}"
    pieces = ('{"', "query", '": "', "some", " text", '", "', "limit", '": ', "3", "}")
    return [
        ToolCallStartEvent(tool_call_id=key, tool_call_name="search", parent_message_id=parent),
        *(ToolCallArgsEvent(tool_call_id=key, delta=piece) for piece in pieces),
        ToolCallEndEvent(tool_call_id=key),
        ToolCallResultEvent(message_id=f"x-{parent}", tool_call_id=key, content=result),
    ]


# ---------------------------------------------------------------------- weight


def _weights() -> list[Row]:
    """One run with a tool result of 34 KB, told as the official adapter for LangGraph tells it."""
    events = _heavy()
    slim = _json(SlimSerializer().serialize(AgentState.from_events(events, "agent")))
    row: Row = {"ours": slim, "unit": "bytes", "bar": "<= 3000 bytes", "ok": slim <= 3_000}
    rows = [
        _compared(row, "snapshot against the full dump of a run with a 34 KB result", _size(events))
        | {"key": "snapshot_bytes"}
    ]
    if judge.available():
        with judge.Oracle() as oracle:
            compacted = oracle.compact([json.loads(encode(event)) for event in events])
        rows.append(_compared(row, "snapshot against the official compaction of it", _json(compacted)))
    return rows


def _compared(row: Row, name: str, peer: int) -> Row:
    return {"name": name, **row, "peer": peer, "ratio": round(row["ours"] / peer, 3)}


def _json(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _size(events: Sequence[Event]) -> int:
    return sum(len(encode(event)) for event in events)


def _heavy() -> list[Event]:
    """The result once in its event, in the state after its node and at the end, and in the closing snapshot."""
    lines = (
        f"Document {number}: a report of {number * 7} pages on the weather of that year.\n"
        for number in range(600)
    )
    result = "".join(lines)[:34_000]
    asked = UserMessage(id="u1", content="Which documents are there?")
    begun: list[Event] = [
        RunStartedEvent(thread_id="t", run_id="r"),
        MessagesSnapshotEvent(messages=[asked]),
        TextMessageStartEvent(message_id="m1", role="assistant"),
        TextMessageEndEvent(message_id="m1"),
        *_called("m1", result),
    ]
    answer: list[Event] = [
        TextMessageStartEvent(message_id="m2", role="assistant"),
        *(TextMessageContentEvent(message_id="m2", delta=f"word{n} ") for n in range(12)),
        TextMessageEndEvent(message_id="m2"),
    ]
    after, end = fold(begun), fold([*begun, *answer])
    return [
        *begun,
        StateSnapshotEvent(snapshot={"messages": after.wire_messages()}),
        *answer,
        StateSnapshotEvent(snapshot={"messages": end.wire_messages()}),
        MessagesSnapshotEvent(messages=end.messages),
        RunFinishedEvent(thread_id="t", run_id="r"),
    ]
