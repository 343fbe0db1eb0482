"""What a serving process runs on: uvloop where it is installed, and a collector that leaves out the start."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest

from runcast.app.serve import freeze, runner

OTHER_LOOP = """
import asyncio

class Loop(asyncio.SelectorEventLoop):
    pass

new_event_loop = Loop
"""


async def kind() -> str:
    return type(asyncio.get_running_loop()).__name__


def test_uvloop_is_used_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uvloop.py").write_text(OTHER_LOOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "uvloop", raising=False)
    with runner() as loop:
        assert loop.run(kind()) == "Loop"
    monkeypatch.delitem(sys.modules, "uvloop")


def test_without_it_the_loop_is_pythons_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with runner() as loop:
        assert "EventLoop" in loop.run(kind())


def test_what_the_start_has_made_is_left_out_of_collections() -> None:
    before = gc.get_freeze_count()
    try:
        assert freeze() > max(before, 1_000)
        assert len(gc.get_objects(generation=2)) < 1_000
    finally:
        gc.unfreeze()
