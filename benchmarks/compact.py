"""Compaction against the official `compactEvents`: how fast, how small, and how often each changes what it should not.

The two are timed on the same bytes and events, in turns, each in its own process. The log compacts stored bytes into
stored bytes; beside that the official function needs a parser and a writer. V8 compiles a loop that runs often and is then
several times faster than in its first round, so both are shown: one round in a fresh process, and the median of many.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ag_ui.core import Event
from pydantic import TypeAdapter

from runcast.slim.archive.lineage import RunNode, ancestors
from runcast.slim.compaction.compactor import checkpoint, compact
from runcast.slim.compaction.stored_lines import compact_lines
from runcast.slim.folding.conversation import fold
from runcast.slim.wire.streams import encode_lines
from tests.author import Author
from tests.e2e.oracle import Oracle, available
from tests.streams import adversarial, sequential, structured

EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
Row = dict[str, Any]
ROOT = Path(__file__).parent.parent
MINE = """
import sys, time
from pathlib import Path
from benchmarks.compact import from_bytes_to_bytes, milliseconds
data = Path(sys.argv[1]).read_bytes()
for line in sys.stdin:
    print(milliseconds(lambda: from_bytes_to_bytes(data), int(line), time.process_time), flush=True)
"""


def run(quick: bool) -> list[Row]:
    """Everything that is measured here; without Node only what needs no peer."""
    rows = fold_rows(quick)
    if available():
        rows += speed_rows(quick)
        with Oracle() as oracle:
            rows.append(size_row(oracle, thread(5 if quick else 50, 300, 60)))
            rows += outcome_rows(oracle, 60 if quick else 1_000)
    return rows


def thread(runs: int, words: int, pieces: int) -> list[Event]:
    """A thread as a chat with a tool makes it: mostly deltas, and some of everything else."""
    wire: list[dict[str, Any]] = []
    for number in range(runs):
        message, call = f"m{number}", f"c{number}"
        wire += [
            {"type": "RUN_STARTED", "threadId": "t", "runId": f"r{number}"},
            {"type": "STEP_STARTED", "stepName": "model"},
            {"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"},
            *(
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": f"word{at} "}
                for at in range(words)
            ),
            {"type": "TEXT_MESSAGE_END", "messageId": message},
            {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "f", "parentMessageId": message},
            *({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": '{"q": '} for _ in range(pieces)),
            {"type": "TOOL_CALL_END", "toolCallId": call},
            {"type": "TOOL_CALL_RESULT", "messageId": f"t{number}", "toolCallId": call, "content": "found"},
            {"type": "STATE_SNAPSHOT", "snapshot": {"n": number, "list": [1, 2, 3]}},
            {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": -number}]},
            {"type": "CUSTOM", "name": "progress", "value": number},
            {"type": "STEP_FINISHED", "stepName": "model"},
            {"type": "RUN_FINISHED", "threadId": "t", "runId": f"r{number}"},
        ]
    return EVENTS.validate_python(wire)


def milliseconds(
    work: Callable[[], object], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    taken: list[float] = []
    for _ in range(rounds):
        before = clock()
        work()
        taken.append((clock() - before) * 1_000)
    return taken


def faster(name: str, ours: float, peer: float) -> Row:
    """A row where more is better: how many times as fast as the peer."""
    ratio = peer / ours
    return {"name": name, "ours": ours, "peer": peer, "ratio": ratio, "unit": "ms", "bar": ">= 1.0", "ok": ratio >= 1.0}  # fmt: skip


def speed_rows(quick: bool) -> list[Row]:
    """One thread, compacted by both: its bytes, as the log does it, and its events. The two take turns."""
    events = thread(5 if quick else 50, 300, 60)
    turns, rounds = (2, 5) if quick else (8, 25)
    mine: dict[str, list[float]] = {"compact": [], "whole": []}
    peer: dict[str, list[float]] = {"compact": [], "whole": []}
    with tempfile.TemporaryDirectory() as folder, Oracle() as oracle:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"".join(encode_lines(events)))
        with subprocess.Popen(
            [sys.executable, "-c", MINE, str(path)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            for _ in range(turns):
                theirs = oracle.ask("time_compact", path=str(path), rounds=rounds)
                for name, taken in peer.items():
                    taken += theirs[name]
                mine["compact"] += milliseconds(partial(compact, events), rounds)
                mine["whole"] += asked(process, rounds)
        same_events(path.read_bytes(), oracle.compact(events))
    what = f"{len(events):,} events"
    first = {name: (mine[name][0], peer[name][0]) for name in mine}
    medians = {name: (statistics.median(mine[name]), statistics.median(peer[name])) for name in mine}
    return [
        faster(f"{what} from bytes to bytes, processor, one round in a fresh process", *first["whole"]),
        faster(f"{what} from bytes to bytes, processor, median of {turns * rounds}", *medians["whole"]),
        faster(f"compact {what}, one round in a fresh process", *first["compact"]),
        faster(f"compact {what}, median of {turns * rounds}", *medians["compact"]),
    ]


def asked(process: subprocess.Popen[str], rounds: int) -> list[float]:
    """What so many rounds took in this process."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{rounds}\n")
    process.stdin.flush()
    return [float(each) for each in json.loads(process.stdout.readline())]


def from_bytes_to_bytes(data: bytes) -> bytes:
    """A file of JSON Lines as a compacted one, as the log makes a segment."""
    return b"\n".join(line for _, line in compact_lines(data.rstrip().split(b"\n")))


def same_events(data: bytes, official: list[dict[str, Any]]) -> None:
    """Fail unless both keep the same events; the official function moves states to the end of their run."""
    ours = [json.loads(line) for line in from_bytes_to_bytes(data).split(b"\n")]
    if sorted(map(repr, ours)) != sorted(map(repr, official)):
        raise AssertionError("the two keep different events of this thread")


def size_row(oracle: Oracle, events: Sequence[Event]) -> Row:
    ours, theirs = len(compact(events)), len(oracle.compact(events))
    return {
        "name": f"events left of {len(events):,}; a checkpoint has {len(checkpoint(events))}",
        "ours": ours,
        "peer": theirs,
        "ratio": ours / theirs,
        "bar": "<= 1.0",
        "unit": "",
        "ok": ours <= theirs,
    }


# What is open side by side decides what the official function gets wrong: a family is what a stream is made of.
FAMILIES: dict[str, tuple[str, ...]] = {
    "texts side by side": ("_text_stream",),
    "calls side by side": ("_tool_call",),
    "calls inside texts": ("_text_stream", "_tool_call"),
    "a snapshot in the middle of a text": ("_text_stream", "_snapshot"),
    "reasoning and activities": ("_reasoning_stream", "_activity"),
    "state": ("_state",),
}


class Family(Author):
    """Streams made of a few kinds of scripts."""

    def __init__(self, rng: random.Random, names: tuple[str, ...]) -> None:
        super().__init__(rng, hostile=False, chunks=False)
        self.names = names

    def _kinds(self) -> list[Callable[[], Any]]:
        return [getattr(self, name) for name in self.names]


def family(names: tuple[str, ...], rng: random.Random) -> list[Event]:
    return Family(rng, names).write()


def outcome_rows(oracle: Oracle, count: int) -> list[Row]:
    """In how many of a hundred valid streams a compaction changes the outcome, or breaks them for the verifier."""
    kinds: dict[str, Callable[[random.Random], list[Event]]] = {
        name: partial(family, scripts) for name, scripts in FAMILIES.items()
    }
    kinds |= {"one thing after the other": sequential, "everything": structured, "colliding ids": adversarial}
    rows: list[Row] = []
    for name, draw in kinds.items():
        found = rates(oracle, [draw(random.Random(seed)) for seed in range(count)])
        for what in ("outcome changed", "made invalid"):
            ours, peer = found[f"ours {what}"], found[f"peer {what}"]
            rows.append(
                {
                    "name": f"{what}: {name}",
                    "ours": ours,
                    "peer": peer,
                    "unit": "%",
                    "bar": "== 0",
                    "ok": ours == 0,
                }
            )
    return rows


def rates(oracle: Oracle, drawn: Sequence[list[Event]]) -> dict[str, float]:
    wrong: Counter[str] = Counter()
    for stream in drawn:
        versions = (stream, compact(stream), oracle.compact(stream))
        requests = [{"op": op, "events": each} for each in versions for op in ("apply", "pipeline")]
        view, _, *answers = oracle.batch(requests)
        for side, (led, valid) in {"ours": answers[:2], "peer": answers[2:]}.items():
            wrong[f"{side} outcome changed"] += led != view
            wrong[f"{side} made invalid"] += not valid["ok"]
    names = [f"{side} {what}" for side in ("ours", "peer") for what in ("outcome changed", "made invalid")]
    return {name: 100 * wrong[name] / len(drawn) for name in names}


def fold_rows(quick: bool) -> list[Row]:
    """What an event costs when there are many messages already, and how long a deep history takes to restore."""
    wide = 1_000 if quick else 5_000
    small, large = thread(250, 2, 1), thread(wide, 2, 1)
    few, many = (best(partial(fold, each)) / len(each) * 1e6 for each in (small, large))
    depth = 200 if quick else 2_000
    runs = {f"r{at}": RunNode(f"r{at}", "t", f"r{at - 1}" if at else None) for at in range(depth)}
    segments = [compact(each) for each in split(thread(depth, 20, 5))]
    taken = best(lambda: restore(runs, f"r{depth - 1}", segments))
    return [
        {
            "name": f"fold, an event among {2 * wide:,} messages, to one among 500",
            "ours": many,
            "peer": few,
            "ratio": many / few,
            "bar": "<= 2.0",
            "unit": "ns",
            "ok": many / few <= 2.0,
        },
        {
            "name": f"restore a history of {depth:,} runs, to a quarter of a second",
            "ours": taken,
            "peer": 250.0,
            "ratio": taken / 250,
            "bar": "<= 1.0",
            "unit": "ms",
            "ok": taken <= 250,
        },
    ]


def best(work: Callable[[], object]) -> float:
    return min(milliseconds(work, 5))


def split(events: list[Event]) -> list[list[Event]]:
    """A thread's events run by run."""
    out: list[list[Event]] = []
    for event in events:
        if event.type.value == "RUN_STARTED":
            out.append([])
        out[-1].append(event)
    return out


def restore(runs: dict[str, RunNode], run_id: str, segments: list[list[Event]]) -> None:
    chain = [*ancestors(run_id, runs), runs[run_id]]
    fold(event for at, _ in enumerate(chain) for event in segments[at]).wire_messages()
