"""What PostgreSQL and Redis take from us: rates by our own store and publisher beside bare commands, and CPU on each side.

Both servers are private ones, started here, on this machine and on its cores; PostgreSQL does not wait for a disk
(`fsync` is off), so a rate is what its processor gives, and a real disk can only lower it. CPU is read from the servers
themselves, and split into what a batch costs and what an event in it costs by two sizes of batch: a live run writes
batches of one or two events, one every flush.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import redis.asyncio
from ag_ui.core import TextMessageContentEvent

from benchmarks._hub_peer import envelope
from benchmarks.hub import started
from runcast.broadcast.publishers.redis import RedisPublisher
from runcast.slim import encode, open_store
from runcast.slim.stores.records import Batch, Key, NewEvent, NewRun
from tests import servers

Row = dict[str, Any]
THREADS = 16  # written at the same time, or channels published to
LARGE, SMALL = 64, 2  # events a batch
TICKS = os.sysconf("SC_CLK_TCK")
PEER = "CREATE TABLE bare (thread BIGINT, seq BIGINT, run BIGINT, at BIGINT, type TEXT, payload BYTEA, PRIMARY KEY (thread, seq))"


# ------------------------------------------------------------------ PostgreSQL


@dataclass(frozen=True)
class Spent:
    """What some batches took: by the clock, of our processor, of the server's; and what they left."""

    batches: int
    events: int
    seconds: float
    client: float
    server: float
    wal: int


class Server:
    """A PostgreSQL seen from outside: the processor of all its processes, and its write-ahead log."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        backend = self.connection.info.backend_pid
        self.postmaster = _stat(backend)[1]

    def cpu(self) -> float:
        """Seconds so far; of connections that have ended too."""
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        own, children = 0, 0
        for pid in pids:
            try:
                parent, used, waited = _stat(pid)[1:]
            except (OSError, ProcessLookupError):  # gone meanwhile
                continue
            if pid == self.postmaster:
                own, children = used, waited
            elif parent == self.postmaster:
                own += used
        return (own + children) / TICKS

    def wal(self) -> int:
        return int(self._one("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def bytes_of(self, table: str) -> int:
        return int(self._one(f"SELECT pg_total_relation_size('{table}')"))

    def _one(self, sql: str) -> Any:
        row = self.connection.execute(sql.encode()).fetchone()
        assert row is not None
        return row[0]


def _stat(pid: int) -> tuple[int, int, int, int]:
    """Of a process: itself, its parent, its ticks, and those of children it has waited for."""
    text = Path(f"/proc/{pid}/stat").read_text()
    rest = text[text.rindex(")") + 2 :].split()
    return pid, int(rest[1]), int(rest[11]) + int(rest[12]), int(rest[13]) + int(rest[14])


def payloads(count: int) -> list[bytes]:
    return [
        encode(TextMessageContentEvent(message_id="msg_01hxyz0123456789", delta=f"word {n} "))
        for n in range(count)
    ]


async def ours(url: str, name: str, batches: int, size: int) -> None:
    """So many batches a thread, all threads at once, through the store."""
    store = open_store(url)
    await store.open()
    written = payloads(size)

    async def thread(number: int) -> None:
        key = Key("", f"{name}-{number}")
        lease = await store.acquire(key, owner="bench", now=0, until=2**40, epoch="e")
        place: NewRun | int = NewRun("r", None, "continue")
        for at in range(batches):
            first = at * size + 1
            events = tuple(
                NewEvent(first + n, 1_700_000_000_000, "TEXT_MESSAGE_CONTENT", body)
                for n, body in enumerate(written)
            )
            batch = Batch(key, "bench", lease.token, f"{name}{at}", first, place, events, until=2**40, now=1)
            place = await store.append(batch)

    await asyncio.gather(*(thread(number) for number in range(THREADS)))
    await store.close()


async def bare(url: str, name: str, batches: int, size: int) -> None:
    """The same rows by `executemany`, in transactions of the same size, over as many connections as the store has."""
    written = payloads(size)
    free = asyncio.Semaphore(8)
    base = sum(map(ord, name)) * 1_000

    async def thread(number: int) -> None:
        async with free, await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            for at in range(batches):
                rows = [
                    (base + number, at * size + n, 1, 1_700_000_000_000, "TEXT_MESSAGE_CONTENT", body)
                    for n, body in enumerate(written)
                ]
                async with connection.transaction(), connection.cursor() as cursor:
                    await cursor.executemany("INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s)", rows)

    await asyncio.gather(*(thread(number) for number in range(THREADS)))


def spent(
    server: Server, work: Callable[[str, int], Awaitable[None]], name: str, batches: int, size: int
) -> Spent:
    before = (time.perf_counter(), time.process_time(), server.cpu(), server.wal())
    asyncio.run(_run(work(name, batches)))
    after = (time.perf_counter(), time.process_time(), server.cpu(), server.wal())
    seconds, client, cpu, wal = (now - then for now, then in zip(after, before, strict=True))
    return Spent(batches * THREADS, batches * THREADS * size, seconds, client, cpu, int(wal))


async def _run(work: Awaitable[None]) -> None:
    await work


def postgres_rows(quick: bool) -> list[Row]:
    if servers.postgres_programs() is None:
        return [_absent("PostgreSQL")]
    scale = 1 if quick else 8
    with servers.postgres() as url:
        server = Server(url)
        server.connection.execute(PEER.encode())
        asyncio.run(ours(url, "warm", 2, SMALL))
        rounds: dict[str, list[Spent]] = {"ours": [], "peer": [], "live": []}
        for turn in range(1 if quick else 3):
            rounds["peer"].append(
                spent(server, lambda n, b: bare(url, n, b, LARGE), f"p{turn}", 5 * scale, LARGE)
            )
            rounds["ours"].append(
                spent(server, lambda n, b: ours(url, n, b, LARGE), f"l{turn}", 5 * scale, LARGE)
            )
            rounds["live"].append(
                spent(server, lambda n, b: ours(url, n, b, SMALL), f"s{turn}", 20 * scale, SMALL)
            )
        events = sum(each.events for side in ("ours", "live") for each in rounds[side])
        size = server.bytes_of("runcast_events") / events
        server.connection.close()
    return [
        *_rates(rounds),
        *_costs(rounds),
        _figure("PostgreSQL, an event on disk with its index", size, "bytes", "pg_event_bytes"),
    ]


def _best(rounds: Sequence[Spent], per: Callable[[Spent], float]) -> float:
    return max(per(each) / each.seconds for each in rounds)


def _rates(rounds: dict[str, list[Spent]]) -> list[Row]:
    mine, other = (_best(rounds[side], lambda each: each.events) for side in ("ours", "peer"))
    live = _best(rounds["live"], lambda each: each.batches)
    return [
        {
            "name": f"PostgreSQL, batches of {LARGE}, {THREADS} threads at once, to bare executemany", "ours": round(mine),
            "peer": round(other), "unit": "events/s", "ratio": mine / other, "bar": "shown", "ok": None,
        },
        _figure(f"  batches of {SMALL}, as live runs write them, client and server on this machine", round(live), "batches/s", "pg_batches"),
    ]  # fmt: skip


def _costs(rounds: dict[str, list[Spent]]) -> list[Row]:
    """A batch's and an event's own part, from the two sizes."""
    rows: list[Row] = []
    sides: dict[str, tuple[str, Callable[[Spent], float], float]] = {
        "client": ("of our processor", lambda each: each.client, 1e6),
        "server": ("of PostgreSQL's", lambda each: each.server, 1e6),
        "wal": ("of write-ahead log", lambda each: float(each.wal), 1),
    }
    for side, (said, taken, scale) in sides.items():
        few, many = (
            sum(taken(each) for each in rounds[name]) / sum(each.batches for each in rounds[name]) * scale
            for name in ("live", "ours")
        )
        event = max(0.0, (many - few) / (LARGE - SMALL))
        batch = max(0.0, few - SMALL * event)
        unit = "bytes" if side == "wal" else "us"
        rows.append(_figure(f"  a batch, {said}", batch, unit, f"pg_batch_{side}"))
        rows.append(_figure(f"  an event in it, {said}", event, unit, f"pg_event_{side}"))
    return rows


# ----------------------------------------------------------------------- Redis


async def published(url: str, count: int, first: int) -> float:
    """Seconds of our processor an envelope, with many channels at once, through the publisher."""
    publisher = RedisPublisher(url)

    async def channel(number: int) -> None:
        for at in range(count):
            await publisher.publish(f"agent.s{number}", [envelope(first + at)])

    began = time.process_time()
    await asyncio.gather(*(channel(number) for number in range(THREADS)))
    used = time.process_time() - began
    await publisher.aclose()
    return used / count / THREADS


async def commanded(url: str, count: int, first: int) -> None:
    """The same bytes by XADD and PUBLISH, one round trip each: no check that a place was taken already."""
    client: Any = redis.asyncio.Redis.from_url(url)

    async def channel(number: int) -> None:
        for at in range(count):
            body = envelope(first + at).encode()
            async with client.pipeline(transaction=False) as pipe:
                pipe.xadd(f"bare:{number}", {"b": body}, maxlen=1_000, approximate=True)
                pipe.publish(f"bare-live:{number}", body)
                await pipe.execute()

    await asyncio.gather(*(channel(number) for number in range(THREADS)))
    await client.aclose()


async def _redis_cpu(url: str) -> float:
    client: Any = redis.asyncio.Redis.from_url(url)
    told = await client.info("cpu")
    await client.aclose()
    return float(told["used_cpu_sys"]) + float(told["used_cpu_user"])


@contextmanager
def _timed(taken: list[float]) -> Any:
    began = time.perf_counter()
    yield
    taken.append(time.perf_counter() - began)


def redis_rows(quick: bool) -> list[Row]:
    if servers.redis_program() is None:
        return [_absent("Redis")]
    count = 100 if quick else 1_500
    with servers.redis() as url:
        asyncio.run(published(url, 10, 1))
        mine: list[float] = []
        other: list[float] = []
        client = server = 0.0
        for turn in range(1 if quick else 3):
            with _timed(other):
                asyncio.run(commanded(url, count, 200_000))
            before = asyncio.run(_redis_cpu(url))
            with _timed(mine):
                client = asyncio.run(published(url, count, 200_000 + turn * count))
            server = (asyncio.run(_redis_cpu(url)) - before) / count / THREADS
        alone, heard = server, 0.0
        with started("benchmarks._engines_peer", url, str(THREADS)) as node:
            node.answer()
            before = asyncio.run(_redis_cpu(url))
            asyncio.run(published(url, count, 210_000))
            heard = float(node.ask(f"until {count * THREADS}")) / count / THREADS
            server = (asyncio.run(_redis_cpu(url)) - before) / count / THREADS
    rates = [count * THREADS / min(each) for each in (mine, other)]
    return [
        {
            "name": f"Redis, publishing 500 B on {THREADS} channels, each once and kept, to bare commands",
            "ours": round(rates[0]), "peer": round(rates[1]), "unit": "/s", "ratio": rates[0] / rates[1],
            "bar": "shown", "ok": None,
        },
        _figure("  an envelope published, of our processor", client * 1e6, "us", "redis_publish_us"),
        _figure("  an envelope published, of Redis's", alone * 1e6, "us", "redis_server_us"),
        _figure("  an envelope handed to one more node, of Redis's", max(0.0, server - alone) * 1e6, "us", "redis_deliver_us"),
        _figure("  an envelope heard for a channel that is watched there, of our processor", heard * 1e6, "us", "redis_hear_us"),
    ]  # fmt: skip


def _figure(name: str, value: float, unit: str, key: str) -> Row:
    return {
        "name": name,
        "ours": value,
        "peer": None,
        "unit": unit,
        "ratio": None,
        "bar": "shown",
        "ok": None,
        "key": key,
    }


def _absent(engine: str) -> Row:
    return {"name": f"{engine}: not measured, its programs are not here", "bar": "shown", "ok": None}


def run(quick: bool) -> list[Row]:
    return [*postgres_rows(quick), *redis_rows(quick)]
