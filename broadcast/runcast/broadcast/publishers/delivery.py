"""Everything on its way to one target: a bounded queue and one worker a channel, strictly in order.

Knows retries, pauses and what may be given up; does not know entries. A target that is slow, gone or refusing costs
its watchers freshness and is counted; nothing here raises into whoever puts.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from runcast.broadcast.envelope import Envelope
from runcast.broadcast.errors import PublishError
from runcast.broadcast.publishers.base import Publisher
from runcast.broadcast.queue import Outbox, must_arrive

log = logging.getLogger("runcast.broadcast")


@dataclass(frozen=True, slots=True)
class Patience:
    """How much is kept for a target, and how long it is asked."""

    queue: int = 1_000  # envelopes that may wait, per channel
    batch: int = 100  # envelopes handed over at once
    backoff: tuple[float, float] = (0.1, 10.0)  # first and longest pause between attempts, seconds
    attempts: int = 8  # before envelopes that may be missed are given up
    idle: float = 60.0  # seconds a worker waits for more before it ends


@dataclass(slots=True)
class Delivered:
    """What a target has been given so far."""

    delivered: int = 0
    retries: int = 0
    refused: int = 0  # envelopes the target will never take
    failures: int = 0  # attempts that failed
    merged: int = 0  # chunks that travelled with others because the queue was full
    shed: int = 0  # envelopes replaced by a gap because the queue was full


@dataclass(slots=True)
class _Lane:
    name: str
    outbox: Outbox
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    worker: asyncio.Task[None] | None = None


class Delivery:
    """One publisher's channels."""

    def __init__(self, publisher: Publisher, patience: Patience) -> None:
        self._publisher = publisher
        self._patience = patience
        self._lanes: dict[str, _Lane] = {}
        self._past = Delivered()

    def put(self, name: str, envelopes: list[Envelope], fits: Callable[[Envelope], bool]) -> None:
        """Queue these for a channel; needs a running event loop."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = _Lane(name, Outbox(self._patience.queue, fits=fits))
        lane.outbox.put(envelopes)
        if lane.worker is None or lane.worker.done():
            lane.worker = asyncio.create_task(self._work(lane), name=f"broadcast {name}")
        lane.wake.set()

    def waiting(self, name: str | None = None) -> int:
        """How many envelopes wait for this target, on one channel or on all."""
        if name is not None:
            lane = self._lanes.get(name)
            return 0 if lane is None else len(lane.outbox)
        return sum(len(lane.outbox) for lane in self._lanes.values())

    def forget(self, name: str) -> None:
        """Let go of a channel that nothing waits on."""
        lane = self._lanes.pop(name, None)
        if lane is None:
            return
        self._past.merged += lane.outbox.merged
        self._past.shed += lane.outbox.shed
        if lane.worker is not None:
            lane.worker.cancel()

    def stats(self) -> Delivered:
        """The numbers since the start."""
        past, boxes = self._past, [lane.outbox for lane in self._lanes.values()]
        return Delivered(
            past.delivered,
            past.retries,
            past.refused,
            past.failures,
            past.merged + sum(box.merged for box in boxes),
            past.shed + sum(box.shed for box in boxes),
        )

    async def aclose(self) -> None:
        """End the workers and let go of the publisher."""
        workers = [lane.worker for lane in self._lanes.values() if lane.worker is not None]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self._publisher.aclose()

    # --------------------------------------------------------------- workers

    async def _work(self, lane: _Lane) -> None:
        """One channel's deliveries, strictly one after the other."""
        failed = 0
        while True:
            batch = lane.outbox.take(self._patience.batch)
            if not batch:
                if not await self._more(lane):
                    return
                continue
            try:
                await self._publisher.publish(lane.name, batch)
            except PublishError as error:
                failed += 1
                await self._failed(lane, batch, error, failed)
            except Exception:  # a publisher's fault is a failed attempt
                failed += 1
                log.exception("publisher %s broke on channel %s", self._publisher.name, lane.name)
                await self._failed(lane, batch, PublishError("the publisher broke"), failed)
            else:
                failed = 0
                lane.outbox.done(len(batch))
                self._past.delivered += len(batch)

    async def _more(self, lane: _Lane) -> bool:
        """Sleep until there is something to do; False when it stayed quiet for so long that the worker may end."""
        lane.wake.clear()
        try:
            await asyncio.wait_for(lane.wake.wait(), self._patience.idle)
        except TimeoutError:
            return False
        return True

    async def _failed(self, lane: _Lane, batch: list[Envelope], error: PublishError, failed: int) -> None:
        self._past.failures += 1
        lane.outbox.put_back()
        if not error.retry or failed >= self._patience.attempts:
            # One at a time: only what the target will not take is given up, not what waits beside it.
            self._give_up(lane, batch[0], error)
            if error.retry:
                await self._pause(error, failed)
            return
        if failed == 1:
            log.warning("publisher %s: %s; trying again", self._publisher.name, error)
        self._past.retries += 1
        await self._pause(error, failed)

    def _give_up(self, lane: _Lane, envelope: Envelope, error: PublishError) -> None:
        gap = envelope.type == "agent.gap"
        if error.retry and (gap or must_arrive(envelope)):
            return  # these wait for the target as long as the process lives
        self._past.refused += 1
        log.error("publisher %s gave up on seq %s: %s", self._publisher.name, envelope.seq, error)
        if gap:
            lane.outbox.done(1)  # not even the notice is taken: the next envelope's `prev` tells the reader
        else:
            lane.outbox.refuse(1)

    async def _pause(self, error: PublishError, failed: int) -> None:
        first, longest = self._patience.backoff
        pause = min(longest, first * 2 ** min(failed - 1, 20))
        pause *= 0.5 + random.random() / 2  # jitter: a crowd must not come back at once
        await asyncio.sleep(max(pause, error.after or 0.0))
