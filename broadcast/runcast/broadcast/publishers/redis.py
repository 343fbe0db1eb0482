"""Redis: a stream a channel for catching up, and PUBLISH for the moment, in one atomic step.

The script *takes* the log's `seq`, it gives none: a `seq` that is not above the top is refused, so that retries and
two workers are harmless. A node that sees a hole reads the log; the stream is a short memory, not the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runcast.broadcast.budget import HUB, Budget
from runcast.broadcast.envelope import Envelope
from runcast.broadcast.errors import PublishError

try:
    from redis.asyncio import Redis
    from redis.exceptions import RedisError
except ImportError as error:  # pragma: no cover  told in words by a house test
    raise ImportError('the Redis publisher needs: pip install "runcast[redis]"') from error

SCHEMES = ("redis", "rediss", "unix")

# KEYS[1] stream  KEYS[2] top of the stream   ARGV: epoch, seq, part, of, channel, maxlen, ttl seconds, body
_PUBLISH = """
local top = redis.call('HMGET', KEYS[2], 'epoch', 'seq', 'part')
local seq, part = tonumber(ARGV[2]), tonumber(ARGV[3])
if top[1] == ARGV[1] then
  local held, heldpart = tonumber(top[2]), tonumber(top[3])
  if seq < held or (seq == held and part <= heldpart) then return 0 end
elseif top[1] then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[2], 'epoch', ARGV[1], 'seq', ARGV[2], 'part', ARGV[3])
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[6], ARGV[2] .. '-' .. ARGV[3], 'b', ARGV[8])
redis.call('EXPIRE', KEYS[1], ARGV[7])
redis.call('EXPIRE', KEYS[2], ARGV[7])
redis.call('PUBLISH', ARGV[5], ARGV[8])
return 1
"""


class RedisPublisher:
    """Publishes into Redis; hub nodes, or anything that reads Pub/Sub or streams, take it from there."""

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
    ) -> None:
        self.budget = budget
        self._prefix = prefix
        self._keep = keep  # envelopes a stream remembers
        self._ttl = ttl  # seconds a quiet channel is remembered
        self._redis: Redis = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]  # its keywords are untyped
            url, socket_timeout=timeout, socket_connect_timeout=timeout
        )
        self._script = self._redis.register_script(_PUBLISH)

    def topic(self, channel: str) -> str:
        """The Pub/Sub topic of a channel."""
        return f"{self._prefix}live:{channel}"

    def stream(self, channel: str) -> str:
        """The stream of a channel."""
        return f"{self._prefix}stream:{channel}"

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Add and publish each, once, whoever else tries."""
        stream = self.stream(channel)
        for envelope in envelopes:
            part, of = envelope.part or (0, 0)
            arguments: list[Any] = [envelope.epoch, envelope.seq, part, of, self.topic(channel)]
            arguments += [self._keep, self._ttl, envelope.encode()]
            try:
                await self._script(keys=[stream, f"{stream}:top"], args=arguments)
            except RedisError as error:
                raise PublishError(f"Redis did not take it: {type(error).__name__}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


def connect(url: str) -> RedisPublisher:
    """`redis://host:port/db`, `rediss://…` with TLS, `unix://…`: what the redis package takes."""
    return RedisPublisher(url)
