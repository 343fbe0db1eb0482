"""Many at once: a hundred threads that begin together, and a thousand connections that come and go."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from pathlib import Path

import httpx
from websockets.asyncio.client import connect

from runcast.app import Cast
from tests.reliability.counting import Counter
from tests.reliability.ledger import Ledger
from tests.reliability.scenes import begin, hosting, settle, until, watching

MIB = 1 << 20


async def test_burst_of_a_hundred_threads(
    ledger: Ledger, http: httpx.AsyncClient, url: str, tmp_path: Path, long: bool
) -> None:
    nodes, size = (4, 50) if long else (2, 10)
    threads = [f"t{n}" for n in range(100)]
    cast = Cast.open(url, agents=[Counter(tmp_path / "effects")])
    async with hosting(cast) as address:
        await asyncio.gather(*(begin(cast, ledger, thread, nodes, size, 0.01) for thread in threads))
        async with watching(ledger, http, lambda: address, threads=threads[:20]):
            pass
        await asyncio.gather(*(run.result() for run in cast.active))
        await settle(ledger, cast.log, tmp_path / "effects")


async def test_a_thousand_connections_come_and_go(
    ledger: Ledger, http: httpx.AsyncClient, tmp_path: Path, long: bool
) -> None:
    cast = Cast.open(f"sqlite:///{tmp_path}/runs.db", agents=[Counter()])
    async with hosting(cast) as address:
        await churn(address, http, 60)  # what is made once stays, and is no leak
        await until(lambda: is_quiet(cast), "all are gone")
        before = Standing(cast)
        await begin(cast, ledger, "t0", 2, 1_000 if long else 100, 0.02)
        async with watching(ledger, http, lambda: address):
            await churn(address, http, 3_000 if long else 400)
        await until(lambda: not cast.stats()["followers"], "the run is told")
        await until(lambda: is_quiet(cast), "all are gone")
        after = Standing(cast)
        assert after.tasks <= before.tasks + 10  # the run brought some of its own; no connection left any
        assert after.files <= before.files + 5  # a file being written, and the event loop that renews leases
        assert after.hub == before.hub
        assert after.readers == 0
        assert after.memory - before.memory < 40 * MIB
        ledger.note("MiB more", round((after.memory - before.memory) / MIB, 1))
        await settle(ledger, cast.log)


def is_quiet(cast: Cast) -> bool:
    """Nobody watches, and nothing that served somebody is left."""
    assert cast.hub is not None
    left = [task for task in asyncio.all_tasks() if "run_asgi" in repr(task.get_coro())]
    return not (cast.hub.stats()["connections"] or cast.log.stats().readers or left)


class Standing:
    """What there is of everything that could leak."""

    def __init__(self, cast: Cast) -> None:
        gc.collect()
        assert cast.hub is not None
        numbers = cast.hub.stats()
        self.hub = {name: numbers[name] for name in ("connections", "addresses", "buffered", "channels")}
        self.readers = cast.log.stats().readers
        self.tasks = len(asyncio.all_tasks())
        self.files = len(os.listdir("/proc/self/fd"))
        self.memory = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def churn(address: str, http: httpx.AsyncClient, count: int, together: int = 20) -> None:
    """So many connections, some at a time; some go politely, some by a reset, some before they are in."""
    turn = asyncio.Semaphore(together)

    async def come_and_go(n: int) -> None:
        async with turn:
            match n % 4:
                case 0:
                    await one_event(address, http)
                case 1:
                    await one_frame(f"{address}/ws?channel=agent.t0&after=0", reset=n % 8 == 1)
                case 2:
                    await one_frame(f"{address}/app/runcast?protocol=7", reset=n % 8 == 2)
                case _:
                    _, writer = await asyncio.open_connection(*where(address))
                    writer.write(b"GET /ws?channel=agent.t0 HTTP/1.1\r\nHost: x\r\n")
                    await writer.drain()
                    writer.transport.abort()

    await asyncio.gather(*(come_and_go(n) for n in range(count)))


async def one_event(address: str, http: httpx.AsyncClient) -> None:
    headers = {"accept": "text/event-stream"}
    async with http.stream("GET", f"{address}/threads/t0/events", headers=headers) as response:
        assert response.status_code == 200


async def one_frame(address: str, *, reset: bool) -> None:
    async with connect(address.replace("http", "ws"), compression=None) as socket:
        await socket.recv()
        if reset:
            socket.transport.abort()


def where(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("http://").partition(":")
    return host, int(port)
