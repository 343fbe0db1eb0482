"""The demo's output and exit code. Knows texts; the demo itself is `show.py`."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from dataclasses import asdict
from pathlib import Path

import orjson

try:
    import typer
    from rich.console import Console
except ImportError as error:
    raise ImportError("for the demo, install runcast[demo]") from error

from runcast.app.demo.headless import DemoFailed
from runcast.app.demo.show import headless, interactive, rows

screen = Console(highlight=False)


def by_itself(kind: str, *, seed: int | None, pace: float, as_json: bool) -> None:
    """Kill, resume, check; print the figures. Exits 1 when an envelope was lost or doubled, or a thread differs."""
    logging.getLogger("runcast").setLevel(logging.CRITICAL)
    try:
        figures, live = asyncio.run(headless(kind, seed=seed, pace=pace))
    except (DemoFailed, TimeoutError) as error:
        screen.print(f"[red]failed[/red]: {str(error) or 'it took too long'}")
        raise typer.Exit(1) from error
    if as_json:
        print(orjson.dumps({"live_after": round(live, 2), **asdict(figures)}).decode())
        return
    attempts = ", ".join(f"{each['status']} (attempt {each['attempt']})" for each in figures.runs)
    screen.print(
        f"the page was live after {live:.1f} s\n"
        f"the worker was killed at event {figures.killed_at} and its work went on {figures.back_after:.1f} s later\n"
        f"runs: {attempts}\n"
        f"watchers lost their line {figures.lines_lost} times and got {figures.envelopes} envelopes: "
        "none lost, none doubled, all as in the log\n"
        "the thread reads as it does undisturbed; no finished step ran again\n"
    )
    for name, value in rows(figures.size):
        screen.print(f"  {name:<14}{value:>12}")


def with_keys(kind: str, *, port: int, pace: float) -> None:
    """The page, and keys on the terminal."""
    logging.getLogger("runcast").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="runcast-demo-") as folder:
        asyncio.run(interactive(kind, port=port, folder=Path(folder), say=screen, pace=pace))
