"""Envelopes of a run, the publishers that send them, and the hub that serves them to browsers."""

from typing import TYPE_CHECKING

from runcast.slim.on_demand import on_demand

if TYPE_CHECKING:
    from runcast.broadcast.broadcaster import Broadcaster
    from runcast.broadcast.config import BroadcastConfig
    from runcast.broadcast.envelopes.budget import HUB, PUSHER, REVERB, SOKETI, Budget
    from runcast.broadcast.envelopes.envelope import Envelope, fit
    from runcast.broadcast.envelopes.mapper import EnvelopeMapper
    from runcast.broadcast.envelopes.rollup import Coalescer
    from runcast.broadcast.errors import (
        BroadcastError,
        ConfigError,
        HubError,
        PublishError,
        TooLarge,
        WrongSettings,
    )
    from runcast.broadcast.history import LogHistory, Stretch
    from runcast.broadcast.hub import Hub, HubLimits, Position, Replay, channel_for, issue_token, sign_channel
    from runcast.broadcast.publishers import (
        CentrifugoPublisher,
        MemoryPublisher,
        Publisher,
        PusherPublisher,
        open_publisher,
    )
    from runcast.broadcast.reader import Reader, Take
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "broadcaster": "Broadcaster",
            "config": "BroadcastConfig",
            "envelopes.budget": "HUB PUSHER REVERB SOKETI Budget",
            "envelopes.envelope": "Envelope fit",
            "envelopes.mapper": "EnvelopeMapper",
            "envelopes.rollup": "Coalescer",
            "errors": "BroadcastError ConfigError HubError PublishError TooLarge WrongSettings",
            "history": "LogHistory Stretch",
            "hub": "Hub HubLimits Position Replay channel_for issue_token sign_channel",
            "publishers": "CentrifugoPublisher MemoryPublisher Publisher PusherPublisher open_publisher",
            "reader": "Reader Take",
        },
    )

__all__ = [
    "HUB",
    "PUSHER",
    "REVERB",
    "SOKETI",
    "BroadcastConfig",
    "BroadcastError",
    "Broadcaster",
    "Budget",
    "CentrifugoPublisher",
    "Coalescer",
    "ConfigError",
    "Envelope",
    "EnvelopeMapper",
    "Hub",
    "HubError",
    "HubLimits",
    "LogHistory",
    "MemoryPublisher",
    "Position",
    "PublishError",
    "Publisher",
    "PusherPublisher",
    "Reader",
    "Replay",
    "Stretch",
    "Take",
    "TooLarge",
    "WrongSettings",
    "channel_for",
    "fit",
    "issue_token",
    "open_publisher",
    "sign_channel",
]
