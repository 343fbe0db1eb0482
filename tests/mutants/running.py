"""Tests run in a fork of a process that has collected them, so many forks at once."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.mutants.fault import ROOT

BROKEN = 99


class Results:
    """What pytest reports in this process: a plugin."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.out: TextIO = sys.stdout

    def took_failure(self) -> bool:
        """Whether a test failed since this was asked last."""
        found = bool(self.failed)
        self.failed.clear()
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


RESULTS = Results()
_ENDED: dict[int, int] = {}  # children that nobody has asked for yet, and how they ended


@dataclass(frozen=True, slots=True)
class Child:
    """A piece of work for a fork, which answers with a number; and what the fork is about."""

    run: Callable[[Results], int]
    about: Any = None


def in_children(work: Iterable[Child], jobs: int) -> Iterator[tuple[Any, int]]:
    """Each piece in a fork of its own; yields what it was about and how it ended: its answer, or minus the
    signal that killed it."""
    running = dict[int, Child]()
    folder = tempfile.mkdtemp(prefix="runcast-mutants-")
    try:
        for each in work:
            if len(running) == jobs:
                yield _one(running)
            running[_forked(each, folder)] = each
        while running:
            yield _one(running)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _forked(work: Child, folder: str) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        os.setpgid(0, 0)
        os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.mkdtemp(dir=folder)
        tempfile.tempdir = None
        RESULTS.out = os.fdopen(os.dup(1), "w")
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        code = work.run(RESULTS)
    except BaseException:
        traceback.print_exc(file=RESULTS.out)
        RESULTS.out.flush()
    finally:
        os._exit(code)


def _one(running: dict[int, Child]) -> tuple[Any, int]:
    while not (ended := running.keys() & _ENDED.keys()):
        child, status = os.wait()
        _ENDED[child] = status
    child = ended.pop()
    with suppress(ProcessLookupError, PermissionError):  # what it started ends with it
        os.killpg(child, signal.SIGKILL)
    answer = os.waitstatus_to_exitcode(_ENDED.pop(child))
    if answer == BROKEN:
        raise RuntimeError("this driver is broken: see the traceback above")
    return running.pop(child).about, answer


def run_test(item: pytest.Item, after: pytest.Item | None, limit: float) -> None:
    """One test. Where it takes longer than the limit, SIGALRM kills the process."""
    signal.alarm(round(limit))
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
    signal.alarm(0)


def ordered(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Each test with the one after it. The last one has another part's test behind it: no fork ends what all share."""
    for item, after in zip(items, [*items, None][1:], strict=True):
        yield item, after or far(item)


def far(item: pytest.Item) -> pytest.Item | None:
    others = [each for each in item.session.items if each is not item]
    return max(others, key=lambda each: _apart(each.path, item.path), default=None)


def _apart(one: Path, other: Path) -> bool:
    return one.relative_to(ROOT).parts[:2] != other.relative_to(ROOT).parts[:2]
