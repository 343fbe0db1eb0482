"""Runs every benchmark it finds and prints each ratio beside the bar it is held to.

A benchmark is a file in this folder with `run(quick: bool) -> list[dict]`, a row a figure:

    name   what was measured                        ours, peer  two figures in `unit`, taken in one run
    ratio  ours to the peer's                       bar         what the ratio is held to, in words: ">= 8", "<= 1.25"
    ok     whether the bar is held; None where the figure is only shown

    key    the name under which `benchmarks.model` takes `ours` for its arithmetic, where it does

It times nothing itself. The figures belong to the machine they were taken on, so a missed bar is marked in the
table and ends the program with 1 only under `--strict`; a benchmark that breaks always does. `--markdown` measures
nothing: it writes the last full run into `docs/figures.json` and from there into the documents.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import pkgutil
import platform
import re
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import benchmarks
from benchmarks import _figures

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("name", "ours", "peer", "unit", "ratio", "bar", "ok")
Row = dict[str, Any]


def found(package: ModuleType) -> list[str]:
    """The benchmarks in a package: its modules whose name opens without an underscore."""
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return [name for name in names if not name.startswith("_")]


def measure(package: ModuleType, names: Sequence[str], *, quick: bool) -> list[Row]:
    """The rows of every named benchmark that has a `run`, in order; one that breaks is a row that is not ok."""
    rows: list[Row] = []
    for name in names:
        module = importlib.import_module(f"{package.__name__}.{name}")
        run = getattr(module, "run", None)
        if run is None:
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        began = time.monotonic()
        # What others left behind is not walked through by this one's garbage collections.
        gc.collect()
        gc.freeze()
        try:
            rows += [{"benchmark": name, **row} for row in run(quick)]
        except Exception as error:  # noqa: BLE001  the other benchmarks still have something to say
            traceback.print_exc()
            rows.append({"benchmark": name, "name": f"broke: {error!r:.200}", "ok": False})
        print(f"{name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows as columns of text, figures to the right, a group a benchmark."""
    heads = ["", *COLUMNS[1:-1], ""]
    cells = [heads] + [[shown(row.get(column), column) for column in COLUMNS] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  " + "  ".join(aligned(line, widths)).rstrip() for line in cells]
    groups = [row["benchmark"] for row in rows]
    opens = [
        f"\n{group}\n" if group != before else ""
        for before, group in zip(["", *groups], groups, strict=False)
    ]
    return "\n".join(opening + line for opening, line in zip(["", *opens], lines, strict=True))


def aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        line[0].ljust(widths[0]),
        *(text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)),
    ]


def shown(value: Any, column: str) -> str:
    if column == "ok":
        return {True: "ok", False: "MISSED"}.get(value, "")
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def keep(rows: Sequence[Row], folder: Path, *, quick: bool) -> Path:
    """Write the rows down with what they were measured on; answers where."""
    now = datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(
        json.dumps({"at": now.isoformat(), "quick": quick, **machine(), "rows": list(rows)}, indent=1) + "\n"
    )
    return path


def machine() -> dict[str, Any]:
    """What the figures belong to; no name of it."""
    told: dict[str, Any] = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        told |= {"cpu": found[1]} if found else {}
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        told["memory_gib"] = round(pages * size / 2**30)
    except (OSError, ValueError):  # not everywhere
        pass
    return told


def main(
    arguments: Sequence[str] | None = None, *, package: ModuleType = benchmarks, results: Path = RESULTS
) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Ratios against peers, from one run."
    )
    parser.add_argument(
        "--quick", action="store_true", help="small inputs: does it still run, not how fast is it"
    )
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="this benchmark alone; may be repeated"
    )
    parser.add_argument("--strict", action="store_true", help="end with 1 when a bar is missed")
    parser.add_argument(
        "--markdown", action="store_true", help="measure nothing: bring the last full run into the documents"
    )
    asked = parser.parse_args(arguments)
    names = found(package)
    if asked.markdown:
        return publish(results, measuring(package))
    unknown = set(asked.only or ()) - set(names)
    if unknown:
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    rows = measure(package, asked.only or names, quick=asked.quick)
    print(table(rows))
    print(f"\nwritten to {keep(rows, results, quick=asked.quick)}")
    broken = any(row["name"].startswith("broke: ") for row in rows)
    missed = any(row.get("ok") is False for row in rows)
    return 1 if broken or (missed and asked.strict) else 0


def measuring(package: ModuleType) -> list[str]:
    """The benchmarks that measure; the others are only asked by them."""
    modules = {name: importlib.import_module(f"{package.__name__}.{name}") for name in found(package)}
    return [name for name, module in modules.items() if hasattr(module, "run")]


def publish(results: Path, names: Sequence[str]) -> int:
    """The last full run as `docs/figures.json`, and the documents' blocks from that."""
    try:
        _figures.keep(_figures.newest(results, names))
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    written = _figures.rewrite(_figures.read())
    print(f"written: {', '.join(str(path.relative_to(_figures.ROOT)) for path in (_figures.FILE, *written))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
