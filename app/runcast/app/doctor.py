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

import orjson

from runcast.app.agents import as_adapter, cautions
from runcast.app.node import AGENTS
from runcast.broadcast import BroadcastError, open_publisher
from runcast.slim import RunLog, SlimError, open_store

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


async def examine(
    url: str, *, broadcast: str | None = None, agent: Any = None, redis: str | None = None, role: str = "both"
) -> list[Finding]:
    """Look at everything that is named."""
    found = [_python(), *_versions(), await _store(url), *await _nodes(url, role), _clock()]
    if redis is not None:
        found.append(await asyncio.to_thread(_reachable, redis, "redis", "nodes follow the log without it"))
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


async def _nodes(url: str, role: str) -> list[Finding]:
    """Which workers live, and whether runs wait that none of them can begin."""
    try:
        async with RunLog(open_store(url), derive="manual") as log:
            told = await log.notes.read(AGENTS)
            alive = [note for note in told if not log.notes.is_over(note)]
            names = sorted({each["name"] for note in alive for each in orjson.loads(note.body)})
            known = {each["name"] for note in told for each in orjson.loads(note.body)}
            waiting = [note for name in known for note in await log.notes.read(f"run {name}")]
    except (SlimError, ImportError, OSError):
        return []  # told of the store
    if not told and role == "both" and not waiting:
        return []
    stuck = sorted({note.box.removeprefix("run ") for note in waiting} - set(names))
    mark: Mark = "bad" if stuck or (role == "web" and not alive) else "ok"
    text = f"{len(alive)} work, for {', '.join(names) or 'no agent'}; {len(waiting)} runs wait"
    if stuck:
        text += f", some of them for {', '.join(stuck)}, whom no worker has: start one"
    elif mark == "bad":
        text += "; runs that this node takes wait until a worker comes: start one"
    return [Finding("workers", mark, text)]


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


def _reachable(url: str, what: str = "broadcast", without: str = "runs go on without it") -> Finding:
    parts = urlsplit(url)
    port = parts.port or {"redis": 6379, "rediss": 6379, "pusher": 443}.get(parts.scheme, 80)
    try:
        with socket.create_connection((parts.hostname or "localhost", port), timeout=3):
            return Finding(what, "ok", f"{parts.hostname}:{port} listens")
    except OSError as error:
        return Finding(what, "bad", f"{parts.hostname}:{port} does not answer: {error}; {without}")


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
