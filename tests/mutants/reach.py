"""Which tests run which lines, how long each takes, and which fail without any fault.

Measured once for a test's module, and kept below `build/` until that changes. A source may change meanwhile: its lines are
found again by their text, and a new line counts as reached by whatever reached the one above it. A test that fails without
a fault notices nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

import coverage
import pytest

from tests.mutants.fault import ROOT, Fault, near
from tests.mutants.running import Child, Results, in_children, ordered, run_test

HOUSES = ("adapters", "slim", "broadcast", "app")
KEPT = ROOT / "build" / "mutants"
NOTICES = KEPT / "noticed"  # path, test and fault of each line
SOURCES = KEPT / "sources"  # as they were measured, by digest
PATIENCE = 300.0  # seconds: a test that takes longer breaks the measure
IDLE = 5  # a test that waits is counted as if it worked for this part of the time


def measuring(to: Path) -> coverage.Coverage:
    """A measure of lines in the sources."""
    warnings.filterwarnings("ignore", category=coverage.exceptions.CoverageWarning)
    included = [f"{ROOT}/{house}/*" for house in HOUSES]
    return coverage.Coverage(data_file=str(to), config_file=False, include=included)


ByLine = Mapping[int, Sequence[str]]  # the tests that run a line


@dataclass(frozen=True, slots=True)
class Part:
    """The measure of one test module."""

    data: coverage.CoverageData
    ran: Mapping[str, str]  # the sources that ran, with the digest of each
    seconds: Mapping[str, float]

    @classmethod
    def at(cls, place: Path) -> Part:
        kept = json.loads(place.with_suffix(".json").read_text())
        data = coverage.CoverageData(str(place))
        data.read()
        return cls(data, kept["ran"], kept["seconds"])

    def by_line(self, path: Path) -> ByLine:
        """The tests that run each line of a source, as it is now."""
        if str(path) not in self.ran:
            return {}
        found, digest = self.data.contexts_by_lineno(str(path)), self.ran[str(path)]
        if digest == _digest(path):
            return found
        return moved(found, (SOURCES / digest).read_text().splitlines(), path.read_text().splitlines())


def moved(by_line: ByLine, before: Sequence[str], now: Sequence[str]) -> ByLine:
    """What was measured of a text's lines, for those of another."""
    blocks = SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
    places = {each.b + n: each.a + n for each in blocks for n in range(each.size)}
    found, last = dict[int, Sequence[str]](), 0
    for number in range(len(now)):
        last = places.get(number, last)
        found[number + 1] = by_line.get(last + 1, ())
    return found


@dataclass(frozen=True, slots=True)
class Reach:
    parts: Sequence[Part]
    seconds: dict[str, float]
    items: dict[str, pytest.Item]
    budget: float  # seconds of tests for one fault
    by_path: dict[str, dict[int, list[str]]] = field(default_factory=dict[str, dict[int, list[str]]])
    quickest: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    noticed: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])

    @classmethod
    def over(cls, items: list[pytest.Item], jobs: int, budget: float) -> Reach:
        """What was measured of these tests; what was not is measured now."""
        SOURCES.mkdir(parents=True, exist_ok=True)
        places = {path: KEPT / f"{path.stem}-{_digest(path)}" for path in {item.path for item in items}}
        work = [
            Child(_measured([item for item in items if item.path == path], place))
            for path, place in sorted(places.items())
            if not place.with_suffix(".json").exists()
        ]
        for _ in in_children(work, jobs):
            pass
        parts = [Part.at(place) for place in places.values()]
        seconds = {name: spent for part in parts for name, spent in part.seconds.items()}
        return cls(parts, seconds, {item.nodeid: item for item in items}, budget)

    def tests(self, fault: Fault, *, only_near: bool = False) -> list[pytest.Item]:
        """Tests that run a line of the fault; where it is no function's, those that use the file. Beyond the budget they
        are cut; `only_near` leaves only those that mirror the file."""
        chosen, spent = list[pytest.Item](), 0.0
        for name in self._in_order(fault):
            spent += self.seconds[name]
            if (only_near and not self.is_near(name, fault)) or (spent > self.budget and chosen):
                break
            chosen.append(self.items[name])
        return chosen

    def is_near(self, name: str, fault: Fault) -> bool:
        """Whether a test mirrors the file of the fault: its module does, or it runs over the file, as a contract's do."""
        runs_over = name.partition("[")[2].rstrip("]").split("-")
        return self.items[name].path in near(fault.path) or Path(fault.path).stem in runs_over

    def _in_order(self, fault: Fault) -> list[str]:
        """First the tests that mirror the file; of each kind first those that noticed most faults of it in the least
        time, and last those that run the same lines of the file as a quicker one."""
        seconds, before, first = self.seconds, self._noticing(fault.path), self._first(fault.path)

        def rank(name: str) -> tuple[bool, bool, float]:
            cost = seconds[name] / (1 + before[name])
            return not self.is_near(name, fault), not (before[name] or name in first), cost

        return sorted(self._names(fault), key=rank)

    def _first(self, path: str) -> set[str]:
        """The quickest of all tests that run the same lines of a source."""
        if path not in self.quickest:
            lines = defaultdict[str, list[int]](list)
            for line, found in sorted(self._by_line(path).items()):
                for name in found:
                    lines[name].append(line)
            known = sorted(lines.keys() & self.seconds.keys(), key=self.seconds.__getitem__, reverse=True)
            self.quickest[path] = set({tuple(lines[name]): name for name in known}.values())
        return self.quickest[path]

    def _noticing(self, path: str) -> Counter[str]:
        """The tests that noticed faults of the file, and how many of them."""
        if path not in self.noticed:
            lines = NOTICES.read_text().splitlines() if NOTICES.exists() else ()
            rows = (line.split("\t") for line in lines)
            self.noticed[path] = Counter(name for at, name, _ in rows if at == path)
        return self.noticed[path]

    def remember(self, fault: Fault, name: str) -> None:
        """A test has noticed a fault."""
        self._noticing(fault.path)[name] += 1
        with NOTICES.open("a") as notices:
            notices.write(f"{fault.path}\t{name}\t{fault.key}\n")

    def cut(self, fault: Fault) -> int:
        """The number of tests that would run a line of the fault, and for which there is no time."""
        return len(self._names(fault)) - len(self.tests(fault))

    def _names(self, fault: Fault) -> set[str]:
        by_line, known = self._by_line(fault.path), self.seconds.keys() & self.items.keys()
        for lines in (fault.lines(), fault.around()):
            if names := {name for line in lines for name in by_line.get(line, ())} & known:
                return names
        return set()

    def _by_line(self, path: str) -> dict[int, list[str]]:
        if path not in self.by_path:
            found = self.by_path[path] = defaultdict[int, list[str]](list)
            for part in self.parts:
                for line, names in part.by_line(ROOT / path).items():
                    found[line] += names
        return self.by_path[path]


def trying(fault: Fault, name: str) -> None:
    """Write down which test is about to run with a fault, for when its process is killed."""
    (KEPT / f"trying-{fault.key}").write_text(name)


def tried_last(fault: Fault) -> str:
    """The test that ran last with this fault."""
    return (KEPT / f"trying-{fault.key}").read_text()


def _measured(items: list[pytest.Item], place: Path) -> Callable[[Results], int]:
    def run(said: Results) -> int:
        cover, seconds = measuring(place), dict[str, float]()
        cover.start()
        for item, after in ordered(items):
            cover.switch_context(item.nodeid)
            began, worked = time.monotonic(), sum(os.times()[:4])
            run_test(item, after, PATIENCE)
            # What it costs by itself: on a busy machine the clock says something else.
            spent = max(sum(os.times()[:4]) - worked, (time.monotonic() - began) / IDLE)
            if said.took_failure():
                print(f"fails without a fault, and is left out: {item.nodeid}", file=said.out, flush=True)
            else:
                seconds[item.nodeid] = spent
        cover.stop()
        cover.save()
        ran = {path: _digest(Path(path)) for path in cover.get_data().measured_files()}
        for path, digest in ran.items():
            (SOURCES / digest).write_bytes(Path(path).read_bytes())
        place.with_suffix(".json").write_text(json.dumps({"seconds": seconds, "ran": ran}))
        return 0

    return run


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
