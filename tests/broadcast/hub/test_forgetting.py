"""A channel is forgotten: its readers leave it with a last frame, and nothing of its epoch comes back."""

from __future__ import annotations

from runcast.broadcast import Position
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.e2e.stage import a_hub, envelope


async def test_readers_leave_a_forgotten_channel_and_late_envelopes_are_dropped() -> None:
    hub = a_hub()
    await hub.publish(CHANNEL, [envelope(1, 0)])
    pusher, plain = Reader("pusher"), Reader("plain")
    await pusher.come(hub)
    await plain.come(hub, plain=True)
    await hub.erase(CHANNEL)
    assert pusher.frames[-1]["event"] == "agent.forgotten"
    assert (pusher.ended, plain.ended) == (None, 4010)
    assert not hub.watches(CHANNEL)
    await hub.publish(CHANNEL, [envelope(2, 1)])
    assert hub.position(CHANNEL) == Position("", 0)
    assert hub.stats()["remembered"] == 0
    await hub.erase(CHANNEL)  # harmless to repeat
    pusher.subscribe(hub)
    assert hub.watches(CHANNEL)
    await hub.publish(CHANNEL, [envelope(1, 0, epoch="e2")])
    assert hub.position(CHANNEL) == Position("e2", 1)
    await hub.aclose()
