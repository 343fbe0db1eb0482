"""Channels over WebSockets, by the Pusher protocol and in plain JSON."""

from runcast.broadcast.hub.channels import channel_for, session_of
from runcast.broadcast.hub.hub import Hub
from runcast.broadcast.hub.limits import HubLimits
from runcast.broadcast.hub.memory.ring import Replay
from runcast.broadcast.hub.signatures import Position, issue_token, sign_channel

__all__ = [
    "Hub",
    "HubLimits",
    "Position",
    "Replay",
    "channel_for",
    "issue_token",
    "session_of",
    "sign_channel",
]
