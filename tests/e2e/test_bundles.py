"""What a page has to load, compressed: the modules of the npm package and the page's own, each under its bound."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.e2e.npm_client import compiled
from tests.house.tree import ROOT

PAGE = ROOT / "app" / "runcast" / "app" / "page"
BOUNDS = {
    "runcast": 10_000,
    "reader": 1_500,
    "runcast-thread": 115_000,
}  # bytes of gzip; the build tells them too


def gzipped(*files: Path) -> int:
    return sum(len(gzip.compress(file.read_bytes())) for file in files)


@pytest.mark.parametrize("module", BOUNDS)
def test_a_module_stays_small(module: str) -> None:
    assert 0 < gzipped(PAGE / f"{module}.js") < BOUNDS[module]


def test_the_page_stays_small() -> None:
    first = [file for file in (PAGE / "assets").iterdir() if file.name.startswith("index-")]
    assert {file.suffix for file in first} == {".js", ".css"}
    assert gzipped(*first) < 90_000
    assert (
        gzipped(*(PAGE / "assets").iterdir()) < 115_000
    )  # with the highlighter, which is loaded when there is code


@pytest.mark.oracle
def test_the_agents_for_npm_stay_small_and_bring_no_client_along(tmp_path: Path) -> None:
    module = compiled(tmp_path, "agui")
    assert gzipped(module) < 9_000
    imported = {
        line.rsplit(" ", 1)[1].strip('";')
        for line in module.read_text().splitlines()
        if line.startswith("import ")
    }
    assert imported == {"@ag-ui/client", "rxjs"}
