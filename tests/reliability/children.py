"""Processes to be killed: they write, say what they were promised, and never tidy up.

Parts of this file run in the child; it may say only what `RunLog` has told it is durable.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
from multiprocessing.connection import Connection

from ag_ui.core import StateSnapshotEvent, ToolCallArgsEvent, ToolCallEndEvent, ToolCallStartEvent

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import open_store
from tests.slim.logs import finished, started, text

LEASE_MS = 60
Told = list[int]


def commit_and_die(pipe: Connection, url: str, thread: str, count: int) -> None:
    """Begin a run with so many pieces of text, and die when they are committed, before readers here are handed them."""
    asyncio.run(_commit_and_die(pipe, url, thread, count))


async def _commit_and_die(pipe: Connection, url: str, thread: str, count: int) -> None:
    log = RunLog(open_store(url), derive="manual", lease_ms=LEASE_MS)
    await log.append(thread, started("torn"))

    async def read() -> None:
        async for entry in log.attach(thread, after=1):
            pipe.send(entry.seq)

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.1)
    log._core.hand_over = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # pyright: ignore[reportPrivateUsage]
    await log.append_many(thread, text("m", *map(str, range(count))))
    await reading


def write_for_ever(pipe: Connection, url: str, thread: str, seed: int) -> None:
    """Take the thread over, write runs, and say every seq that is promised to be durable."""
    asyncio.run(_write(pipe, url, thread, random.Random(seed), seed))


async def _write(pipe: Connection, url: str, thread: str, rng: random.Random, seed: int) -> None:
    log = RunLog(open_store(url), flush_ms=2, flush_events=16, lease_ms=LEASE_MS, owner=f"child {seed}")
    pipe.send("ready")
    turn = 0
    while True:
        run_id = f"r{seed}-{turn}"
        turn += 1
        await _begin(log, thread, run_id)
        for event in [
            StateSnapshotEvent(snapshot={"run": run_id, "filler": "x" * rng.choice((1, 100, 20_000))}),
            *text(f"{run_id}-m", *[f"word {n} " for n in range(rng.randint(1, 40))]),
            ToolCallStartEvent(tool_call_id=f"{run_id}-c", tool_call_name="search"),
            *[ToolCallArgsEvent(tool_call_id=f"{run_id}-c", delta="{}") for _ in range(rng.randint(1, 20))],
            ToolCallEndEvent(tool_call_id=f"{run_id}-c"),
        ]:
            entry = await log.append(thread, event)
            if entry is not None and rng.random() < 0.1:
                await log.flush(thread)
                pipe.send(entry.seq)
        if rng.random() < 0.3:
            await log.save_snapshot(thread, {"run": run_id})
        entry = await log.append(thread, finished(run_id, thread_id=thread))
        if entry is not None:
            pipe.send(entry.seq)


async def _begin(log: RunLog, thread: str, run_id: str) -> None:
    """As soon as the lease of whoever was killed has run out."""
    while True:
        try:
            await log.append(thread, started(run_id, thread_id=thread))
            return
        except Conflict:
            await asyncio.sleep(0.005)


def race(pipe: Connection, url: str, thread: str, owner: str) -> None:
    """One run in a thread that another process wants too; says what came of it."""

    async def main() -> None:
        log = RunLog(open_store(url), owner=owner)
        await log.threads()
        pipe.send("ready")
        try:
            entries = await log.append_many(
                thread, [started(owner, thread_id=thread), *text(f"{owner}-m", *"abcdefgh")]
            )
            await asyncio.sleep(0.3)
            entries += await log.append_many(thread, [finished(owner, thread_id=thread)])
            pipe.send([entry.seq for entry in entries])
        except Conflict as error:
            pipe.send(str(error))
        await log.close()

    asyncio.run(main())


def write_until_full(pipe: Connection, url: str, thread: str, file_bytes: int) -> None:
    """Write under a limit on the size of files, as a full disk would have it; says what was promised, and the error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    async def main() -> None:
        log = RunLog(open_store(url), derive="manual")
        try:
            await log.append(thread, started("r", thread_id=thread))
            for n in range(10_000):
                entry = await log.append(thread, StateSnapshotEvent(snapshot={"n": n, "filler": "x" * 5_000}))
                await log.flush(thread)
                pipe.send(entry.seq if entry else None)
        except StoreError as error:
            pipe.send(str(error))
        os._exit(0)

    asyncio.run(main())
