"""The contract of publishers, as classes for the test module of each to inherit.

    class TestMine(PublisherContract):
        @pytest.fixture
        async def place(self) -> AsyncIterator[Place]:
            with my_server() as port:
                yield Place(f"mine://127.0.0.1:{port}", arrived)

`FaultyContract` adds faults of an HTTP server, for stand-ins that answer exactly as the real one did.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from ag_ui.core import CustomEvent

from runcast.broadcast import Broadcaster, Envelope, Publisher, Reader, Take, open_publisher
from runcast.broadcast.publishers.base import Probed
from tests.broadcast.entries import Thread
from tests.broadcast.envelopes.test_rollup import chunk, other
from tests.e2e.wire import Wire

CHANNEL = "private-agent.t"
THREAD = "private-agent.t1"  # the channel of `customs`
QUICK = (0.001, 0.01)


@dataclass(frozen=True)
class Place:
    """A running target: its URL, and the envelopes that arrived there on a channel, in order, doubles included."""

    url: str
    arrived: Callable[[Publisher, str], Awaitable[list[Envelope]]]
    settings: str | None = None  # a URL of the same target with a wrong secret


class PublisherContract:
    """Inherit it in `tests/broadcast/publishers/test_<file>.py` and bring a fixture `place`."""

    idempotent = True  # an envelope that is sent again arrives once
    relayed = True  # the target can be reached through a relay

    @pytest.fixture
    async def publisher(self, place: Place) -> AsyncIterator[Publisher]:
        publisher = open_publisher(place.url)
        yield publisher
        await publisher.aclose()

    async def test_envelopes_arrive_whole_and_in_order(self, publisher: Publisher, place: Place) -> None:
        sent = [chunk(n, "漢😀\n") for n in range(1, 26)]
        await publisher.publish(CHANNEL, sent[:1])
        await publisher.publish(CHANNEL, sent[1:])
        assert await place.arrived(publisher, CHANNEL) == sent
        assert isinstance(publisher, Publisher)

    async def test_what_is_sent_again_arrives_once(self, publisher: Publisher, place: Place) -> None:
        parts = [replace(other(3, "agent.custom"), part=(n, 2)) for n in (1, 2)]
        sent = [chunk(1, "a"), chunk(2, "b"), *parts]
        await publisher.publish(CHANNEL, sent[:3])
        await publisher.publish(CHANNEL, sent)
        assert await place.arrived(publisher, CHANNEL) == sent

    async def test_channels_are_kept_apart(self, publisher: Publisher, place: Place) -> None:
        await publisher.publish(CHANNEL, [chunk(1, "a")])
        await publisher.publish(CHANNEL + "2", [replace(chunk(1, "b"), session_id="t2")])
        arrived = await place.arrived(publisher, CHANNEL + "2")
        assert [each.payload["chunk"] for each in arrived] == ["b"]

    async def test_nothing_to_send_is_fine(self, publisher: Publisher, place: Place) -> None:
        await publisher.publish(CHANNEL, [])
        assert await place.arrived(publisher, CHANNEL) == []

    async def test_the_doctor_can_try_it(self, publisher: Publisher, place: Place) -> None:
        assert isinstance(publisher, Probed)
        assert await publisher.probe()
        assert await place.arrived(publisher, CHANNEL) == []

    async def test_a_line_that_is_cut_again_and_again_loses_nothing(
        self, publisher: Publisher, place: Place
    ) -> None:
        """Connections die before, amid and after the write; a reader applies each envelope once, and never has to fetch."""
        port = urlsplit(place.url).port
        if port is None or not self.relayed:
            return
        async with Wire(port) as wire:
            url = place.url.replace(f":{port}", f":{wire.port}")
            it = Broadcaster(open_publisher(url), backoff=QUICK, batch=5, attempts=1_000)
            for n, entry in enumerate(customs(60)):
                await it.publish(entry)
                if n % 6 == 5:
                    await asyncio.sleep(0.02)
                    wire.cut()
            assert await it.flush(30)
            assert it.stats()["refused"] == 0
            await it.aclose()
        arrived = await place.arrived(publisher, THREAD)
        reader = Reader(last=0)
        verdicts = [reader.take(each) for each in arrived]
        assert set(verdicts) <= {Take.APPLY, Take.DROP}
        assert verdicts.count(Take.APPLY) == 60
        if self.idempotent:
            assert len(arrived) == 60

    async def test_a_wrong_secret_is_an_error_about_settings(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        if place.settings is None:
            return
        wrong = Broadcaster(open_publisher(place.settings), backoff=QUICK)
        for entry in customs(30):
            await wrong.publish(entry)
        assert not await wrong.flush(0.2)
        stats = wrong.stats()
        await wrong.aclose(0)
        errors = [each for each in caplog.records if each.levelno >= logging.ERROR]
        assert len(errors) == 1
        assert "check" in errors[0].getMessage()
        assert (stats["delivered"], stats["refused"], stats["queued"]) == (0, 0, 30)


def customs(count: int, *, size: int = 1) -> list[Any]:
    """Entries of a thread that give one envelope each, numbered from 1."""
    return Thread().entries(CustomEvent(name="n", value="x" * size) for _ in range(count))


# ----------------------------------------------------------- faulty servers


@dataclass
class Faults:
    """The behaviour of a stand-in: faults for the next requests, one each, and lasting limits."""

    next: list[str] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)  # the server takes no envelope with such a seq
    largest: int | None = None  # bytes of a request
    requests: int = 0
    took: list[Envelope] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)  # envelopes in each request

    def seqs(self) -> list[int]:
        return [each.seq for each in self.took if each.type != "agent.gap"]

    def doubles(self) -> int:
        return sum(count - 1 for count in Counter((each.seq, each.type) for each in self.took).values())

    def gaps(self) -> list[tuple[int, int]]:
        found = [each.payload for each in self.took if each.type == "agent.gap"]
        return [(each["from_seq"], each["to_seq"]) for each in found]


# Status, body and headers of an engine's refusal; None dies after the write, "half" breaks off in mid-answer.
Refusals = dict[str, tuple[int, bytes, dict[str, str]]]


class Held:
    """A publisher that sends nothing yet."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self.name, self.budget = publisher.name, publisher.budget
        self.may_send = asyncio.Event()
        self.aclose = publisher.aclose

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        await self.may_send.wait()
        await self._publisher.publish(channel, envelopes)


class FaultyContract(PublisherContract):
    """Bring a fixture `faults` too, and the class attributes."""

    largest = 0  # bytes of a request that the server takes by default; 0: no limit is known
    lot = 10  # envelopes in one request

    async def deliver(self, place: Place, count: int, *, size: int = 1, **options: Any) -> dict[str, int]:
        """Everything is queued before the first is sent: however slow the machine, the lots are whole."""
        target = Held(open_publisher(place.url))
        it = Broadcaster(target, backoff=QUICK, **options)
        for entry in customs(count, size=size):
            await it.publish(entry)
        target.may_send.set()
        assert await it.flush(60)
        stats = it.stats()
        await it.aclose()
        return stats

    @pytest.mark.parametrize("refused", [{1}, {2}, {50}, {99}, {100}, {3, 4, 5}, {10, 20, 30, 40}])
    async def test_a_refused_envelope_costs_its_neighbours_nothing(
        self, place: Place, faults: Faults, refused: set[int]
    ) -> None:
        faults.refused = refused
        stats = await self.deliver(place, 100)
        kept = [seq for seq in range(1, 101) if seq not in refused]
        assert sorted(faults.seqs()) == kept
        assert faults.doubles() == 0
        gaps = [seq for first, last in faults.gaps() for seq in range(first, last + 1)]
        assert gaps == sorted(refused)
        assert stats["refused"] == len(refused)
        assert stats["delivered"] == 100  # the gaps among them
        assert stats["shed"] == 0
        assert faults.requests <= 100 / self.lot + 10 * len(refused)

    async def test_all_refused_costs_requests_in_proportion(self, place: Place, faults: Faults) -> None:
        faults.refused = set(range(1, 101))
        stats = await self.deliver(place, 100)
        assert faults.seqs() == []
        assert stats["refused"] == 100
        assert faults.requests <= 8 * 100

    @pytest.mark.parametrize("size", [100, 1_000, 3_000, 7_000])
    async def test_a_lot_keeps_the_request_within_the_limit(
        self, place: Place, faults: Faults, size: int
    ) -> None:
        faults.largest = self.largest or None
        await self.deliver(place, 40, size=size)
        assert faults.seqs() == list(range(1, 41))
        assert faults.requests == len(faults.sent)

    async def test_a_lot_over_a_limit_nobody_knew_is_halved(self, place: Place, faults: Faults) -> None:
        faults.largest = 2_500
        stats = await self.deliver(place, 40, size=700)
        assert faults.seqs() == list(range(1, 41))
        assert (faults.doubles(), faults.gaps(), stats["refused"]) == (0, [], 0)
        assert faults.requests <= 4 * 40

    @pytest.mark.parametrize("fault", ["401", "403", "404"])
    async def test_wrong_settings_are_one_error_and_rare_requests(
        self, place: Place, faults: Faults, fault: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        faults.next = [fault] * 6
        stats = await self.deliver(place, 30)
        assert faults.seqs() == list(range(1, 31))
        assert (faults.doubles(), faults.gaps(), stats["refused"]) == (0, [], 0)
        assert faults.requests == 6 + len(faults.sent)
        errors = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
        assert len(errors) == 1
        assert f"answered {fault}" in errors[0]
        assert "check " in errors[0]

    async def test_wrong_settings_stop_every_channel_with_one_request_at_a_time(
        self, place: Place, faults: Faults, caplog: pytest.LogCaptureFixture
    ) -> None:
        faults.next = ["401"] * 1_000
        it = Broadcaster(open_publisher(place.url), backoff=(0.05, 0.2))
        for thread in range(50):
            await it.publish(Thread(f"t{thread}").entry(CustomEvent(name="n", value=1)))
        assert not await it.flush(1)
        await it.aclose(0)
        assert (
            faults.requests < 50 + 20
        )  # the first of each channel may be on its way; after that it is one for all
        assert len([each for each in caplog.records if each.levelno >= logging.ERROR]) == 1

    @pytest.mark.parametrize("fault", ["429", "500", "503"])
    async def test_a_busy_server_is_asked_again(self, place: Place, faults: Faults, fault: str) -> None:
        faults.next = [fault, fault]
        stats = await self.deliver(place, 30)
        assert faults.seqs() == list(range(1, 31))
        assert (faults.doubles(), faults.gaps()) == (0, [])
        assert (stats["failures"], stats["retries"], stats["refused"]) == (2, 2, 0)

    @pytest.mark.parametrize("fault", ["half", "dies"])
    async def test_a_lost_answer_doubles_only_where_the_engine_has_no_keys(
        self, place: Place, faults: Faults, fault: str
    ) -> None:
        faults.next = ["", fault]
        await self.deliver(place, 30)
        assert sorted(set(faults.seqs())) == list(range(1, 31))
        assert faults.gaps() == []
        assert faults.doubles() == (0 if self.idempotent else faults.sent[1])


def behave(
    faults: Faults,
    body: bytes,
    size: int,
    refusals: Refusals,
    run: Callable[[], Sequence[Envelope]],
    answer: Callable[[], tuple[int, bytes, dict[str, str]]],
) -> tuple[int, bytes, dict[str, str]] | None:
    """One request at a stand-in: its next fault, its limit, or what it does."""
    faults.requests += 1
    fault = faults.next.pop(0) if faults.next else ""
    if fault in refusals:
        return refusals[fault]
    if faults.largest is not None and size > faults.largest:
        return refusals["413"]
    took = run()
    faults.took += took
    faults.sent.append(len(took))
    if fault == "dies":
        return None
    status, text, headers = answer()
    return status, text[: len(text) // 2] if fault == "half" else text, headers


def request_size(path: str, headers: Any, body: bytes) -> int:
    """Bytes of a whole request: its line, its headers, its body."""
    return (
        len(body)
        + len(path)
        + len("POST  HTTP/1.1\r\n\r\n")
        + sum(len(k) + len(v) + 4 for k, v in headers.items())
    )


def data_of(event: dict[str, Any]) -> Envelope:
    """The envelope in an event of the Pusher API."""
    return Envelope.from_dict(json.loads(event["data"]))
