"""What the hub delivers: beside bare `websockets.broadcast`, beside soketi, and what a connection costs at rest."""

from __future__ import annotations

import asyncio
import json
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote

from benchmarks._hub_peer import CHANNEL, FIRST, envelope, frame_bytes
from runcast.broadcast import SOKETI, PusherPublisher

CLIENTS = 300  # few enough that the hub writes every envelope to them by itself
ROUNDS = 7
PATHS = {"plain": f"/ws?channel={CHANNEL}", "pusher": "/app/app-key?protocol=7"}
SUBSCRIBE = quote(json.dumps({"event": "pusher:subscribe", "data": {"auth": "", "channel": CHANNEL}}))


class Process:
    """A program that is told and asked by lines."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self, seconds: float = 60.0) -> str:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise TimeoutError("a program under measure does not answer")
        return self.process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()


@contextmanager
def started(module: str, *arguments: str) -> Iterator[Process]:
    with running(sys.executable, "-m", module, *arguments) as it:
        yield it


@contextmanager
def running(*command: str) -> Iterator[Process]:
    it = Process(*command)
    try:
        yield it
    finally:
        it.process.kill()
        it.process.communicate()


class Side:
    """A server under load: the server's process, its port, and a process full of readers."""

    def __init__(self, stack: ExitStack, kind: str, mode: str, clients: int) -> None:
        self.mode = mode
        self.server = stack.enter_context(started("benchmarks._hub_peer", kind))
        self.load = stack.enter_context(started("benchmarks._hub_load"))
        hello = SUBSCRIBE if mode == "pusher" else ""
        self.before = 0
        port = self.server.answer()
        self.before = int(self.server.ask("rss"))
        opened = self.load.ask(f"open 127.0.0.1 {port} {PATHS[mode]} {clients} {hello}")
        if opened != "open":
            raise RuntimeError(f"the readers said {opened!r}")

    def rate(self, count: int, clients: int) -> tuple[float, float]:
        """Deliveries a second, by the server's processor and by the clock on the wall."""
        self.load.ask(f"expect {count * frame_bytes(self.mode)}")
        used, start = float(self.server.ask("cpu")), time.perf_counter()
        self.server.tell(f"{self.mode} {count}")
        done = self.load.answer()
        seconds = time.perf_counter() - start
        used = float(self.server.ask("cpu")) - used
        if done != "done":
            raise RuntimeError("the readers did not get everything")
        return count * clients / used, count * clients / seconds


def against_bare(mode: str, count: int, rounds: int) -> list[dict[str, Any]]:
    """Rounds in turn, so that whatever else the machine does hits both; the median of each.

    Held to the bar is what a second of the server's processor delivers; other work on the machine moves the clock on
    the wall, which is shown too.
    """
    with ExitStack() as stack:
        sides = [Side(stack, kind, mode, CLIENTS) for kind in ("hub", "bare")]
        measured = [[side.rate(count, CLIENTS) for side in sides] for _ in range(rounds)]
    name = f"deliveries, {CLIENTS} x 500 B, {mode}, to bare websockets"
    cpu, wall = ([statistics.median(each[side][at] for each in measured) for side in (0, 1)] for at in (0, 1))
    held = row(f"{name}, by processor", *cpu, 0.85) | ({"key": "deliveries_s"} if mode == "pusher" else {})
    return [held, row(f"{name}, by the clock", *wall, None)]


def row(name: str, ours: float, peer: float, least: float | None) -> dict[str, Any]:
    ratio = ours / peer
    held = None if least is None else ratio >= least
    bar = "shown" if least is None else f">= {least}"
    return {
        "name": name, "ours": round(ours), "peer": round(peer), "ratio": ratio, "bar": bar, "unit": "/s", "ok": held,
    }  # fmt: skip


def against_soketi(count: int) -> list[dict[str, Any]]:
    """The same load through soketi's only door, the HTTP API, and through ours: ten events a request."""
    from tests.e2e.pusher import soketi  # with pytest, which no other measured process should hold

    with started("benchmarks._hub_peer", "asgi") as hub:
        ours, _ = over_http(int(hub.answer()), count)
    with soketi() as port:
        peer, used = over_http(port, count)
    name = f"deliveries, {CLIENTS} x 500 B, pusher, over HTTP, to soketi"
    spent = {
        "name": "  an envelope posted to soketi, ten a request, of our processor", "ours": used * 1e6, "unit": "us",
        "bar": "shown", "ok": None, "key": "http_publish_us",
    }  # fmt: skip
    return [row(name, ours, peer, None) | {"key": "http_deliveries_s"}, spent]


def over_http(port: int, count: int) -> tuple[float, float]:
    """Deliveries a second of events that are posted, and the seconds of processor that posting one takes."""
    with started("benchmarks._hub_load") as load:
        load.ask(f"open 127.0.0.1 {port} {PATHS['pusher']} {CLIENTS} {SUBSCRIBE}")
        for first in (0, 1):  # the second tells what one weighs
            load.ask("seen")
            asyncio.run(publish(port, first, 1))
            time.sleep(0.5)
        load.ask(f"expect {int(load.ask('seen')) * count}")
        start, used = time.perf_counter(), time.process_time()
        asyncio.run(publish(port, 2, count))
        used = time.process_time() - used
        load.answer()
        return count * CLIENTS / (time.perf_counter() - start), used / count


async def publish(port: int, first: int, count: int) -> None:
    publisher = PusherPublisher(
        f"http://127.0.0.1:{port}", "1001", "app-key", "app-secret", budget=SOKETI, batch=10
    )
    envelopes = [envelope(FIRST + first + n) for n in range(count)]
    await publisher.publish(CHANNEL, envelopes)  # one request after the other: order is kept per channel
    await publisher.aclose()


def at_rest(clients: int) -> dict[str, Any]:
    """Resident bytes for each connection that is subscribed and hears nothing."""
    cost: list[float] = []
    for kind in ("hub", "bare"):
        with ExitStack() as stack:
            side = Side(stack, kind, "plain", clients)
            cost.append((int(side.server.ask("rss")) - side.before) / clients / 1024)
    return {
        "name": f"memory of an idle connection, of {clients}, to bare websockets", "ours": round(cost[0], 1),
        "peer": round(cost[1], 1), "ratio": cost[0] / cost[1], "bar": "<= 1.5", "unit": "KiB", "ok": cost[0] / cost[1] <= 1.5,
        "key": "connection_kib",
    }  # fmt: skip


def run(quick: bool) -> list[dict[str, Any]]:
    count, rounds = (200, 3) if quick else (1_000, ROUNDS)
    rows = [each for mode in ("plain", "pusher") for each in against_bare(mode, count, rounds)]
    return [*rows, *against_soketi(200 if quick else 1_000), at_rest(200 if quick else 1_000)]
