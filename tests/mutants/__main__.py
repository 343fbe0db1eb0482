"""`make mutants`: one fault at a time in a copy of the tree, and the tests that mirror its file; ends with the share noticed.

`--only leases` narrows the areas, `--jobs 4` runs so many copies at once, `--list` only looks whether every fault still has
its text. A fault is noticed when a test fails, or does not end. Each fault is tried in a fork of a process that has the
libraries imported, at a low priority; nothing is written to the tree itself.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.fault import Fault

ROOT = Path(__file__).resolve().parents[2]
AREAS = ("durability", "leases", "authorization", "redaction")
HOUSES = ("adapters", "slim", "broadcast", "app")
LEFT_OUT = shutil.ignore_patterns("node_modules", ".venv", ".git", "__pycache__", ".*_cache", "build", "dist")
NICE = 5
PATIENCE = 600.0  # seconds, after which tests that do not end have noticed
LIBRARIES = (
    "pytest",
    "hypothesis",
    "httpx",
    "psycopg_pool",
    "starlette",
    "uvicorn",
    "websockets",
    "ag_ui.core",
)
Verdict = str  # "noticed", "hangs" or "SURVIVES"


def load(areas: list[str]) -> dict[str, tuple[Fault, ...]]:
    return {area: importlib.import_module(f"tests.mutants.{area}").FAULTS for area in areas}


@contextmanager
def copies(count: int) -> Iterator[SimpleQueue[Path]]:
    """So many copies of the tree."""
    free: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="runcast-mutants-") as folder:
        for number in range(count):
            copy = Path(folder) / str(number)
            shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
            free.put(copy)
        yield free


def tried(fault: Fault, copy: Path) -> Verdict:
    """Run the fault's tests in a copy that has it."""
    path = copy / fault.path
    sound = path.read_text()
    path.write_text(fault.applied(copy))
    try:
        return verdict(fault.tests, copy)
    finally:
        path.write_text(sound)


def verdict(tests: tuple[str, ...], copy: Path) -> Verdict:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = run_tests(tests, copy)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "SURVIVES" if status == 0 else "noticed"
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def run_tests(tests: tuple[str, ...], copy: Path) -> int:
    """In the child: pytest over the copy. Its own process group, so that what it started ends with it."""
    os.setpgid(0, 0)
    silence = os.open(copy / "pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(silence, stream)
    import pytest

    os.nice(NICE)
    os.chdir(copy)
    for name in [each for each in sys.modules if each.partition(".")[0] in ("tests", "runcast")]:
        del sys.modules[name]
    sys.path[:0] = [str(copy), *(str(copy / house) for house in HOUSES)]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[: 1 + len(HOUSES)])
    return int(
        pytest.main(
            ["-x", "-q", "-n0", "-p", "no:cacheprovider", "-W", "ignore:Module already imported", *tests]
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--only", default=",".join(AREAS), help="areas, separated by commas")
    parser.add_argument("--grep", default="", help="only faults whose text or path has this in it")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--sound", action="store_true", help="the tests are known to pass without a fault")
    asked = parser.parse_args()
    found = {
        area: [each for each in faults if asked.grep in str(each)]
        for area, faults in load(asked.only.split(",")).items()
    }
    for fault in (each for faults in found.values() for each in faults):
        fault.applied(ROOT)
    print({area: len(faults) for area, faults in found.items()}, flush=True)
    if asked.list:
        return 0
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    survivors: list[Fault] = []
    seen: Counter[Verdict] = Counter()
    with copies(asked.jobs) as free, ThreadPoolExecutor(asked.jobs) as pool:
        every = [each for faults in found.values() for each in faults]

        def is_sound(tests: tuple[str, ...]) -> bool:
            copy = free.get()
            try:
                return verdict(tests, copy) == "SURVIVES"
            finally:
                free.put(copy)

        targets = [] if asked.sound else list(dict.fromkeys(each.tests for each in every))
        broken = [
            tests for tests, sound in zip(targets, pool.map(is_sound, targets), strict=True) if not sound
        ]
        if broken:
            raise SystemExit(f"without any fault these tests fail: {broken}")

        def judge(fault: Fault) -> tuple[Fault, Verdict, float]:
            copy, began = free.get(), time.monotonic()
            try:
                return fault, tried(fault, copy), time.monotonic() - began
            finally:
                free.put(copy)

        for fault, said, seconds in pool.map(judge, every):
            seen[said] += 1
            print(f"{said:<9}{seconds:6.1f} s  {fault}", flush=True)
            if said == "SURVIVES":
                survivors.append(fault)
    total = seen.total()
    print(
        f"{total - len(survivors)} of {total} noticed ({100 * (1 - len(survivors) / total):.0f} %); {dict(seen)}"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
