"""Where a cast's entries go: its own hub, Redis for the hubs of other nodes, and external engines.

Knows how publishers are combined; does not know runs. Entries for the hub and for Redis are mapped once, so that the
watchers of this node and of others get the same envelopes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runcast.app.tenants.tenant_adapter import coded
from runcast.broadcast import BroadcastConfig, Broadcaster, Hub, LogHistory, Publisher, open_publisher

if TYPE_CHECKING:
    from runcast.app.tenants.access_policy import AccessPolicy
    from runcast.broadcast.hub.fanout import RedisFanout
    from runcast.slim import RunLog

PREFIX = "runcast:"


@dataclass(frozen=True, slots=True)
class Outlets:
    """The broadcasters of this process's runs, and of other nodes' runs."""

    all: Sequence[Broadcaster]
    local: Broadcaster | None  # to the hub alone
    fanout: RedisFanout | None
    redis: Broadcaster | None  # the one of `all` that was made here

    async def aclose(self) -> None:
        """Send what waits, then close everything."""
        if self.fanout is not None:
            await self.fanout.aclose()
        for each in {*self.all, *(() if self.local is None else (self.local,))}:
            await each.aclose()


def outlets(
    broadcaster: Broadcaster | None,
    hub: Hub | None,
    *,
    config: BroadcastConfig | None,
    redis: str | None,
    tenant: str,
) -> Outlets:
    """The given broadcaster, and those for the targets it does not have."""
    local = None if hub is None else Broadcaster(hub, config=config, prefix=hub.prefix)
    given = [] if broadcaster is None else [broadcaster]
    targets = () if broadcaster is None else broadcaster.publishers
    missing: list[Publisher] = [] if hub is None or hub in targets else [hub]
    if redis is None:
        alone = [local] if local is not None and missing else []
        return Outlets([*given, *alone], local, None, None)
    prefix = prefix_of(tenant)
    if not any(each.name == "redis" for each in targets):
        missing.append(_redis(redis, prefix))
    own = _joined(missing, hub, config) if missing else None
    from runcast.broadcast.hub.fanout import RedisFanout

    fanout = None if hub is None else RedisFanout(hub, redis, prefix=prefix)
    return Outlets([*given, *([] if own is None else [own])], local, fanout, own)


def elsewhere(url: str, hub: Hub | None, redis: str | None, config: BroadcastConfig | None) -> Broadcaster:
    """One broadcaster for an external engine, the hub and Redis: mapped once, delivered separately."""
    targets: list[Publisher] = [] if hub is None else [hub]
    if redis is not None:
        targets.append(_redis(redis, PREFIX))
    return _joined([*targets, open_publisher(url)], hub, config)


def prefix_of(tenant: str) -> str:
    """The prefix of a tenant's keys in Redis; no pattern of another tenant matches it."""
    return f"{PREFIX}@{coded(tenant)}:" if tenant else PREFIX


def _joined(targets: list[Publisher], hub: Hub | None, config: BroadcastConfig | None) -> Broadcaster:
    if hub is None:
        return Broadcaster(targets, config=config)
    return Broadcaster(targets, config=config, prefix=hub.prefix)


def _redis(url: str, prefix: str) -> Publisher:
    from runcast.broadcast.publishers.redis import RedisPublisher

    return RedisPublisher(url, prefix=prefix, sharded=True)


def own_hub(
    log: RunLog, config: BroadcastConfig | None, access: AccessPolicy, secret: str | None = None
) -> Hub:
    """A hub with the access policy of HTTP."""
    return Hub(
        "runcast",
        "runcast",
        secret or secrets.token_hex(32),
        authorize=access.allows,
        identify=access.who,
        history=LogHistory(log, config=config),
    )
