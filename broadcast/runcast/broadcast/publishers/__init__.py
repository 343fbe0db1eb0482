"""Targets of envelopes, one file each. Those that need an extra are imported by path."""

from runcast.broadcast.publishers.base import Publisher
from runcast.broadcast.publishers.centrifugo import CentrifugoPublisher
from runcast.broadcast.publishers.memory import MemoryPublisher
from runcast.broadcast.publishers.open_url import open_publisher
from runcast.broadcast.publishers.pusher import PusherPublisher

__all__ = ["CentrifugoPublisher", "MemoryPublisher", "Publisher", "PusherPublisher", "open_publisher"]
