"""A log that lost its tail, over HTTP and sockets: whoever comes back with a position in what is gone starts over."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from ag_ui.core import UserMessage
from websockets.asyncio.client import connect

from runcast.app import Cast
from runcast.broadcast import Envelope, Reader, Take
from tests.app.agents import parrot
from tests.app.serving import Served, joined_id, over, run_input, sent, serving


@asynccontextmanager
async def host(path: Path) -> AsyncGenerator[Served]:
    async with serving(Cast.open(f"sqlite:///{path}", agents=[parrot])) as it:
        yield it


async def say(host: Served, text: str, run: str) -> list[Any]:
    """One turn in the thread; what came of it, as sent."""
    message = UserMessage(id=f"u-{run}", content=text).model_dump(by_alias=True, exclude_none=True)
    asked = {**run_input(), "runId": run, "messages": [message]}
    async with host.http.stream("POST", "/", json=asked) as response:
        found = [each async for each in sent(response)]
    await over(host.cast)
    return found


def copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


async def greeting(host: Served, reader: Reader) -> Any:
    query = f"session=t1&after={reader.last}&epoch={reader.epoch}"
    async with connect(f"{host.url.replace('http', 'ws')}/ws?{query}") as socket:
        return json.loads(await socket.recv())


async def test_positions_in_a_lost_tail_are_told_to_start_over(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    reader = Reader(last=0)
    async with host(path) as before:
        await say(before, "one", "r1")
        copy(path, tmp_path / "old.db")
        ids = [each.id for each in await say(before, "two", "r2")]
        page = (await before.http.get("/threads/t1/envelopes", params={"after": 0})).json()
        taken = [reader.take(Envelope.from_dict(row), fetched=True) for row in page["envelopes"]]
        assert set(taken) == {Take.APPLY}
        assert (await greeting(before, reader))["recovered"] is True
        rows = (await before.http.get("/threads/t1/events", params={"after": 10})).json()
        late = await joined_id(before)
        page = (await before.http.get("/threads/t1/join")).json()
    copy(tmp_path / "old.db", path)
    async with host(path) as after:
        await say(after, "something else", "r2")
        await say(after, "and more", "r3")
        query: dict[str, Any] = {"after": reader.last, "epoch": reader.epoch}
        told = (await after.http.get("/threads/t1/envelopes", params=query)).json()
        assert (told["recovered"], told["envelopes"]) == (False, [])
        assert (await greeting(after, reader))["recovered"] is False
        headers = {"accept": "text/event-stream", "last-event-id": ids[-1]}
        assert (await after.http.get("/threads/t1/events", headers=headers)).status_code == 410
        headers["last-event-id"] = late
        async with after.http.stream("GET", "/threads/t1/join", headers=headers) as response:
            assert response.status_code == 410
        query = {"after": page["head"], "epoch": f"{page['epoch']}~{page['mark']}"}
        assert (await after.http.get("/threads/t1/events", params=query)).json()["recovered"] is False
        bound = f"{rows['epoch']}~{rows['mark']}"
        query = {"after": rows["events"][-1]["seq"], "epoch": bound}
        assert (await after.http.get("/threads/t1/events", params=query)).json()["recovered"] is False
        # The same without a mark, as earlier versions issued them: nothing tells.
        query["epoch"] = rows["epoch"]
        assert (await after.http.get("/threads/t1/events", params=query)).json()["recovered"] is True


async def test_a_live_watcher_is_told_when_the_log_goes_on_from_an_older_copy(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with host(path) as it:
        await say(it, "one", "r1")
        copy(path, tmp_path / "old.db")
        await say(it, "two", "r2")
        page = (await it.http.get("/threads/t1/envelopes", params={"after": 0})).json()
        reader = Reader(last=0)
        for row in page["envelopes"]:
            reader.take(Envelope.from_dict(row), fetched=True)
        query = f"session=t1&after={reader.last}&epoch={reader.epoch}"
        async with connect(f"{it.url.replace('http', 'ws')}/ws?{query}") as socket:
            assert json.loads(await socket.recv())["recovered"] is True
            copy(tmp_path / "old.db", path)
            await say(it, "something else", "r3")
            found: Any = {"type": ""}
            async with asyncio.timeout(60):
                while found["type"] != "hub.subscribed":
                    found = json.loads(await socket.recv())
            assert (found["recovered"], found["epoch"]) == (False, page["epoch"])
