"""Recordings: native parts in, the very same events out; and whole streams out of every torn one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event

from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.recordings import Recording, golden, load, recordings, written
from tests.adapters.langgraph.scenes import SCENES
from tests.adapters.langgraph.stage import before_1_0

every_recording = pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)


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


@every_recording
def test_parts_become_these_events(path: Path):
    recording = load(path)
    for run in range(len(recording.runs)):
        assert not verify(recording.events(run))
    assert (
        "".join(written(recording.events(run)) for run in range(len(recording.runs)))
        == golden(path).read_text()
    )


def torn(recording: Recording) -> Iterator[list[Event]]:
    """Every run cut after every part, and failed there, and cancelled there, and left by its source."""
    for run in range(len(recording.runs)):
        parts = recording.parts(run)
        for at in range(len(parts) + 1):
            for end in ("fail", "cancel", "finish"):
                translator = recording.translator(run)
                events = translator.start()
                for part in parts[:at]:
                    events += translator.feed(part)
                match end:
                    case "fail":
                        events += translator.fail(RuntimeError("torn"))
                    case "cancel":
                        events += translator.cancel()
                    case _:
                        events += translator.finish()
                yield events


@every_recording
@pytest.mark.oracle
def test_torn_streams_are_whole(path: Path, oracle: Any):
    streams = list(torn(load(path)))
    for events in streams:
        assert not verify(events)
        assert events[-1].type in ("RUN_FINISHED", "RUN_ERROR")
    asked = [{"op": "pipeline", "events": [plainly(event) for event in events]} for events in streams]
    for events, answer in zip(streams, oracle.batch(asked), strict=True):
        assert answer["ok"], (answer["error"], written(events))


def plainly(event: Event) -> dict[str, Any]:
    return event.model_dump(mode="json", by_alias=True)


@every_recording
@pytest.mark.oracle
def test_the_client_before_1_0_takes_every_stream(path: Path, oracle: Any):
    recording = load(path)
    for run in range(len(recording.runs)):
        answer = oracle.earlier(before_1_0(recording.events(run)))
        assert answer["ok"], answer["error"]


@every_recording
def test_an_ending_is_told_once(path: Path):
    recording = load(path)
    translator = recording.translator(0)
    translator.start()
    assert translator.cancel()[-1].type == "RUN_FINISHED"
    assert not translator.fail(RuntimeError("late"))
    assert not translator.cancel()
    assert not translator.finish()
