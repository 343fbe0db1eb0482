"""Who is on a channel and gets what: by which name, in which mode, and who hears of the first and the last."""

from __future__ import annotations

import json
from typing import Any

from runcast.broadcast import Hub, Position, sign_channel
from runcast.broadcast.hub.protocol import PlainRequest
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.broadcast.hub.test_hub import becomes
from tests.e2e.stage import EPOCH, a_hub, envelope

ROOM = "presence-room"
CACHE = "private-cache-news"


def watched(hub: Hub) -> list[tuple[str, bool]]:
    """What the hub says of channels that get their first reader, or lose their last."""
    said: list[tuple[str, bool]] = []
    hub.on_watch.append(lambda channel, first: said.append((channel, first)))
    return said


async def on(hub: Hub, channel: str, data: dict[str, Any] | None = None, *, name: str = "") -> Reader:
    """A Pusher client on a channel of one's choice."""
    reader = Reader(name or channel)
    reader.connection = hub.open_pusher(reader, address="a")
    subscribe(hub, reader, channel, data)
    return reader


def subscribe(hub: Hub, reader: Reader, channel: str, data: dict[str, Any] | None = None) -> None:
    assert reader.connection is not None
    text = None if data is None else json.dumps(data)
    socket_id = reader.connection.socket.socket_id
    auth = sign_channel(socket_id, channel, key=hub.key, secret=hub.secret, channel_data=text)
    content = {"channel": channel, "auth": auth, **({} if text is None else {"channel_data": text})}
    hub.received(reader.connection, json.dumps({"event": "pusher:subscribe", "data": content}))


def events(reader: Reader) -> list[str]:
    return [each.get("event", each.get("type")) for each in reader.frames]


async def test_the_first_reader_and_the_last_are_noticed() -> None:
    hub = a_hub()
    said = watched(hub)
    one, other = Reader("one"), Reader("other")
    await one.come(hub)
    await other.come(hub, plain=True)
    one.unsubscribe(hub)
    one.unsubscribe(hub)
    assert (said, hub.watches(CHANNEL)) == ([(CHANNEL, True)], True)
    other.drop(hub)
    assert (said, hub.watches(CHANNEL)) == ([(CHANNEL, True), (CHANNEL, False)], False)
    await one.come(hub)
    await hub.publish(CHANNEL, [envelope(1)])
    await hub.erase(CHANNEL)
    assert said[2:] == [(CHANNEL, True), (CHANNEL, False)]
    assert hub.occupied() == {}
    await hub.aclose()


async def test_a_socket_that_stays_gets_nothing_of_a_channel_that_it_has_left() -> None:
    hub = a_hub()
    stays, leaves = Reader("stays"), Reader("leaves")
    await stays.come(hub)
    await leaves.come(hub)
    await hub.publish(CHANNEL, [envelope(1)])
    leaves.unsubscribe(hub)
    await hub.publish(CHANNEL, [envelope(2)])
    assert (stays.last, leaves.last) == (2, 1)
    leaves.subscribe(hub, leaves.position)
    await hub.publish(CHANNEL, [envelope(3)])
    assert (stays.last, leaves.last, stays.faults, leaves.faults) == (3, 3, [], [])
    await hub.aclose()


async def test_an_event_that_is_no_envelope_reaches_pusher_clients_alone() -> None:
    hub = a_hub()
    plain, pusher = Reader("plain"), Reader("pusher")
    await plain.come(hub, plain=True)
    await pusher.come(hub)
    await hub.trigger([CHANNEL], "typing", "{}")
    assert (events(plain), events(pusher)[-1]) == (["hub.subscribed"], "typing")
    assert hub.stats()["delivered"] == 1
    await hub.publish(CHANNEL, [envelope(1)])
    assert (plain.last, pusher.last) == (1, 1)
    assert hub.stats()["delivered"] == 3
    await hub.aclose()


async def test_a_forgotten_thread_ends_plain_sockets_and_sends_the_others_away() -> None:
    hub = a_hub()
    plain, pusher = Reader("plain"), Reader("pusher")
    await plain.come(hub, plain=True)
    await pusher.come(hub)
    await hub.publish(CHANNEL, [envelope(1)])
    await hub.erase(CHANNEL)
    assert (plain.ended, pusher.ended) == (4010, None)
    assert (events(plain)[-1], events(pusher)[-1]) == ("agent.custom", "agent.forgotten")
    await hub.publish(CHANNEL, [envelope(2)])
    assert hub.position(CHANNEL) == Position("", 0), "late envelopes of that epoch are dropped"
    pusher.subscribe(hub)
    assert events(pusher)[-1] == "pusher_internal:subscription_succeeded", "it may come again"
    await hub.publish(CHANNEL, [envelope(1, epoch="anew")])
    assert hub.position(CHANNEL) == Position("anew", 1)
    await hub.aclose()


async def test_a_reader_is_on_a_channel_once_whatever_name_it_asks_for() -> None:
    hub = a_hub()
    reader = await on(hub, CHANNEL)
    subscribe(hub, reader, CHANNEL)
    assert hub.stats()["subscriptions"] == 1
    assert hub.occupied() == {CHANNEL: 1}
    await hub.aclose()


async def test_members_come_and_go_once_however_many_sockets_they_have() -> None:
    hub = a_hub()
    ann, bob = ({"user_id": name, "user_info": {"name": name}} for name in ("ann", "bob"))
    first, second, other = [await on(hub, ROOM, each) for each in (ann, ann, bob)]
    added = [each for each in first.frames if each["event"] == "pusher_internal:member_added"]
    assert [json.loads(each["data"]) for each in added] == [bob]
    assert "pusher_internal:member_added" not in events(other), "nobody hears of itself"
    presence = json.loads(other.frames[-1]["data"])["presence"]
    assert (presence["count"], sorted(presence["ids"])) == (2, ["ann", "bob"])
    assert presence["hash"] == {"ann": {"name": "ann"}, "bob": {"name": "bob"}}
    assert hub.members(ROOM) == presence["hash"]
    second.drop(hub)
    assert "pusher_internal:member_removed" not in events(other), "another socket of hers is there"
    first.drop(hub)
    assert json.loads(other.frames[-1]["data"]) == {"user_id": "ann"}
    await hub.aclose()


async def test_a_user_is_put_out_of_presence_channels_too_and_of_no_other() -> None:
    hub = a_hub()
    ann, bob = [await on(hub, ROOM, {"user_id": name}, name=name) for name in ("ann", "bob")]
    hub.terminate("ann")
    assert (ann.ended, bob.ended) == (4009, None)
    await hub.aclose()


async def test_a_cache_channel_gives_newcomers_its_last_event() -> None:
    hub = a_hub()
    assert events(await on(hub, CACHE))[-1] == "pusher:cache_miss"
    for text in ('{"n":1}', '{"n":2}'):
        await hub.trigger([CACHE], "news", text)
    late = await on(hub, CACHE)
    assert late.frames[-1] == {"event": "news", "channel": CACHE, "data": '{"n":2}'}
    await hub.aclose()


async def test_a_greeting_says_where_the_snapshot_is_only_to_who_cannot_be_caught_up() -> None:
    hub = a_hub(snapshot_url="https://host/threads/{session_id}/state")
    await hub.publish(CHANNEL, [envelope(3, 2)])
    new, behind, here = Reader("new"), Reader("behind"), Reader("here")
    await new.come(hub)
    await behind.come(hub, Position(EPOCH, 1))
    await here.come(hub, Position(EPOCH, 3))
    await becomes(lambda: bool(behind.greetings))
    assert [each.greetings[0].get("snapshot") for each in (new, behind, here)] == [
        None,
        "https://host/threads/s1/state",
        None,
    ]
    assert [each.greetings[0]["was_recovering"] for each in (new, behind, here)] == [False, True, True]
    stats = hub.stats()
    assert (stats["recovered"], stats["not_recovered"]) == (1, 1)
    await hub.aclose()


async def test_a_plain_socket_may_name_a_thread_by_its_channel() -> None:
    hub = a_hub()
    said = watched(hub)
    reader = Reader()
    await hub.open_plain(reader, PlainRequest("agent.s1", "s1", None), address="a", headers={})
    assert said == [(CHANNEL, True)]
    await hub.publish(CHANNEL, [envelope(1)])
    assert reader.last == 1
    await hub.aclose()
