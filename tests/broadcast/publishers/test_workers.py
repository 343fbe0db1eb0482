"""What waits for a target: how long after a refusal, one by one behind it, and nothing of a channel that was erased."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from runcast.broadcast import Budget, Envelope, PublishError
from runcast.broadcast.errors import WrongSettings
from runcast.broadcast.publishers.workers import Delivery, Patience
from tests.broadcast.hub.fakes import CHANNEL
from tests.broadcast.hub.test_hub import becomes
from tests.e2e.stage import envelope

Answer = Callable[[list[int]], BaseException | None]


class Target:
    """Answers each lot as it is told to."""

    name = "target"
    budget = Budget(10_000)

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.lots: list[list[int]] = []
        self.times: list[float] = []
        self.said: list[str] = []
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        lot = [each.seq for each in envelopes]
        self.lots.append(lot)
        self.times.append(asyncio.get_running_loop().time())
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.said.append("ended")
            raise
        if (error := self.answer(lot)) is not None:
            raise error

    async def erase(self, channel: str) -> None:
        self.said.append("erased")

    async def aclose(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def delivering(answer: Answer, **patience: object) -> AsyncIterator[tuple[Delivery, Target]]:
    target = Target(answer)
    given = {"backoff": (0.001, 0.001), **patience}
    delivery = Delivery(target, Patience(**given))  # type: ignore[arg-type]
    try:
        yield delivery, target
    finally:
        await delivery.aclose()


async def sent(delivery: Delivery) -> None:
    async with asyncio.timeout(60):
        while delivery.waiting():  # noqa: ASYNC110  its workers are at work
            await asyncio.sleep(0.001)


def answers(*given: BaseException | None) -> Answer:
    """These, one after the other; then all is well."""
    left = [*given]
    return lambda lot: left.pop(0) if left else None


@pytest.mark.parametrize("error", [PublishError("busy", after=0.2), WrongSettings("no such app")])
async def test_a_target_is_asked_again_no_sooner_than_it_said(error: PublishError) -> None:
    async with delivering(answers(error), backoff=(0.2 if error.after is None else 0.001, 0.2)) as (
        it,
        target,
    ):
        it.put(CHANNEL, [envelope(1)], bool)
        await sent(it)
        assert target.lots == [[1], [1]]
        assert target.times[1] - target.times[0] >= (0.2 if error.after else 0.1)
        assert (it.stats().delivered, it.stats().retries, it.stats().failures) == (1, 1, 1)


async def test_a_delivery_in_between_begins_the_count_of_attempts_anew() -> None:
    busy = [PublishError("busy") for _ in range(4)]
    async with delivering(answers(*busy[:2], None, *busy[2:]), attempts=3, batch=1) as (it, target):
        it.put(CHANNEL, [envelope(1), envelope(2)], bool)
        await sent(it)
        assert target.lots == [[1]] * 3 + [[2]] * 3
        assert (it.stats().refused, it.stats().delivered) == (0, 2)


async def test_after_its_attempts_an_envelope_is_given_up_and_a_gap_names_it() -> None:
    def away(lot: list[int]) -> PublishError | None:
        return PublishError("busy") if 1 in lot and len(target.lots) <= 3 else None

    async with delivering(away, attempts=3, batch=1) as (it, target):
        it.put(CHANNEL, [envelope(1), envelope(2)], bool)
        await sent(it)
        assert target.lots[:3] == [[1]] * 3
        assert it.stats().refused == 1


async def test_of_a_lot_that_is_refused_each_goes_alone_and_only_the_bad_one_is_given_up() -> None:
    def refuses(lot: list[int]) -> PublishError | None:
        bad = 3 in lot and target.lots.count([3]) < 2
        return PublishError("too odd", retry=False) if bad else None

    async with delivering(refuses) as (it, target):
        it.put(CHANNEL, [envelope(seq) for seq in (1, 2, 3, 4)], bool)
        await sent(it)
        assert target.lots[:4] == [[1, 2, 3, 4], [1], [2], [3]]
        assert all(len(lot) == 1 for lot in target.lots[1:])
        assert target.lots[-1] == [4]
        assert it.stats().refused == 1


async def test_what_was_delivered_of_a_lot_is_not_sent_again() -> None:
    error = PublishError("busy", delivered={0, 1})
    async with delivering(answers(error)) as (it, target):
        it.put(CHANNEL, [envelope(seq) for seq in (1, 2, 3)], bool)
        await sent(it)
        assert target.lots == [[1, 2, 3], [3]]
        assert it.stats().delivered == 3


async def test_an_erased_channel_is_written_to_no_more_before_it_is_erased() -> None:
    async with delivering(answers()) as (it, target):
        target.goes_on.clear()
        it.put(CHANNEL, [envelope(1)], bool)
        await becomes(lambda: bool(target.lots))
        assert it.waiting() == it.waiting(CHANNEL) == 1
        await it.erase(CHANNEL)
        assert target.said == ["ended", "erased"]
        assert it.waiting() == it.waiting(CHANNEL) == 0
        await it.erase("never")
        assert target.said[-1] == "erased"
