"""Whoever watches a thread here gets its runs whole, those of other processes too; for nobody, nothing is mapped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage

from runcast.app import Cast
from runcast.app.host import followers
from runcast.broadcast import Broadcaster, Hub, LogHistory, MemoryPublisher, Position, channel_for
from runcast.broadcast.hub.connection import Connection
from runcast.broadcast.hub.protocol import PlainRequest
from runcast.slim import Entry, MemoryStore, ReaderTooSlow, RunLog, StoreError
from runcast.slim.stores.records import Key, StoredThread
from tests.app.agents import Gated, parrot, said
from tests.broadcast.hub.fakes import Reader
from tests.servers import redis_server
from tests.slim.logs import finished, started

__all__ = ["redis_server"]

PATIENCE = 60.0


def a_hub() -> Hub:
    return Hub("app", "key", "s" * 32, authorize=lambda *_: True)


async def watching(cast: Cast) -> Reader:
    """Somebody who watches the thread `t1` on the cast's hub."""
    reader = Reader()
    assert cast.hub is not None
    channel = channel_for("t1", prefix=cast.hub.prefix)
    opened = await cast.hub.open_plain(reader, PlainRequest(channel, None, None), address="a", headers={})
    assert isinstance(opened, Connection)
    reader.connection = opened
    return reader


async def ends(reader: Reader, run_id: str) -> list[str]:
    """Wait for the end of a run, and return the runs that the reader got something of."""
    async with asyncio.timeout(PATIENCE):
        while not any(  # noqa: ASYNC110  the hub writes it
            each.get("execution_id") == run_id and each["payload"].get("status") == "completed"
            for each in reader.frames
            if "payload" in each
        ):
            await asyncio.sleep(0.01)
    return list(dict.fromkeys(each["execution_id"] for each in reader.frames if "execution_id" in each))


async def test_a_thread_that_was_deleted_and_created_again_is_followed_from_its_newest_run() -> None:
    store = MemoryStore()
    other = RunLog(store)
    async with Cast(RunLog(store), hub=a_hub(), work=False) as cast, other:

        async def writes(*runs: str) -> None:
            for run in runs:
                await other.append("t1", started(run, thread_id="t1"))
                for event in said(run, "a word"):
                    await other.append("t1", event)
                await other.append("t1", finished(run, thread_id="t1"))

        await writes("r1")
        reader = await watching(cast)
        assert await ends(reader, "r1") == ["r1"]
        await other.archive.delete("t1")
        await writes("r2", "r3")
        assert "r3" in await ends(reader, "r3")


@pytest.mark.parametrize("error", [ReaderTooSlow(1, 1), StoreError("the store is away")])
async def test_a_reader_that_goes_on_brings_the_history_of_its_place(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runcast.app.host.followers.PAUSES", (0.001, 0.001))
    log, gated = RunLog(MemoryStore()), Gated(3)
    attach, places = log.live.attach, list[tuple[int | None, str | None]]()
    last: list[Entry] = []

    async def cut_off(
        thread_id: str, after: int | None = None, *, epoch: str | None = None
    ) -> AsyncGenerator[Sequence[Entry]]:
        places.append((after, epoch))
        async for entries in attach(thread_id, after, epoch=epoch):
            yield entries
            last[:] = entries[-1:]
            if len(places) == 1 and entries[-1].seq > 1:
                raise error

    monkeypatch.setattr(log.live, "attach", cut_off)
    async with Cast(log, hub=a_hub(), agents=[gated]) as cast:
        reader = await watching(cast)
        run = await cast.say("t1", "go")
        gated.open(1)
        async with asyncio.timeout(PATIENCE):
            while len(places) < 2:  # noqa: ASYNC110  the follower goes on by itself
                await asyncio.sleep(0.01)
        entries: list[Any] = await log.entries("t1")
        after, history = places[1]
        assert history == next(each.history for each in entries if each.seq == after) != entries[0].epoch
        gated.open()
        assert await ends(reader, run.run_id) == [run.run_id]
        assert reader.faults == []


def ask(run_id: str = "r1") -> RunAgentInput:
    message = UserMessage(id=f"u-{run_id}", content="hello you")
    return RunAgentInput(thread_id="s1", run_id=run_id, messages=[message], tools=[], context=[])


@pytest.fixture
async def cast() -> AsyncIterator[Cast]:
    log = RunLog(MemoryStore())
    hub = Hub("1", "app-key", "app-secret", history=LogHistory(log))
    async with Cast(log, hub=hub) as it:
        yield it


def mapped(cast: Cast) -> int:
    assert cast.hub is not None
    return int(cast.hub.stats()["published"])


async def has(reader: Reader, seq: int) -> None:
    async with asyncio.timeout(60):
        while reader.last != seq:  # noqa: ASYNC110  a reader of the tests has no event
            await asyncio.sleep(0.005)
    assert not reader.faults


async def test_a_run_that_nobody_watches_is_not_mapped(cast: Cast) -> None:
    await (await cast.start(parrot, ask())).result()
    assert mapped(cast) == 0
    assert len(cast.followers) == 0


async def test_who_comes_during_a_run_gets_all_of_it_and_what_follows(cast: Cast) -> None:
    assert cast.hub is not None
    gated, newcomer, back = Gated(4), Reader("new"), Reader("back")
    run = await cast.start(gated, ask())
    gated.open(2)
    await cast.log.flush("s1")
    await newcomer.come(cast.hub)
    await back.come(cast.hub, Position(run.epoch, run.first_seq))
    gated.open()
    last = (await run.result()).last_seq
    await has(newcomer, last)
    await has(back, last)
    chunks = [frame for frame in newcomer.frames if frame.get("event") == "agent.stream.chunk"]
    assert chunks


async def test_who_comes_during_a_later_run_misses_nothing_of_those_between(cast: Cast) -> None:
    assert cast.hub is not None
    reader = Reader("was here")
    await reader.come(cast.hub)
    await has(reader, (await (await cast.start(parrot, ask("r1"))).result()).last_seq)
    reader.unsubscribe(cast.hub)
    async with asyncio.timeout(60):
        while len(cast.followers):  # noqa: ASYNC110  nothing tells when a thread is left
            await asyncio.sleep(0.01)
    before = mapped(cast)
    await (await cast.start(parrot, ask("r2"))).result()
    assert mapped(cast) == before
    gated = Gated(2)
    run = await cast.start(gated, ask("r3"))
    newcomer = Reader("new")
    await newcomer.come(cast.hub)
    reader.subscribe(cast.hub, reader.position)
    gated.open()
    last = (await run.result()).last_seq
    await has(reader, last)
    await has(newcomer, last)


async def test_an_engine_gets_every_run() -> None:
    engine = MemoryPublisher()
    async with Cast(RunLog(MemoryStore()), Broadcaster(engine)) as cast:
        last = (await (await cast.start(parrot, ask())).result()).last_seq
        async with asyncio.timeout(60):
            while [each.seq for each in engine.envelopes("private-agent.s1")[-1:]] != [last]:  # noqa: ASYNC110  it only keeps
                await asyncio.sleep(0.005)


class Away(MemoryStore):
    """A store that cannot be read for a while."""

    away = False

    async def thread(self, key: Key) -> StoredThread | None:
        if self.away:
            raise StoreError("no route")
        return await super().thread(key)


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not any(text in each.getMessage() for each in caplog.records):  # noqa: ASYNC110  a log waits for nobody
            await asyncio.sleep(0.01)


async def test_that_the_log_is_back_is_logged_without_anything_new_in_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(followers, "PAUSES", (0.001, 0.001))
    store = Away()
    async with Cast(RunLog(store), hub=a_hub(), work=False, recover="off") as cast:
        store.away = True
        reader = await watching(cast)
        await logged(caplog, "thread 't1' is broadcast later: no route")
        assert not [each for each in caplog.records if "again" in each.getMessage()]
        store.away = False
        await logged(caplog, "the log is read again")
        assert reader.faults == []


async def test_that_the_log_is_compared_with_the_fan_out_again_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, redis_server: str
) -> None:
    monkeypatch.setattr(followers, "SWEEP", 0.01)
    monkeypatch.setattr(followers, "LOOK", 0.01)
    store = Away()
    async with Cast(RunLog(store), hub=a_hub(), work=False, recover="off", redis=redis_server) as cast:
        await watching(cast)
        store.away = True
        await logged(caplog, "the log cannot be compared with the fan-out: no route")
        store.away = False
        await logged(caplog, "the log is compared with the fan-out again")
