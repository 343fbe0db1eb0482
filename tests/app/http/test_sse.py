"""Streams of a log: from which place they go on, which places still hold, and where a run's own stream ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import pytest

from runcast.app import BadRequest, Cast, Gone
from runcast.app.http.sse import joined, live, of_run, position
from runcast.app.nodes.handover import RemoteRun
from runcast.broadcast import Position
from runcast.slim import Entry, MemoryStore, ReaderTooSlow, RunLog
from tests.app.agents import parrot
from tests.slim.logs import THREAD, make_log, turn


def place_of(sent: bytes) -> str:
    return next(line[4:] for line in sent.decode().splitlines() if line.startswith("id: "))


async def test_a_stream_that_was_cut_off_goes_on_from_its_place_in_its_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        entries = await log.entries(THREAD)
        attach, places = log.attach, list[tuple[int | None, str | None]]()

        async def cut_off(
            thread_id: str, after: int | None = None, *, epoch: str | None = None
        ) -> AsyncGenerator[Entry]:
            places.append((after, epoch))
            async for entry in attach(thread_id, after, epoch=epoch):
                yield entry
                if len(places) == 1 and entry.seq == 3:
                    raise ReaderTooSlow(3, 1)

        monkeypatch.setattr(log, "attach", cut_off)
        stream = live(log, THREAD, 0, entries[0].epoch)
        sent = [await anext(stream) for _ in entries]
        await stream.aclose()
        assert [position(place_of(each)) for each in sent] == [
            Position.of(each.history, each.seq) for each in entries
        ]
        assert places == [(0, entries[0].epoch), (3, entries[2].history)]


@pytest.mark.parametrize(
    ("at", "seq", "holds"),
    [
        (0, 0, True),
        (6, 6, True),
        (6, 12, True),
        (0, 12, True),
        (7, 6, False),
        (6, 13, False),
        (13, 13, False),
    ],
)
@pytest.mark.parametrize("known", [True, False])
async def test_a_place_of_a_join_lies_between_its_beginning_and_the_end(
    at: int, seq: int, holds: bool, known: bool
) -> None:
    async with make_log("memory://") as log:
        for run in ("r1", "r2"):
            await log.append_many(THREAD, turn(run))
        epoch = (await log.entries(THREAD))[0].epoch if known else ""
        if holds:
            await (await joined(log, THREAD, f"{epoch}:{at}.{seq}")).aclose()
        else:
            with pytest.raises(Gone):
                await joined(log, THREAD, f"{epoch}:{at}.{seq}")
        with pytest.raises(Gone):
            await joined(log, THREAD, f"another:{at}.{seq}")


@pytest.mark.parametrize(("at", "holds"), [(0, True), (1, False), (5, False), (6, True), (7, True)])
async def test_a_join_inside_a_run_that_was_pruned_holds_no_more(at: int, holds: bool) -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        await log.archive.prune(keep_bytes=0)
        await log.append_many(THREAD, turn("r2"))
        if holds:
            await (await joined(log, THREAD, f":{at}.9")).aclose()
        else:
            with pytest.raises(Gone):
                await joined(log, THREAD, f":{at}.9")


@pytest.mark.parametrize(
    "text", ["", ":", ":1", ":1.", ":.1", ":-1.2", ":1.x", f":1.{'1' * 17}", ":\u0661.1"]
)
async def test_what_is_no_place_is_refused(text: str) -> None:
    async with make_log("memory://") as log:
        if text:
            with pytest.raises(BadRequest):
                await joined(log, THREAD, text)
        with pytest.raises(BadRequest):
            position(text.replace(".", "x") if text != ":1" else ":x")


@dataclass
class Cut:
    """A run as its starter knew it when it was cut short: it says nothing of its last entry."""

    thread_id: str = THREAD
    run_id: str = "r1"
    first_seq: int = 1
    last_seq: int = 99
    epoch: str = ""
    active: bool = False

    async def begun(self) -> None: ...

    async def over(self) -> None: ...


async def test_the_stream_of_a_run_has_nothing_of_the_next_one() -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1")[:-1])
        await log.append_many(THREAD, turn("r2"))
        sent = b"".join([each async for each in of_run(Cut(), log)]).decode()  # type: ignore[arg-type]
        assert "r2" not in sent
        assert sent.count("RUN_STARTED") == 1
        assert '"code":"truncated"' in sent.replace(" ", "")


async def test_who_leaves_the_stream_of_another_nodes_run_leaves_no_task() -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), work=False) as front, Cast(RunLog(store), agents=[parrot]) as worker:
        while "parrot" not in front.agents:
            await front.node.look()
        run: Any = await front.say("t1", "a word", agent="parrot")
        assert isinstance(run, RemoteRun)
        stream = of_run(run, front.log)
        assert b"RUN_STARTED" in await anext(stream)
        await stream.aclose()
        assert run._task is None or run._task.done()  # pyright: ignore[reportPrivateUsage]
        assert worker.tenant == ""
