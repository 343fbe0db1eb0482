"""What the log costs: writing beside bare SQLite, its size beside the JSON it holds, restoring by depth and length."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ag_ui.core import RunStartedEvent, TextMessageContentEvent, TextMessageStartEvent

from benchmarks._log_load import recorded, turn
from benchmarks.snapshot import _heavy as heavy
from benchmarks.snapshot import _told as told
from runcast.slim.folding.conversation import fold
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import open_store
from runcast.slim.stores.records import Batch, Key, NewEvent, NewRun
from runcast.slim.wire.codec import AnyEvent, encode

Row = dict[str, Any]
BATCH = 256
PEER = "CREATE TABLE events (thread INTEGER, seq INTEGER, at INTEGER, type TEXT, payload BLOB, PRIMARY KEY (thread, seq)) WITHOUT ROWID"


def run(quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        return [
            *_writing(home, 20_000 if quick else 100_000, rounds=2 if quick else 5),
            *_sizes(),
            *_depth(home, 100 if quick else 1_000, rounds=3),
            *_length(home, 10_000 if quick else 100_000, rounds=5),
        ]


# ---------------------------------------------------------------------- writing


def _writing(home: Path, count: int, rounds: int) -> list[Row]:
    """The same bytes, in the same batches, with the same pragmas, to the same disk."""
    events: list[AnyEvent] = [
        RunStartedEvent(thread_id="t", run_id="r"),
        TextMessageStartEvent(message_id="m", role="assistant"),
        *(TextMessageContentEvent(message_id="m", delta=f"word {n} ") for n in range(count - 2)),
    ]
    rows = [
        NewEvent(n, 1_700_000_000_000, "TEXT_MESSAGE_CONTENT", encode(event))
        for n, event in enumerate(events, 1)
    ]
    best = {"bare": 0.0, "store": 0.0, "log": 0.0}
    for n in range(rounds):
        for name, work in (
            ("bare", lambda path: _bare(path, rows)),
            ("store", lambda path: asyncio.run(_store(path, rows))),
            ("log", lambda path: asyncio.run(_log(path, events))),
        ):
            taken = work(home / f"{name}{n}.db")
            best[name] = max(best[name], count / taken)
    ratio = best["store"] / best["bare"]
    return [
        {
            "name": f"batched append to the store, {BATCH} a transaction, against executemany",
            "ours": round(best["store"]), "peer": round(best["bare"]), "unit": "events/s",
            "ratio": round(ratio, 2), "bar": ">= 0.6", "ok": ratio >= 0.6,
        },
        {
            "name": "  the same by the log: verified, encoded, made entries of",
            "ours": round(best["log"]), "peer": round(best["bare"]), "unit": "events/s",
            "ratio": round(best["log"] / best["bare"], 2),
        },
    ]  # fmt: skip


def _bare(path: Path, rows: list[NewEvent]) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(PEER)
    began = time.perf_counter()
    for at in range(0, len(rows), BATCH):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO events VALUES (1, ?, ?, ?, ?)", rows[at : at + BATCH])
        connection.execute("COMMIT")
    taken = time.perf_counter() - began
    connection.close()
    return taken


async def _store(path: Path, rows: list[NewEvent]) -> float:
    store, key = open_store(f"sqlite:///{path}"), Key("", "t")
    lease = await store.acquire(key, owner="bench", now=0, until=2**40, epoch="e")
    place: NewRun | int = NewRun("r", None, "continue")
    began = time.perf_counter()
    for at in range(0, len(rows), BATCH):
        events = tuple(rows[at : at + BATCH])
        place = await store.append(
            Batch(key, "bench", lease.token, f"b{at}", at + 1, place, events, until=2**40, now=1)
        )
    taken = time.perf_counter() - began
    await store.close()
    return taken


async def _log(path: Path, events: list[AnyEvent]) -> float:
    async with RunLog(open_store(f"sqlite:///{path}"), derive="manual", flush_events=BATCH) as log:
        began = time.perf_counter()
        await log.append_many("t", events)
        return time.perf_counter() - began


# ---------------------------------------------------------------------- size


def _sizes() -> list[Row]:
    """Runs as they came and as they are kept after compaction, each with its codec and nothing shared."""
    result = heavy()
    rows = [_weighed("LangGraph with a 34 KB tool result, as the official adapter tells it", result)]
    rows[0] |= {"bar": "<= 0.06", "ok": rows[0]["ratio"] <= 0.06}
    rows.append(_weighed("words and small calls", told()))
    prose = _weighed("LangGraph by our adapter, two results of 34 KB in prose", recorded())
    return [*rows, prose | {"key": "kept_bytes"}]


def _weighed(name: str, events: Sequence[AnyEvent]) -> Row:
    whole = sum(len(encode(event)) for event in events)

    async def weigh() -> int:
        async with RunLog(open_store("memory://"), derive="manual", verify="off") as log:
            await log.append_many("t", events)
            return (await log.archive.compact("t")).segment_bytes

    kept = asyncio.run(weigh())
    return {
        "name": f"kept against its JSON: {name}",
        "ours": round(kept / len(events), 1), "peer": round(whole / len(events), 1), "unit": "bytes/event",
        "ratio": round(kept / whole, 3),
    }  # fmt: skip


# ---------------------------------------------------------------------- restoring


def _depth(home: Path, depth: int, rounds: int) -> list[Row]:
    """Every run's events read and folded: no checkpoint helps."""

    async def measure() -> tuple[float, float, float]:
        store = open_store(f"sqlite:///{home}/depth.db")
        async with RunLog(store, derive="manual", verify="off") as log:
            for n in range(2 * depth):
                await log.append_many("t", turn(f"r{n}", 10))
            once = await _best(lambda: log.restore("t", f"r{depth - 1}"), rounds)
            twice = await _best(lambda: log.restore("t"), rounds)
            return twice, once, await _best(lambda: store.lineage(Key("", "t")), rounds)

    twice, once, walk = asyncio.run(measure())
    return [
        {
            "name": f"restore {2 * depth:,} runs deep against {depth:,}",
            "ours": round(twice * 1e3, 1), "peer": round(once * 1e3, 1), "unit": "ms",
            "ratio": round(twice / once, 2), "bar": "<= 2.5", "ok": twice <= 2.5 * once,
        },
        {
            "name": f"  the walk to {2 * depth:,} ancestors in it",
            "ours": round(walk * 1e3, 1), "unit": "ms", "bar": "<= 250 ms", "ok": walk <= 0.25,
        },
    ]  # fmt: skip


def _length(home: Path, count: int, rounds: int) -> list[Row]:
    """From its checkpoint, against folding the raw events: as they lie in the store, and once they are in memory."""

    async def measure() -> tuple[float, float, float]:
        async with RunLog(open_store(f"sqlite:///{home}/length.db"), derive="manual", verify="off") as log:
            for n in range(count // 500):
                await log.append_many("t", turn(f"r{n}", 488))
            stored = await _best(lambda: log.restore("t"), 1)
            events = await log.restore("t", compacted=False)
            await log.archive.compact("t")
            ours = await _best(lambda: log.restore("t"), rounds)
            began = time.perf_counter()
            fold(events)
            return ours, stored, time.perf_counter() - began

    ours, stored, held = asyncio.run(measure())
    row = {"ours": round(ours * 1e3, 1), "unit": "ms"}
    return [
        {
            "name": f"restore {count:,} events from their checkpoint against folding them from the store", **row,
            "peer": round(stored * 1e3, 1), "ratio": round(ours / stored, 3), "bar": "<= 0.05", "ok": ours <= 0.05 * stored,
        },
        {
            "name": "  against folding them in memory, read and decoded", **row,
            "peer": round(held * 1e3, 1), "ratio": round(ours / held, 3),
        },
    ]  # fmt: skip


async def _best(work: Callable[[], Awaitable[object]], rounds: int) -> float:
    found = float("inf")
    gc.collect()
    gc.freeze()  # what the frameworks imported is not ours to walk through
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        found = min(found, time.perf_counter() - began)
    return found
