"""Snapshots are taken when a run ends or asks, and now and then while it goes on."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    Interrupt,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    TextMessageEndEvent,
    TokenUsage,
)

from runcast.slim.entry import Entry
from runcast.slim.folding.step_records import Usage
from runcast.slim.snapshots.schedule import TOGETHER, SnapshotTaker
from runcast.slim.snapshots.serializer import SlimSerializer

SERIALIZER = SlimSerializer()
START = RunStartedEvent(thread_id="t", run_id="r")
NOISE = CustomEvent(name="x", value=1)
SPENT = TextMessageEndEvent(message_id="m", metadata={"runcast": {"usage": {"prompt": 3, "completion": 1}}})
ASKED = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="ask")])


def entry(seq: int, event: Any, at: int | None = None) -> Entry:
    return Entry("t", seq, "e", "r", 1_000 * seq if at is None else at, event)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (RunFinishedEvent(thread_id="t", run_id="r"), "completed"),
        (RunFinishedEvent(thread_id="t", run_id="r", outcome=ASKED), "interrupted"),
        (RunErrorEvent(message="x"), "failed"),
    ],
)
def test_a_snapshot_is_taken_however_a_run_ends(end: Any, status: str):
    taker = SnapshotTaker(SERIALIZER, agent_id="a")
    assert taker.feed(entry(1, START)) is None
    snapshot = taker.feed(entry(2, end))
    assert snapshot is not None
    assert (snapshot["agent_id"], snapshot["status"], snapshot["resume"]["seq"]) == ("a", status, 2)


def test_a_snapshot_is_taken_now_and_then():
    taker = SnapshotTaker(SERIALIZER, every_entries=3, every_ms=100_000)
    taken = [taker.feed(entry(seq, START if seq == 1 else NOISE)) is not None for seq in range(1, 10)]
    assert taken == [False, False, True] * 3
    timed = SnapshotTaker(SERIALIZER, every_ms=2_500)
    due = [seq for seq in range(1, 9) if timed.feed(entry(seq, NOISE)) is not None]
    assert due == [4, 7]


@pytest.mark.parametrize("last", [2, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER])
def test_the_state_that_is_asked_for_has_every_entry(last: int):
    taker = SnapshotTaker(SERIALIZER, every_entries=1_000, every_ms=10**9)
    for seq in range(1, last + 1):
        taker.feed(entry(seq, START if seq == 1 else NOISE))
    assert taker.builder.state().seq == last
    assert taker.take()["resume"]["seq"] == last


def test_entries_that_a_snapshot_holds_are_passed_over():
    first = SnapshotTaker(SERIALIZER)
    first.feed(entry(1, START))
    first.builder.feed(SPENT)
    base = SERIALIZER.deserialize(first.take())
    assert base.usage == base.run_usage == Usage(3, 1, 4)
    taker = SnapshotTaker(SERIALIZER, base=base)
    assert taker.feed(entry(1, RunErrorEvent(message="old news"))) is None
    rows = [TokenUsage(input_tokens=5, output_tokens=2)]
    snapshot = taker.feed(entry(2, RunFinishedEvent(thread_id="t", run_id="r", usage=rows)))
    assert snapshot is not None
    assert (snapshot["status"], snapshot["resume"]["seq"]) == ("completed", 2)
    assert snapshot["execution"]["cumulative_seconds"] == 1.0
    assert snapshot["usage"] == {"prompt": 5, "completion": 2, "total": 7}


def test_never_is_not_a_rhythm():
    with pytest.raises(ValueError, match="at least 1"):
        SnapshotTaker(SERIALIZER, every_entries=0)
