"""Sends a run's entries to publishers; no publisher's fault reaches the run.

Maps and rolls up once, whatever the number of targets, so that all receive the same envelopes; each target has queues
and workers of its own (`publishers/workers.py`), so that a slow one delays no other. `publish` takes an entry of the
log; `sink` makes a callable for runs that have no log.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Unpack

from ag_ui.core import Event

from runcast.broadcast.config import Choice, chosen
from runcast.broadcast.envelopes.budget import Budget, tightest
from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.envelopes.mapper import EnvelopeMapper
from runcast.broadcast.envelopes.rollup import Coalescer
from runcast.broadcast.errors import ConfigError
from runcast.broadcast.hub.channels import PRIVATE, channel_for
from runcast.broadcast.publishers.base import Publisher
from runcast.broadcast.publishers.workers import Delivered, Delivery, Patience, PatienceOptions
from runcast.slim.entry import Entry

log = logging.getLogger("runcast.broadcast")


@dataclass(slots=True)
class _Channel:
    name: str
    mapper: EnvelopeMapper
    coalescer: Coalescer
    fits: Callable[[Envelope], bool]
    rolls_up: bool
    timer: asyncio.TimerHandle | None = None


class Broadcaster:
    """Maps entries to envelopes and sends them to one publisher or several, channel by channel.

    `config` is one for all threads, or a callable from a thread's id to its own.
    """

    def __init__(
        self,
        publisher: Publisher | Sequence[Publisher],
        *,
        config: Choice | None = None,
        prefix: str = PRIVATE,
        channels: int = 10_000,
        **patience: Unpack[PatienceOptions],
    ) -> None:
        publishers = [publisher] if isinstance(publisher, Publisher) else list(publisher)
        if not publishers:
            raise ConfigError("a broadcaster needs a publisher; MemoryPublisher() is the smallest")
        self.config = config
        self._prefix = prefix  # "private-agent." unless the channels are public on purpose
        self._most = channels  # channels kept; the longest quiet is dropped first
        self.publishers = tuple(publishers)
        self._targets = [Delivery(each, Patience(**patience)) for each in publishers]
        self._budgets = [each.budget for each in publishers]
        self._channels: OrderedDict[str, _Channel] = OrderedDict()
        self._entries = self._envelopes = self._broken = 0
        self._merged = 0  # by the roll-up of dropped channels

    async def publish(self, entry: Entry) -> None:
        """Queue the entry's envelopes. Does not wait for the target and does not raise."""
        self.put(entry)

    def put(self, entry: Entry) -> None:
        """As `publish`, for code that cannot await; needs a running event loop."""
        self.put_all((entry,))

    def put_all(self, entries: Sequence[Entry]) -> None:
        """As `put`, for entries of one thread that come at once: with a roll-up, deltas of one text are mapped as one."""
        thread_id = entries[0].thread_id
        try:
            channel, envelopes = self._channel(entries[0]), list[Envelope]()
            single = len(entries) == 1 or not channel.rolls_up
            for each in ((entry,) for entry in entries) if single else channel.mapper.stretches(entries):
                envelopes += self._mapped(channel, each)
            if envelopes:
                self._roll_up(channel, envelopes)
        except Exception:  # no error here may reach the agent
            self._broken += 1
            log.exception("entries of thread %r could not be broadcast", thread_id)

    def _mapped(self, channel: _Channel, stretch: Sequence[Entry]) -> list[Envelope]:
        self._entries += len(stretch)
        try:
            envelopes = channel.mapper.feed_stretch(stretch)
        except Exception:  # the others have envelopes all the same
            self._broken += 1
            log.exception("an entry of thread %r could not be broadcast", stretch[0].thread_id)
            return []
        joined = max(0, len(stretch) - len(envelopes)) if envelopes else 0
        self._envelopes += len(envelopes) + joined
        self._merged += joined
        return envelopes

    def prime(self, entry: Entry) -> None:
        """Feed the mapper an entry that was broadcast already, by another process or before, and send nothing."""
        try:
            self._channel(entry).mapper.feed(entry)
        except Exception:  # no error here may reach the reader of the log
            self._broken += 1
            log.exception("an entry of thread %r could not be mapped", entry.thread_id)

    def forget(self, thread_id: str) -> None:
        """Drop a thread's state after sending its held envelopes. Its next entry begins anew."""
        channel = self._channels.pop(thread_id, None)
        if channel is None:
            return
        if channel.timer is not None:
            channel.timer.cancel()
        self._send(channel, channel.coalescer.flush())
        self._merged += channel.coalescer.merged

    async def erase(self, thread_id: str) -> None:
        """Drop a thread with all that was not sent yet, and have targets forget its channel; `PublishError` if one did not."""
        channel = self._channels.pop(thread_id, None)
        if channel is not None and channel.timer is not None:
            channel.timer.cancel()
        for target in self._targets:
            await target.erase(channel_for(thread_id, prefix=self._prefix))

    def sink(self, thread_id: str) -> Callable[[Event], None]:
        """A callable that takes a run's events without a log: it counts `seq` itself, under an epoch of its own.

        Make it where the event loop runs; it may then be called from any thread.
        """
        loop = asyncio.get_running_loop()
        home = threading.get_ident()
        epoch = secrets.token_hex(4)
        waiting: deque[Entry] = deque()
        lock = threading.Lock()
        position = 0
        run_id = ""

        def drain() -> None:
            while waiting:
                self.put(waiting.popleft())

        def take(event: Event) -> None:
            nonlocal position, run_id
            with lock:
                position += 1
                run_id = getattr(event, "run_id", None) or run_id
                at = time.time_ns() // 1_000_000
                waiting.append(Entry(thread_id, position, epoch, run_id, at, event))
            if threading.get_ident() == home:
                drain()
            elif not loop.is_closed():
                loop.call_soon_threadsafe(drain)

        return take

    def stats(self) -> dict[str, int]:
        """Plain numbers, since the start and right now; of all targets together."""
        each = [target.stats() for target in self._targets]
        numbers = {field.name: sum(getattr(one, field.name) for one in each) for field in fields(Delivered)}
        numbers["failures"] += self._broken
        numbers["merged"] += self._merged + sum(c.coalescer.merged for c in self._channels.values())
        numbers["entries"] = self._entries
        numbers["envelopes"] = self._envelopes
        numbers["queued"] = sum(target.waiting() for target in self._targets)
        numbers["channels"] = len(self._channels)
        return numbers

    async def flush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  a bool, not an exception
        """Wait until everything queued is delivered; False when `timeout` seconds were not enough."""
        await asyncio.sleep(0)  # events that a sink got in another thread come first
        for channel in self._channels.values():
            self._send(channel, channel.coalescer.flush())
        deadline = None if timeout is None else time.monotonic() + timeout
        while any(target.waiting() for target in self._targets):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.005)
        return True

    async def aclose(self, timeout: float = 5.0) -> None:  # noqa: ASYNC109  the rest is dropped
        """Deliver for at most `timeout` seconds, then drop the rest and close the publishers."""
        await self.flush(timeout)
        for channel in self._channels.values():
            if channel.timer is not None:
                channel.timer.cancel()
        for target in self._targets:
            await target.aclose()

    # -------------------------------------------------------------- channels

    def _channel(self, entry: Entry) -> _Channel:
        channel = self._channels.get(entry.thread_id)
        if channel is not None:
            self._channels.move_to_end(entry.thread_id)
            return channel
        self._forget_quiet()
        config = chosen(self.config, entry.thread_id)
        budget = tightest(self._budgets, config.max_envelope_bytes)
        fits = _fitting(budget)
        channel = _Channel(
            channel_for(entry.thread_id, prefix=self._prefix),
            EnvelopeMapper(config, prev=entry.seq - 1, budget=budget),
            Coalescer(config.rollup_ms, fits=fits),
            fits,
            config.rollup_ms > 0,
        )
        self._channels[entry.thread_id] = channel
        return channel

    def _forget_quiet(self) -> None:
        """Make room for one more: drop the longest quiet channel that has nothing waiting."""
        while len(self._channels) >= self._most:
            quiet = next((thread for thread, c in self._channels.items() if self._is_quiet(c)), None)
            if quiet is None:
                return
            channel = self._channels.pop(quiet)
            self._merged += channel.coalescer.merged
            for target in self._targets:
                target.forget(channel.name)

    def _is_quiet(self, channel: _Channel) -> bool:
        held = channel.coalescer.due() is not None
        return not held and not any(target.waiting(channel.name) for target in self._targets)

    def _roll_up(self, channel: _Channel, envelopes: list[Envelope]) -> None:
        now = _now()
        out: list[Envelope] = []
        for envelope in envelopes:
            out += channel.coalescer.feed(envelope, now)
        self._send(channel, out)
        self._set_timer(channel)

    def _set_timer(self, channel: _Channel) -> None:
        """Set a timer for the end of the roll-up's window."""
        due = channel.coalescer.due()
        if due is not None and channel.timer is None:
            loop = asyncio.get_running_loop()
            channel.timer = loop.call_later(max(0, due - _now()) / 1000, self._timed, channel)

    def _timed(self, channel: _Channel) -> None:
        channel.timer = None
        self._send(channel, channel.coalescer.tick(_now()))
        self._set_timer(channel)

    def _send(self, channel: _Channel, envelopes: list[Envelope]) -> None:
        if envelopes:
            for target in self._targets:
                target.put(channel.name, envelopes, channel.fits)


def _fitting(budget: Budget) -> Callable[[Envelope], bool]:
    return lambda envelope: budget.fits(envelope.encode())


def _now() -> int:
    return time.monotonic_ns() // 1_000_000
