"""Recordings of every case: ADK's events in, the very same events out, and whole streams out of every torn one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runcast.slim.protocol.verifier import verify
from tests.adapters.adk.recordings import load, recordings
from tests.e2e.oracle import Oracle

HERE = Path(__file__).parent
every_recording = pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)
# Cases about sizes, refusals, readers, threads and echoes: nothing of theirs is in ADK's events.
ELSEWHERE = {23, 36, 53, 54, 55, 57, 58, 59, 60, 63}


def test_every_case_has_a_test_and_a_recording():
    tests = "\n".join(path.read_text() for path in HERE.rglob("test_*.py"))
    assert {int(it) for it in re.findall(r"def test_case_(\d\d)_", tests)} == set(range(1, 71))
    assert {int(path.stem[:2]) for path in recordings()} | ELSEWHERE == set(range(1, 71))


@every_recording
def test_adks_events_become_these(path: Path):
    assert load(path).golden() == path.with_suffix(".events").read_text("utf-8")


@pytest.mark.oracle
@every_recording
def test_the_client_before_1_0_takes_every_stream(path: Path, oracle: Oracle):
    """All but the outcome `cancelled`, for which it has no form."""
    recorded = load(path)
    for run in range(len(recorded.runs)):
        events = recorded.events(run)
        cancelled = getattr(getattr(events[-1], "outcome", None), "type", None) == "cancelled"
        answer = oracle.earlier(events[:-1] if cancelled else events)
        assert answer["ok"], answer["error"]


@pytest.mark.oracle
@every_recording
def test_a_recording_that_is_torn_anywhere_is_a_whole_stream(path: Path, oracle: Oracle):
    recorded = load(path)
    streams = []
    for run, parts in enumerate(recorded.runs):
        for end in range(len(parts) + 1):
            for how in ("fail", "cancel", "finish"):
                translator = recorded.translator(run)
                events = translator.start()
                for part in parts[:end]:
                    events += translator.feed(part)
                if how == "fail":
                    events += translator.fail(RuntimeError("torn"))
                else:
                    events += translator.cancel() if how == "cancel" else translator.finish()
                assert verify(events, profile="strict") == []
                streams.append(events)
    for answer in oracle.batch([{"op": "pipeline", "events": stream} for stream in streams]):
        assert answer["ok"], answer["error"]
