"""`runcast demo` in a terminal: the page's address, the keys, and the size table at the end.

Knows keys and texts; the demo itself is `headless.py` and `desk.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from runcast.app.demo.controls import DemoSite
from runcast.app.demo.desk import Desk
from runcast.app.demo.headless import THREAD, Figures, perform
from runcast.app.serve import open_browser, serving

Say = Any  # rich.console.Console

QUIT = ("q", "\x03", "\x04")
KEYS = "[b]k[/b] kill -9 the worker   [b]r[/b] bring it back   [b]n[/b] new thread   [b]q[/b] quit"


def bytes_of(number: int | None) -> str:
    """A size to read."""
    if number is None:
        return "none"
    return f"{number:,} B" if number < 10_000 else f"{number / 1000:,.1f} kB"


def rows(size: dict[str, Any]) -> list[tuple[str, str]]:
    """The size table."""
    return [
        ("events", str(size["events"])),
        ("uncompacted", bytes_of(size["bytes"])),
        ("compacted", bytes_of(size["compacted"])),
        ("snapshot", bytes_of(size["snapshot"])),
    ]


async def headless(kind: str, *, seed: int | None = None, pace: float = 0.01) -> tuple[Figures, float]:
    """The demo without a person; returns the figures, and the seconds until the page was live."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="runcast-demo-") as folder:
        desk = Desk(Path(folder), kind, pace=pace)
        async with serving(desk.cast, desk.cast.asgi()) as url:
            live = time.monotonic() - began
            try:
                await desk.start()
                seed = random.randrange(2**31) if seed is None else seed
                return await perform(desk, url, seed=seed, token=desk.cast.access.token), live
            finally:
                await desk.worker.end()


async def interactive(kind: str, *, port: int, folder: Path, say: Say, pace: float = 0.04) -> None:
    """The page, and keys that kill the worker and bring it back."""
    began = time.monotonic()
    desk = Desk(folder, kind, pace=pace)
    async with serving(desk.cast, DemoSite(desk), port=port) as url:
        first = desk.cast.access.first_url(url.replace("127.0.0.1", "localhost")) + f"&thread={THREAD}"
        live = time.monotonic() - began
        say.print(f"\n  [b]{first}[/b]   live after {live:.1f} s\n\n  {KEYS}\n")
        say.print("  the run begins when the page is open; any key begins it without")
        open_browser(first)
        with keys() as pressed:
            try:
                await desk.start()
                if await _begun_by(desk, pressed) in QUIT:
                    return
                await desk.ask(THREAD)
                while (key := await pressed.get()) not in QUIT:
                    await press(desk, key, say)
            finally:
                await desk.worker.end()
        await desk.log.archive.compact(THREAD)
        for name, value in rows(await desk.cast.threads.size(THREAD)):
            say.print(f"  {name:<14}{value:>12}")


async def _begun_by(desk: Desk, pressed: asyncio.Queue[str]) -> str:
    """Wait for a page, or for a key; returns the key."""
    waiting = {asyncio.create_task(desk.watched()), key := asyncio.create_task(pressed.get())}
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in left:
        each.cancel()
    return key.result() if key in done else ""


async def press(desk: Desk, key: str, say: Say) -> None:
    """One key."""
    try:
        match key:
            case "k":
                pid = desk.worker.pid
                await desk.worker.kill()
                say.print(f"  kill -9 {pid}: the worker is gone; the page is not")
            case "r":
                resumed = await desk.bring_back()
                say.print(
                    "  the worker is back" + (f" and resumes in {', '.join(resumed)}" if resumed else "")
                )
            case "n" if desk.worker.alive:
                await desk.ask(f"{THREAD}-{int(time.time()) % 100_000}")
                say.print("  a new thread; the page lists it")
            case "n":
                say.print("  the worker is not running: press r first")
            case _:
                pass
    except Exception as error:  # noqa: BLE001  a key must not end the demo
        say.print(f"  {error}")


@contextlib.contextmanager
def keys() -> Generator[asyncio.Queue[str]]:
    """Single keys of the terminal, while the block runs."""
    pressed: asyncio.Queue[str] = asyncio.Queue()
    number = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    restore = _raw(number)

    def take() -> None:
        for key in os.read(number, 64).decode() or "q":  # empty at the end of the input
            pressed.put_nowait(key)

    loop.add_reader(number, take)
    try:
        yield pressed
    finally:
        loop.remove_reader(number)
        restore()


def _raw(number: int) -> Any:
    if not os.isatty(number):
        return lambda: None
    import termios
    import tty

    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    return lambda: termios.tcsetattr(number, termios.TCSADRAIN, before)
