"""Several nodes, and one of them dies: a worker, a web node, Redis; or all of them are replaced, one after the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from runcast.slim import RunLog, open_store, verify
from tests.conftest import missing
from tests.reliability.engines import Redis
from tests.reliability.graph import NODES, PAUSE, TOKENS, counting_graph
from tests.reliability.ledger import Ledger
from tests.reliability.network import Network, misbehave
from tests.reliability.nodes import Node, Shared, again, order, running
from tests.reliability.scenes import one_of, settle, until, watching
from tests.servers import REDIS, own_schema, redis_program


@pytest.fixture
def shared(postgres_server: str, tmp_path: Path) -> Shared:
    """Nodes that have no Redis: they follow the log."""
    return Shared(own_schema(postgres_server), None, str(tmp_path / "effects"))


async def test_a_worker_is_killed(
    ledger: Ledger, http: httpx.AsyncClient, shared: Shared, long: bool
) -> None:
    with running(2, 1, shared) as (workers, webs):
        address = webs[0].address
        for n in range(4):
            await order(http, address, ledger, f"t{n}", 3, 200 if long else 40, 0.02)
        async with watching(ledger, http, lambda: address, patience=90):
            for turn in range(6 if long else 2):
                await asyncio.sleep(0.8)
                worker = workers[turn % 2]
                worker.kill()
                await asyncio.sleep(0.5)
                await again(worker)
        async with RunLog(open_store(shared.postgres), derive="manual") as log:
            taken = [
                run for thread in ledger.threads for run in await log.runs(thread) if run.edge == "resume"
            ]
            ledger.note("taken up", len(taken))
            assert taken
            await settle(ledger, log, Path(shared.effects))


async def test_a_web_node_is_killed(
    ledger: Ledger, http: httpx.AsyncClient, shared: Shared, long: bool
) -> None:
    with running(1, 2, shared) as (_, webs):
        for n in range(3):
            await order(http, webs[n % 2].address, ledger, f"t{n}", 3, 200 if long else 50, 0.02)
        async with watching(ledger, http, one_of([web.address for web in webs]), patience=90):
            for turn in range(6 if long else 2):
                await asyncio.sleep(0.5)
                web = webs[turn % 2]
                web.kill()
                await asyncio.sleep(0.3)
                await again(web)
        async with RunLog(open_store(shared.postgres), derive="manual") as log:
            await settle(ledger, log, Path(shared.effects))


async def test_a_worker_with_a_graph_is_killed(
    ledger: Ledger, http: httpx.AsyncClient, shared: Shared, long: bool
) -> None:
    """What a checkpoint holds does not run again; what was cut off does, on the other worker."""
    async with counting_graph(shared.postgres, Path(shared.effects)):
        pass  # its tables are made before two workers want to make them
    with running(2, 1, shared, role="graph") as (workers, webs):
        for turn, worker in enumerate(
            workers
        ):  # work of its own for each kill: the first worker's may be over by then
            threads = [f"t{turn}-{n}" for n in range(6 if long else 2)]
            for thread in threads:
                await order(http, webs[0].address, ledger, thread, NODES, TOKENS, 0, agent="graph")
            async with watching(ledger, http, lambda: webs[0].address, threads=threads, patience=90):
                await begun(Path(shared.effects))
                worker.kill()
                await again(worker)
        async with RunLog(open_store(shared.postgres), derive="manual") as log:
            ledger.note("runs", sum([len(await log.runs(thread)) for thread in ledger.threads]))
            for thread in ledger.threads:
                assert verify(await log.restore(thread)) == []
            await settle(ledger, log, Path(shared.effects))


async def begun(effects: Path) -> None:
    """Wait until another node has begun, and is in the middle of its work."""
    before = count(effects)
    await until(lambda: count(effects) > before, "a node begins")
    await asyncio.sleep(PAUSE / 3)


def count(effects: Path) -> int:
    return len(effects.read_text().splitlines()) if effects.exists() else 0


@pytest.mark.parametrize("keep", [False, True], ids=["empty", "with its data"])
async def test_redis_is_killed(
    ledger: Ledger, http: httpx.AsyncClient, shared: Shared, keep: bool, long: bool
) -> None:
    if redis_program() is None:
        missing(REDIS)
    with Redis(keep=keep) as redis:
        joined = Shared(shared.postgres, redis.url, shared.effects)
        with running(1, 1, joined) as (_, webs):
            for n in range(3):
                await order(http, webs[0].address, ledger, f"t{n}", 3, 200 if long else 50, 0.02)
            async with watching(ledger, http, lambda: webs[0].address, patience=90):
                for _ in range(4 if long else 1):
                    await asyncio.sleep(0.5)
                    redis.kill()
                    await asyncio.sleep(0.7)
                    await asyncio.to_thread(redis.start)
        async with RunLog(open_store(shared.postgres), derive="manual") as log:
            await settle(ledger, log, Path(shared.effects))


async def test_lines_to_redis_that_stall_cut_and_shuffle(
    ledger: Ledger, http: httpx.AsyncClient, shared: Shared, mortal_redis: Redis, long: bool
) -> None:
    async with Network(mortal_redis.port) as line:
        joined = Shared(shared.postgres, f"redis://127.0.0.1:{line.port}/0", shared.effects)
        line.shuffle = 0.05  # of two connections, each piece at its own pace: what a worker said may overtake
        with running(2, 1, joined) as (_, webs):
            for n in range(3):
                await order(http, webs[0].address, ledger, f"t{n}", 3, 300 if long else 60, 0.02)
            async with watching(ledger, http, lambda: webs[0].address, patience=90):
                for turn in range(6 if long else 1):
                    await misbehave(line, turn)
            ledger.note("cuts", line.cuts)
        async with RunLog(open_store(shared.postgres), derive="manual") as log:
            await settle(ledger, log, Path(shared.effects))


async def test_a_rolling_restart(ledger: Ledger, http: httpx.AsyncClient, shared: Shared, long: bool) -> None:
    with running(2, 2, shared) as (workers, webs):
        for n in range(4):
            await order(http, webs[n % 2].address, ledger, f"t{n}", 3, 300 if long else 70, 0.02)
        async with watching(ledger, http, one_of([web.address for web in webs]), patience=90):
            for node in [*workers, *webs]:
                await replaced(node)
        async with RunLog(open_store(shared.postgres), derive="manual") as log:
            await settle(ledger, log, Path(shared.effects))


async def replaced(node: Node) -> None:
    """What a deployment does to one node."""
    await asyncio.to_thread(node.stop)
    await again(node)
    await asyncio.sleep(0.2)
