"""`runcast demo` in a terminal: the page's address, two keys, and the size table at the end.

Knows keys and what to print; the show itself is `headless.py` and `desk.py`.
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

from runcast.app.demo import script
from runcast.app.demo.desk import Desk
from runcast.app.demo.headless import THREAD, DemoFailed, Figures, perform
from runcast.app.serve import serving

Say = Any  # rich.console.Console

KEYS = "[b]k[/b] kill -9 the worker   [b]r[/b] bring it back   [b]n[/b] once more   [b]q[/b] quit"


def bytes_of(number: int | None) -> str:
    """A size for people."""
    if number is None:
        return "none"
    return f"{number:,} B" if number < 10_000 else f"{number / 1000:,.1f} kB"


def rows(size: dict[str, Any]) -> list[tuple[str, str]]:
    """The size table."""
    return [
        ("events", str(size["events"])),
        ("as they came", bytes_of(size["bytes"])),
        ("compacted", bytes_of(size["compacted"])),
        ("snapshot", bytes_of(size["snapshot"])),
    ]


async def headless(kind: str, *, seed: int | None = None, pace: float = 0.01) -> tuple[Figures, float]:
    """The show by itself; the figures, and how long it took until the page was live."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="runcast-demo-") as folder:
        desk = Desk(Path(folder), kind, pace=pace)
        async with serving(desk, desk.asgi()) as url:
            await desk.worker.start()
            live = time.monotonic() - began
            return await perform(desk, url, seed=random.randrange(2**31) if seed is None else seed), live


async def interactive(kind: str, *, port: int, folder: Path, say: Say, pace: float = 0.04) -> None:
    """The page, and keys to be rough with the worker."""
    began = time.monotonic()
    desk = Desk(folder, kind, pace=pace)
    async with serving(desk, desk.asgi(), port=port) as url:
        shown = url.replace("127.0.0.1", "localhost")
        live = time.monotonic() - began
        say.print(f"\n  [b]{shown}/?thread={THREAD}[/b]   live after {live:.1f} s\n\n  {KEYS}\n")
        await desk.worker.start()
        desk.watch(THREAD)
        if not await desk.log.runs(THREAD):
            await desk.say(THREAD, script.QUESTION)
        with keys() as pressed:
            while (key := await pressed.get()) not in ("q", "\x03", "\x04"):
                await press(desk, key, say)
        await desk.log.compact(THREAD)
        for name, value in rows(await desk.threads.size(THREAD)):
            say.print(f"  {name:<14}{value:>12}")


async def press(desk: Desk, key: str, say: Say) -> None:
    """One key."""
    try:
        match key:
            case "k":
                pid = desk.worker.pid
                await desk.worker.kill()
                say.print(f"  kill -9 {pid}: the worker is gone; the page is not")
            case "r":
                found = await desk.recover_runs()
                say.print("  the worker is back" + (f" and goes on with {', '.join(found)}" if found else ""))
            case "n":
                await desk.say(f"{THREAD}-{int(time.time()) % 100_000}", script.QUESTION)
                say.print("  one more thread; the page lists it")
            case _:
                pass
    except Exception as error:  # noqa: BLE001  a key must not end the show
        say.print(f"  {error}")


@contextlib.contextmanager
def keys() -> Generator[asyncio.Queue[str]]:
    """Single keys of the terminal, while the block runs."""
    pressed: asyncio.Queue[str] = asyncio.Queue()
    number = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    restore = _raw(number)

    def take() -> None:
        for key in os.read(number, 64).decode() or "q":  # nothing is the end of the input
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


__all__ = ["DemoFailed", "headless", "interactive", "rows"]
