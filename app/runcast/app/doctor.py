"""What may be wrong with a set-up, looked at before a run: versions, store, saver, targets, clock.

Every finding is a line: what was looked at, how it is, and what to do. Knows where to look; changes nothing.
"""

from __future__ import annotations

import asyncio
import platform
import socket
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal
from urllib.parse import urlsplit

from runcast.app.agents import as_adapter, cautions
from runcast.broadcast import BroadcastError, open_publisher
from runcast.slim import SlimError, open_store

Mark = Literal["ok", "note", "bad"]
PACKAGES = (
    "runcast", "ag-ui-protocol", "langgraph", "langgraph-checkpoint-sqlite", "google-adk", "websockets", "uvicorn", "psycopg", "redis",
)  # fmt: skip
OURS = 1_790_000_000  # seconds since the Unix epoch: a clock before this stands still


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    mark: Mark
    told: str


async def examine(url: str, *, broadcast: str | None = None, agent: Any = None) -> list[Finding]:
    """Look at everything that is named."""
    found = [_python(), *_versions(), await _store(url), _clock()]
    if broadcast is not None:
        found += await _target(broadcast)
    if agent is not None:
        found += _agent(agent)
    return found


def _python() -> Finding:
    version = platform.python_version()
    return Finding(
        "python", "ok" if sys.version_info >= (3, 11) else "bad", f"{version} on {platform.system()}"
    )


def _versions() -> list[Finding]:
    found: list[Finding] = []
    for name in PACKAGES:
        try:
            found.append(Finding(name, "ok", metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append(Finding(name, "note", "not installed"))
    return found


async def _store(url: str) -> Finding:
    began = time.monotonic()
    try:
        store = open_store(url)
        await store.open()
        threads = await store.threads("", limit=1)
        await store.close()
    except (SlimError, ImportError, OSError) as error:
        return Finding("store", "bad", f"{_bare(url)}: {error}")
    took = (time.monotonic() - began) * 1000
    some = "has threads" if threads else "is empty"
    note = "; it forgets everything when the process ends" if url.startswith("memory:") else ""
    return Finding(
        "store", "note" if note else "ok", f"{_bare(url)} answers in {took:.0f} ms and {some}{note}"
    )


async def _target(url: str) -> list[Finding]:
    try:
        publisher = open_publisher(url)
    except (BroadcastError, ImportError) as error:
        return [Finding("broadcast", "bad", str(error))]
    budget = publisher.budget
    told = f"{publisher.name} takes envelopes of {budget.limit} bytes" + (
        ", counted as it escapes them" if budget.quoted else ""
    )
    await publisher.aclose()
    return [Finding("envelopes", "ok", told), await asyncio.to_thread(_reachable, url)]


def _reachable(url: str) -> Finding:
    parts = urlsplit(url)
    port = parts.port or {"redis": 6379, "rediss": 6379, "pusher": 443}.get(parts.scheme, 80)
    try:
        with socket.create_connection((parts.hostname or "localhost", port), timeout=3):
            return Finding("broadcast", "ok", f"{parts.hostname}:{port} listens")
    except OSError as error:
        return Finding(
            "broadcast", "bad", f"{parts.hostname}:{port} does not answer: {error}; runs go on without it"
        )


def _clock() -> Finding:
    now = time.time()
    if now < OURS:
        return Finding(
            "clock", "bad", "this machine's clock is years behind: times of runs would be wrong; set it"
        )
    return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def _agent(agent: Any) -> list[Finding]:
    adapter = as_adapter(agent)
    found = [Finding("agent", "ok", f"{adapter.name}, driven by {type(adapter).__name__}")]
    told = cautions(adapter)
    return (
        [*found, *(Finding("saver", "note", each) for each in told)] if told else [*found, *_saver(adapter)]
    )


def _saver(adapter: Any) -> list[Finding]:
    saver = getattr(getattr(adapter, "graph", None), "checkpointer", None)
    return [] if saver is None else [Finding("saver", "ok", type(saver).__name__)]


def _bare(url: str) -> str:
    """A URL without its password."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    return url.replace(f":{parts.password}@", ":…@")
