"""Recordings, and what every adapter's recordings hold: native parts as JSON lines, and the events they must become.

A framework's `recordings.py` inherits `Recording`, which it teaches to read its own parts; its test module inherits
`RecordingContract` and brings the folder and the reader.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ag_ui.core import Event

from runcast.adapters import Translator
from tests.adapters.harness import before_1_0, strict
from tests.e2e.oracle import Oracle


class Recording(ABC):
    """A scene's runs as its framework gave them."""

    runs: Sequence[Any]

    @abstractmethod
    def translator(self, run: int) -> Translator:
        """A fresh translator for this run, with a clock that counts."""

    @abstractmethod
    def parts(self, run: int) -> Sequence[Any]:
        """The native parts of this run."""

    def error(self, run: int) -> BaseException | None:
        """The error that ended this run."""
        return None

    def events(self, run: int, *, until: int | None = None, end: str = "finish") -> list[Event]:
        """A run, translated: whole, or cut after so many parts and ended there."""
        translator, error = self.translator(run), self.error(run)
        events = translator.start()
        for part in self.parts(run)[:until]:
            events += translator.feed(part)
        if until is None and error is not None:
            return events + translator.fail(error)
        if end == "fail":
            return events + translator.fail(RuntimeError("torn"))
        return events + (translator.cancel() if end == "cancel" else translator.finish())

    def torn(self) -> Iterator[list[Event]]:
        """Every run cut after every part: failed there, cancelled there, and left by its source."""
        for run in range(len(self.runs)):
            for until in range(len(self.parts(run)) + 1):
                for end in ("fail", "cancel", "finish"):
                    yield self.events(run, until=until, end=end)

    def golden(self) -> str:
        """The events of all runs as lines."""
        events = (event for run in range(len(self.runs)) for event in self.events(run))
        return "".join(f"{json.dumps(event.model_dump(mode='json', by_alias=True))}\n" for event in events)

    def keep(self, path: Path) -> None:
        """Write the events beside the parts; look at the difference before keeping it."""
        path.with_suffix(".events").write_text(self.golden(), "utf-8")


class RecordingContract:
    """The tests of a folder of recordings."""

    folder: ClassVar[Path]
    load: ClassVar[Callable[[Path], Recording]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Each test runs over every recording."""
        if "path" in metafunc.fixturenames:
            metafunc.parametrize("path", sorted(self.folder.glob("*.jsonl")), ids=lambda path: path.stem)

    def test_parts_become_these_events(self, path: Path) -> None:
        assert type(self).load(path).golden() == path.with_suffix(".events").read_text("utf-8")

    @pytest.mark.oracle
    def test_torn_streams_are_whole(self, path: Path, oracle: Oracle) -> None:
        streams = list(type(self).load(path).torn())
        for events in streams:
            strict(events)
            assert events[-1].type in ("RUN_FINISHED", "RUN_ERROR")
        for answer in oracle.batch([{"op": "pipeline", "events": events} for events in streams]):
            assert answer["ok"], answer["error"]

    @pytest.mark.oracle
    def test_the_client_before_1_0_takes_every_stream(self, path: Path, oracle: Oracle) -> None:
        recording = type(self).load(path)
        for run in range(len(recording.runs)):
            answer = oracle.earlier(before_1_0(recording.events(run)))
            assert answer["ok"], answer["error"]

    def test_a_run_ends_once(self, path: Path) -> None:
        translator = type(self).load(path).translator(0)
        translator.start()
        assert translator.cancel()[-1].type == "RUN_FINISHED"
        assert not translator.fail(RuntimeError("late"))
        assert not translator.cancel()
        assert not translator.finish()
