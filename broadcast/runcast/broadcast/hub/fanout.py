"""Several hub nodes as one: envelopes that any process publishes into Redis reach the readers of this node too.

    Broadcaster([hub, RedisPublisher(url)])      on the node that runs the agent: its readers need no Redis
    async with RedisFanout(hub, url): ...        on every node: envelopes of the others

A node subscribes to the channels that its readers watch, so hearing costs what is watched; a subscription ends at the first
check after the last reader left. Pub/Sub guarantees nothing, so every envelope is checked: one that does not continue the
chain is preceded by the stream's, then by those of the hub's `history`; a channel's position is compared with Redis after
every subscription and every `check` seconds. Without Redis the node's own envelopes are delivered; the others follow when it
is back. The hub drops the node's own envelopes when they come back. In a cluster Pub/Sub is sharded (Redis 7).
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.hub.channels import PRIVATE, channel_for
from runcast.broadcast.hub.hub import Hub
from runcast.broadcast.hub.memory.ring import Replay, follow, read_envelope, vouched
from runcast.broadcast.hub.signatures import Position
from runcast.broadcast.publishers.redis_cluster import Keys, ShardedPubSub, client, is_cluster
from runcast.slim.entry import is_other_history
from runcast.slim.outage import Outage, place_of
from runcast.slim.tasks import end

try:
    from redis.exceptions import AuthenticationError, RedisError, ResponseError
except ImportError as error:  # pragma: no cover  a house test reads the message
    raise ImportError('the Redis fan-out needs: pip install "runcast[redis]"') from error

log = logging.getLogger("runcast.hub")


class RedisFanout:
    """Publishes the envelopes of other nodes' `RedisPublisher` on this node's hub. Use it as `async with`."""

    def __init__(
        self,
        hub: Hub,
        url: str,
        *,
        prefix: str = "runcast:",
        check: float = 10.0,
        backoff: tuple[float, float] = (0.1, 5.0),
        timeout: float = 5.0,
        aside: float = 0.25,
    ) -> None:
        self._hub = hub
        self._url = url
        self._address = place_of(url, port=6379) or "its address"
        self._outage = Outage(log)
        self._keys = Keys(prefix, is_cluster(url))  # as the publishers have it
        self._check = check  # seconds between two comparisons of positions
        self._backoff = backoff  # first and longest pause between attempts to connect, seconds
        self._aside_for = aside  # seconds that an envelope waits when it begins before this node's position
        self._options: dict[str, Any] = {
            "socket_timeout": timeout, "socket_connect_timeout": timeout, "socket_keepalive": True, "decode_responses": True,
        }  # fmt: skip
        self._redis: Any = client(url, **self._options)
        self._streams = _Streams(self._redis, self._keys)
        self._task: asyncio.Task[None] | None = None
        self._ear: Any = None  # the subscriptions of this connection
        self._heeded: set[str] = set()  # channels that are subscribed to, or about to be
        self._sending = asyncio.Lock()  # what is sent last is what was wanted last
        self._asking: set[asyncio.Task[None]] = set()  # subscriptions on their way out
        self._aside: list[tuple[float, str, Envelope]] = []
        self._heard = self._mended = self._connects = self._faults = self._bad = 0
        self.connected = asyncio.Event()  # set while messages come in

    def start(self) -> None:
        """Start to listen, once; `aclose` ends it."""
        if self._task is None:
            self._hub.on_watch.append(self._watched)
            self._task = asyncio.create_task(self._run(), name="hub fan-out")

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop listening and close the connections; the hub continues with this node's envelopes."""
        if self._watched in self._hub.on_watch:
            self._hub.on_watch.remove(self._watched)
        await end([self._task])
        await self._redis.aclose()

    def stats(self) -> dict[str, int]:
        """Plain numbers since the start, and whether Redis is connected right now."""
        return {
            "connected": int(self.connected.is_set()),
            "connects": self._connects,
            "heard": self._heard,  # envelopes that came by Pub/Sub
            "channels": len(self._heeded),  # subscribed to
            "mended": self._mended,  # envelopes that Pub/Sub lost and the stream still had
            "faults": self._faults,  # lost connections and errors of the hub
            "bad": self._bad,  # messages that are no envelope
        }

    # ------------------------------------------------------------- listening

    async def _run(self) -> None:
        failed = 0
        while True:
            before = self._connects
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                self._faults += 1
                failed = 0 if self._connects > before else failed + 1
                self._outage.lost(self._fault(error))
            except Exception:  # one bad message must not end the fan-out
                self._faults += 1
                log.exception("fan-out failed; it starts again")
            finally:
                self.connected.clear()
            first, longest = self._backoff
            await asyncio.sleep(min(longest, first * 2 ** min(failed, 20)) * (0.5 + random.random() / 2))

    def _fault(self, error: Exception) -> str:
        """What is wrong, without what changes from one attempt to the next."""
        refused = isinstance(error, (AuthenticationError, ResponseError))
        wrong = f"refuses this node ({error}); check the URL" if refused else "is gone"
        return (
            f"fan-out: Redis at {self._address} {wrong}; this node serves its own envelopes until it is back"
        )

    async def _listen(self) -> None:
        """One connection: subscribe, compare, receive."""
        sharded = self._keys.cluster
        ear: Any = ShardedPubSub(self._redis, self._url, **self._options) if sharded else self._redis.pubsub()
        async with ear:
            due = time.monotonic() + self._check
            self._ear, self._heeded = ear, set(self._hub.occupied())
            try:
                # No node publishes on the topic without a channel: confirmed last, it keeps an idle connection. Of two that
                # connect at once, one loses its connection, and what it asked for.
                async with self._sending:
                    await ear.subscribe(*map(self._keys.topic, [*self._heeded, ""]))
                while True:
                    message = await ear.get_message(timeout=self._patience(due))
                    if message is not None:
                        await self._take(message)
                    if self._aside:
                        await self._publish_waiting()
                    if time.monotonic() >= due:
                        await self._review(ear)
                        due = time.monotonic() + self._check
            finally:
                self._ear = None

    def _watched(self, channel: str, watched: bool) -> None:
        """The first reader came to a channel of the hub: subscribe to it. That the last one left is seen at a check."""
        if watched and self._ear is not None and channel not in self._heeded:
            self._heeded.add(channel)
            task = asyncio.create_task(self._subscribe(self._ear, channel), name="hub fan-out subscribes")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _subscribe(self, ear: Any, channel: str) -> None:
        try:
            async with self._sending:
                if channel in self._heeded:
                    await ear.subscribe(self._keys.topic(channel))
        except (RedisError, OSError, AttributeError):
            # The line is cut; `AttributeError`, where another task has just found that: redis has no writer then.
            self._heeded.discard(channel)  # the next check, or the next connection, asks again

    async def _take(self, message: Any) -> None:
        """Envelopes published after a confirmed subscription arrive; those before it are found by comparing."""
        channel = self._keys.channel(message["channel"])
        match message["type"]:
            case "message":
                await self._hear(channel, message["data"])
            case "subscribe" if channel:
                await self._compare(channel, fresh=True)
            case "subscribe":
                self._connects += 1
                self.connected.set()
                self._outage.over(f"fan-out: Redis at {self._address} is back")
            case _:
                pass

    async def _review(self, ear: Any) -> None:
        """Subscribe to exactly the channels with a reader, and compare those that were subscribed to before."""
        occupied = set(self._hub.occupied())
        before, self._heeded = self._heeded, occupied
        async with self._sending:
            if before - occupied:
                await ear.unsubscribe(*map(self._keys.topic, before - occupied))
            if occupied - before:
                await ear.subscribe(*map(self._keys.topic, occupied - before))
        for channel in before & occupied:
            await self._compare(channel, fresh=False)

    def _patience(self, due: float) -> float:
        moment = min(due, self._aside[0][0]) if self._aside else due
        return max(0.001, moment - time.monotonic())

    async def _hear(self, channel: str, data: str) -> None:
        envelope = read_envelope(data)
        if envelope is None:
            self._bad += 1
            return
        self._heard += 1
        position = self._hub.position(channel)
        ahead = envelope.epoch == position.epoch and envelope.seq > position.offset
        if ahead and not _contradicts(envelope, position):
            if envelope.prev < position.offset:
                # This node has a part of it already, cut elsewhere: its own, or from history. The rest may follow from
                # there; a reader cannot take this one either way.
                self._aside.append((time.monotonic() + self._aside_for, channel, envelope))
                return
            if envelope.prev > position.offset:
                await self._mend(channel, position, until=envelope.prev)
            elif envelope.type == "agent.gap":
                await self._hub.catch_up(channel)
        await self._hub.publish(channel, [envelope])

    async def _publish_waiting(self) -> None:
        """Publish the waiting envelopes that are still new; the hub sees the hole, and its readers catch up from history."""
        now = time.monotonic()
        while self._aside and self._aside[0][0] <= now:
            _, channel, envelope = self._aside.pop(0)
            await self._hub.publish(channel, [envelope])

    # --------------------------------------------------------------- mending

    async def _compare(self, channel: str, *, fresh: bool) -> None:
        """Compare this node's position in a channel with that of Redis."""
        position, top = self._hub.position(channel), await self._streams.top(channel)
        if not top.epoch:
            # Redis has nothing: expired, or never published. History has the missed envelopes.
            if fresh:
                await self._hub.catch_up(channel)
        elif not position.epoch:
            await self._hub.publish(channel, await self._streams.last(channel))
        elif top.epoch != position.epoch or _contradicts(top, position):
            await self._hub.publish(channel, await self._streams.after(channel, 0))
        elif top.offset > position.offset:
            await self._mend(channel, position, until=top.offset)

    async def _mend(self, channel: str, position: Position, *, until: int) -> None:
        """Publish the stream's envelopes between a position and a seq; the hub finds the holes that remain."""
        found = await self._streams.after(channel, position.offset, until)
        same = [each for each in found if each.epoch == position.epoch]
        self._mended += len(same)
        await self._hub.publish(channel, same)


def _contradicts(found: Envelope | Position, position: Position) -> bool:
    """Whether something found in this epoch is of another history than the position."""
    seq = found.offset if isinstance(found, Position) else found.seq
    return is_other_history(position.offset, position.mark, seq, found.mark)


class _Streams:
    """The streams of `RedisPublisher`: the newest envelopes of every channel, and its last position."""

    def __init__(self, redis: Any, keys: Keys) -> None:
        self._redis = redis
        self._name = keys.stream

    async def top(self, channel: str) -> Position:
        """The head of a channel; an empty epoch where there is none."""
        epoch, seq, mark = await self._redis.hmget(f"{self._name(channel)}:top", ["epoch", "seq", "mark"])
        return Position(epoch, int(seq), mark or "") if epoch and seq else Position("", 0)

    async def after(
        self, channel: str, after: int, until: int | None = None, *, most: int | None = None
    ) -> list[Envelope]:
        """The envelopes after a position, in order."""
        end = "+" if until is None else str(until)
        return _envelopes(await self._redis.xrange(self._name(channel), f"{after + 1}-0", end, count=most))

    async def last(self, channel: str) -> list[Envelope]:
        """The newest whole entry of the stream: it gives a reader the channel's position."""
        rows = await self._redis.xrevrange(self._name(channel), count=64)
        found = _envelopes(list(reversed(rows)))
        last = [each for each in found if each.seq == found[-1].seq]
        parts = last[0].part[1] if last and last[0].part else 1
        return last if len(last) == parts else []


class RedisHistory:
    """A hub's history from the streams of `RedisPublisher`, for nodes without a log.

    A stream is bounded: when it does not hold everything from the position on, nothing is recovered.
    """

    def __init__(
        self, url: str, *, prefix: str = "runcast:", channels: str = PRIVATE, timeout: float = 5.0
    ) -> None:
        self._channels = channels  # the prefix that the publisher's broadcaster gives the threads' channels
        self._redis: Any = client(
            url, decode_responses=True, socket_timeout=timeout, socket_connect_timeout=timeout
        )
        self._streams = _Streams(self._redis, Keys(prefix, is_cluster(url)))

    async def __call__(self, session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        """The envelopes after a position, all of them or none."""
        channel = channel_for(session_id, prefix=self._channels)
        top = await self._streams.top(channel)
        elsewhere = Replay.at(top, recovered=False)
        if not top.epoch or position.epoch not in ("", top.epoch) or position.offset > top.offset:
            return elsewhere
        found = await self._streams.after(channel, position.offset, until, most=most + 1)
        missing = not found and position.offset < (top.offset if until is None else until)
        if missing or len(found) > most or follow(found, position.offset) != len(found):
            return elsewhere
        if position.mark:
            there = await self._streams.after(channel, position.offset - 1, position.offset)
            if not vouched(position, there, found[0] if found else None):
                return elsewhere
        return Replay(True, top.epoch, top.offset, found, top.mark)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


def _envelopes(rows: Sequence[Any]) -> list[Envelope]:
    read = [read_envelope(fields["b"]) for _, fields in rows]
    return [each for each in read if each is not None]
