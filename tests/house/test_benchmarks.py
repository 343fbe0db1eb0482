"""The collector of figures: it finds, runs, prints and writes down. No time is asserted, here or anywhere."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import benchmarks
from benchmarks.__main__ import found, main, table

FAST = """
def run(quick):
    return [
        {"name": "pour", "ours": 12.5, "peer": 100.0, "unit": "ms", "ratio": 8.0, "bar": ">= 8", "ok": True},
        {"name": "quick" if quick else "whole", "ours": 1234567, "peer": 1, "unit": "B", "ratio": 2.0, "bar": "<= 1", "ok": False},
    ]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "figures_for_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "cups.py").write_text(FAST)
    (folder / "broken.py").write_text("def run(quick):\n    raise OSError('no peer')\n")
    (folder / "inputs.py").write_text("SIZE = 3\n")
    (folder / "_private.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(folder.name)
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_every_ratio_stands_beside_its_bar(
    package: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["--only", "cups"], package=package, results=tmp_path / "results") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["pour", "12.50", "100.00", "ms", "8.00", ">=", "8", "ok"] in lines
    assert ["whole", "1,234,567", "1", "B", "2.00", "<=", "1", "MISSED"] in lines


def test_the_figures_are_written_down_with_the_machine(package: ModuleType, tmp_path: Path):
    main(["--quick"], package=package, results=tmp_path / "results")
    (written,) = (tmp_path / "results").glob("*.json")
    kept = json.loads(written.read_text())
    assert kept["quick"] is True
    assert kept["python"].startswith("3.")
    assert [row["name"] for row in kept["rows"]] == ["broke: OSError('no peer')", "pour", "quick"]


def test_a_missed_bar_ends_with_one_only_when_asked(package: ModuleType, tmp_path: Path):
    assert main(["--only", "cups"], package=package, results=tmp_path) == 0
    assert main(["--only", "cups", "--strict"], package=package, results=tmp_path) == 1


def test_a_benchmark_that_breaks_ends_with_one(package: ModuleType, tmp_path: Path):
    assert main(["--only", "broken"], package=package, results=tmp_path) == 1


def test_figures_are_not_published_without_a_full_run(
    package: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["--markdown"], package=package, results=tmp_path) == 1
    assert "say `make bench` first" in capsys.readouterr().err


def test_an_unknown_benchmark_is_refused_with_those_there_are(
    package: ModuleType, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        main(["--only", "saucers"], package=package)
    assert "no benchmark named saucers; there are: broken, cups, inputs" in capsys.readouterr().err


def test_no_rows_are_no_table():
    assert "ratio" in table([])


def test_the_benchmarks_that_are_there_can_be_imported():
    for name in found(benchmarks):
        importlib.import_module(f"benchmarks.{name}")
