"""The figures in documents: each block is what the committed file makes of it, and nobody's hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import _figures
from benchmarks.__main__ import measuring
from tests.house.tree import ROOT

KEPT = _figures.read()
ROW = {
    "benchmark": "cups",
    "name": "pour",
    "ours": 1.23456,
    "peer": 4,
    "unit": "ms",
    "ratio": 3.2,
    "bar": ">= 3",
    "ok": True,
}


@pytest.mark.parametrize("document", _figures.documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_block_of_figures_is_what_the_file_makes_of_it(document: Path):
    text = document.read_text(encoding="utf-8")
    assert _figures.filled(text, KEPT) == text, (
        "say `python -m benchmarks --markdown`; blocks are not edited by hand"
    )


def test_the_pages_on_figures_and_scale_have_figures():
    assert {ROOT / "docs" / "figures.md", ROOT / "docs" / "scale.md"} <= set(_figures.documents())


def test_every_benchmark_has_figures_that_are_dated_and_whole():
    import benchmarks

    assert {row["benchmark"] for row in KEPT["rows"]} == set(measuring(benchmarks))
    assert not [row for row in KEPT["rows"] if row["name"].startswith("broke: ")]
    assert {"at", "python", "cpus"} <= KEPT.keys()


@pytest.mark.parametrize(("benchmark", "opening"), _figures.HEADLINES)
def test_every_headline_finds_its_row(benchmark: str, opening: str):
    assert any(re.match(opening, row["name"]) for row in _figures.rows_of(KEPT, benchmark))


def test_a_block_is_filled_and_the_text_around_it_stays():
    text = "before\n<!-- figures: everything -->\nby hand\n<!-- end of figures -->\nafter\n"
    kept = {"at": "2026-01-16T10:05:00", "cpus": 2, "machine": "x", "python": "3.11", "rows": [ROW]}
    said = _figures.filled(text, kept)
    assert said.startswith("before\n")
    assert said.endswith("\nafter\n")
    assert "by hand" not in said
    assert "| pour | 1.23 ms | 4 ms | 3.20 | >= 3 |" in said
    assert "Measured on 2026-01-16" in said
    assert _figures.filled(said, kept) == said


def test_a_block_that_nobody_knows_is_refused():
    with pytest.raises(LookupError, match="no block of figures is called 'cups'"):
        _figures.filled("<!-- figures: cups -->\n<!-- end of figures -->", KEPT)


def test_only_a_full_run_without_a_fault_is_published(tmp_path: Path):
    for name, quick, row in (("1", False, ROW), ("2", True, ROW), ("3", False, {**ROW, "name": "broke: it"})):
        (tmp_path / f"{name}.json").write_text(json.dumps({"at": name, "quick": quick, "rows": [row]}))
    assert _figures.newest(tmp_path, ["cups"])["at"] == "1"
    with pytest.raises(LookupError, match="make bench"):
        _figures.newest(tmp_path, ["cups", "saucers"])


def test_what_is_kept_reads_back_without_more_digits_than_mean_something(tmp_path: Path):
    path = tmp_path / "figures.json"
    _figures.keep({"at": "now", "quick": False, "rows": [ROW]}, path)
    assert _figures.read(path) == {"at": "now", "quick": False, "rows": [{**ROW, "ours": 1.235}]}
