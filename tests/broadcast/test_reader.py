"""The reader's rule, in Python and JavaScript at once, through every fault of a line."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    Interrupt,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)

from runcast.broadcast import Coalescer, Envelope, EnvelopeMapper
from runcast.broadcast.envelopes.outgoing import EnvelopeQueue
from runcast.broadcast.reader import Reader, Take
from runcast.slim.entry import Entry
from tests.broadcast.entries import Thread
from tests.broadcast.envelopes.test_rollup import chunk, other
from tests.conftest import missing

PAGE = Path(__file__).parents[2] / "app/runcast/app/page"

DRIVER = """
import readline from "node:readline";
import { Reader } from "./reader.mjs";
let reader;
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [op, ...args] = JSON.parse(line);
  let answer = null;
  if (op === "new") reader = new Reader(...args);
  else if (op === "start") reader.start(...args);
  else answer = reader.take(...args);
  console.log(JSON.stringify([answer, reader.last, reader.epoch]));
}
"""


class Both:
    """The Python reader and the JavaScript one, asked the same and held to the same answer."""

    def __init__(self, process: subprocess.Popen[str], **start: Any) -> None:
        self._process = process
        self.reader = Reader(**start)
        self._ask("new", start)

    def _ask(self, *request: Any) -> list[Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: list[Any] = json.loads(self._process.stdout.readline())
        return answer

    def take(self, envelope: Envelope, *, fetched: bool = False) -> Take:
        verdict = self.reader.take(envelope, fetched=fetched)
        theirs = self._ask("take", json.loads(envelope.encode()), {"fetched": fetched})
        assert theirs == [verdict.value, self.reader.last, self.reader.epoch]
        return verdict

    def start(self, *, last: int, epoch: str) -> None:
        self.reader.start(last=last, epoch=epoch)
        self._ask("start", {"last": last, "epoch": epoch})


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    program = shutil.which("node")
    if program is None:
        missing("the page's reader needs Node >= 20 to be tested: put node on PATH")
        return
    folder = tmp_path_factory.mktemp("reader")  # under a name that says module to any Node, wherever it lies
    shutil.copy(PAGE / "reader.js", folder / "reader.mjs")
    command = [program, "--input-type=module", "--eval", DRIVER]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    process.wait(timeout=10)


def test_the_rule(node: subprocess.Popen[str]) -> None:
    reader = Both(node, last=4, epoch="e")
    assert reader.take(chunk(4, "old")) is Take.DROP
    assert reader.take(chunk(5, "next")) is Take.APPLY
    assert reader.take(chunk(7, "hole")) is Take.FETCH
    assert reader.take(replace(chunk(8, "straddles"), prev=4)) is Take.FETCH
    assert reader.take(replace(chunk(6, "x"), epoch="other")) is Take.RESTART
    reader.start(last=20, epoch="other")
    assert reader.take(replace(chunk(21, "x"), epoch="other")) is Take.APPLY


def test_parts_move_the_position_after_the_last(node: subprocess.Popen[str]) -> None:
    reader = Both(node, last=4, epoch="e")
    one, two, three = (replace(other(5), part=(n, 3)) for n in (1, 2, 3))
    assert reader.take(two) is Take.FETCH
    assert reader.take(one) is Take.APPLY
    assert reader.take(one) is Take.DROP
    assert reader.take(three) is Take.FETCH
    assert reader.take(two) is Take.APPLY
    assert (reader.reader.last, reader.take(other(6))) == (4, Take.FETCH)
    assert reader.take(three) is Take.APPLY
    assert reader.reader.last == 5


def test_a_gap_is_fetched_unless_the_log_itself_has_it(node: subprocess.Popen[str]) -> None:
    reader = Both(node, last=0, epoch="e")
    gap = replace(other(3, "agent.gap"), prev=0)
    assert reader.take(gap) is Take.FETCH
    assert reader.take(gap, fetched=True) is Take.APPLY


def test_an_envelope_of_another_history_starts_over(node: subprocess.Popen[str]) -> None:
    def marked(seq: int, mark: str) -> Envelope:
        return replace(chunk(seq, "x"), mark=mark)

    reader = Both(node, last=4, epoch="e~1.a")
    assert reader.take(marked(5, "1.a")) is Take.APPLY
    assert reader.take(marked(6, "6.b")) is Take.APPLY  # the next run
    assert reader.reader.epoch == "e~6.b"
    assert reader.take(marked(5, "1.a")) is Take.DROP  # a late double of the run before
    assert reader.take(marked(6, "4.z")) is Take.RESTART  # this seq was given out again
    assert reader.take(marked(7, "6.z")) is Take.RESTART
    assert reader.take(chunk(6, "from a run without a mark")) is Take.DROP
    parts = [replace(marked(7, "7.c"), part=(n, 2)) for n in (1, 2)]
    assert reader.take(parts[0]) is Take.APPLY
    assert reader.reader.epoch == "e~6.b"  # of the last whole entry
    assert reader.take(parts[1]) is Take.APPLY
    assert reader.reader.epoch == "e~7.c"
    reader.start(last=9, epoch="e~9.d")
    assert reader.take(marked(10, "10.e")) is Take.APPLY
    reader.start(last=9, epoch="e")
    assert reader.take(marked(10, "4.z")) is Take.APPLY  # a position that is bound to nothing fits anything


def test_a_reader_that_stands_nowhere_begins_with_what_comes(node: subprocess.Popen[str]) -> None:
    reader = Both(node)
    assert reader.take(chunk(17, "x")) is Take.APPLY
    assert (reader.reader.last, reader.reader.epoch) == (17, "e")


# ---------------------------------------------------------------- simulation


def log(rng: random.Random) -> list[Entry]:
    """A thread with text, silent entries and entries of two parts."""
    thread = Thread()
    events: list[Event] = []
    for run in range(rng.randint(1, 3)):
        run_id = f"r{run}"
        events.append(RunStartedEvent(thread_id="t1", run_id=run_id))
        message = f"m{run}"
        events.append(TextMessageStartEvent(message_id=message))
        for _ in range(rng.randint(0, 25)):
            say = TextMessageContentEvent(message_id=message, delta=f"{len(events)},")
            events.append(rng.choice([say, say, say, CustomEvent(name="n", value=1)]))
        asked = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="r")])
        events.append(RunFinishedEvent(thread_id="t1", run_id=run_id, outcome=asked))
    return thread.entries(events)


def projected(entries: list[Entry], rng: random.Random, *, shed: bool) -> list[Envelope]:
    """What a publisher sends: rolled up at random, and sometimes short of room."""
    mapper, roll, now = EnvelopeMapper(), Coalescer(40), 0
    box = EnvelopeQueue(6 if shed else 10_000)
    out: list[Envelope] = []
    for entry in entries:
        now += rng.randint(0, 30)
        envelopes = roll.tick(now)
        for envelope in mapper.feed(entry):
            envelopes += roll.feed(envelope, now)
        box.put(envelopes)
        if rng.random() < (0.3 if shed else 1):
            batch = box.take(3)
            out += batch
            box.done(len(batch))
    box.put(roll.flush())
    return out + box.take(100_000)


def battered(envelopes: list[Envelope], rng: random.Random) -> list[Envelope]:
    """The same on a bad line: lost, doubled, out of order."""
    out: list[Envelope] = []
    for envelope in envelopes:
        out += [envelope] * rng.choices([0, 1, 2], [2, 7, 1])[0]
    for _ in range(len(out) // 5):
        here = rng.randrange(len(out))
        there = min(len(out) - 1, here + rng.randint(0, 4))
        out[here], out[there] = out[there], out[here]
    return out


def said(envelopes: list[Envelope]) -> list[tuple[str, str]]:
    """What a screen shows: text by message, and everything else in order."""
    texts: dict[str, str] = {}
    rest: list[tuple[str, str]] = []
    for envelope in envelopes:
        payload = envelope.payload
        if envelope.type == "agent.stream.chunk":
            texts[str(payload["message_id"])] = texts.get(str(payload["message_id"]), "") + str(
                payload["chunk"]
            )
        else:
            rest.append((envelope.type, str(envelope.seq)))
    return [*texts.items(), *rest]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("shed", [False, True])
def test_whatever_the_line_does_a_reader_sees_each_once_and_in_order(
    node: subprocess.Popen[str], seed: int, shed: bool
) -> None:
    rng = random.Random(seed)
    entries = log(rng)
    mapper = EnvelopeMapper()
    truth = [envelope for entry in entries for envelope in mapper.feed(entry)]
    reader = Both(node, last=0, epoch="k3f9x2")
    applied: list[Envelope] = []

    def fetch() -> None:
        """What the HTTP API answers to `after=last`: the exact rest, cut at random, chained from what was asked."""
        after = reader.reader.last or 0
        rest = [envelope for envelope in truth if envelope.seq > after]
        cut = rng.randint(0, len(rest))
        while 0 < cut < len(rest) and rest[cut].seq == rest[cut - 1].seq:
            cut += 1
        for envelope in rest[:cut]:
            first = envelope.seq == rest[0].seq
            again = replace(envelope, prev=after) if first else envelope
            if reader.take(again, fetched=True) is Take.APPLY:
                applied.append(again)

    for envelope in battered(projected(entries, rng, shed=shed), rng):
        verdict = reader.take(envelope)
        if verdict is Take.APPLY:
            applied.append(envelope)
        elif verdict is Take.FETCH:
            fetch()
    while reader.reader.last != truth[-1].seq:
        fetch()
    assert said(applied) == said(truth)
