"""Which tests run which lines, how long each takes, and which fail without any fault.

Measured once for a test's module and the sources that it runs, and kept below `build/` until one of them changes. A test
that fails without a fault notices nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections import Counter, defaultdict
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
        KEPT.mkdir(parents=True, exist_ok=True)
        digests = dict[str, str]()
        places = {path: KEPT / f"{path.stem}-{_digest(path)}" for path in {item.path for item in items}}
        work = [
            Child(_measured([item for item in items if item.path == path], place))
            for path, place in sorted(places.items())
            if not _holds(place, digests)
        ]
        for _ in in_children(work, jobs):
            pass
        for place in places.values():
            part = coverage.CoverageData(str(place))
            part.read()
            it.data.update(part)
            it.seconds.update(json.loads(place.with_suffix(".json").read_text())["seconds"])
        return it

    def tests(self, fault: Fault) -> list[pytest.Item]:
        """Tests that run a line of the fault; where it is no function's, those that use the file. Beyond the budget they
        are cut."""
        chosen, spent = list[pytest.Item](), 0.0
        for name in self._in_order(fault):
            spent += self.seconds[name]
            if spent > self.budget and chosen:
                break
            chosen.append(self.items[name])
        return chosen

    def _in_order(self, fault: Fault) -> list[str]:
        """The quick ones first. A test counts as quicker that noticed faults of the file, or mirrors it, or is of its room;
        as slower if another one runs the same lines of the file."""
        place, before, names = Path(fault.path), noticing(fault), self._names(fault)
        mirrored, room = f"test_{place.stem}", f"/{place.parent.name}/"
        lines = defaultdict[str, list[int]](list)
        for line, found in sorted(self.by_line[fault.path].items()):
            for name in found:
                lines[name].append(line)

        def cost(name: str) -> float:
            far = 1 if mirrored in name else 2 if room in name else 4
            return far * self.seconds[name] / (1 + before[name])

        likely = sorted(names, key=cost)
        first = {tuple(lines[name]): name for name in reversed(likely)}
        return sorted(likely, key=lambda name: cost(name) * (1 if first[tuple(lines[name])] == name else 3))

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


def trying(fault: Fault, name: str) -> None:
    """Write down which test is about to run with a fault, for when its process is killed."""
    (KEPT / f"trying-{fault.key}").write_text(name)


def tried_last(fault: Fault) -> str:
    """The test that ran last with this fault."""
    return (KEPT / f"trying-{fault.key}").read_text()


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
        ran = {path: _digest(Path(path)) for path in cover.get_data().measured_files()}
        place.with_suffix(".json").write_text(json.dumps({"seconds": seconds, "ran": ran}))
        return 0

    return run


def _holds(place: Path, digests: dict[str, str]) -> bool:
    """Whether this was measured, and the sources that ran are still the same."""
    kept = place.with_suffix(".json")
    if not kept.exists():
        return False
    ran: dict[str, str] = json.loads(kept.read_text())["ran"]
    for path in ran.keys() - digests.keys():
        digests[path] = _digest(Path(path)) if Path(path).exists() else ""
    return all(digests[path] == digest for path, digest in ran.items())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
