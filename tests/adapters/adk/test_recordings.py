"""Recordings of every case: ADK's events in, the very same events out, and whole streams out of every torn one."""

from __future__ import annotations

import re
from pathlib import Path

from tests.adapters.adk.recordings import HERE as FOLDER
from tests.adapters.adk.recordings import load
from tests.adapters.recording_contract import RecordingContract

HERE = Path(__file__).parent
# Cases about sizes, refusals, readers, threads and echoes: nothing of theirs is in ADK's events.
ELSEWHERE = {23, 36, 53, 54, 55, 57, 58, 59, 60, 63}


class TestRecordings(RecordingContract):
    folder = FOLDER
    load = load


def test_every_case_has_a_test_and_a_recording():
    tests = "\n".join(path.read_text() for path in HERE.rglob("test_*.py"))
    assert {int(it) for it in re.findall(r"def test_case_(\d\d)_", tests)} == set(range(1, 71))
    assert {int(path.stem[:2]) for path in FOLDER.glob("*.jsonl")} | ELSEWHERE == set(range(1, 71))
