"""The npm package's agents in Node: compiled once, and driven over stdin beside each of their peers.

Knows how to build and talk to `js/runcast_agent.mjs`; does not know what a right answer is.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.conftest import missing
from tests.e2e import oracle
from tests.house.tree import ROOT

WEB = ROOT / "app" / "web"
PEERS = {"1.0": "@ag-ui/client", "0.0.59": "ag-ui-client-earlier"}


def compiled(folder: Path, module: str) -> Path:
    """A module of the npm package, compiled into a folder of its own."""
    npx = shutil.which("npx")
    if npx is None or not (WEB / "node_modules").is_dir() or not oracle.available():
        missing("the npm package is compiled by Node and its packages: run make setup js")
    command = [str(npx), "vite", "build", "--config", "vite.client.config.ts", "--mode", module, "--outDir"]
    subprocess.run([*command, str(folder)], cwd=WEB, check=True, capture_output=True, timeout=300)
    return folder / f"{module}.js"


def beside(folder: Path, peer: str, *files: Path) -> Path:
    """A folder with these files, in which `@ag-ui/client` is the peer of that version."""
    packages = oracle.HERE / "node_modules"
    scope = folder / "node_modules" / "@ag-ui"
    scope.mkdir(parents=True)
    (scope / "client").symlink_to(packages / PEERS[peer], target_is_directory=True)
    (folder / "node_modules" / "rxjs").symlink_to(packages / "rxjs", target_is_directory=True)
    (folder / "package.json").write_text('{"type": "module"}')
    for file in files:
        shutil.copy(file, folder / file.name)
    return folder


class NodeClient:
    """A Node process that runs one script of such a folder: a request a line, an answer a line."""

    def __init__(self, folder: Path, script: str, *arguments: str) -> None:
        self._command = [str(shutil.which("node")), script, *arguments]
        self._folder = folder

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, cwd=self._folder, env={**os.environ, "NODE_OPTIONS": ""},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**28,
        )  # fmt: skip
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def send(self, op: str, **request: Any) -> None:
        """Send a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **request}).encode() + b"\n")
        await self._process.stdin.drain()

    async def answer(self) -> Any:
        """The next line of the process."""
        assert self._process.stdout is not None
        async with asyncio.timeout(180):
            line = await self._process.stdout.readline()
        assert line, "the process ended"
        return json.loads(line)

    async def ask(self, op: str, **request: Any) -> Any:
        """Send a request, and take its answer."""
        await self.send(op, **request)
        return await self.answer()
