"""Recordings: native parts in, the very same events out; and whole streams out of every torn one."""

from __future__ import annotations

from tests.adapters.langgraph.recordings import HERE, load, recordings
from tests.adapters.langgraph.scenes import SCENES
from tests.adapters.recording_contract import RecordingContract


class TestRecordings(RecordingContract):
    folder = HERE
    load = load


def test_every_scene_is_recorded():
    assert {path.stem for path in recordings()} == set(SCENES)


def test_every_number_has_a_scene_or_a_test():
    scenes = {int(name[:2]) for name in SCENES}
    elsewhere = {
        47,
        49,
        56,
        57,
        59,
        60,
    }  # test_stopping, test_adapter, test_forks, test_slow_readers, test_savers
    assert scenes | elsewhere == set(range(1, max(scenes) + 1))
