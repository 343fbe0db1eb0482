"""A hub and its sockets, without a network: who stays connected, who is caught up with what, and whom an event reaches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from runcast.broadcast import Position, Replay
from runcast.broadcast.hub import hub as hub_module
from runcast.broadcast.hub.protocol import MAY_NOT, NO_PONG, RECONNECT
from runcast.broadcast.hub.signatures import sign_request
from runcast.broadcast.hub.skins import pusher_api
from runcast.broadcast.hub.skins.pusher_api import Api, Request
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.e2e.stage import EPOCH, Log, a_hub, envelope, limits

MARK = "1.0a0a0a0a"


async def becomes(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  tasks of the hub are at work
            await asyncio.sleep(0)


async def rested() -> None:
    """What was ready has run."""
    for _ in range(20):
        await asyncio.sleep(0)


class Gated(Log):
    """A history that answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()
        self.recovers = True

    async def history(self, session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        self.asked.append((position, until))
        await self.may_answer.wait()
        if not self.recovers:
            return Replay(False, self.epoch, self.head)
        self.asked.pop()
        return await super().history(session_id, position, until=until, most=most)


async def test_who_answers_a_ping_stays_and_who_does_not_is_dismissed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(hub_module, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: 0.0))
    hub = a_hub(limits=limits(activity=100, pong=0.04))
    awake, asleep = Reader("awake"), Reader("asleep")
    for each in (awake, asleep):
        await each.come(hub)
    clock.now += 151
    await becomes(lambda: all(each.frames[-1]["event"] == "pusher:ping" for each in (awake, asleep)))
    assert awake.connection is not None
    hub.received(awake.connection, '{"event":"pusher:pong"}')
    clock.now += 1
    pings = len(asleep.frames)
    await becomes(lambda: asleep.ended is not None or len(asleep.frames) > pings)
    assert (asleep.ended, awake.ended) == (4201, None)
    await hub.aclose()


async def test_an_address_that_was_left_has_room_again() -> None:
    hub = a_hub(limits=limits(connections_per_address=1))
    reader = Reader()
    await reader.come(hub)
    assert hub.refuses(origin=None, address="a") is not None
    reader.drop(hub)
    assert hub.refuses(origin=None, address="a") is None
    assert hub.stats()["addresses"] == 0
    await hub.aclose()


async def test_an_event_reaches_all_but_the_socket_that_it_excludes() -> None:
    hub = a_hub()
    here, there = Reader("here"), Reader("there")
    for each in (here, there):
        await each.come(hub)
    assert here.connection is not None
    socket_id = here.connection.socket.socket_id
    await hub.trigger([CHANNEL], "typing", "{}", exclude=socket_id)
    assert [each.frames[-1]["event"] == "typing" for each in (here, there)] == [False, True]
    await hub.aclose()


async def test_an_envelope_of_another_thread_moves_no_channel() -> None:
    hub = a_hub()
    reader = Reader()
    await reader.come(hub)
    foreign = envelope(7, session_id="s2")
    await hub.trigger([CHANNEL], foreign.type, foreign.encode().decode())
    assert hub.position(CHANNEL) == Position("", 0)
    assert reader.frames[-1]["event"] == foreign.type, "it is an event like any other"
    own = envelope(1)
    await hub.trigger([CHANNEL], own.type, own.encode().decode())
    assert hub.position(CHANNEL) == Position(EPOCH, 1)
    await hub.aclose()


async def test_a_copy_of_a_request_closes_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = a_hub()
    api, path = Api(hub), f"/apps/{hub.app_id}/users/u1/terminate_connections"
    query = sign_request("POST", path, b"", key=hub.key, secret=hub.secret, now=1_000)
    answers: list[int] = []
    for now in (1_000, 1_010):
        monkeypatch.setattr(pusher_api, "time", SimpleNamespace(time=lambda now=now: now))
        answers.append((await api.answer(Request("POST", path, query, {}, b"")))[0])
    assert answers == [200, 401]
    await hub.aclose()


async def test_a_copy_that_holds_anything_but_envelopes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher whose answer was lost asks again; whatever else is in a captured request would be published twice."""
    hub = a_hub()
    api, path = Api(hub), f"/apps/{hub.app_id}/batch_events"

    async def twice(*texts: str) -> list[int]:
        events = [{"name": "agent.custom", "channel": CHANNEL, "data": text} for text in texts]
        body = json.dumps({"batch": events}).encode()
        query = sign_request("POST", path, body, key=hub.key, secret=hub.secret, now=1_000)
        answers: list[int] = []
        for now in (1_000, 1_010):
            monkeypatch.setattr(pusher_api, "time", SimpleNamespace(time=lambda now=now: now))
            answers.append((await api.answer(Request("POST", path, query, {}, body)))[0])
        return answers

    one, other = (envelope(seq).encode().decode() for seq in (1, 2))
    assert await twice(one, other) == [200, 200]
    assert await twice(one, "{}") == [200, 401]
    assert await twice("{}") == [200, 401]
    largest = "x" * pusher_api.LARGEST_DATA
    assert (await twice(largest))[0] == 200
    assert (await twice(largest + "x"))[0] == 413
    await hub.aclose()


async def test_nobody_without_a_name_is_let_into_a_presence_channel() -> None:
    hub = a_hub(identify=lambda headers: headers.get("user"))
    api = Api(hub)
    for headers, status in (({"user": "ann"}, 200), ({}, 403), ({"user": ""}, 403)):
        form = b"socket_id=1.2&channel_name=presence-agent.s1"
        answer = await api.answer(Request("POST", "/broadcasting/auth", "", headers, form))
        assert answer[0] == status, headers
    await hub.aclose()


async def test_who_reads_nothing_gets_no_last_word_and_others_do() -> None:
    hub = a_hub()
    for stuck, code, ended in ((True, NO_PONG, 1006), (False, NO_PONG, NO_PONG), (True, MAY_NOT, MAY_NOT)):
        reader = Reader()
        await reader.come(hub)
        reader.stuck = stuck
        assert reader.connection is not None
        hub.dismiss(reader.connection, code, "go")
        assert reader.ended == ended
    await hub.aclose()
    refusal = hub.refuses(origin=None, address="a")
    assert (refusal and refusal.code) == RECONNECT, "who comes to a hub that closes goes to the next one"


async def test_a_late_envelope_of_a_forgotten_thread_reaches_nobody() -> None:
    hub = a_hub()
    await hub.publish(CHANNEL, [envelope(1), envelope(2)])
    await hub.erase(CHANNEL)
    reader = Reader()
    await reader.come(hub)
    await hub.publish(CHANNEL, [envelope(3)])
    await rested()
    assert (reader.last, hub.position(CHANNEL)) == (None, Position("", 0))
    await hub.publish(CHANNEL, [envelope(1, epoch="e2")])
    await rested()
    assert (reader.last, reader.epoch) == (1, "e2")
    await hub.aclose()


# ------------------------------------------------------------------ catching up


async def test_a_reader_whose_history_is_lost_on_the_way_is_sent_away_at_once() -> None:
    """It was promised everything, so that it must not go on without."""
    log = Gated()
    hub = a_hub(history=log.history)
    log.head = 4
    reader = Reader()
    await reader.come(hub, Position(EPOCH, 1))
    await becomes(lambda: bool(log.asked))
    await hub.publish(CHANNEL, [envelope(6, prev=3)])  # begins before 4, where the history ends
    log.may_answer.set()
    await becomes(lambda: reader.last == 4)
    log.recovers = False
    asked = len(log.asked)
    await becomes(lambda: reader.ended is not None or len(log.asked) > asked + 1)
    assert (reader.ended, reader.faults) == (RECONNECT, [])
    await hub.aclose()


async def test_who_has_an_entry_whole_gets_no_rest_of_it() -> None:
    log = Log()
    log.head = 5
    hub = a_hub(history=log.history)
    await hub.publish(CHANNEL, [envelope(4), envelope(5, part=(1, 2))])
    reader = Reader()
    reader.epoch, reader.last = EPOCH, 5
    await reader.come(hub, Position(EPOCH, 5))
    await rested()
    await hub.publish(CHANNEL, [envelope(5, part=(2, 2))])
    await hub.publish(CHANNEL, [envelope(6)])
    await becomes(lambda: reader.last == 6)
    assert reader.faults == []
    await hub.aclose()


async def test_a_reader_that_left_gets_nothing_of_what_was_read_for_it() -> None:
    log = Gated()
    hub = a_hub(history=log.history)
    log.head = 3
    reader = Reader()
    await reader.come(hub, Position(EPOCH, 1))
    await becomes(lambda: bool(log.asked))
    frames = len(reader.frames)
    reader.unsubscribe(hub)
    log.may_answer.set()
    await rested()
    assert len(reader.frames) == frames
    await hub.aclose()


async def test_what_was_published_while_history_was_asked_in_vain_follows_the_greeting() -> None:
    log = Gated()
    log.recovers = False
    hub = a_hub(history=log.history)
    log.head = 4
    reader = Reader()
    await reader.come(hub, Position(EPOCH, 1))
    await becomes(lambda: bool(log.asked))
    await hub.publish(CHANNEL, [envelope(5)])
    log.may_answer.set()
    await becomes(lambda: bool(reader.greetings))
    await rested()
    assert reader.last == 5
    assert [each["recovered"] for each in reader.greetings] == [False]
    await hub.publish(CHANNEL, [envelope(6)])
    assert (reader.last, reader.faults) == (6, [])
    await hub.aclose()


async def test_all_that_is_published_while_one_reader_is_behind_waits_for_it_and_not_for_the_others() -> None:
    log = Gated()
    hub = a_hub(history=log.history)
    here, behind = Reader("here"), Reader("behind")
    await here.come(hub)
    await behind.come(hub, Position(EPOCH, 1))
    behind.last = 1
    log.head = 4
    for seq in (5, 6, 7):
        await hub.publish(CHANNEL, [envelope(seq)])
    assert (here.last, behind.last) == (7, 1)
    log.may_answer.set()
    await becomes(lambda: bool(behind.greetings))
    await rested()
    assert behind.last == 7
    await hub.publish(CHANNEL, [envelope(8)])
    assert (here.last, behind.last, here.faults, behind.faults) == (8, 8, [], [])
    await hub.aclose()


async def test_a_reader_of_a_thread_that_the_hub_does_not_know_waits_for_what_follows() -> None:
    log = Log()
    hub = a_hub(history=log.history)
    reader = Reader()
    reader.epoch, reader.last = EPOCH, 0
    await reader.come(hub, reader.position)
    await becomes(lambda: bool(reader.greetings))
    await rested()
    log.head = 5
    await hub.publish(CHANNEL, [envelope(5)])  # the hub has missed those before it
    await becomes(lambda: reader.last == 5)
    assert reader.faults == []
    await hub.aclose()


async def test_a_position_that_is_read_from_again_is_bound_to_the_history_that_it_came_to() -> None:
    log = Gated()
    hub = a_hub(history=log.history)
    log.head = 2
    reader = Reader()
    await reader.come(hub, Position(EPOCH, 0))
    await becomes(lambda: bool(log.asked))
    log.may_answer.set()
    await becomes(lambda: reader.last == 2)
    log.may_answer.clear()
    marked = replace(envelope(3), mark=MARK)
    log.head = 5
    await hub.publish(CHANNEL, [marked, envelope(5, 4)])
    await becomes(lambda: bool(log.asked) and log.asked[-1][0].offset == 3)
    assert log.asked[-1][0] == Position(EPOCH, 3, MARK)
    log.may_answer.set()
    await hub.aclose()


async def test_a_connection_that_has_ended_leaves_no_task() -> None:
    log = Log()
    hub = a_hub(history=log.history)
    log.head = 3
    await hub.publish(CHANNEL, [envelope(1)])
    before = asyncio.all_tasks()
    reader = Reader()
    await reader.come(hub, Position(EPOCH, 2))  # the log is ahead of the hub: it waits
    await becomes(lambda: reader.last == 3)
    reader.drop(hub)
    await hub.aclose()
    await rested()
    assert asyncio.all_tasks() <= before


async def test_holes_and_connections_that_watch_nothing_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(hub_module, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: 0.0))
    hub = a_hub(limits=limits(unsubscribed=0.04, activity=3_600))
    watching, idle = Reader("watching"), Reader("idle")
    await watching.come(hub)
    idle.connection = hub.open_pusher(idle, address="a")
    for seq, prev in ((1, 0), (2, 1), (5, 4)):
        await hub.publish(CHANNEL, [envelope(seq, prev)])
    clock.now += 1
    await becomes(lambda: idle.ended is not None)
    stats = hub.stats()
    assert (stats["holes"], stats["timeouts"], stats["published"]) == (1, 1, 3)
    assert (watching.ended, hub.stats()["connections"]) == (None, 1)
    await hub.aclose()
