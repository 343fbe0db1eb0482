"""Fails unless the tests reached every line and every branch of every core.

Reads what `make test COVER=1` left behind; shells are reported by `coverage report` and held to nothing.
Run as `python tests/house/core_coverage.py [data file]`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import coverage

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.house.tree import Module, cores

WIDTH = 240  # of a file's gaps; a file without tests has more than anybody reads


def measured(data_file: str) -> dict[str, Any]:
    """What coverage knows about each file, by its path from the root."""
    data = coverage.Coverage(data_file=data_file)
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        data.json_report(morfs=[str(core.path) for core in cores()], outfile=str(report), ignore_errors=True)
        files: dict[str, Any] = json.loads(report.read_text())["files"]
    return files


def gap(core: Module, files: dict[str, Any]) -> str | None:
    """What the tests did not reach in this file, in one line; None where they reached it all."""
    found = files.get(core.name)
    if found is None:
        return f"{core.name}: no test imports it"
    lines = ", ".join(str(line) for line in found["missing_lines"])
    branches = ", ".join(f"{here}->{there}" for here, there in found["missing_branches"])
    parts = [f"lines {lines}" if lines else "", f"branches {branches}" if branches else ""]
    said = "; ".join(part for part in parts if part)
    return f"{core.name}: {textwrap.shorten(said, WIDTH, placeholder=' …')}" if said else None


def main(data_file: str = ".coverage") -> int:
    files = measured(data_file)
    gaps = [found for core in cores() if (found := gap(core, files)) is not None]
    for line in gaps:
        print(f"not covered: {line}")
    print(f"cores covered in full: {len(cores()) - len(gaps)} of {len(cores())}")
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
