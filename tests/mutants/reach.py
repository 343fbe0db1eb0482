"""Which tests run which lines, how long each takes, and which fail without any fault.

Measured once for a state of the sources and of a test's module, and kept below `build/`. A test that fails without a
fault notices nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest

from tests.mutants.fault import ROOT, Fault
from tests.mutants.running import Child, Results, in_children, ordered, run_test

HOUSES = ("adapters", "slim", "broadcast", "app")
KEPT = ROOT / "build" / "mutants"
NOTICES = KEPT / "noticed"  # path, test and fault of each line
PATIENCE = 300.0  # seconds: a test that takes longer breaks the measure


def measuring(to: Path) -> coverage.Coverage:
    """A measure of lines in the sources."""
    warnings.filterwarnings("ignore", category=coverage.exceptions.CoverageWarning)
    included = [f"{ROOT}/{house}/*" for house in HOUSES]
    return coverage.Coverage(data_file=str(to), config_file=False, include=included)


@dataclass(frozen=True, slots=True)
class Reach:
    data: coverage.CoverageData
    seconds: dict[str, float]
    items: dict[str, pytest.Item]
    budget: float  # seconds of tests for one fault
    by_line: dict[str, dict[int, list[str]]] = field(default_factory=dict[str, dict[int, list[str]]])

    @classmethod
    def over(cls, items: list[pytest.Item], jobs: int, budget: float) -> Reach:
        """What was measured of these sources and tests; what was not is measured now."""
        it = cls(coverage.CoverageData(no_disk=True), {}, {item.nodeid: item for item in items}, budget)
        folder = KEPT / _digest(*sorted(path for top in HOUSES for path in (ROOT / top).rglob("*.py")))
        folder.mkdir(parents=True, exist_ok=True)
        places = {path: folder / f"{path.stem}-{_digest(path)}" for path in {item.path for item in items}}
        work = [
            Child(_measured([item for item in items if item.path == path], place))
            for path, place in places.items()
            if not place.with_suffix(".json").exists()
        ]
        for _ in in_children(work, jobs):
            pass
        for place in places.values():
            part = coverage.CoverageData(str(place))
            part.read()
            it.data.update(part)
            it.seconds.update(json.loads(place.with_suffix(".json").read_text()))
        return it

    def tests(self, fault: Fault) -> list[pytest.Item]:
        """Tests that run a line of the fault; where it is no function's, those that use the file. First those
        that noticed faults of the file, then those of the same room, the quickest before the others. Beyond the budget
        they are cut."""
        chosen, spent = list[pytest.Item](), 0.0
        room, before = Path(fault.path).parent.name, noticing(fault)
        for name in sorted(
            self._names(fault), key=lambda name: (-before[name], f"/{room}/" not in name, self.seconds[name])
        ):
            spent += self.seconds[name]
            if spent > self.budget and chosen:
                break
            chosen.append(self.items[name])
        return chosen

    def cut(self, fault: Fault) -> int:
        """The number of tests that would run a line of the fault, and for which there is no time."""
        return len(self._names(fault)) - len(self.tests(fault))

    def _names(self, fault: Fault) -> set[str]:
        if fault.path not in self.by_line:
            self.by_line[fault.path] = self.data.contexts_by_lineno(str(ROOT / fault.path))
        by_line = self.by_line[fault.path]
        known = self.seconds.keys() & self.items.keys()
        names = {name for line in fault.lines() for name in by_line.get(line, ())} & known
        return names or {name for found in by_line.values() for name in found} & known


def noticing(fault: Fault) -> Counter[str]:
    """The tests that noticed faults of the same file, and how many of them."""
    lines = NOTICES.read_text().splitlines() if NOTICES.exists() else ()
    rows = (line.split("\t") for line in lines)
    return Counter(name for path, name, _ in rows if path == fault.path)


def last_noticing(fault: Fault) -> str:
    """The test that noticed this very fault last."""
    lines = NOTICES.read_text().splitlines() if NOTICES.exists() else ()
    return next((line.split("\t")[1] for line in reversed(lines) if line.split("\t")[2] == fault.key), "")


def remember(fault: Fault, name: str) -> None:
    with NOTICES.open("a") as notices:
        notices.write(f"{fault.path}\t{name}\t{fault.key}\n")


def _measured(items: list[pytest.Item], place: Path) -> Callable[[Results], int]:
    def run(said: Results) -> int:
        cover, seconds = measuring(place), dict[str, float]()
        cover.start()
        for item, after in ordered(items):
            cover.switch_context(item.nodeid)
            began = time.monotonic()
            run_test(item, after, PATIENCE)
            spent = time.monotonic() - began
            if said.took_failure():
                print(f"fails without a fault, and is left out: {item.nodeid}", file=said.out, flush=True)
            else:
                seconds[item.nodeid] = spent
        cover.stop()
        cover.save()
        place.with_suffix(".json").write_text(json.dumps(seconds))
        return 0

    return run


def _digest(*paths: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        if "node_modules" not in path.parts:
            found.update(path.read_bytes())
    return found.hexdigest()[:16]
