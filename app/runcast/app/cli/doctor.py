"""Checks a set-up before a run: versions, store, workers, saver, targets, clock.

Every finding is one line: what was checked, how it is, and what to do. Changes nothing.
"""

from __future__ import annotations

import platform
import re
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from runcast.adapters import Adapter
from runcast.adapters.frameworks import frameworks
from runcast.app.cli.targets import Target, resolved
from runcast.app.host.agent_adapters import as_adapter, cautions
from runcast.app.nodes.node import AGENTS
from runcast.app.webhooks.outbox import DEAD, DUE
from runcast.broadcast import BroadcastError, open_publisher
from runcast.broadcast.publishers.base import Probed
from runcast.slim import RunLog, SlimError, open_store

Mark = Literal["ok", "note", "bad"]
LINE = b"\n"
LATER_THAN = 1_790_000_000  # seconds since the Unix epoch: a clock before this is wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked."""

    what: str
    mark: Mark
    text: str


async def examine(
    url: str,
    *,
    broadcast: str | None = None,
    targets: Sequence[Target] = (),
    redis: str | None = None,
    role: str = "both",
) -> list[Finding]:
    """Check everything that is named."""
    found = [
        _python(),
        *_versions(),
        await _store(url),
        *await _notes(url, role),
        _clock(),
    ]
    if redis is not None:
        found += await _target(redis, "redis", "nodes follow the log without it")
    if broadcast is not None:
        found += await _target(broadcast)
    async with AsyncExitStack() as stack:
        for target in targets:
            found += _agent(as_adapter(await resolved(target, {}, stack)))
    return found


def _python() -> Finding:
    version = platform.python_version()
    return Finding(
        "python", "ok" if sys.version_info >= (3, 11) else "bad", f"{version} on {platform.system()}"
    )


def _packages() -> list[str]:
    """runcast, its dependencies and those of its extras, and the frameworks' distributions."""
    needed = (re.match(r"[\w.-]+", line) for line in metadata.requires("runcast") or ())
    names = {name[0] for name in needed if name}
    names |= {name for framework in frameworks() for name in framework.distributions}
    return ["runcast", *sorted(names - {"runcast"})]


def _versions() -> list[Finding]:
    found: list[Finding] = []
    for name in _packages():
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
    note = "; it is lost when the process ends" if url.startswith("memory:") else ""
    return Finding(
        "store", "note" if note else "ok", f"{_bare(url)} answers in {took:.0f} ms and {some}{note}"
    )


async def _notes(url: str, role: str) -> list[Finding]:
    """What waits in the log between processes."""
    try:
        async with RunLog(open_store(url), derive="manual") as log:
            return [*await _nodes(log, role), *await _letters(log)]
    except (SlimError, ImportError, OSError):
        return []  # the finding about the store names it


async def _nodes(log: RunLog, role: str) -> list[Finding]:
    """The active workers, and the requests that none of them can start."""
    announced = await log.notes.read(AGENTS)
    alive = [note for note in announced if not log.notes.is_over(note)]
    names = sorted({each["name"] for note in alive for each in orjson.loads(note.body)})
    known = {each["name"] for note in announced for each in orjson.loads(note.body)}
    waiting = [note for name in known for note in await log.notes.read(f"run {name}")]
    unclean = await log.notes.read("forget", *(f"forget {name}" for name in known))
    if not announced and role == "both" and not waiting and not unclean:
        return []
    stuck = sorted({note.box.removeprefix("run ") for note in waiting} - set(names))
    mark: Mark = "bad" if stuck or (role == "web" and not alive) else "ok"
    text = f"{len(alive)} active, with {', '.join(names) or 'no agent'}; {len(waiting)} runs wait"
    if stuck:
        text += f", some of them for {', '.join(stuck)}, which no worker has: start one"
    elif mark == "bad":
        text += "; runs that this node accepts wait for a worker: start one"
    if unclean:
        text += f"; {len(unclean)} forgotten threads wait for a worker with their agent to clean up"
    return [Finding("workers", mark, text)]


async def _letters(log: RunLog) -> list[Finding]:
    """Webhooks that wait, and dead letters; nothing where there are none."""
    waiting, dead = len(await log.notes.read(DUE)), await log.notes.read(DEAD)
    if not waiting and not dead:
        return []
    text = f"{waiting} wait, {len(dead)} were given up"
    if dead:
        text += f", the last one: {orjson.loads(dead[-1].body.partition(LINE)[0])['why']}; check its receiver"
    return [Finding("webhooks", "bad" if dead else "ok", text)]


async def _target(url: str, what: str = "broadcast", without: str = "runs go on without it") -> list[Finding]:
    """Try a publisher: its target answers whether address and settings are right."""
    try:
        publisher = open_publisher(url)
    except (BroadcastError, ImportError) as error:
        return [Finding(what, "bad", str(error))]
    budget = publisher.budget
    escaped = ", counted as it escapes them" if budget.quoted else ""
    found = [Finding("envelopes", "ok", f"{publisher.name} takes envelopes of {budget.limit} bytes{escaped}")]
    try:
        if isinstance(publisher, Probed):
            found.append(Finding(what, "ok", await publisher.probe()))
        else:
            found.append(
                Finding(what, "note", f"publisher {publisher.name} cannot be tried without publishing")
            )
    except BroadcastError as error:
        found.append(Finding(what, "bad", f"{error}; {without}"))
    finally:
        await publisher.aclose()
    return found


def _clock() -> Finding:
    now = time.time()
    if now < LATER_THAN:
        return Finding(
            "clock", "bad", "this machine's clock is years behind: times of runs would be wrong; set it"
        )
    return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def _agent(adapter: Adapter) -> list[Finding]:
    found = [Finding("agent", "ok", f"{adapter.name}, driven by {type(adapter).__name__}")]
    notes = cautions(adapter)
    return (
        [*found, *(Finding("saver", "note", each) for each in notes)] if notes else [*found, *_saver(adapter)]
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
