"""The target in this process."""

from __future__ import annotations

import pytest

from runcast.broadcast import Envelope, MemoryPublisher, Publisher
from tests.broadcast.publishers.contract import Place, PublisherContract


async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
    assert isinstance(publisher, MemoryPublisher)
    return publisher.envelopes(channel)


class TestMemory(PublisherContract):
    @pytest.fixture
    def place(self) -> Place:
        return Place("memory://", arrived)
