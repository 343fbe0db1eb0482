"""A Redis that a test may kill and start again on the same port, empty each time."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import redis.asyncio
from redis.exceptions import RedisError

from tests.conftest import missing
from tests.servers import REDIS, free_port, redis_program


class RedisProcess:
    """Use it as `async with`; it is not running before `start`."""

    def __init__(self, *options: str) -> None:
        self.options = options
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self) -> None:
        program = redis_program()
        assert program is not None
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *self.options]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    async def start(self) -> None:
        self._start()
        async with asyncio.timeout(60):
            while not await self._answers():  # noqa: ASYNC110  a server that starts offers nothing to wait for
                await asyncio.sleep(0.02)

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def _answers(self) -> bool:
        try:
            await self.ask("PING")
        except (RedisError, OSError):
            return False
        return True

    async def ask(self, *command: Any) -> Any:
        client: Any = redis.asyncio.Redis.from_url(self.url)
        try:
            return await client.execute_command(*command)
        finally:
            await client.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


class RedisCluster:
    """Three nodes that share the slots. Use it as `async with`."""

    def __init__(self, folder: Path) -> None:
        self._buses = [free_port() for _ in range(3)]
        self.nodes = [
            RedisProcess(
                *("--cluster-enabled", "yes", "--cluster-port", str(bus), "--dir", str(folder)),
                *("--cluster-config-file", f"{bus}.conf", "--cluster-node-timeout", "2000"),
            )
            for bus in self._buses
        ]
        self.url = f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    async def __aenter__(self) -> Self:
        for at, node in enumerate(self.nodes):
            await node.start()
            slots = (at * 5461, 16383 if at == 2 else at * 5461 + 5460)
            await node.ask("CLUSTER", "ADDSLOTSRANGE", *slots)
            await node.ask("CLUSTER", "SET-CONFIG-EPOCH", at + 1)
        for node, bus in zip(self.nodes[1:], self._buses[1:], strict=True):
            await self.nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        async with asyncio.timeout(60):
            for node in self.nodes:
                while not await self._is_whole(node):  # noqa: ASYNC110  as above
                    await asyncio.sleep(0.05)
        return self

    async def _is_whole(self, node: RedisProcess) -> bool:
        """Whether it knows both others and is linked with them, both ways."""
        state, names = bytes(await node.ask("CLUSTER", "INFO")), bytes(await node.ask("CLUSTER", "NODES"))
        links = await node.ask("CLUSTER", "LINKS")
        return (
            b"cluster_state:ok" in state
            and b"handshake" not in names
            and names.count(b"\n") == 3
            and len(links) == 4
        )

    async def owner(self, key: str) -> RedisProcess:
        """The node that has a key."""
        slot = int(await self.nodes[0].ask("CLUSTER", "KEYSLOT", key))
        return self.nodes[min(slot // 5461, 2)]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes:
            node.kill()


@pytest.fixture
def redis_there() -> None:
    """Left out where there is no Redis to start."""
    if redis_program() is None:
        missing(REDIS)
