"""Recordings: what real ADK runs gave, as JSON lines, and the events they must become.

`RUNCAST_RECORD=1 pytest tests/adapters/adk` writes both anew while the cases are played; look at the difference
before keeping it. Ids and times are counted while a stage plays, so that a case gives the same recording each time,
but where agents race or a test made its events before the stage.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from google.adk.events.event import Event
from google.adk.platform.time import set_time_provider
from google.adk.platform.uuid import set_id_provider

from runcast.adapters.adk import AdkOptions, AdkTranslator
from runcast.adapters.run_frame import RunIds
from tests.adapters.recording_contract import Recording

HERE = Path(__file__).parent / "recordings"
LARGEST = 100_000


def count_ids_and_times() -> None:
    """From here on ADK's ids are id-1, id-2, … and its clock goes in milliseconds from a fixed point."""
    ids, times = itertools.count(1), itertools.count(1)
    set_id_provider(lambda: f"id-{next(ids)}")
    set_time_provider(lambda: 1_750_000_000 + next(times) / 1000)


@dataclass(frozen=True)
class Recorded(Recording):
    """One case: the agent's root, the options that differ, and the events of each run."""

    name: str
    root: str
    options: Mapping[str, Any]
    runs: Sequence[Sequence[Event]]

    def translator(self, run: int) -> AdkTranslator:
        clock = itertools.count(1)
        options = AdkOptions(**self.options)
        return AdkTranslator(
            RunIds("t1", f"r{run + 1}"), root=self.root, options=options, clock=lambda: next(clock)
        )

    def parts(self, run: int) -> Sequence[Event]:
        return self.runs[run]


def load(path: Path) -> Recorded:
    head, *lines = [json.loads(line) for line in path.read_text("utf-8").rstrip("\n").split("\n")]
    runs: list[list[Event]] = []
    for line in lines:
        if "run" in line:
            runs.append([])
        else:
            runs[-1].append(Event.model_validate(line))
    return Recorded(path.stem, head["root"], head["options"], runs)


def record(root: str, options: AdkOptions, runs: Sequence[Sequence[Event]]) -> None:
    """Write down the case that is played now, when that was asked for."""
    if os.environ.get("RUNCAST_RECORD") != "1":
        return
    name = _case()
    if name is None:
        return
    HERE.mkdir(exist_ok=True)
    lines = [json.dumps({"root": root, "options": dict(_changed(options))})]
    for number, run in enumerate(runs, 1):
        lines.append(json.dumps({"run": number}))
        lines += [event.model_dump_json(by_alias=True, exclude_defaults=True) for event in run]
    text = "\n".join(lines) + "\n"
    if len(text) <= LARGEST:
        path = HERE / f"{name}.jsonl"
        path.write_text(text, "utf-8")
        load(path).keep(path)


def _case() -> str | None:
    """`test_case_06_a_rewritten_…[sse]` is recorded as `06_a_rewritten_…-sse`; other tests are not recorded."""
    found = re.search(r"::test_case_(\w+)(?:\[(.*)\])? ", os.environ.get("PYTEST_CURRENT_TEST", ""))
    if found is None:
        return None
    variant = re.sub(r"[^\w-]+", "_", found[2] or "")
    return found[1] + (f"-{variant}" if variant else "")


def _changed(options: AdkOptions) -> Iterator[tuple[str, Any]]:
    usual = AdkOptions()
    for field in fields(options):
        value = getattr(options, field.name)
        if value != getattr(usual, field.name):
            yield field.name, sorted(value) if isinstance(value, (set, frozenset)) else value
