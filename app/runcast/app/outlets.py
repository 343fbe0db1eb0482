"""Where a cast's entries go: its own hub, Redis for the hubs of other nodes, and engines elsewhere.

Knows how they are put together; does not know runs. What goes to the hub and to Redis is mapped once, so that a node's
own watchers and everybody else's see the same envelopes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runcast.app.tenants import coded
from runcast.broadcast import BroadcastConfig, Broadcaster, Hub, LogHistory, Publisher, open_publisher

if TYPE_CHECKING:
    from runcast.app.auth import Door
    from runcast.broadcast.hub.fanout import RedisFanout
    from runcast.slim import RunLog

PREFIX = "runcast:"


@dataclass(frozen=True, slots=True)
class Outlets:
    """Everybody who is told of this process's runs, and who is told of others'."""

    everybody: Sequence[Broadcaster]
    near: Broadcaster | None  # to the hub alone
    fanout: RedisFanout | None
    redis: Broadcaster | None  # the one of `everybody` that was made here

    async def aclose(self) -> None:
        """Send what waits, and let go of all."""
        if self.fanout is not None:
            await self.fanout.aclose()
        for each in {*self.everybody, *(() if self.near is None else (self.near,))}:
            await each.aclose()


def outlets(
    broadcaster: Broadcaster | None,
    hub: Hub | None,
    *,
    config: BroadcastConfig | None,
    redis: str | None,
    tenant: str,
) -> Outlets:
    """A broadcaster that was given, and what is missing beside it."""
    near = None if hub is None else Broadcaster(hub, config=config, prefix=hub.prefix)
    given = [] if broadcaster is None else [broadcaster]
    targets = () if broadcaster is None else broadcaster.publishers
    missing: list[Publisher] = [] if hub is None or hub in targets else [hub]
    if redis is None:
        alone = [near] if near is not None and missing else []
        return Outlets([*given, *alone], near, None, None)
    prefix = prefix_of(tenant)
    if not any(each.name == "redis" for each in targets):
        missing.append(_redis(redis, prefix))
    own = _joined(missing, hub, config) if missing else None
    from runcast.broadcast.hub.fanout import RedisFanout

    fanout = None if hub is None else RedisFanout(hub, redis, prefix=prefix)
    return Outlets([*given, *([] if own is None else [own])], near, fanout, own)


def elsewhere(url: str, hub: Hub | None, redis: str | None, config: BroadcastConfig | None) -> Broadcaster:
    """One broadcaster for an engine elsewhere, the hub and Redis: mapped and rolled up once, delivered apart."""
    targets: list[Publisher] = [] if hub is None else [hub]
    if redis is not None:
        targets.append(_redis(redis, PREFIX))
    return _joined([*targets, open_publisher(url)], hub, config)


def prefix_of(tenant: str) -> str:
    """What a tenant's keys begin with in Redis; no other pattern finds them."""
    return f"{PREFIX}@{coded(tenant)}:" if tenant else PREFIX


def _joined(targets: list[Publisher], hub: Hub | None, config: BroadcastConfig | None) -> Broadcaster:
    if hub is None:
        return Broadcaster(targets, config=config)
    return Broadcaster(targets, config=config, prefix=hub.prefix)


def _redis(url: str, prefix: str) -> Publisher:
    from runcast.broadcast.publishers.redis import RedisPublisher

    return RedisPublisher(url, prefix=prefix)


def own_hub(log: RunLog, config: BroadcastConfig | None, door: Door, secret: str | None = None) -> Hub:
    """A hub that asks the same door as HTTP does."""
    history = LogHistory(log, config=config)
    return Hub(
        "runcast",
        "runcast",
        secret or secrets.token_hex(32),
        authorize=door.allows,
        identify=door.who,
        history=history,
    )
