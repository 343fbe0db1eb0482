"""Redis: a stream for each channel to catch up from, and PUBLISH for live readers, in one atomic step.

The script takes the log's `seq` and assigns none: it ignores a `seq` that is not above the last one, so that retries
and two workers are harmless. The stream is a cache of bounded length and age; a node that finds a hole reads the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runcast.broadcast.envelopes.budget import HUB, Budget
from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.errors import PublishError, WrongSettings
from runcast.broadcast.publishers.redis_cluster import Keys, client, is_cluster

try:
    from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
except ImportError as error:  # pragma: no cover  a house test reads the message
    raise ImportError('the Redis publisher needs: pip install "runcast[redis]"') from error

SCHEMES = ("redis", "rediss", "unix")

# KEYS[1] stream  KEYS[2] top of the stream   ARGV: epoch, seq, part, of, channel, maxlen, ttl seconds, body, mark,
# sharded topic; a topic may be empty
# The first lines are `is_other_history` of `runcast.slim.entry`.
_PUBLISH = """
local function begins(mark) return tonumber(string.match(mark, '^%d+')) end
local function other(last, mark, seq, new)
  if not mark or mark == '' or new == '' or mark == new then return false end
  if seq > last then return begins(new) <= last end
  return begins(mark) <= seq
end
local top = redis.call('HMGET', KEYS[2], 'epoch', 'seq', 'part', 'mark')
local seq, part = tonumber(ARGV[2]), tonumber(ARGV[3])
if top[1] == ARGV[1] and not other(tonumber(top[2]), top[4], seq, ARGV[9]) then
  local held, heldpart = tonumber(top[2]), tonumber(top[3])
  if seq < held or (seq == held and part <= heldpart) then return 0 end
elseif top[1] then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[2], 'epoch', ARGV[1], 'seq', ARGV[2], 'part', ARGV[3], 'mark', ARGV[9])
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[6], ARGV[2] .. '-' .. ARGV[3], 'b', ARGV[8])
redis.call('EXPIRE', KEYS[1], ARGV[7])
redis.call('EXPIRE', KEYS[2], ARGV[7])
if ARGV[5] ~= '' then redis.call('PUBLISH', ARGV[5], ARGV[8]) end
if ARGV[10] ~= '' then redis.pcall('SPUBLISH', ARGV[10], ARGV[8]) end
return 1
"""


class RedisPublisher:
    """Publishes into Redis, for hub nodes and for any reader of Pub/Sub or streams.

    In a cluster, hub nodes hear by sharded Pub/Sub, other readers by a topic that costs every node; `sharded` leaves it out.
    """

    name = "redis"

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "runcast:",
        keep: int = 1_000,
        ttl: int = 3_600,
        budget: Budget = HUB,
        timeout: float = 5.0,
        sharded: bool = False,
    ) -> None:
        self.budget = budget
        self._prefix = prefix
        self._keep = keep  # envelopes a stream remembers
        self._ttl = ttl  # seconds a quiet channel is remembered
        self._keys = Keys(prefix, is_cluster(url))
        self._sharded = sharded and self._keys.cluster
        self._redis: Any = client(url, socket_timeout=timeout, socket_connect_timeout=timeout)
        self._script = self._redis.register_script(_PUBLISH)

    def topic(self, channel: str) -> str:
        """The Pub/Sub topic of a channel."""
        return f"{self._prefix}live:{channel}"

    def stream(self, channel: str) -> str:
        """The stream of a channel. In a cluster the channel is its hash tag, so that both its keys are on one node."""
        return self._keys.stream(channel)

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Add and publish each once, even when several processes publish the same ones."""
        stream = self.stream(channel)
        topic = "" if self._sharded else self.topic(channel)
        shard = self._keys.topic(channel) if self._keys.cluster else ""
        for done, envelope in enumerate(envelopes):
            part, of = envelope.part or (0, 0)
            arguments: list[Any] = [envelope.epoch, envelope.seq, part, of, topic]
            arguments += [self._keep, self._ttl, envelope.encode(), envelope.mark, shard]
            try:
                await self._script(keys=[stream, f"{stream}:top"], args=arguments)
            except RedisError as error:
                raise _failed(error, done) from error

    async def erase(self, channel: str) -> None:
        """Delete the channel's stream."""
        stream = self.stream(channel)
        try:
            await self._redis.delete(stream, f"{stream}:top")
        except RedisError as error:
            raise _failed(error, 0) from error

    async def probe(self) -> str:
        """PING, with the URL's user and password."""
        try:
            await self._redis.ping()
        except RedisError as error:
            raise _failed(error, 0) from error
        return f"Redis answers; a stream keeps {self._keep:,} envelopes for {self._ttl} s"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


def _failed(error: RedisError, done: int) -> PublishError:
    """A publish that did not arrive; the first `done` of the lot did."""
    kind, delivered = type(error).__name__, range(done)
    if isinstance(error, AuthenticationError | NoPermissionError):
        sentence = f"Redis refused the user ({kind}); check the user and the password in the publisher's URL"
        return WrongSettings(sentence, delivered=delivered)
    return PublishError(f"Redis did not take it: {kind}", delivered=delivered)


def connect(url: str) -> RedisPublisher:
    """`redis://user:password@host:port/db`, `rediss://…` with TLS, `unix://…`; `redis+cluster://…` for a cluster.

    The query is that of the redis package: `rediss://host?ssl_ca_certs=/path/ca.pem`.
    """
    return RedisPublisher(url)
