"""A Redis that a test may kill and start again on the same port, empty each time."""

from __future__ import annotations

import asyncio
import subprocess
from types import TracebackType
from typing import Any, Self

import pytest
import redis.asyncio
from redis.exceptions import RedisError

from tests.conftest import missing
from tests.servers import REDIS, free_port, redis_program


class RedisProcess:
    """Use it as `async with`; it is not running before `start`."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self) -> None:
        program = redis_program()
        assert program is not None
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    async def start(self) -> None:
        self._start()
        async with asyncio.timeout(10):
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


@pytest.fixture
def redis_there() -> None:
    """Left out where there is no Redis to start."""
    if redis_program() is None:
        missing(REDIS)
