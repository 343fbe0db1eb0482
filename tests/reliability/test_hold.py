"""Everything at once: two workers, three web nodes, PostgreSQL and Redis, with something killed every few seconds.

A supervisor starts again what was killed. Watchers are spread over the web nodes and come back at random.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from runcast.slim import RunLog, open_store
from tests.reliability.engines import Redis
from tests.reliability.ledger import Ledger
from tests.reliability.nodes import Node, Shared, again, order, running
from tests.reliability.scenes import one_of, settle, told_the_end
from tests.reliability.watchers import Kind, Watcher
from tests.servers import own_schema

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    runs: int
    watchers: int
    nodes: int  # of a run
    tokens: int  # of a node
    pause: float
    seconds: float  # of killing
    every: float  # seconds between two kills


SHORT = Size(10, 25, 3, 8, 0.1, 6, 2)
LONG = Size(200, 500, 8, 8, 0.7, 120, 5)


class Reaper:
    """Kills one thing after the other, and starts it again."""

    def __init__(self, workers: list[Node], webs: list[Node], redis: Redis) -> None:
        self.kills = 0
        self.memory = 0  # the most that any node had
        self._nodes = [*workers, *webs]
        turns: list[list[Node | Redis]] = [[redis, worker, web] for worker in workers for web in webs]
        self._order = [each for turn in turns for each in turn]
        self._redis = redis

    async def reap(self, size: Size) -> None:
        began = time.monotonic()
        while time.monotonic() - began < size.seconds:
            await asyncio.sleep(size.every)
            self.look()
            victim = self._order[self.kills % len(self._order)]
            victim.kill()
            self.kills += 1
            await asyncio.sleep(min(1.0, size.every / 4))
            await (asyncio.to_thread(victim.start) if isinstance(victim, Redis) else again(victim))

    def look(self) -> None:
        self.memory = max(self.memory, *(node.memory for node in self._nodes))


def kind(n: int) -> Kind:
    return "sse" if n % 10 == 8 else "pusher" if n % 10 == 9 else "plain"


@asynccontextmanager
async def crowd(ledger: Ledger, http: httpx.AsyncClient, webs: list[Node], size: Size) -> AsyncIterator[None]:
    """The watchers, until each was told the end of its thread."""
    rng = random.Random(9)
    anywhere = one_of([web.address for web in webs])
    watchers = [
        Watcher(
            kind(n),
            f"t{n % size.runs}",
            anywhere,
            http,
            quiet=20,
            restless=lambda: rng.uniform(2, size.every * 4),
        )
        for n in range(size.watchers)
    ]
    async with told_the_end(ledger, watchers, size.seconds + 120):
        yield
    ledger.note("fetches", sum(each.fetches for each in watchers))


async def test_two_workers_three_web_nodes_and_a_reaper(
    ledger: Ledger,
    http: httpx.AsyncClient,
    postgres_server: str,
    mortal_redis: Redis,
    tmp_path: Path,
    long: bool,
) -> None:
    size = LONG if long else SHORT
    shared = Shared(own_schema(postgres_server), mortal_redis.url, str(tmp_path / "effects"))
    with running(2, 3, shared) as (workers, webs):
        reaper = Reaper(workers, webs, mortal_redis)
        async with crowd(ledger, http, webs, size):
            reaping = asyncio.create_task(reaper.reap(size))
            for n in range(size.runs):
                await order(http, webs[n % 3].address, ledger, f"t{n}", size.nodes, size.tokens, size.pause)
                await asyncio.sleep(size.seconds / 3 / size.runs)
            await reaping
        reaper.look()
        ledger.note("kills", reaper.kills)
        ledger.note("MiB at most", round(reaper.memory / MIB))
        async with RunLog(open_store(shared.postgres), derive="manual") as log:
            runs = [run for thread in ledger.threads for run in await log.runs(thread)]
            assert all(run.status != "in_progress" for run in runs)
            ledger.note("runs", len(runs))
            await settle(ledger, log, Path(shared.effects))
        assert reaper.memory < 300 * MIB
