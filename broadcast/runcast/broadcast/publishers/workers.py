"""The envelopes on their way to one target: a bounded queue and one worker for each channel, strictly in order.

Knows retries, pauses and the envelopes that may be given up; does not know entries. A target that is slow, unreachable
or refusing costs its watchers freshness and is counted; no error reaches the caller of `put`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.envelopes.outgoing import EnvelopeQueue, must_arrive
from runcast.broadcast.errors import PublishError, WrongSettings
from runcast.broadcast.publishers.base import Erasing, Publisher
from runcast.slim.tasks import end

log = logging.getLogger("runcast.broadcast")


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds of the queue and of the attempts."""

    queue: int = 1_000  # envelopes that may wait, per channel
    batch: int = 100  # envelopes in one lot
    backoff: tuple[float, float] = (0.1, 10.0)  # first and longest pause between attempts, seconds
    attempts: int = 8  # before envelopes that may be missed are given up


class PatienceOptions(TypedDict, total=False):
    """`Patience` as keyword arguments."""

    queue: int
    batch: int
    backoff: tuple[float, float]
    attempts: int


@dataclass(slots=True)
class Delivered:
    """Counts of one target since the start."""

    delivered: int = 0
    retries: int = 0
    refused: int = 0  # envelopes given up: a gap names them
    failures: int = 0  # attempts that failed
    merged: int = 0  # chunks joined with others because the queue was full
    shed: int = 0  # envelopes replaced by a gap because the queue was full


@dataclass(slots=True)
class _Lane:
    name: str
    queue: EnvelopeQueue
    worker: asyncio.Task[None] | None = None
    failed: int = 0  # attempts without a delivery
    singly: int = 0  # envelopes of a refused lot, which are sent one by one
    refusing: bool = False  # the last envelope was given up too


class Delivery:
    """One publisher's channels."""

    def __init__(self, publisher: Publisher, patience: Patience) -> None:
        self._publisher = publisher
        self._patience = patience
        self._lanes: dict[str, _Lane] = {}
        self._past = Delivered()
        self._misset = 0  # requests in a row that the target's settings refused
        self._turn = asyncio.Lock()  # meanwhile one channel tries at a time

    def put(self, name: str, envelopes: list[Envelope], fits: Callable[[Envelope], bool]) -> None:
        """Queue these for a channel; needs a running event loop."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = _Lane(name, EnvelopeQueue(self._patience.queue, fits=fits))
        lane.queue.put(envelopes)
        if lane.worker is None or lane.worker.done():
            lane.worker = asyncio.create_task(self._work(lane), name=f"broadcast {name}")

    def waiting(self, name: str | None = None) -> int:
        """The number of envelopes that wait for this target, on one channel or on all."""
        if name is not None:
            lane = self._lanes.get(name)
            return 0 if lane is None else len(lane.queue)
        return sum(len(lane.queue) for lane in self._lanes.values())

    def forget(self, name: str) -> None:
        """Drop a channel whose queue is empty."""
        lane = self._lanes.pop(name, None)
        if lane is None:
            return
        self._past.merged += lane.queue.merged
        self._past.shed += lane.queue.shed
        if lane.worker is not None:
            lane.worker.cancel()

    async def erase(self, name: str) -> None:
        """Drop a channel with all that waits for it, here and at a target that remembers it."""
        lane = self._lanes.get(name)
        self.forget(name)
        if lane is not None:
            await end([lane.worker])
        if isinstance(self._publisher, Erasing):
            await self._publisher.erase(name)

    def stats(self) -> Delivered:
        """The counts since the start."""
        past, queues = self._past, [lane.queue for lane in self._lanes.values()]
        return replace(
            past,
            merged=past.merged + sum(queue.merged for queue in queues),
            shed=past.shed
            + sum(queue.shed for queue in queues)
            - past.refused,  # a refused one leaves a gap too
        )

    async def aclose(self) -> None:
        """End the workers and close the publisher."""
        await end(lane.worker for lane in self._lanes.values())
        await self._publisher.aclose()

    # --------------------------------------------------------------- workers

    async def _work(self, lane: _Lane) -> None:
        """One channel's deliveries, strictly one after the other, until its queue is empty."""
        while lot := lane.queue.take(1 if lane.singly else self._patience.batch):
            await self._deliver(lane, lot)

    async def _deliver(self, lane: _Lane, lot: list[Envelope]) -> None:
        error = await self._attempt(lane.name, lot)
        delivered = range(len(lot)) if error is None else frozenset(error.delivered or ())
        lane.queue.done(delivered)
        self._past.delivered += len(delivered)
        lane.singly = max(0, lane.singly - len(delivered))
        if delivered:
            lane.failed, lane.refusing = 0, False
        if error is not None:
            self._past.failures += 1
            rest = [envelope for n, envelope in enumerate(lot) if n not in delivered]
            await self._failed(lane, rest, error)

    async def _attempt(self, channel: str, lot: list[Envelope]) -> PublishError | None:
        """Publish a lot. While the settings are wrong, the channels take turns, with a growing pause before each."""
        if not self._misset:
            return await self._publish(channel, lot)
        async with self._turn:
            if self._misset:
                await self._pause(self._misset)
            return await self._publish(channel, lot)

    async def _publish(self, channel: str, lot: list[Envelope]) -> PublishError | None:
        try:
            await self._publisher.publish(channel, lot)
        except WrongSettings as error:
            if not self._misset:
                log.error("publisher %s: %s; trying again, ever more rarely", self._publisher.name, error)
            self._misset += 1
            return error
        except PublishError as error:
            self._misset = 0
            return error
        except Exception:  # an error inside the publisher is a failed attempt
            log.exception("publisher %s broke on channel %r", self._publisher.name, channel)
            return PublishError("the publisher broke")
        if self._misset:
            log.warning("publisher %s: the target accepts the settings again", self._publisher.name)
        self._misset = 0
        return None

    async def _failed(self, lane: _Lane, rest: list[Envelope], error: PublishError) -> None:
        """Decide over the envelopes that were not delivered: retry, send them one by one, or give up the first."""
        if isinstance(error, WrongSettings):
            self._past.retries += 1
            return
        lane.failed += 1
        if error.retry and lane.failed < self._patience.attempts:
            if lane.failed == 1:
                log.warning("publisher %s: %s; trying again", self._publisher.name, error)
            self._past.retries += 1
        elif len(rest) > 1 and (error.retry or error.delivered is None):
            # only the envelope that the target refuses is given up, not its neighbours
            lane.singly = len(rest)
        else:
            self._give_up(lane, rest[0], error)
        if error.retry:
            await self._pause(lane.failed, error.after)

    def _give_up(self, lane: _Lane, envelope: Envelope, error: PublishError) -> None:
        gap = envelope.type == "agent.gap"
        if error.retry and (gap or must_arrive(envelope)):
            return  # these wait for the target as long as the process lives
        lane.singly = max(0, lane.singly - 1)
        if gap:
            lane.queue.done(range(1))  # the next envelope's `prev` shows the hole to the reader
            return
        self._past.refused += 1
        level = logging.DEBUG if lane.refusing else logging.ERROR  # one line for a row of them
        log.log(level, "publisher %s gave up on seq %s: %s", self._publisher.name, envelope.seq, error)
        lane.refusing = True
        lane.queue.refuse(1)

    async def _pause(self, failed: int, after: float | None = None) -> None:
        first, longest = self._patience.backoff
        pause = min(longest, first * 2 ** min(failed - 1, 20))
        pause *= 0.5 + random.random() / 2  # jitter: many workers must not come back at once
        await asyncio.sleep(max(pause, after or 0.0))
