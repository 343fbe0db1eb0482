"""Where envelopes can be sent: one file a target, found by looking. Redis needs its extra and is imported by path."""

from runcast.broadcast.publishers.base import Publisher
from runcast.broadcast.publishers.centrifugo import CentrifugoPublisher
from runcast.broadcast.publishers.memory import MemoryPublisher
from runcast.broadcast.publishers.opening import open_publisher
from runcast.broadcast.publishers.pusher import PusherPublisher

__all__ = ["CentrifugoPublisher", "MemoryPublisher", "Publisher", "PusherPublisher", "open_publisher"]
