"""Workers and web nodes as processes of their own, to be killed, stopped and started again on the same port.

They are forked from a server that has everything imported (`children.py`). Knows how a node is started; does not know
when it dies.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Literal

import httpx

from runcast.app import Cast
from runcast.app.serve import address, listen, server
from tests.app.serving import anyone
from tests.forked import spawn
from tests.reliability.counting import EFFECTS, Counter, plan
from tests.reliability.ledger import Ledger
from tests.servers import free_port

# A graph is a worker that runs a LangGraph graph; the last two are workers with an agent of `tests/e2e/writers.py`.
Role = Literal["worker", "web", "graph", "langgraph", "adk"]
LEASE_MS = 1_500


@dataclass(frozen=True, slots=True)
class Shared:
    """What all nodes have in common."""

    postgres: str
    redis: str | None
    effects: str
    lease_ms: int = LEASE_MS
    grace: float = 1.0
    cors: tuple[str, ...] = ()


def serve(pipe: Connection, role: Role, port: int, shared: Shared) -> None:
    """In the child: one node, until it is told to end."""
    os.environ[EFFECTS] = shared.effects
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    work = role != "web"

    async def main() -> None:
        async with agents_of(role, shared) as agents:
            await host(agents)

    async def host(agents: list[Any]) -> None:
        cast = Cast.open(
            shared.postgres,
            agents=agents,
            work=work,
            watch=not work,
            redis=shared.redis,
            lease_ms=shared.lease_ms,
            recover="continue",
            recover_every=0.5,
            max_runs=300,
            secret="the secret of all nodes",
        )
        async with cast:
            listening = listen("127.0.0.1", port)
            it = server(
                cast, cast.asgi(authorize=anyone, cors=shared.cors), grace=shared.grace, log_level="critical"
            )
            pipe.send(address(listening).replace("localhost", "127.0.0.1"))
            await it.serve([listening])

    asyncio.run(main())


@asynccontextmanager
async def agents_of(role: Role, shared: Shared) -> AsyncIterator[list[Any]]:
    """Whom this node runs."""
    if role == "graph":
        from tests.reliability.graph import counting_graph

        async with counting_graph(shared.postgres, Path(shared.effects)) as graph:
            yield [graph]
    elif role in ("langgraph", "adk"):
        from tests.e2e.writers import writer

        async with writer(role, shared.postgres, Path(shared.effects).parent) as agent:
            yield [agent]
    else:
        yield [Counter()] if role == "worker" else []


class Node:
    """One node. It keeps its port over all its lives."""

    def __init__(self, role: Role, shared: Shared) -> None:
        self.role = role
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.lives = 0
        self._shared = shared
        self._process: ForkServerProcess | None = None
        self._pipe: Connection | None = None

    def start(self) -> None:
        self._process, self._pipe = spawn(serve, self.role, self.port, self._shared)
        self.lives += 1

    def ready(self, seconds: float = 300.0) -> None:
        """Wait until it serves."""
        assert self._pipe is not None
        assert self._pipe.poll(seconds), f"the {self.role} does not start"
        self._pipe.recv()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._gone()

    def stop(self) -> None:
        """SIGTERM, as a deployment does; it gets the time it needs."""
        assert self._process is not None
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGTERM)
        self._process.join(30)
        assert self._process.exitcode is not None, f"the {self.role} does not end"
        self._gone()

    def _gone(self) -> None:
        assert self._process is not None
        assert self._pipe is not None
        self._process.join()
        self._process.close()
        self._pipe.close()
        self._process = None

    @property
    def memory(self) -> int:
        """Resident bytes."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(
    workers: int, webs: int, shared: Shared, *, role: Role = "worker"
) -> Iterator[tuple[list[Node], list[Node]]]:
    """So many workers and web nodes, all of them serving."""
    nodes = [Node(role, shared) for _ in range(workers)] + [Node("web", shared) for _ in range(webs)]
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            node.ready()
        yield nodes[:workers], nodes[workers:]
    finally:
        for node in nodes:
            node.kill()


async def again(node: Node) -> None:
    """Start a node that is down."""
    node.start()
    await asyncio.to_thread(node.ready)


async def order(
    http: httpx.AsyncClient,
    address: str,
    ledger: Ledger,
    thread: str,
    nodes: int,
    size: int,
    pause: float,
    *,
    agent: str = "counter",
) -> None:
    """Have a counter run in a thread of its own, asked for at a web node."""
    ledger.plan(thread, nodes, size)
    body = {"message": plan(nodes, size, pause), "agent": agent}
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await http.post(f"{address}/threads/{thread}/runs", json=body)
            except httpx.HTTPError:
                await asyncio.sleep(0.2)
                continue
            if answer.status_code in (202, 409):  # it was asked for twice, because the first answer was lost
                return
            assert answer.status_code in (404, 429, 503), f"{answer.status_code} {answer.text}"
            await asyncio.sleep(0.2)
