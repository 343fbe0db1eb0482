"""Readers that do not read, or hardly: they cost nothing but themselves, and come back to everything."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from runcast.broadcast import channel_for
from tests.conftest import share
from tests.e2e.stage import EPOCH, SKINS, Log, Stage, a_hub, limits, stage
from tests.house.tree import ROOT

TARGET = f"/ws?channel={quote(channel_for('s1'))}"
MIB = 1 << 20


class Process:
    """A hub in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, rss: int) -> None:
        self.process = process
        self.port = port
        self.rss = rss

    async def ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), 120)
        said: dict[str, Any] = json.loads(line)
        return said


@asynccontextmanager
async def hub_process(skin: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.e2e.hub_process", skin, cwd=ROOT,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    it = Process(process, 0, 0)
    try:
        said = await it.answer()
        it.port, it.rss = said["port"], said["rss"]
        yield it
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def stalled(port: int, target: str = TARGET) -> asyncio.StreamWriter:
    """A raw client that asks for a channel and then never reads."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(
        f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport reads and writes
    return writer


async def follow(port: int, count: int) -> list[int]:
    """Everything a healthy reader gets."""
    seqs: list[int] = []
    while not seqs or seqs[-1] != count:
        after = f"&after={seqs[-1] if seqs else 0}&epoch={EPOCH}"
        async with connect(
            f"ws://127.0.0.1:{port}{TARGET}{after}", compression=None, max_queue=None
        ) as websocket:
            try:
                async for text in websocket:
                    said = json.loads(text)
                    if "seq" in said:
                        seqs.append(said["seq"])
                        if seqs[-1] == count:
                            break
            except ConnectionClosed:
                continue
    return seqs


@pytest.mark.slow
@pytest.mark.parametrize(("skin", "count"), [("websockets", share(100_000)), ("asgi", 20_000)])
async def test_one_that_never_reads_costs_nothing_while_thousands_go_out(skin: str, count: int):
    async with hub_process(skin) as process:
        await process.ask("publish 1 500")
        dead = await stalled(process.port)
        async with asyncio.timeout(110), asyncio.TaskGroup() as group:
            healthy = [group.create_task(follow(process.port, count)) for _ in range(2)]
            await asyncio.sleep(0.3)
            said = await process.ask(f"publish {count - 1} 500")
        assert [task.result() for task in healthy] == [list(range(1, count + 1))] * 2
        assert said["stats"]["slow_cuts"] >= 1
        assert said["peak"] - process.rss < 30 * MIB
        dead.transport.abort()


@pytest.mark.parametrize("skin", SKINS)
async def test_who_is_cut_off_is_really_dropped(skin: str):
    log = Log()
    hub = a_hub(history=log.history, limits=limits(buffer=200_000, replay_bytes=60_000, ring=100))
    async with stage(skin, hub) as served, served.plain("s1") as healthy:
        before = len(served.uvicorn.server_state.connections)
        dead = [await stalled(served.port, served.path + TARGET) for _ in range(3)]
        await served.quiet(4)
        for n in range(1, 401):  # each is written when its publish returns, and is there before the next
            written = hub.stats()["bytes_out"]
            await served.publish([log.next(text="x" * 60_000)])
            assert hub.stats()["bytes_out"] - written >= 60_000
            assert (await read(healthy, n))[-1] == n
        assert (hub.stats()["slow_cuts"], hub.stats()["timeouts"]) == (3, 0)
        assert hub.stats()["connections"] == 1
        assert hub.stats()["buffered"] < 200_000
        # Not only forgotten: the transports of the server behind the skin are gone too.
        await served.until(lambda: len(served.uvicorn.server_state.connections) == before)
        for writer in dead:
            writer.transport.abort()


async def read(websocket: Any, last: int) -> list[int]:
    seqs: list[int] = []
    while not seqs or seqs[-1] != last:
        said = json.loads(await websocket.recv())
        if "seq" in said:
            seqs.append(said["seq"])
    return seqs


@pytest.mark.parametrize("skin", ["websockets", "asgi"])
async def test_a_reader_at_a_snails_pace_is_cut_off_and_recovers(skin: str):
    log = Log()
    hub = a_hub(history=log.history, limits=limits(buffer=300_000, replay_bytes=100_000, replay=2_000))
    async with stage(skin, hub) as served, served.plain("s1", max_queue=None, compression=None) as slow:
        await served.publish([log.next()])
        await slow.recv(), await slow.recv()
        served.wire.rate = 1_000
        for _ in range(1_000):
            await served.publish([log.next(text="x" * 8_000)])
            if hub.stats()["slow_cuts"]:
                break
            await asyncio.sleep(0.001)
        assert hub.stats()["slow_cuts"] == 1
        served.wire.rate = None
        served.wire.cut()
        async with served.plain("s1", after=1, epoch=EPOCH) as again:
            assert await asyncio.wait_for(read(again, log.head), 60) == list(range(2, log.head + 1))


async def test_a_dead_reader_with_a_full_buffer_is_not_waited_for(caplog: pytest.LogCaptureFixture):
    """Its ping would wait behind what it does not read, and so would the goodbye."""
    log = Log()
    async with stage(hub=a_hub(limits=limits(activity=0.2, pong=0.2))) as served:
        writer = await stalled(served.port)
        await served.quiet(1)
        served.wire.freeze()
        await served.publish([log.next(text="x" * 9_000) for _ in range(60)])
        await served.quiet(0)
        assert served.hub.stats()["timeouts"] + served.hub.stats()["slow_cuts"] == 1
        writer.transport.abort()


async def test_a_thousand_sockets_in_and_out_of_a_hundred_channels_leave_nothing():
    async with stage(hub=a_hub(public=True, limits=limits(connections_per_address=2_000))) as served:

        async def visit(number: int) -> None:
            async with served.connect(open_timeout=60) as websocket:
                await websocket.recv()
                for n in range(number % 7, 100, 7):
                    await websocket.send(f'{{"event":"pusher:subscribe","data":{{"channel":"c{n}"}}}}')
                    await websocket.recv()
                if number % 3:
                    websocket.transport.abort()

        for start in range(0, 1_000, 100):
            await asyncio.gather(*(visit(number) for number in range(start, start + 100)))
        await served.quiet(0)
        now = served.hub.stats()
        assert (now["opened"], now["subscriptions"] > 14_000) == (1_000, True)
        names = ("connections", "channels", "addresses", "remembered", "buffered")
        assert {name: now[name] for name in names} == dict.fromkeys(names, 0)


async def test_a_burst_keeps_its_order_and_is_counted():
    log = Log()
    async with stage() as served, served.plain("s1", max_queue=None, compression=None) as websocket:
        reading = asyncio.create_task(read(websocket, 20_000))
        for at in range(20_000):
            await served.publish([log.next()])
            if at % 50 == 49:
                await asyncio.sleep(0)
        assert await asyncio.wait_for(reading, 60) == list(range(1, 20_001))
        now = served.hub.stats()
        assert (now["published"], now["delivered"], now["doubles"], now["holes"]) == (20_000, 20_000, 0, 0)


# ------------------------------------------------------------------ going away


async def test_sigterm_sends_everybody_away_to_come_back_at_once():
    async with hub_process("websockets") as process:
        url = f"ws://127.0.0.1:{process.port}"
        async with connect(url + TARGET) as plain, connect(f"{url}/app/app-key?protocol=7") as pusher:
            await plain.recv(), await pusher.recv()
            dead = await stalled(process.port)
            process.process.send_signal(signal.SIGTERM)
            await plain.wait_closed(), await pusher.wait_closed()
            assert (plain.close_code, pusher.close_code) == (4200, 4200)
            said = await process.answer()
            assert said["closes"] == {"4200": 3}
            assert await process.process.wait() == 0
            dead.transport.abort()


async def test_a_second_sigterm_does_not_wait():
    async with hub_process("websockets") as process:
        dead = await stalled(process.port)
        process.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.3)
        process.process.send_signal(signal.SIGTERM)
        assert await process.process.wait() == -signal.SIGTERM  # 0 is the end of one that waited
        dead.transport.abort()


async def test_under_uvicorn_everybody_is_sent_away_too():
    async with hub_process("asgi") as process, connect(f"ws://127.0.0.1:{process.port}{TARGET}") as plain:
        await plain.recv()
        process.process.send_signal(signal.SIGTERM)
        await plain.wait_closed()
        assert plain.close_code == 1012  # uvicorn's own: Pusher clients come back after a second
        await process.process.wait()


async def test_two_hundred_clients_survive_a_rolling_restart():
    """One hub goes, another that shares its log takes over: everybody is back, nothing is lost."""
    log = Log()
    got: list[list[int]] = [[] for _ in range(200)]

    async def client(number: int, served: list[Stage]) -> None:
        mine = got[number]
        while not mine or mine[-1] != 100:
            try:
                async with served[-1].plain(
                    "s1", after=mine[-1] if mine else 0, open_timeout=30
                ) as websocket:
                    while not mine or mine[-1] != 100:
                        said = json.loads(await websocket.recv())
                        if "seq" in said:
                            mine.append(said["seq"])
            except (ConnectionClosed, OSError):
                await asyncio.sleep(0.01)

    first = stage(hub=a_hub(history=log.history, limits=limits(replay=1_000)))
    served = [await first.__aenter__()]
    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(client(number, served))
        await served[0].quiet(200)
        for n in range(1, 101):
            await served[-1].publish([log.next()])
            await asyncio.sleep(0.005)
            if n == 50:
                second = stage(hub=a_hub(history=log.history, limits=limits(replay=1_000)))
                served.append(await second.__aenter__())
                await first.__aexit__(None, None, None)
    await second.__aexit__(None, None, None)
    assert got == [list(range(1, 101))] * 200
    assert served[0].hub.stats()["closes"] == {4200: 200}
