"""Our publisher into real Pusher servers: soketi, and the hub over its HTTP API; stock pusher-js at the far end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    RunFinishedEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from websockets.asyncio.client import connect

from runcast.broadcast import (
    BroadcastConfig,
    Broadcaster,
    Envelope,
    LogHistory,
    Position,
    Publisher,
    Reader,
    Take,
    TooLarge,
    WrongSettings,
    open_publisher,
    sign_channel,
)
from runcast.slim import RunLog, open_store
from tests.broadcast.envelopes.test_rollup import chunk
from tests.broadcast.publishers.contract import Place, PublisherContract
from tests.e2e.pusher import Clients
from tests.e2e.stage import stage
from tests.e2e.wire import Wire

CHANNEL = "private-agent.s1"


def a_run(run_id: str, tokens: int) -> list[Event]:
    message, call = f"m-{run_id}", f"c-{run_id}"
    said = [TextMessageContentEvent(message_id=message, delta=f"{n}漢 ") for n in range(tokens)]
    return [
        RunStartedEvent(thread_id="s1", run_id=run_id),
        StepStartedEvent(step_name="model"),
        ToolCallStartEvent(tool_call_id=call, tool_call_name="search"),
        ToolCallArgsEvent(tool_call_id=call, delta='{"q":"\\"quoted\\" ż\\n"}'),
        ToolCallEndEvent(tool_call_id=call),
        ToolCallResultEvent(message_id=f"t-{run_id}", tool_call_id=call, content="found 🙂"),
        TextMessageStartEvent(message_id=message),
        *said,
        TextMessageEndEvent(message_id=message),
        StepFinishedEvent(step_name="model"),
        RunFinishedEvent(thread_id="s1", run_id=run_id),
    ]


class Told:
    """A log whose runs are told to a target."""

    def __init__(self, log: RunLog, url: str, **config: Any) -> None:
        self.log = log
        self.history = LogHistory(log)
        self.out = Broadcaster(open_publisher(url), config=BroadcastConfig(rollup_ms=0, **config), batch=10)

    async def run(self, events: Sequence[Event]) -> None:
        for event in events:
            entry = await self.log.append("s1", event)
            assert entry is not None
            await self.out.publish(entry)
        await self.log.flush()
        assert await self.out.flush(20)

    async def head(self) -> int:
        thread = await self.log.thread("s1")
        assert thread is not None
        return thread.last_seq


@asynccontextmanager
async def told(url: str, **config: Any) -> AsyncIterator[Told]:
    async with RunLog(open_store("memory://"), clock=lambda: 1_768_557_905_123, derive="manual") as log:
        it = Told(log, url, **config)
        yield it
        await it.out.aclose()


async def received(
    clients: Clients, client: str, url: str, events: Sequence[Event], **where: Any
) -> list[Any]:
    """What a stock client gets of a run that is published to this target."""
    clients.ask("open", client, **where)
    clients.ask("join", client, channel="agent.s1")
    await clients.until(client, "subscribed")
    async with told(url) as it:
        await it.run(events)
        head = await it.head()
    return await up_to(clients, client, head)


async def up_to(clients: Clients, client: str, head: int) -> list[Any]:
    """All that a client has got, once that reaches so far."""
    for _ in range(500):
        got = clients.data(client, CHANNEL)
        if got and got[-1]["seq"] == head:
            return got
        await asyncio.sleep(0.01)
    raise AssertionError(f"{client} got only {clients.data(client, CHANNEL)[-2:]} of {head}")


async def test_case_41_one_run_through_soketi_and_the_hub_is_the_same_at_pusher_js(
    clients: Clients, soketi_port: int
) -> None:
    events = a_run("r1", 30)
    async with stage("asgi") as served:
        hub = await received(
            clients, "a", f"hub://app-key:app-secret@127.0.0.1:{served.http}/1001", events, **served.for_echo
        )
        there = {**served.for_echo, "port": soketi_port}
        soketi = await received(
            clients, "b", f"soketi://app-key:app-secret@127.0.0.1:{soketi_port}/1001", events, **there
        )
    own = {"epoch": "", "mark": ""}  # of each log
    assert [{**each, **own} for each in hub] == [{**each, **own} for each in soketi]
    names = [report["name"] for report in clients.seen("a", "event")]
    assert names == [report["name"] for report in clients.seen("b", "event")]
    assert {".agent.status", ".agent.step.started", ".agent.tool.completed", ".agent.stream.chunk"} <= set(
        names
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("soketi://app-key:nonsense@127.0.0.1:{port}/1001", "401"),
        ("soketi://app-key:app-secret@127.0.0.1:{port}/4711", "404"),
    ],
)
async def test_case_29_soketi_says_no_with_status_200_and_the_publisher_hears_it(
    soketi_port: int, wrong: str, said: str
) -> None:
    target = open_publisher(wrong.format(port=soketi_port))
    with pytest.raises(WrongSettings, match=said) as refused:
        await target.publish(CHANNEL, [chunk(1, "a")])
    assert "check" in str(refused.value)
    with pytest.raises(WrongSettings, match=said):
        await target.probe()  # type: ignore[attr-defined]  it is the Pusher one
    await target.aclose()


class TestSoketi(PublisherContract):
    """The publishers' contract at a real soketi; its watcher is a plain WebSocket that subscribes beforehand."""

    idempotent = False

    @pytest.fixture
    async def place(self, soketi_port: int) -> AsyncIterator[Place]:
        where = f"127.0.0.1:{soketi_port}"
        got: dict[str, list[Envelope]] = {}
        async with connect(f"ws://{where}/app/app-key?protocol=7") as socket:
            opened = json.loads(json.loads(await socket.recv())["data"])
            for channel in ("private-agent.t", "private-agent.t1", "private-agent.t2"):
                auth = sign_channel(opened["socket_id"], channel, key="app-key", secret="app-secret")
                asked = {"event": "pusher:subscribe", "data": {"auth": auth, "channel": channel}}
                await socket.send(json.dumps(asked))
                await socket.recv()

            async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
                await socket.send('{"event":"pusher:ping","data":{}}')
                while (frame := json.loads(await socket.recv()))["event"] != "pusher:pong":
                    got.setdefault(frame["channel"], []).append(Envelope.from_dict(json.loads(frame["data"])))
                return got.get(channel, [])

            yield Place(
                f"soketi://app-key:app-secret@{where}/1001", arrived, f"soketi://app-key:wrong@{where}/1001"
            )

    async def test_what_is_sent_again_arrives_once(self, publisher: Publisher, place: Place) -> None:
        """soketi has no key to know it by: it arrives twice, and a reader drops the second by its `seq`."""
        sent = [chunk(1, "a"), chunk(2, "b")]
        await publisher.publish("private-agent.t", sent)
        await publisher.publish("private-agent.t", sent)
        arrived = await place.arrived(publisher, "private-agent.t")
        assert arrived == sent + sent
        reader = Reader(last=0)
        assert [reader.take(each) for each in arrived] == [Take.APPLY, Take.APPLY, Take.DROP, Take.DROP]

    async def test_an_envelope_over_its_limit_costs_its_neighbours_nothing(self, place: Place) -> None:
        target = open_publisher(place.url)
        sent = [chunk(n, "x" * (200_000 if n == 7 else 10)) for n in range(1, 21)]
        with pytest.raises(TooLarge) as refused:
            await target.publish("private-agent.t", sent)
        assert set(refused.value.delivered or ()) == set(range(6))
        arrived = await place.arrived(target, "private-agent.t")
        assert [each.seq for each in arrived] == [1, 2, 3, 4, 5, 6]
        await target.aclose()


async def test_case_29_soketi_refuses_what_is_too_large_and_the_publisher_hears_it(soketi_port: int) -> None:
    target = open_publisher(f"soketi://app-key:app-secret@127.0.0.1:{soketi_port}/1001")
    with pytest.raises(TooLarge):
        await target.publish(CHANNEL, [chunk(1, "x" * 200_000)])
    await target.aclose()


class Watcher:
    """Tier B: a reader on any Pusher server, which fetches on every subscription and whenever `prev` says so."""

    def __init__(self, history: LogHistory) -> None:
        self._history = history
        self.reader = Reader(last=0)
        self.applied: list[Envelope] = []
        self.fetches = 0

    async def fetch(self) -> None:
        """As a page does over HTTP: what comes after the last envelope that was applied."""
        self.fetches += 1
        position = Position(self.reader.epoch or "", self.reader.last or 0)
        stretch = await self._history.read("s1", position, most=100_000)
        assert stretch.recovered
        for envelope in stretch.envelopes:
            if self.reader.take(envelope, fetched=True) is Take.APPLY:
                self.applied.append(envelope)

    async def take(self, wire: Any) -> None:
        envelope = Envelope.from_dict(wire)
        match self.reader.take(envelope):
            case Take.APPLY:
                self.applied.append(envelope)
            case Take.FETCH:
                await self.fetch()
            case Take.DROP | Take.RESTART:
                pass

    @property
    def seqs(self) -> list[int]:
        return [each.seq for each in self.applied]


async def test_case_23_a_stock_client_that_was_thrown_off_soketi_fetches_what_it_missed(
    clients: Clients, soketi_port: int
) -> None:
    url = f"soketi://app-key:app-secret@127.0.0.1:{soketi_port}/1001"
    async with stage("asgi") as served, Wire(soketi_port) as wire, told(url) as it:
        clients.ask("open", "a", **{**served.for_echo, "port": wire.port})
        clients.ask("join", "a", channel="agent.s1")
        await clients.until("a", "subscribed")
        watcher = Watcher(it.history)
        await it.run(a_run("r1", 10))
        await clients.until("a", "event", 10)
        wire.cut()
        await it.run(a_run("r2", 10))  # nobody is there
        await clients.until("a", "subscribed", 2)
        await it.run(a_run("r3", 10))
        head = await it.head()
        got = await up_to(clients, "a", head)
        for each in got:
            await watcher.take(each)
        truth = await it.history.read("s1", Position("", 0), most=10_000)
        assert watcher.seqs == [each.seq for each in truth.envelopes]
        assert watcher.fetches == 1
        assert len(got) < len(truth.envelopes)


@pytest.mark.slow
async def test_case_23_what_soketi_drops_in_silence_for_a_slow_reader_is_found_by_prev(
    soketi_port: int,
) -> None:
    """It buffers 1 MB for a reader, then loses what comes, then goes on live: only the chain can tell."""
    url = f"soketi://app-key:app-secret@127.0.0.1:{soketi_port}/1001"
    async with (
        told(url, max_envelope_bytes=9_000) as it,
        connect(f"ws://127.0.0.1:{soketi_port}/app/app-key?protocol=7", max_queue=1) as socket,
    ):
        opened = json.loads(json.loads(await socket.recv())["data"])
        auth = sign_channel(opened["socket_id"], CHANNEL, key="app-key", secret="app-secret")
        asked = {"event": "pusher:subscribe", "data": {"auth": auth, "channel": CHANNEL}}
        await socket.send(json.dumps(asked))
        await socket.recv()
        big = "x" * 7_500
        await it.run([RunStartedEvent(thread_id="s1", run_id="r1")])
        for _ in range(30):
            await it.run([CustomEvent(name="big", value=big) for _ in range(100)])
        await it.run([RunFinishedEvent(thread_id="s1", run_id="r1")])
        watcher = Watcher(it.history)
        got: list[int] = []
        ender = asyncio.create_task(_end_later(it))
        async with asyncio.timeout(30):
            while watcher.reader.last is None or watcher.reader.last < 3_004:
                frame = json.loads(await socket.recv())
                if str(frame["event"]).startswith("agent."):
                    wire = json.loads(frame["data"])
                    got.append(wire["seq"])
                    await watcher.take(wire)
        await ender
        assert watcher.seqs == list(range(1, 3_005))
        assert len(got) < 3_004, "soketi lost nothing: give it more"
        assert watcher.fetches == 1


async def _end_later(it: Told) -> None:
    """Later traffic, once the reader reads again."""
    await asyncio.sleep(1.0)
    await it.run(
        [RunStartedEvent(thread_id="s1", run_id="r2"), RunFinishedEvent(thread_id="s1", run_id="r2")]
    )
