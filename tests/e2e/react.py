"""The React examples as their own tools build them, served beside their host, in Chromium.

Knows how a page is built and opened; does not know a client.
"""

from __future__ import annotations

import asyncio
import runpy
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.staticfiles import StaticFiles

from runcast.app import Cast
from tests.app.serving import Served, serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, Browser, Tab, browsing, program
from tests.house.tree import ROOT

EXAMPLES = ROOT / "examples" / "react"


def installed(example: str, made_by: str = "make js") -> Path:
    """The example's folder, with its packages."""
    folder = EXAMPLES / example
    if program() is None:
        missing(MISSING)
    if shutil.which("npx") is None or not (folder / "node_modules" / ".package-lock.json").exists():
        missing(f"{example} is not installed: put Node >= 20 with npm on PATH and run `{made_by}`")
    return folder


async def vite(folder: Path, *arguments: str) -> None:
    """Build an example with its own tools."""
    command = [str(shutil.which("npx")), "vite", "build", "--logLevel", "error", *arguments]
    process = await asyncio.create_subprocess_exec(*command, cwd=folder)
    assert await process.wait() == 0


@asynccontextmanager
async def served(page: Path) -> AsyncIterator[str]:
    """The built page, at this URL."""
    files = Starlette()
    files.mount("/", StaticFiles(directory=page, html=True))
    async with serving(Cast.open("memory://"), app=files) as it:
        yield it.url


@dataclass
class Scene:
    """The page, the host it speaks to, and a browser."""

    page: str
    host: Served
    browser: Browser

    async def tab(self, thread: str) -> Tab:
        return await self.browser.tab(f"{self.page}/?host={self.host.url}&thread={thread}")


@asynccontextmanager
async def staged(example: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """An example beside `host.py`, whose database is made in this folder."""
    await vite(installed(example), "--outDir", str(folder / "dist"))
    monkeypatch.chdir(folder)
    cast = runpy.run_path(str(EXAMPLES / "host.py"))["cast"]
    async with (
        served(folder / "dist") as page,
        serving(cast, cors=[page]) as host,
        browsing() as browser,
    ):
        yield Scene(page, host, browser)
