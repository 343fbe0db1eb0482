"""`make mutants`: one fault at a time, and the tests that run its lines; ends with the shares that were noticed.

A fault is noticed near when a test that mirrors its file fails or does not end with it, twice, and passes without;
noticed far when another test of the room does. It survives when every test of the room that runs its lines passes; when
some of them had no time (`--budget`), it is CUT, and counts as not noticed.

`--only leases` narrows the areas, `--sample 120 --seed 7` takes faults made by rule instead of those that are data,
`--every` all of these, each tried once: a list to work from, not a figure. `--grep` narrows all of them, `--again` takes
only those that survived last, `--near` leaves out the other tests of the room, `--jobs 2` runs so many at once, `--list`
only shows them. Nothing is written to the tree: a fork has the fault in its memory. A program that a test starts has none.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FunctionType, ModuleType
from unittest.mock import patch

import coverage
import pytest

from tests.mutants.fault import ROOT, Fault, near, room_of
from tests.mutants.planting import functions, plant, plant_constants
from tests.mutants.reach import KEPT, Reach, measuring, tried_last, trying
from tests.mutants.rules import every, sample
from tests.mutants.running import RESULTS, Child, Results, far, in_children, ordered, run_test

AREAS = (
    *("durability", "leases", "authorization", "redaction", "queueing", "keeping", "webhooks"),
    *("writing", "catching_up", "hosting", "edges", "seams"),
)
SURVIVORS = KEPT / "survivors"
PATIENCE = 10.0  # seconds, and ten times what a test takes: beyond it, the fault is noticed
NOTICED, SURVIVES, HANGS = 1, 0, -signal.SIGALRM
NO_TEST = (5,)  # pytest's own answer when it finds none
WORDS = {NOTICED: "noticed", SURVIVES: "SURVIVES", HANGS: "hangs"}


class Trials:
    """The plugin that tries faults instead of running the tests."""

    def __init__(
        self, asked: argparse.Namespace, faults: tuple[Fault, ...], at_import: coverage.Coverage
    ) -> None:
        self._asked = asked
        self._began = dict[str, float]()  # by the key of a fault
        self._faults = faults
        self._at_import = at_import
        self._near = 0
        self.survivors = 0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for fault in self._faults:
            _module(fault)
        self._at_import.stop()
        measured = self._at_import.get_data()
        ran = {each.path: set(measured.lines(str(ROOT / each.path)) or ()) for each in self._faults}
        with _shared_server(session.items):
            self._try_all(session.items, ran)
        return True

    def _try_all(self, items: list[pytest.Item], ran: dict[str, set[int]]) -> None:
        found = functions()
        gc.collect()
        gc.freeze()
        jobs = self._asked.jobs
        reach = Reach.over(items, jobs, self._asked.budget)
        self._seen, began = Counter[str](), time.monotonic()
        waiting = list(reversed(self._faults))
        while waiting:
            work = (
                Child(self._trial(each, reach, found[str(ROOT / each.path)], ran[each.path]), each)
                for each in self._taken(waiting)
            )
            for fault, answer in in_children(work, jobs):
                name = tried_last(fault) if answer in (NOTICED, HANGS) else ""
                if (
                    name
                    and not self._asked.every
                    and not self._is_sound(reach, name, fault, found[str(ROOT / fault.path)])
                ):
                    reach.seconds.pop(name, None)
                    waiting.append(fault)
                else:
                    if name:
                        reach.remember(fault, name)
                    self._report(fault, answer, reach)
        total, self.survivors = self._seen.total(), self._seen["SURVIVES"] + self._seen["CUT"]
        for what, count in (("near", self._near), ("in the room", total - self.survivors)):
            print(f"{count} of {total} noticed {what} ({100 * count / max(total, 1):.1f} %)")
        print(dict(self._seen))
        print(f"{time.monotonic() - began:.0f} seconds")

    def _report(self, fault: Fault, answer: int, reach: Reach) -> None:
        survives, name = answer in (SURVIVES, *NO_TEST), tried_last(fault)
        tests = self._tests(reach, fault)
        word = WORDS.get(answer, f"noticed ({answer})")
        if survives:
            word = "CUT" if reach.cut(fault) and not self._asked.near else "SURVIVES"
        elif not name or reach.is_near(name, fault):
            self._near += 1
        else:
            word += " far"
        self._seen[word] += 1
        why = f"{len(tests)} tests, {reach.cut(fault)} cut" if survives else name
        print(f"{word} {time.monotonic() - self._began[fault.key]:.0f} s, {why}: {fault}", flush=True)
        kept = survivors() - {fault.key} | ({fault.key} if survives else set())
        SURVIVORS.write_text("\n".join(sorted(kept)))

    def _tests(self, reach: Reach, fault: Fault) -> list[pytest.Item]:
        return reach.tests(fault, only_near=self._asked.near)

    def _taken(self, waiting: list[Fault]) -> Iterator[Fault]:
        while waiting:
            fault = waiting.pop()
            self._began[fault.key] = time.monotonic()
            yield fault

    def _is_sound(self, reach: Reach, name: str, fault: Fault, found: list[FunctionType]) -> bool:
        """Whether the test passes without the fault, and fails with it once more; each in a fork of its own."""
        item, limit = reach.items[name], 2 * (PATIENCE + 10 * reach.seconds.get(name, 1.0))

        def passes(said: Results) -> int:
            run_test(item, far(item), limit)
            return int(said.took_failure())

        def fails(said: Results) -> int:
            try:
                plant(ROOT / fault.path, fault.applied(), found)
            except LookupError:
                try:
                    plant_constants(ROOT / fault.path, fault.applied(), _module(fault))
                except LookupError:  # a new interpreter is not asked twice
                    return NOTICED
            return passes(said)

        sound, faulty = (answer for _, answer in in_children([Child(passes), Child(fails)], 1))
        return sound == 0 and faulty in (NOTICED, HANGS)

    def _trial(
        self, fault: Fault, reach: Reach, found: list[FunctionType], ran: set[int]
    ) -> Callable[[Results], int]:
        items = self._tests(reach, fault)
        trying(fault, "")

        def run(said: Results) -> int:
            try:
                if ran.isdisjoint(fault.lines()):
                    plant(ROOT / fault.path, fault.applied(), found)
                else:
                    plant_constants(ROOT / fault.path, fault.applied(), _module(fault))
            except LookupError:
                return _anew(fault, items)
            for item, after in ordered(items):
                trying(fault, item.nodeid)
                run_test(item, after, PATIENCE + 10 * reach.seconds.get(item.nodeid, 1.0))
                if said.took_failure():
                    return NOTICED
            return SURVIVES

        return run


def _module(fault: Fault) -> ModuleType:
    return importlib.import_module(fault.path.partition("/")[2].removesuffix(".py").replace("/", "."))


def _anew(fault: Fault, items: list[pytest.Item]) -> int:
    """The same in a new interpreter, which takes this one's place."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as text:
        text.write(fault.applied())
    program = [sys.executable, "-m", "tests.mutants.planting", str(ROOT / fault.path), text.name]
    if names := [item.nodeid for item in items]:
        os.execv(sys.executable, [*program, "-x", "-q", "-n0", "-p", "no:cacheprovider", *names])
    return SURVIVES


def survivors() -> set[str]:
    """The keys of the faults that survived when they were tried last."""
    return set(SURVIVORS.read_text().split()) if SURVIVORS.exists() else set()


@contextmanager
def _shared_server(items: list[pytest.Item]) -> Iterator[None]:
    """Start PostgreSQL here once, if a test may ask for it: a fork that does gets this one, and takes a schema of it."""
    asked = {name for item in items for name in getattr(item, "fixturenames", ())}
    if asked.isdisjoint({"postgres_server", "url", "store_url", "shared_url"}):
        yield
        return
    servers = importlib.import_module("tests.servers")  # which pytest rewrites, so not before it runs
    with servers.postgres() as there, patch.object(servers, "postgres", lambda: nullcontext(there)):
        yield


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--only", default=",".join(AREAS), help="areas, separated by commas")
    parser.add_argument("--sample", type=int, default=0, help="so many faults made by rule")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="only those that survived last")
    parser.add_argument(
        "--grep", default="", help="only faults in whose path and text this expression is found"
    )
    parser.add_argument("--every", action="store_true", help="all faults made by rule, each tried once")
    parser.add_argument("--near", action="store_true", help="only tests that mirror the file")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of tests for one fault")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    areas = (importlib.import_module(f"tests.mutants.{area}").FAULTS for area in asked.only.split(","))
    by_rule = asked.every or asked.sample
    faults = every() if by_rule else tuple(each for area in areas for each in area)
    if asked.grep:
        faults = tuple(each for each in faults if re.search(asked.grep, str(each)))
    if asked.sample:
        faults = sample(faults, asked.sample, asked.seed)
    if asked.again:
        last = survivors()
        faults = tuple(each for each in faults if each.key in last)
    for fault in faults:
        compile(fault.applied(), fault.path, "exec")
        if asked.list:
            print(fault)
    if asked.list:
        return 0
    mirrors = {str(module) for fault in faults for module in near(fault.path)}
    tests = sorted(mirrors if asked.near else {room_of(fault.path).as_posix() for fault in faults})
    KEPT.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(ROOT)]
    at_import = measuring(str(Path(tempfile.mkdtemp()) / "import"))
    at_import.start()
    trials = Trials(asked, faults, at_import)
    code = pytest.main(
        ["-q", "-s", "-n0", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *tests],
        [trials, RESULTS],
    )
    return int(code) or int(trials.survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
