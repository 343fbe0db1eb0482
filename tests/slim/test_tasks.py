"""Tasks end, also those that drop a cancellation; heavy work in a thread, and a caller that is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from runcast.slim import tasks
from runcast.slim.tasks import beside, end


async def test_a_task_that_drops_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "AGAIN", 0.01)
    dropped = 0

    async def loop() -> None:
        nonlocal dropped
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                dropped += 1
                if dropped == 3:
                    raise

    task = asyncio.create_task(loop())
    await asyncio.sleep(0)
    await end([None, task])
    assert task.cancelled()
    assert dropped == 3


async def test_a_task_that_cleans_up_is_cancelled_once() -> None:
    steps: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("cleans up")
            await asyncio.sleep(0.01)
            steps.append("is clean")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await end([task])
    assert steps == ["cleans up", "is clean"]


async def test_an_error_of_a_task_is_dropped() -> None:
    async def fail() -> None:
        raise ValueError("no")

    over = asyncio.create_task(fail())
    await asyncio.wait({over})
    await end([over])
    await end([])


async def test_heavy_work_gives_its_result_or_its_error():
    assert await beside(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        await beside(lambda: 1 / 0)


async def test_a_cancelled_caller_waits_until_the_thread_is_done():
    go_on, done = threading.Event(), []

    def work() -> None:
        go_on.wait(10)
        done.append(True)

    task = asyncio.create_task(beside(work))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]
