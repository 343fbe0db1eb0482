"""One Redis or a cluster of them: the client for a URL, the names of a channel's keys, and sharded Pub/Sub.

PUBLISH reaches every node of a cluster, SPUBLISH (Redis 7) only the one that has the channel's slot. A subscriber then has a
connection to each node that has a channel of its own, and hearing costs no other node anything.
Knows URLs, names and connections; does not know envelopes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from runcast.slim.tasks import end

try:
    from redis.asyncio import Redis
    from redis.asyncio.cluster import RedisCluster
    from redis.exceptions import ConnectionError as Lost
except ImportError as error:  # pragma: no cover  a house test reads the message
    raise ImportError('Redis needs: pip install "runcast[redis]"') from error

CLUSTER = "+cluster"
WAITING = 1_000  # messages taken from the sockets that were not asked for yet


def is_cluster(url: str) -> bool:
    """Whether the URL is that of a cluster: `redis+cluster://…`, `rediss+cluster://…`."""
    return urlsplit(url).scheme.endswith(CLUSTER)


def client(url: str, **options: Any) -> Any:
    """A client for the URL; it connects when it is first used."""
    kind: Any = RedisCluster if is_cluster(url) else Redis
    return kind.from_url(url.replace(f"{CLUSTER}:", ":", 1), **options)


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of what a channel has in Redis. In a cluster the channel is a hash tag: all of it is on one node."""

    prefix: str
    cluster: bool

    def stream(self, channel: str) -> str:
        """The stream of a channel."""
        return f"{self.prefix}stream:{self._tagged(channel)}"

    def topic(self, channel: str) -> str:
        """The Pub/Sub topic that nodes subscribe to; in a cluster a sharded one."""
        return f"{self.prefix}live:{self._tagged(channel)}"

    def channel(self, topic: str) -> str:
        """The channel of such a topic."""
        tagged = topic.removeprefix(f"{self.prefix}live:")
        return tagged[1:-1] if self.cluster else tagged

    def _tagged(self, channel: str) -> str:
        return f"{{{channel}}}" if self.cluster else channel


class ShardedPubSub:
    """Sharded subscriptions at all nodes of a cluster, read as those of one `PubSub`. Use it as `async with`.

    A lost connection, and a slot that moved to another node, end all of it with a `RedisError`: enter a new one then.
    """

    def __init__(self, cluster: Any, url: str, **options: Any) -> None:
        self._cluster = cluster
        self._url = urlsplit(url.replace(f"{CLUSTER}:", ":", 1))
        self._options = options  # of each connection
        self._nodes: dict[tuple[str, int], Any] = {}  # address -> its client
        self._ears: dict[tuple[str, int], Any] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._heard: asyncio.Queue[dict[str, Any] | Exception] = asyncio.Queue(WAITING)
        self._left: set[str] = set()  # topics that are being unsubscribed

    async def __aenter__(self) -> Self:
        await self._cluster.aclose()  # it learns again which node has which slots
        await self._cluster.initialize()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end(self._tasks)
        for opened in (self._ears, self._nodes):  # a broken connection may refuse to close
            await asyncio.gather(*(each.aclose() for each in opened.values()), return_exceptions=True)

    async def subscribe(self, *topics: str) -> None:
        """Subscribe to each at the node that has its slot; a command takes topics of one slot only."""
        for topic in topics:
            address = self._address(topic)
            if address in self._ears:
                await self._ears[address].ssubscribe(topic)
                continue
            self._nodes[address] = self._client(*address)
            ear = self._ears[address] = self._nodes[address].pubsub()
            await ear.ssubscribe(topic)
            self._tasks.append(asyncio.create_task(self._listen(ear), name="hub fan-out hears a shard"))

    async def unsubscribe(self, *topics: str) -> None:
        """End these subscriptions."""
        for topic in topics:
            address = self._address(topic)
            if address in self._ears:
                self._left.add(topic)
                await self._ears[address].sunsubscribe(topic)

    async def get_message(self, timeout: float) -> dict[str, Any] | None:  # noqa: ASYNC109  as `PubSub` has it
        """The next message of any node, spelled as those of `PubSub`; None when there is none in time."""
        try:
            async with asyncio.timeout(timeout):
                found = await self._heard.get()
        except TimeoutError:
            return None
        if isinstance(found, Exception):
            raise found
        if found["type"] == "sunsubscribe" and found["channel"] not in self._left:
            raise Lost("a slot moved to another node")
        if found["type"] == "sunsubscribe":
            self._left.discard(found["channel"])
        return {**found, "type": found["type"].removeprefix("s")}  # ssubscribe, smessage

    async def _listen(self, ear: Any) -> None:
        try:
            while True:
                message = await ear.get_message(timeout=60)
                if message is not None:
                    await self._heard.put(message)
        except Exception as error:  # noqa: BLE001  whatever it is, it ends the wait for messages
            await self._heard.put(error)

    def _address(self, topic: str) -> tuple[str, int]:
        node = self._cluster.get_node_from_key(topic)
        return node.host, node.port

    def _client(self, host: str, port: int) -> Any:
        user, at, _ = self._url.netloc.rpartition("@")
        here = self._url._replace(netloc=f"{user}{at}{host}:{port}").geturl()
        return Redis.from_url(here, **self._options)  # pyright: ignore[reportUnknownMemberType]  # its keywords are untyped
