"""The bounds of a hub, each enforced and counted."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from runcast.broadcast.errors import ConfigError

_FRAMES = 65_536  # what surrounds the envelopes of one replay


@dataclass(frozen=True, slots=True)
class HubLimits:
    """Bounds of a hub. Times are seconds, sizes bytes."""

    connections: int = 10_000
    connections_per_address: int = 1_000  # behind a proxy all have the proxy's: see docs/laravel.md
    subscriptions: int = 100  # per connection
    frame: int = 16_384  # inbound
    client_events: int = 10  # per second and connection
    strikes: int = 10  # malformed frames and wrong proofs a minute before a connection is closed
    buffer: int = 1_048_576  # outbound, per connection: a reader beyond it is cut off and can catch up
    activity: float = 30  # silence after which the client is pinged
    pong: float = 30  # time to answer a ping
    unsubscribed: float = 30  # time that a connection may be in no channel
    replay: int = 300  # envelopes replayed on a subscribe; beyond it a reader takes the snapshot
    replay_bytes: int = 491_520
    ring: int = 1_000  # envelopes a channel remembers
    ring_bytes: int = 1_048_576
    ring_age: float = 3_600
    channels: int = 10_000  # channels remembered; quiet ones without watchers are forgotten first
    memory: int = 268_435_456  # that all channels remember together
    origins: tuple[str, ...] = ("*",)  # allowed Origin headers; requests without one are not browsers

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "origins" and value <= 0:
                raise ConfigError(f"{each.name} is {value}; it must be above 0")
        # A replay travels as a string inside JSON: escaping at most doubles it, and it must not cut its reader off.
        if self.buffer < 2 * self.replay_bytes + _FRAMES:
            raise ConfigError(
                f"a buffer of {self.buffer} bytes cannot take a replay of {self.replay_bytes}; "
                f"it must be at least {2 * self.replay_bytes + _FRAMES}"
            )


@dataclass(slots=True)
class HubStats:
    """Counts of a hub since the start."""

    opened: int = 0  # connections let in
    refused: int = 0  # connections refused by a limit or an origin
    subscriptions: int = 0
    auth_failures: int = 0
    limited: int = 0  # subscriptions and client events that were refused
    bad_frames: int = 0
    published: int = 0
    delivered: int = 0
    bytes_out: int = 0
    recovered: int = 0
    not_recovered: int = 0
    slow_cuts: int = 0
    timeouts: int = 0
    struck_out: int = 0
    whispers: int = 0
    doubles: int = 0  # envelopes published twice and delivered once
    holes: int = 0  # published envelopes that did not follow the last one
    restarts: int = 0  # channels whose thread began anew under another epoch
    history_errors: int = 0
    authorize_errors: int = 0
    closes: dict[int, int] = field(default_factory=dict[int, int])

    def closed(self, code: int) -> None:
        """Count a close by its code."""
        self.closes[code] = self.closes.get(code, 0) + 1
