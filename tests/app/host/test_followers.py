"""Whoever watches a thread here gets the runs of other processes too, whatever became of those of this one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from runcast.app import Cast
from runcast.broadcast import Hub, channel_for
from runcast.broadcast.hub.connection import Connection
from runcast.broadcast.hub.protocol import PlainRequest
from runcast.slim import Entry, MemoryStore, ReaderTooSlow, RunLog, StoreError
from tests.app.agents import Gated, said
from tests.broadcast.hub.fakes import Reader
from tests.slim.logs import finished, started

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
