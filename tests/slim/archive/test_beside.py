"""Heavy work in a thread: its result, its error, and a caller that is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from runcast.slim.archive.beside import beside


async def test_it_gives_the_result_or_the_error_of_the_work():
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
