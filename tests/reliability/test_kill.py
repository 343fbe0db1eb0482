"""kill -9 at any moment: what was promised is there, nothing else has happened, and the next process goes on."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Sequence

import pytest
from ag_ui.core import RunFinishedEvent

from runcast.slim.folding.conversation import fold
from runcast.slim.log.run_log import RunLog
from runcast.slim.protocol.verifier import verify
from runcast.slim.stores import open_store
from tests.forked import everything, spawn
from tests.reliability.children import race, write_for_ever, write_until_full

THREAD = "thread"
IN_ONE_THREAD = 10  # kills


def kill_after(url: str, thread: str, seed: int, promises: int, seconds: float) -> list[int]:
    """Kill a child some moments after its nth promise, however slow the machine is; gives all it was promised."""
    child, pipe = spawn(write_for_ever, url, thread, seed)
    said: list[object] = []
    while len(said) <= promises:  # the first is "ready"
        assert pipe.poll(60), "the child does not write"
        said.append(pipe.recv())
    time.sleep(seconds)
    child.kill()
    child.join()
    said += everything(pipe)
    pipe.close()
    return [seq for seq in said if isinstance(seq, int)]


def is_sound(url: str) -> bool:
    if not url.startswith("sqlite"):
        return True
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return bool(answer == "ok")


async def look(url: str, thread: str, promised: Sequence[int]) -> int:
    """Check the thread as the next process finds it; answers how long it is."""
    async with RunLog(open_store(url), derive="manual") as log:
        entries = await log.entries(thread)
        runs = await log.runs(thread)
        seqs = [entry.seq for entry in entries]
        assert seqs == list(range(1, len(seqs) + 1)), "no hole and no double"
        assert len(seqs) >= max(promised, default=0), "everything that was promised"
        assert len({entry.epoch for entry in entries}) <= 1
        ends = {entry.run_id for entry in entries if isinstance(entry.event, RunFinishedEvent)}
        for run in runs:
            assert (run.terminal == "RUN_FINISHED") == (run.run_id in ends), "no end that nobody wrote"
            assert run.status in ("completed", "truncated", "in_progress")
        if runs:
            short, whole = await log.restore(thread), await log.restore(thread, compacted=False)
            assert not verify(short, "client")
            assert not verify(whole, "client")
            assert fold(short).messages == fold(whole).messages
            assert fold(short).state == fold(whole).state
        return len(seqs)


@pytest.mark.slow
async def test_whatever_the_moment_of_the_kill(url: str, kills: int):
    rng = random.Random(kills)
    threads = [f"thread {n // IN_ONE_THREAD}" for n in range(kills)]
    promised: dict[str, list[int]] = {thread: [] for thread in threads}
    lengths: dict[str, list[int]] = {thread: [] for thread in threads}
    for n, thread in enumerate(threads):
        promised[thread] += await asyncio.to_thread(
            kill_after, url, thread, n, rng.randrange(10), rng.random() * 0.03
        )
        assert is_sound(url)
        lengths[thread].append(await look(url, thread, promised[thread]))
    assert all(each == sorted(each) for each in lengths.values())
    assert sum(each[-1] for each in lengths.values()) > 20 * kills, "they did write"
    assert sum(map(len, promised.values())) > kills
    async with RunLog(open_store(url)) as log:
        await asyncio.sleep(0.1)
        await log.recovery.recover()
        statuses = {run.status for thread in promised for run in await log.runs(thread)}
        assert statuses == {"completed", "truncated"}


@pytest.mark.slow
async def test_of_two_processes_at_one_thread_one_wins(url: str):
    for n in range(4):
        children = [spawn(race, url, f"thread {n}", owner) for owner in ("one", "other")]
        said = await asyncio.gather(*(asyncio.to_thread(everything, pipe) for _, pipe in children))
        for child, pipe in children:
            child.join()
            pipe.close()
        outcomes = [each[1] for each in said]
        (won,) = [outcome for outcome in outcomes if isinstance(outcome, list)]
        (lost,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
        assert won == list(range(1, 13))
        assert "is being written by" in lost
        async with RunLog(open_store(url)) as log:
            assert [run.status for run in await log.runs(f"thread {n}")] == ["completed"]


@pytest.mark.slow
async def test_a_disk_that_is_really_full(tmp_path: object):
    url = f"sqlite:///{tmp_path}/runs.db"
    child, pipe = spawn(write_until_full, url, THREAD, 600_000)
    *promised, error = await asyncio.to_thread(everything, pipe)
    child.join()
    pipe.close()
    assert isinstance(error, str)
    assert "runs.db" in error
    numbers = [seq for seq in promised if isinstance(seq, int)]
    assert numbers == list(range(2, len(numbers) + 2))
    assert is_sound(url)
    assert await look(url, THREAD, numbers) == numbers[-1], "and half of nothing"
