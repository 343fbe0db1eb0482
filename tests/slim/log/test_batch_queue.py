"""A thread's queue by itself: what it takes, what one batch holds, what a failure leaves, and what a lost lease drops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from ag_ui.core import CustomEvent

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.log import batches
from runcast.slim.log.batches import BatchQueue, OpenRun
from runcast.slim.log.engine import Core
from runcast.slim.log.log_options import LogOptions
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.contract.tools import blob
from runcast.slim.stores.records import Batch, Key, NewRun, RunEnd
from runcast.slim.wire.codec import encode
from tests.slim.logs import NOW, Clock

KEY = Key("", "thread")
LEASE = 9_000


class Noting(MemoryStore):
    """Notes every batch; holds them back while `may` is clear, and refuses them while it is down."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self.down = False
        self.may = asyncio.Event()
        self.may.set()

    async def append(self, batch: Batch) -> int:
        self.batches.append(batch)
        await self.may.wait()
        if self.down:
            raise StoreError("the disk is full")
        return await super().append(batch)


class Stage:
    """A queue with a lease and an open run, over a store that is played with."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.store = Noting()
        given = LogOptions(clock=self.clock, lease_ms=LEASE, flush_ms=1, **options)
        self.core = Core(self.store, given, lambda: None)
        self.queue = BatchQueue(KEY, self.core)

    async def begin(self, run_id: str = "r") -> None:
        await self.queue.acquire()
        self.queue.begin(OpenRun(run_id, NewRun(run_id, None, "continue", None, f"mark {run_id}"), mark="m"))

    def put(self, *values: int) -> None:
        for value in values:
            self.queue.put(CustomEvent(name="n", value=value))

    async def sent(self, count: int = 1) -> None:
        """So many batches have reached the store."""
        await until(lambda: len(self.store.batches) >= count)

    async def stored(self) -> list[int]:
        return [each.seq for each in (await self.store.events(KEY, after=0)).events]

    async def status(self) -> list[str]:
        return [each.status for each in await self.store.runs(KEY)]


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not so():  # noqa: ASYNC110  the queue works by itself
            await asyncio.sleep(0.001)


@pytest.fixture
async def stage() -> Stage:
    made = Stage()
    await made.begin()
    return made


async def test_what_is_put_has_its_place_and_is_written_once_as_it_is(stage: Stage) -> None:
    queue, counts = stage.queue, stage.core.count
    assert (queue.last_seq, queue.unflushed, queue.first) == (0, 0, 1)
    event = CustomEvent(name="n", value=1)
    stage.clock.pass_ms(3)
    one, two = queue.put(event), queue.put(event, b'{"as":"it is"}')
    assert [(each.seq, each.at, each.run_id, each.mark) for each in (one, two)] == [
        (1, NOW + 3, "r", "m"),
        (2, NOW + 3, "r", "m"),
    ]
    assert (queue.last_seq, queue.unflushed, counts.appended, counts.flushed) == (2, 2, 2, 0)
    await queue.flush()
    payloads = [each.payload for each in (await stage.store.events(KEY, after=0)).events]
    assert payloads == [encode(event), b'{"as":"it is"}']
    assert (queue.unflushed, counts.flushed, counts.batches, len(stage.store.batches)) == (0, 2, 1, 1)
    await queue.flush()
    assert len(stage.store.batches) == 1, "there is nothing to write"


async def test_nothing_is_put_without_a_lease_and_an_open_run() -> None:
    stage = Stage()

    def refused() -> None:
        with pytest.raises(Conflict, match="has no run here"):
            stage.put(1)
        assert (stage.queue.unflushed, stage.core.count.appended) == (0, 0)

    refused()
    stage.queue.begin(OpenRun("r", NewRun("r", None, "continue")))
    refused()
    stage.queue.run = None
    await stage.queue.acquire()
    refused()


async def test_an_event_flows_while_neither_a_batch_nor_the_buffer_is_full() -> None:
    stage = Stage(flush_events=4, buffer_events=5)
    assert not stage.queue.flows, "no run is open"
    await stage.begin()
    stage.store.may.clear()
    flows = list[bool]()
    for n in range(4):
        flows.append(stage.queue.flows)
        assert stage.queue.is_due is False
        stage.put(n)
    assert flows == [True, True, True, False], "the fourth one fills the batch"
    assert stage.queue.is_due
    flush = asyncio.create_task(stage.queue.flush())
    await stage.sent()
    assert (stage.queue.flows, stage.queue.unflushed) == (True, 4)
    stage.put(4)
    assert (stage.queue.flows, stage.queue.unflushed) == (False, 5), "the buffer is full"
    stage.store.may.set()
    await flush
    assert (stage.queue.flows, stage.queue.unflushed) == (True, 0)
    assert [len(each.events) for each in stage.store.batches] == [4, 1]
    assert stage.queue.run is not None
    stage.queue.run.end = RunEnd("completed", "RUN_FINISHED")
    assert not stage.queue.flows, "it has ended"


async def test_after_a_failure_nothing_flows_until_a_write_has_succeeded(stage: Stage) -> None:
    stage.put(1)
    stage.store.down = True
    with pytest.raises(StoreError, match="disk is full"):
        await stage.queue.flush()
    assert (stage.queue.flows, stage.queue.is_due, stage.queue.unflushed) == (False, True, 1)
    assert stage.core.count.store_errors == 1
    stage.store.down = False
    await stage.queue.flush()
    assert (stage.queue.flows, stage.queue.is_due, stage.queue.failure) == (True, False, None)


async def test_a_batch_that_is_sent_again_is_the_same_and_its_lease_counts_from_then(stage: Stage) -> None:
    stage.put(1)
    stage.store.down = True
    for _ in range(2):
        with pytest.raises(StoreError):
            await stage.queue.flush()
        stage.clock.pass_ms(100)
        stage.put(2)
    stage.store.down = False
    await stage.queue.flush()
    tries = stage.store.batches
    assert [(each.batch_id, len(each.events)) for each in tries[:3]] == [(tries[0].batch_id, 1)] * 3
    assert [each.until for each in tries[:3]] == [NOW + LEASE, NOW + 100 + LEASE, NOW + 200 + LEASE]
    assert len({each.batch_id for each in tries}) == 2
    assert await stage.stored() == [1, 2, 3]


async def test_an_end_that_is_sent_again_still_releases_the_lease(stage: Stage) -> None:
    stage.put(1)
    assert stage.queue.run is not None
    stage.queue.run.end = RunEnd("completed", "RUN_FINISHED")
    stage.store.down = True
    with pytest.raises(StoreError):
        await stage.queue.flush()
    stage.store.down = False
    await stage.queue.flush()
    assert [each.until for each in stage.store.batches] == [None, None]
    assert (stage.queue.lease, stage.queue.run, stage.queue.ended) == (None, None, "r")
    assert (await stage.status(), stage.queue.standing) == (["completed"], None)


async def test_after_many_failures_one_retry_waits_and_not_many(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "RETRY_MS", 60)
    stage.put(1)
    stage.store.down = True
    for _ in range(20):
        with pytest.raises(StoreError):
            await stage.queue.flush()
        await asyncio.sleep(0.003)
    tried, loop = len(stage.store.batches), asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0.2)
    assert 1 <= len(stage.store.batches) - tried <= 2 + (loop.time() - began) / 0.06
    stage.store.down = False
    await until(lambda: not stage.queue.unflushed)
    assert await stage.stored() == [1], "it is written by itself"


async def test_what_comes_during_a_write_is_written_by_itself(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.store.may.clear()
    stage.put(1)
    stage.queue.arm()
    await stage.sent()
    stage.put(2)
    stage.store.may.set()
    await until(lambda: not stage.queue.unflushed)
    assert [len(each.events) for each in stage.store.batches] == [1, 1]
    await asyncio.sleep(0.01)
    assert len(stage.store.batches) == 2, "and no more than that"
    assert caplog.text == ""


async def test_raw_parts_alone_begin_a_run_and_mix_with_nothing_that_comes_meanwhile(stage: Stage) -> None:
    stage.store.may.clear()
    stage.queue.keep_raw("RAW", b"raw")
    flush = asyncio.create_task(stage.queue.flush())
    await stage.sent()
    stage.put(1)
    stage.store.may.set()
    await flush
    assert [(each.seq, each.payload) for each in await stage.store.raws(KEY, after=0)] == [(1, b"raw")]
    assert (await stage.stored(), await stage.status()) == ([1], ["in_progress"])


@pytest.mark.parametrize(("cut", "status"), [(True, "truncated"), (False, "in_progress")])
async def test_a_release_cuts_an_open_run_or_leaves_it_open(stage: Stage, cut: bool, status: str) -> None:
    stage.put(1)
    await stage.queue.release(cut=cut)
    thread = await stage.store.thread(KEY)
    assert thread is not None
    assert (await stage.status(), thread.owner) == ([status], None)
    assert (stage.queue.lease, stage.queue.run) == (None, None)


async def test_a_release_without_an_event_begins_no_run(stage: Stage) -> None:
    await stage.queue.release()
    thread = await stage.store.thread(KEY)
    assert thread is not None
    assert (await stage.status(), thread.owner, stage.queue.run) == ([], None, None)
    (release,) = stage.store.batches
    assert (release.run, release.first_seq, release.end, release.until) == (0, 1, None, None)


async def test_a_run_that_has_ended_is_not_cut_by_a_release(stage: Stage) -> None:
    stage.put(1)
    assert stage.queue.run is not None
    stage.queue.run.end = RunEnd("failed", "RUN_ERROR")
    await stage.queue.release()
    assert await stage.status() == ["failed"]
    assert len(stage.store.batches) == 1, "its end has released the lease"


async def test_a_lease_that_cannot_be_released_is_held_no_more(stage: Stage) -> None:
    stage.put(1)
    await stage.queue.flush()
    stage.store.down = True
    with pytest.raises(StoreError):
        await stage.queue.release(cut=False)
    assert (stage.queue.lease, stage.queue.run) == (None, None)
    assert stage.store.batches[-1].run == 0, "it concerns no run"


async def test_a_lost_lease_drops_what_is_not_written(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    queue, counts = stage.queue, stage.core.count
    stage.put(1)
    await queue.flush()
    stage.put(2, 3)
    lease = queue.lease
    assert lease is not None
    queue.lose(replace(lease, token=lease.token + 1))
    assert (queue.unflushed, counts.leases_lost, queue.fenced) == (2, 0, None)
    queue.lose(lease)
    assert (queue.unflushed, counts.leases_lost, counts.lost) == (0, 1, 2)
    assert (queue.lease, queue.run) == (None, None)
    assert isinstance(queue.fenced, Conflict)
    assert "2 entries lost" in caplog.text
    queue.lose(lease)
    assert counts.leases_lost == 1, "once"


async def test_a_batch_under_way_finds_out_by_itself_that_its_lease_is_lost(stage: Stage) -> None:
    queue, lease = stage.queue, stage.queue.lease
    assert lease is not None
    stage.put(1)
    stage.store.may.clear()
    flush = asyncio.create_task(queue.flush())
    await stage.sent()
    queue.lose(lease)
    assert (queue.lease, stage.core.count.leases_lost) == (lease, 0)
    stage.store.may.set()
    await flush
    assert await stage.stored() == [1]


async def test_the_answer_to_a_run_that_was_given_up_is_not_the_next_ones(stage: Stage) -> None:
    queue = stage.queue
    stage.store.may.clear()
    stage.put(1, 2)
    flush = asyncio.create_task(queue.flush())
    await stage.sent()
    queue.snapshot = blob("snapshot", 0, 2)
    assert queue.give_up() == 2
    assert (queue.unflushed, queue.lease, queue.run, queue.snapshot) == (0, None, None, None)
    assert stage.core.count.lost == 2
    stage.store.may.set()
    await flush
    assert queue.untaken == ((), ())
    await stage.begin("s")
    stage.put(3)
    await queue.flush()
    assert (await stage.stored(), queue.first) == ([1, 2, 3], 3)
    assert [each.run_id for each in await stage.store.runs(KEY)] == ["r", "s"]


async def test_where_a_thread_stands_is_known_while_its_lease_is_held(stage: Stage) -> None:
    queue = stage.queue
    lease = await queue.acquire()
    assert queue.standing == (0, "", lease.epoch, ((), ()))
    stage.put(1, 2)
    assert queue.standing == (0, "", lease.epoch, ((), ())), "nothing is durable yet"
    await queue.flush()
    found = queue.standing
    assert found is not None
    assert found[:3] == (2, "m", lease.epoch)
    entries, events = found.untaken
    assert ([each.seq for each in entries], [each.seq for each in events]) == ([1, 2], [1, 2])
    feed = stage.core.feed(KEY)
    stage.put(3)
    await queue.flush()
    assert queue.standing == (3, "m", lease.epoch, ((), ())), "a feed has taken them"
    await stage.core.leave(KEY, feed)
    await queue.release()
    assert queue.standing is None
    again = await queue.acquire()
    assert queue.standing == (3, "mark r", again.epoch, ((), ()))


async def test_a_quiet_flush_logs_what_the_next_call_raises(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put(1)
    stage.store.down = True
    with caplog.at_level(logging.WARNING, "runcast.log"):
        await stage.queue.flush_quietly()
    assert "the disk is full" in caplog.text
    stage.store.down = False
    await stage.queue.flush_quietly()
    assert await stage.stored() == [1]


async def test_a_caller_that_is_cancelled_stops_no_batch_and_no_other_caller(stage: Stage) -> None:
    stage.store.may.clear()
    stage.put(1)
    calls: list[Awaitable[None]] = [asyncio.create_task(stage.queue.flush()) for _ in range(3)]
    await stage.sent()
    calls[1].cancel()  # type: ignore[attr-defined]  # a task
    stage.store.may.set()
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in done] == [type(None), asyncio.CancelledError, type(None)]
    assert (await stage.stored(), len(stage.store.batches)) == ([1], 1)
