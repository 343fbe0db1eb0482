"""An import and a retention that are stopped or killed at any moment: whoever repeats them finishes what they began."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import pytest

from runcast.app import Cast
from runcast.slim.errors import Conflict, StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import open_store
from tests.forked import everything, spawn
from tests.reliability.children import LEASE_MS
from tests.slim.logs import turn

THREADS = [f"t{n}" for n in range(6)]
PATIENCE = 60.0  # seconds
HOW = (signal.SIGKILL, signal.SIGSTOP)
T = TypeVar("T")


async def archive() -> list[bytes]:
    """Threads of two hours ago."""
    then = time.time_ns() // 1_000_000 - 7_200_000
    async with RunLog(open_store("memory://"), clock=lambda: then) as log:
        for thread in THREADS:
            await log.append_many(thread, [each for n in range(2) for each in turn(f"r{n}", "word " * 40)])
        return [line async for line in log.archive.export_all()]


def import_all(pipe: Connection, url: str, lines: list[bytes]) -> None:
    """Import an archive, and say how many lines were read."""

    async def main() -> None:
        log = RunLog(open_store(url), lease_ms=LEASE_MS)

        async def read() -> AsyncIterator[bytes]:
            for n, each in enumerate(lines):
                pipe.send(n)
                yield each
                await asyncio.sleep(0)

        with suppress(Conflict, StoreError):
            await log.archive.import_all(read())

    asyncio.run(main())


def retain(pipe: Connection, url: str, raw_only: bool) -> None:
    """Forget all threads, or fold their events; says when it begins."""

    async def main() -> None:
        log = RunLog(open_store(url), lease_ms=LEASE_MS)
        age: Any = {"keep_raw" if raw_only else "keep": "1h"}
        cast = Cast(log, work=False, **age)
        pipe.send(0)
        with suppress(StoreError):
            await cast.retention.apply()

    asyncio.run(main())


async def until(repeat: Callable[[], Awaitable[T]], *, patience: float = PATIENCE) -> T:
    """Repeat until it is no conflict."""
    end = time.monotonic() + patience
    while True:
        try:
            return await repeat()
        except StoreError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(LEASE_MS / 2_000)


def send(pid: int | None, how: signal.Signals) -> None:
    """A child that is done by then has nothing to be stopped in."""
    assert pid is not None
    with suppress(ProcessLookupError):
        os.kill(pid, how)


@pytest.mark.slow
async def test_an_import_is_completed_by_the_same_import(url: str, long: bool) -> None:
    rng, lines = random.Random(url[:6]), await archive()
    for n in range(20 if long else 2):
        how = HOW[n % 2]
        async with RunLog(open_store(url), lease_ms=LEASE_MS) as log:
            child, pipe = spawn(import_all, url, lines)
            for _ in range(rng.randrange(1, len(lines))):
                assert pipe.poll(PATIENCE)
                pipe.recv()
            await asyncio.sleep(rng.random() * 0.02)
            send(child.pid, how)
            with suppress(StoreError):  # the first one goes on at once, if it is whole
                await log.append_many(THREADS[0], turn("later"))
            went_on = [each.run_id for each in await log.runs(THREADS[0])][2:]
            if how == signal.SIGSTOP:  # it holds SQLite's lock, perhaps, until it is let go
                with suppress(StoreError):
                    await until(lambda: log.archive.import_all(source(lines)), patience=5 * LEASE_MS / 1_000)
                send(child.pid, signal.SIGCONT)
            said = await asyncio.to_thread(everything, pipe)
            child.join()
            pipe.close()
            assert await until(lambda: log.archive.import_all(source(lines))) == THREADS, (
                f"round {n}, {said[-1:]}"
            )
            found = [line async for line in log.archive.export_all()]
            first = len(lines) // len(THREADS)
            assert found[-(len(lines) - first) :] == lines[first:], f"round {n}"
            assert [each.run_id for each in await log.runs(THREADS[0])] == ["r0", "r1", *went_on]
            for thread in THREADS:
                await until(partial(log.archive.delete, thread))


async def source(lines: list[bytes]) -> AsyncIterator[bytes]:
    for each in lines:
        yield each


@pytest.mark.slow
@pytest.mark.parametrize("raw_only", [False, True])
async def test_a_retention_is_completed_by_the_next_one(url: str, long: bool, raw_only: bool) -> None:
    rng, lines = random.Random(url[:6]), await archive()
    for n in range(20 if long else 2):
        how = HOW[n % 2]
        async with RunLog(open_store(url), lease_ms=LEASE_MS) as log:
            await log.archive.import_all(source(lines))
            before = {thread: await log.restore(thread) for thread in THREADS}
            child, pipe = spawn(retain, url, raw_only)
            assert pipe.poll(PATIENCE)
            await asyncio.sleep(rng.random() * 0.05)
            send(child.pid, how)
            with suppress(StoreError):
                await log.append_many(THREADS[-1], turn("later"))
            went_on = any(each.run_id == "later" for each in await log.runs(THREADS[-1]))
            if how == signal.SIGSTOP:
                await asyncio.sleep(3 * LEASE_MS / 1_000)
                send(child.pid, signal.SIGCONT)
            await asyncio.to_thread(everything, pipe)
            child.join()
            pipe.close()
            left = await log.threads()
            for each in left:
                restored = await log.restore(each.thread_id, "r1")
                assert restored == before[each.thread_id], "whole, or gone"
            cast = Cast(log, work=False, keep="1h")
            kept = [THREADS[-1]] if went_on else []
            async with asyncio.timeout(PATIENCE):
                while await log.notes.read("forget") or len(await log.threads()) > len(kept):
                    with suppress(StoreError):
                        await cast.retention.apply()
                        await cast.forgetter.look()
            assert [each.thread_id for each in await log.threads()] == kept, "what goes on is not old"
            for thread in THREADS:
                assert await log.archive.is_forgotten(thread) is (thread not in kept)
                await log.archive.delete(thread)
