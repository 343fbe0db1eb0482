"""Stock laravel-echo and pusher-js clients in one Node process, and soketi, a Pusher server in Node.

Knows how to start and to talk to them; does not know what a right answer is.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.conftest import missing
from tests.servers import free_port

HERE = Path(__file__).parent / "js-pusher"
MISSING = "pusher-js and laravel-echo are not installed: put Node >= 20 with npm on PATH and run `make js`"
PATIENCE = 15.0

Report = dict[str, Any]


def node() -> str:
    """The path of Node, when the clients are installed too."""
    found = shutil.which("node")
    if found is None or not (HERE / "node_modules" / "laravel-echo").is_dir():
        missing(MISSING)
    return str(found)


class Clients:
    """Any number of Echo clients. What they report is kept; `seen` looks back, `until` waits."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self.reports: list[Report] = []

    @classmethod
    async def start(cls) -> Clients:
        process = await asyncio.create_subprocess_exec(
            node(),
            "clients.mjs",
            cwd=HERE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=64 * 1024 * 1024,
        )
        clients = cls(process)
        await clients.until("", "ready")
        return clients

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reader

    def ask(self, op: str, client: str, **more: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, "client": client, **more}).encode() + b"\n")

    def seen(self, client: str, what: str, **like: Any) -> list[Report]:
        """What a client has reported of a kind, in order."""
        return [
            each
            for each in self.reports
            if each["client"] == client
            and each["what"] == what
            and all(each.get(name) == value for name, value in like.items())
        ]

    async def until(self, client: str, what: str, count: int = 1, **like: Any) -> list[Report]:
        """Wait until a client has reported so many of a kind."""
        return await self.enough(lambda: self.seen(client, what, **like), count, f"{client} {what} {like}")

    async def enough(self, look: Callable[[], list[Report]], count: int, what: str) -> list[Report]:
        """Wait until there are so many."""
        patience = time.monotonic() + PATIENCE
        while len(found := look()) < count:
            crashed = self.seen("", "crash")
            left = patience - time.monotonic()
            if left <= 0 or crashed:
                raise AssertionError(f"waited for {count} {what}, got {found}; last: {self.reports[-8:]}")
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                continue
        return found

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.reports.append(json.loads(line))
            self._news.set()

    def data(self, client: str, channel: str) -> list[Any]:
        """The data of the events a client got on a channel."""
        return [report["data"] for report in self.seen(client, "event", channel=channel)]


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    """A Node process with no client in it yet."""
    it = await Clients.start()
    yield it
    await it.stop()


@contextmanager
def soketi(app_id: str = "1001", key: str = "app-key", secret: str = "app-secret") -> Iterator[int]:
    """soketi on a free port of the loopback while the block runs; gives the port."""
    program = node()
    port, metrics = free_port(), free_port()
    app = {
        "id": app_id, "key": key, "secret": secret, "maxConnections": -1, "enableClientMessages": True,
        "enabled": True, "maxBackendEventsPerSecond": -1, "maxClientEventsPerSecond": -1,
        "maxReadRequestsPerSecond": -1, "enableUserAuthentication": False, "webhooks": [],
    }  # fmt: skip
    settings = {
        "host": "127.0.0.1", "port": port, "debug": False, "metrics.host": "127.0.0.1", "metrics.port": metrics,
        "appManager.array.apps": [app],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="runcast-") as folder:
        config = Path(folder) / "soketi.json"
        config.write_text(json.dumps(settings))
        command = [
            program,
            str(HERE / "node_modules/@soketi/soketi/bin/server.js"),
            "start",
            f"--config={config}",
        ]
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            _wait(process, port)
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    patience = time.monotonic() + 30
    while time.monotonic() < patience and process.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/ready", timeout=1) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError("soketi did not start")


@pytest.fixture(scope="session")
def soketi_port() -> Iterator[int]:
    """The port of a soketi for the whole session."""
    with soketi() as port:
        yield port
