"""PostgreSQL and Redis of a test's own, which it may kill and start again on the same port.

Knows how they die; does not know who uses them.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from tests.servers import PATIENCE, Cluster, cluster, free_port, redis_program


class Postgres:
    """A PostgreSQL server. Use it as `with`; it runs from `start` to `crash`, over the same data each time."""

    def __init__(self) -> None:
        self._all = ExitStack()
        self._life = ExitStack()
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        self._cluster = self._all.enter_context(cluster())
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._life.close()
        self._all.close()

    @property
    def url(self) -> str:
        assert self._cluster is not None
        return self._cluster.url

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].split("/")[0])

    def start(self) -> None:
        """Start, and recover what a crash left."""
        assert self._cluster is not None
        self._life.enter_context(self._cluster.running(signal.SIGQUIT))

    def crash(self) -> None:
        """Stop in immediate mode: no checkpoint, no goodbye to anybody who is connected."""
        self._life.close()

    async def restart(self, away: float) -> None:
        """Crash, stay away for so many seconds, and come back."""
        await asyncio.to_thread(self.crash)
        await asyncio.sleep(away)
        await asyncio.to_thread(self.start)


class Redis:
    """A Redis server. Use it as `with`; with `keep` it comes back with what it knew, else empty."""

    def __init__(self, *, keep: bool = False) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._keep = keep
        self._folder = Path(tempfile.mkdtemp(prefix="runcast-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start, and wait until it answers."""
        program = redis_program()
        assert program is not None
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        command += ["--save", "", "--appendonly", "yes" if self._keep else "no", "--appendfsync", "always"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        patience = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < patience, "Redis does not answer"
            time.sleep(0.02)

    def kill(self) -> None:
        """kill -9."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        import socket

        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
            line.sendall(b"PING\r\n")
            return line.recv(7) == b"+PONG\r\n"
        return False
