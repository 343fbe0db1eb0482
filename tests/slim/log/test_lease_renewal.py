"""Leases are renewed whatever the event loop is busy with, and not for a process that is stopped or hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from ag_ui.core import CustomEvent

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.log.lease_renewal import SILENT_LEASES, LeaseRenewal
from runcast.slim.log.log_options import LogOptions
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore, Store, open_store
from runcast.slim.stores.records import Key, Lease
from tests.slim.logs import THREAD, Clock, finished, make_log, started

DEADLINE = 30.0  # seconds for what takes milliseconds
LEASE_MS = 60
HERE = Key("", THREAD)
T = TypeVar("T")


def elsewhere(work: Callable[[Store], Awaitable[T]], url: str) -> T:
    """Ask a store in a thread of its own, while the event loop of this one stands still."""
    found: list[T] = []

    async def ask() -> None:
        store = open_store(url)
        found.append(await work(store))
        await store.close()

    asking = threading.Thread(target=lambda: asyncio.run(ask()))
    asking.start()
    asking.join(DEADLINE)
    return found[0]


async def lease_until(store: Store) -> int | None:
    thread = await store.thread(HERE)
    return thread.until if thread else None


def blocked(url: str, until: int) -> None:
    """Block the event loop until the lease lasts so long."""
    deadline = time.monotonic() + DEADLINE
    while elsewhere(lease_until, url) != until:
        assert time.monotonic() < deadline, "the lease was not renewed"
        time.sleep(0.005)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not so():  # noqa: ASYNC110  what a thread does has no event here
            await asyncio.sleep(0.005)


async def test_a_blocked_event_loop_keeps_its_leases(shared_url: str, monkeypatch: pytest.MonkeyPatch):
    """For three leases by the log's clock; in real time the test may be as slow as it likes."""
    monkeypatch.setattr("runcast.slim.log.lease_renewal.SILENT_LEASES", 1e9)
    clock = Clock()
    mine = make_log(shared_url, clock=clock, lease_ms=LEASE_MS)
    theirs = make_log(shared_url, clock=clock)
    async with mine, theirs:
        await mine.append(THREAD, started("r1"))
        for _ in range(9):
            clock.pass_ms(LEASE_MS // 3)
            blocked(shared_url, clock.now + LEASE_MS)
        with pytest.raises(Conflict, match="is being written"):
            await theirs.append(THREAD, started("r2"))
        assert await theirs.recovery.recover() == []
        await mine.append(THREAD, finished("r1"))
        assert [run.status for run in await theirs.runs(THREAD)] == ["completed"]
        assert mine.stats().leases_lost == 0


async def test_a_lease_is_renewed_by_a_clock_that_was_set_back(shared_url: str):
    clock = Clock()
    async with make_log(shared_url, clock=clock, lease_ms=LEASE_MS) as log:
        await log.append(THREAD, started("r1"))
        clock.pass_ms(-3_600_000)
        blocked(shared_url, clock.now + LEASE_MS)


async def test_a_loop_that_gives_no_sign_of_life_loses_its_leases(monkeypatch: pytest.MonkeyPatch):
    """After so many leases and not before, and only until it lives again."""
    now, clock, ticks, lost = 0.0, Clock(), 0, list[Lease]()
    monkeypatch.setattr("runcast.slim.log.lease_renewal.monotonic", lambda: now)
    store = MemoryStore()
    lease = await store.acquire(HERE, owner="me", now=clock.now, until=clock.now, epoch="e")

    def held() -> list[Lease]:
        nonlocal ticks
        ticks += 1
        return [lease]

    def renewed() -> bool:
        """Whether it is renewed when the time comes; this loop lives, though its own clock stands still."""
        clock.pass_ms(1)
        begun, deadline = ticks, time.monotonic() + DEADLINE
        while ticks < begun + 3:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return store._threads[HERE].until == clock.now + LEASE_MS

    renewal = LeaseRenewal(store, LogOptions(clock=clock, lease_ms=LEASE_MS), held, lost.append)
    assert renewed()
    now = SILENT_LEASES * LEASE_MS / 1_000
    assert renewed()
    now += 0.001
    assert not renewed()
    seen = ticks
    await until(lambda: ticks >= seen + 2 and store._threads[HERE].until == clock.now + LEASE_MS)
    await renewal.close()
    assert not lost


async def test_a_lease_that_was_taken_is_noticed_though_nothing_is_written(
    shared_url: str, caplog: pytest.LogCaptureFixture
):
    clock = Clock()
    mine = make_log(shared_url, clock=clock, lease_ms=LEASE_MS)
    theirs = make_log(shared_url, clock=lambda: clock.now + 3_600_000)
    async with mine, theirs:
        await mine.append(THREAD, started("r1"))
        await theirs.append(THREAD, started("r2"))
        await until(lambda: mine.stats().leases_lost == 1)
        assert "this writer cannot append to its run any more" in caplog.text
        with pytest.raises(Conflict):
            await mine.append(THREAD, CustomEvent(name="n", value=1))
        await theirs.append(THREAD, finished("r2"))


class Unwilling(MemoryStore):
    """Refuses to renew while it is down."""

    down = False

    async def renew(self, leases: object, *, until: int) -> list[Lease]:
        if self.down:
            raise StoreError("not now")
        return await super().renew(leases, until=until)  # type: ignore[arg-type]  # as it came


async def test_a_renewal_that_fails_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture):
    store, clock = Unwilling(), Clock()
    async with RunLog(store, derive="manual", clock=clock, lease_ms=LEASE_MS) as log:
        await log.append(THREAD, started("r1"))
        store.down = True
        await until(lambda: "1 leases could not be renewed: not now" in caplog.text)
        store.down = False
        clock.pass_ms(1_000)
        await until(lambda: store._threads[HERE].until == clock.now + LEASE_MS)
        await log.append(THREAD, finished("r1"))


def test_a_log_that_is_never_closed_leaves_no_thread_behind():
    async def forgetful() -> None:
        await RunLog(MemoryStore()).append(THREAD, started("r1"))
        assert [each for each in threading.enumerate() if each.name == "runcast-leases"]

    asyncio.run(forgetful())
    for each in threading.enumerate():
        if each.name == "runcast-leases":
            each.join(DEADLINE)
            assert not each.is_alive()


CHILD = """
import asyncio, sys
from ag_ui.core import CustomEvent, RunStartedEvent
from runcast.slim import Conflict, RunLog, open_store

async def main():
    async with RunLog(open_store(sys.argv[1]), lease_ms=400) as log:
        await log.append("thread", RunStartedEvent(thread_id="thread", run_id="r1"))
        print("begun", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        try:
            await log.append_many("thread", [CustomEvent(name="n", value=1)])
        except Conflict:
            print("refused", flush=True)

asyncio.run(main())
"""


async def test_a_stopped_process_loses_its_leases(shared_url: str):
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, shared_url, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    async with make_log(shared_url) as log:
        assert await asyncio.wait_for(child.stdout.readline(), DEADLINE) == b"begun\n"
        os.kill(child.pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(DEADLINE):
                while not await log.recovery.recover():  # noqa: ASYNC110  a lease has no event
                    await asyncio.sleep(0.02)
        finally:
            os.kill(child.pid, signal.SIGCONT)
        answer, _ = await asyncio.wait_for(child.communicate(b"\n"), DEADLINE)
        assert answer == b"refused\n"
        (run,) = await log.runs(THREAD)
        assert (run.status, run.last_seq) == ("truncated", 1)


@pytest.mark.parametrize(("lease_ms", "pause"), [(15_000, 5.0), (3, 0.01)])
async def test_leases_are_renewed_three_times_while_they_last(
    lease_ms: int, pause: float, monkeypatch: pytest.MonkeyPatch
):
    waits, wait = set[float | None](), asyncio.wait

    async def noting(what: Any, *, timeout: float | None = None, **more: Any) -> Any:  # noqa: ASYNC109
        waits.add(timeout)
        return await wait(what, timeout=timeout, **more)

    monkeypatch.setattr(asyncio, "wait", noting)
    renewal = LeaseRenewal(MemoryStore(), LogOptions(lease_ms=lease_ms), list[Lease], print)
    await until(lambda: bool(waits - {None}))
    await renewal.close()
    assert pause in waits
    assert 3 * pause not in waits
