"""The figures that documents show: kept in `docs/figures.json`, and written from there into marked blocks of Markdown.

A block stands between `<!-- figures: NAME -->` and `<!-- end of figures -->`; what a name stands for is in `BLOCKS`.
Nothing in a block is written by hand: a house test makes each again from the file and compares. Knows Markdown and the
shape of rows; measures nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import model

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "figures.json"
BLOCK = re.compile(r"^<!-- figures: (\w+) -->\n.*?^<!-- end of figures -->", re.DOTALL | re.MULTILINE)
FIELDS = ("benchmark", "name", "ours", "peer", "unit", "ratio", "bar", "ok", "key")
Row = Mapping[str, Any]
Kept = Mapping[str, Any]

# The rows of docs/figures.md: a pattern for the start of a row's name, and the label shown for it.
HEADLINES = {
    ("langgraph", "5,000 tokens, events"): "LangGraph, 5,000 tokens, CPU to raw `astream`",
    ("langgraph", "ag-ui-langgraph 0.0.47: 5,000 tokens, events"): "the same by `ag-ui-langgraph`",
    ("langgraph", "a run of one token"): "a LangGraph run of one token, CPU to raw",
    ("langgraph", "ag-ui-langgraph 0.0.47: a run of one token"): "the same by `ag-ui-langgraph`",
    ("langgraph", "80 steps over"): "80 steps over a 100 KB document, bytes of events, to `ag-ui-langgraph`",
    ("langgraph", "a tool result of 34 KB"): "a tool result of 34 KB, bytes of events, to the result",
    ("adk", r"[\d,]+ chunks"): "ADK, streamed chunks, CPU to raw `run_async`",
    ("adk", r"ag-ui-adk: [\d,]+ chunks"): "the same by `ag-ui-adk`",
    ("adk", "loads of the session a turn, ours"): "loads of the ADK session a turn, to `ag-ui-adk`",
    ("wire", "encode text delta"): "encoding a text delta, to the official encoder",
    ("wire", "encode one whole run"): "encoding a whole run, to the official encoder",
    ("wire", "decode one whole run"): "decoding a whole run, to `TypeAdapter(Event)`",
    ("compact", r"[\d,]+ events from bytes to bytes, processor, median"): "compaction of stored bytes, to the official JavaScript",
    ("compact", r"compact [\d,]+ events, median"): "compaction, to the official JavaScript one",
    ("compact", "outcome changed: everything"): "streams whose outcome compaction changes, to the official one",
    ("log", "batched append to the store"): "batched append to SQLite, to bare `executemany`",
    ("log", "kept against its JSON: LangGraph with"): "bytes kept after compaction, to the run's JSON",
    ("log", r"restore [\d,]+ events"): "restoring a long thread from its checkpoint, to folding it",
    ("snapshot", "serialize a thread"): "snapshot of 100,000 messages, to one of 1,000",
    ("snapshot", "snapshot against the full dump"): "snapshot of a run with a 34 KB result, to its full dump",
    ("snapshot", "redaction added to encoding, a run"): "redaction, to the official encoding of the run",
    ("hub", "deliveries, 300 x 500 B, plain, to bare websockets, by processor"): "deliveries by the hub, to bare `websockets.broadcast`",
    ("hub", "deliveries, 300 x 500 B, pusher, over HTTP"): "the same over HTTP, to soketi",
    ("broadcast", "frames a second"): "frames a watcher gets at 80 tokens a second, to one a token",
    ("engines", "PostgreSQL, batches"): "append to PostgreSQL, to bare `executemany`",
    ("engines", "Redis, publishing"): "publishing through Redis, to bare commands",
    ("end_to_end", "1 watcher, p50"): "node finishes to envelope in the socket, 1 watcher, p50",
    ("end_to_end", "1 watcher, p99"): "1 watcher, p99",
    ("end_to_end", "500 watchers, p50"): "500 watchers, p50",
    ("end_to_end", "500 watchers, p99"): "500 watchers, p99",
    ("end_to_end", "1 tab of Chromium, p50"): "in a tab of Chromium, p50",
    ("attach", "appended to read by `attach`, durable; to the reference server in memory: SQLite, p50"): "an append to its reader, to the Durable Streams reference server in memory, p50",
    ("attach", "100 active runs on SQLite"): "commits a second of 100 active runs, to their events",
    ("endpoints", r"over HTTP, server CPU for [\d,]+ tokens, to ag-ui-langgraph"): "over HTTP, the server's CPU for 5,000 tokens, to `ag-ui-langgraph`'s endpoint",
    ("endpoints", "over HTTP, time to the first token, to ag-ui-langgraph"): "the same, time to the first token",
    ("pipe", "events a second of one core"): "the whole pipe on one core, to the graph streaming alone",
    ("pipe", "memory a run grows by"): "memory a run grows by, to what the log keeps of it",
}  # fmt: skip


def read(path: Path = FILE) -> Kept:
    """The figures that are committed."""
    found: Kept = json.loads(path.read_text(encoding="utf-8"))
    return found


def newest(results: Path, names: Sequence[str]) -> Kept:
    """The last result that is whole: of all benchmarks, at full size, none of them broken."""
    for path in sorted(results.glob("*.json"), reverse=True):
        found: Kept = json.loads(path.read_text(encoding="utf-8"))
        rows = found.get("rows", [])  # none in what the reliability suite leaves there
        broken = any(row["name"].startswith("broke: ") for row in rows)
        if rows and not found["quick"] and not broken and {row["benchmark"] for row in rows} >= set(names):
            return found
    raise LookupError("no full run without a fault in benchmarks/results: say `make bench` first")


def keep(found: Kept, path: Path = FILE) -> None:
    """Write the small file: what was measured, when and on what."""
    rows = [
        {field: _short(row[field]) for field in FIELDS if row.get(field) is not None} for row in found["rows"]
    ]
    head = {name: value for name, value in found.items() if name != "rows"}
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    opening = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    path.write_text(f'{opening},\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


# ---------------------------------------------------------------------- blocks


def machine(kept: Kept) -> str:
    """When and where, in a sentence."""
    memory = f", {kept['memory_gib']} GiB" if "memory_gib" in kept else ""
    command = "make bench ARGS=--quick" if kept.get("quick") else "make bench"
    return (
        f"Measured on {kept['at'][:10]} by `{command}`: {kept['cpus']} cores ({kept.get('cpu', kept['machine'])}){memory}, "
        f"Python {kept['python']}."
    )


def figure(value: Any) -> str:
    """A number as a person reads it: three digits that mean something."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if value == 0:
        return "0"
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.2g}"  # fmt: skip


def with_unit(value: Any, unit: str | None) -> str:
    text = figure(value)
    return f"{text} {unit}".strip() if text else ""


def held(row: Row) -> str:
    """The bar of a row, and whether it was held."""
    bar = row.get("bar") or ""
    if row.get("ok") is None:
        return "" if bar in ("", "shown") else f"{bar}, shown"
    return bar if row["ok"] else f"{bar}, **missed**"


def line(label: str, row: Row) -> str:
    unit = row.get("unit")
    cells = (
        label,
        with_unit(row.get("ours"), unit),
        with_unit(row.get("peer"), unit),
        figure(row.get("ratio")),
        held(row),
    )
    return "| " + " | ".join(cells) + " |"


def headlines(kept: Kept) -> str:
    """The table of docs/figures.md."""
    lines = ["| | runcast | beside it | ratio | held to |", "|---|---:|---:|---:|---|"]
    for (benchmark, opening), label in HEADLINES.items():
        lines += [line(label, row) for row in rows_of(kept, benchmark) if re.match(opening, row["name"])][:1]
    return "\n".join([machine(kept), "", *lines])


def everything(kept: Kept) -> str:
    """Every row there is, a table a benchmark."""
    parts = [machine(kept)]
    for benchmark in dict.fromkeys(row["benchmark"] for row in kept["rows"]):
        parts += [
            "",
            f"**{benchmark}**",
            "",
            "| | runcast | beside it | ratio | held to |",
            "|---|---:|---:|---:|---|",
        ]
        parts += [line(row["name"].strip(), row) for row in rows_of(kept, benchmark)]
    return "\n".join(parts)


def queue(kept: Kept) -> str:
    """How long one frame in a hundred waits, by how busy a node is."""
    lines = ["| busy | on paper | simulated | every 40 ms |", "|---:|---:|---:|---:|"]
    rows = list(rows_of(kept, "queueing"))
    for random, steady in zip(rows[::2], rows[1::2], strict=True):
        cells = (
            random["key"].removeprefix("queue_") + " %",
            *map(figure, (random["peer"], random["ours"], steady["ours"])),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "Waits of one frame in a hundred, in mean service times."])


def rows_of(kept: Kept, benchmark: str) -> Iterator[Row]:
    return (row for row in kept["rows"] if row["benchmark"] == benchmark)


def _modelled(write: Callable[[model.Figures], str]) -> Callable[[Kept], str]:
    return lambda kept: f"{machine(kept)}\n\n{write(model.figures_of(kept['rows']))}"


def sizes(kept: Kept) -> str:
    """One row a size: the plan's cost beside the latency that was measured."""
    late = {row["key"]: row["ours"] for row in rows_of(kept, "scale") if "key" in row}
    return f"{machine(kept)}\n\n{model.sizes_table(model.figures_of(kept['rows']), late)}"


BLOCKS: dict[str, Callable[[Kept], str]] = {
    "headlines": headlines,
    "everything": everything,
    "costs": _modelled(model.costs_table),
    "plan": _modelled(model.plan_table),
    "queue": queue,
    "sizes": sizes,
}


def filled(text: str, kept: Kept) -> str:
    """A document with its blocks made anew; all else stays as it is."""

    def block(found: re.Match[str]) -> str:
        name = found[1]
        if name not in BLOCKS:
            raise LookupError(f"no block of figures is called {name!r}; there are: {', '.join(BLOCKS)}")
        return f"<!-- figures: {name} -->\n\n{BLOCKS[name](kept)}\n\n<!-- end of figures -->"

    return BLOCK.sub(block, text)


def documents() -> list[Path]:
    """The documents that have a block."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [path for path in found if BLOCK.search(path.read_text(encoding="utf-8"))]


def rewrite(kept: Kept) -> list[Path]:
    """Fill the blocks of all documents; answers with those that had any."""
    found = documents()
    for path in found:
        path.write_text(filled(path.read_text(encoding="utf-8"), kept), encoding="utf-8")
    return found
