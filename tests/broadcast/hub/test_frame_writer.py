"""What is written to a reader and what it may leave unread, to the byte; and what waits while it is caught up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runcast.broadcast import Position
from runcast.broadcast.hub.connection import Behind, Connection
from runcast.broadcast.hub.frame_writer import FEW, TOGETHER, Rounds, Writer
from runcast.broadcast.hub.limits import HubLimits, HubStats
from runcast.broadcast.hub.memory.ring import Kept
from runcast.broadcast.hub.protocol import PlainSocket, PusherSocket
from tests.broadcast.hub.fakes import CHANNEL
from tests.e2e.stage import EPOCH, envelope

BUFFER = 1_000


class Wire:
    """A socket that has taken nothing yet of so many bytes."""

    def __init__(self, unread: int = 0) -> None:
        self.unread = unread
        self.texts: list[str] = []
        self.aborted = False
        self.skin: Any = self

    def send(self, transports: list[Wire], texts: list[str]) -> None:
        for each in transports:
            each.texts += texts

    def buffered(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.aborted = True


def connection(unread: int = 0, *, plain: bool = True) -> Connection:
    socket = (
        PlainSocket("1", CHANNEL, limits=HubLimits())
        if plain
        else PusherSocket("1.1", key="k", secret="s", limits=HubLimits(), client_events=False, public=False)
    )
    return Connection(socket, Wire(unread), "a", 0.0, 0.0)


def kept(seq: int, **more: Any) -> Kept:
    one = envelope(seq, **more)
    return Kept(one, one.encode(), 0.0)


def a_writer(
    buffer: int = BUFFER, event_name: str | None = None
) -> tuple[Writer, HubStats, list[Connection]]:
    stats, gone = HubStats(), list[Connection]()

    def ended(each: Connection) -> None:
        gone.append(each)
        each.end()

    return Writer(buffer=buffer, event_name=event_name, stats=stats, gone=ended), stats, gone


@pytest.mark.parametrize("text", ["x" * 100, "\u00e4" * 50])
def test_a_reader_may_leave_as_much_unread_as_the_buffer_holds(text: str) -> None:
    writer, stats, gone = a_writer()
    fits, full = connection(BUFFER - 100), connection(BUFFER - 99)
    writer.send([fits, full], text)
    assert (fits.transport.texts, full.transport.texts) == ([text], [])  # type: ignore[attr-defined]
    assert gone == [full]
    assert full.transport.aborted  # type: ignore[attr-defined]
    assert (stats.slow_cuts, stats.bytes_out) == (1, 100)
    writer.send([full, fits], "x")
    assert stats.slow_cuts == 1, "who has gone is written to no more"
    assert stats.bytes_out == 101


def test_what_waits_for_a_reader_is_bounded_like_what_it_leaves_unread() -> None:
    size = len(kept(1).body)
    for buffer, cut in ((2 * size, False), (2 * size - 1, True)):
        writer, stats, _ = a_writer(buffer)
        reader = connection()
        writer.hold(reader, CHANNEL, kept(1))
        assert reader.held == 0, "it is not behind"
        behind = reader.fall_behind(CHANNEL, greeted=True)
        for seq in (1, 2):
            writer.hold(reader, CHANNEL, kept(seq))
        assert (reader.gone, stats.slow_cuts) == (cut, int(cut))
        assert behind.more.is_set()
        assert reader.held == (0 if cut else 2 * size)


def test_each_mode_has_its_own_frame() -> None:
    for name, event in ((None, "agent.custom"), ("agent.event", "agent.event")):
        writer, stats, _ = a_writer(10_000, name)
        plain, pusher, old = connection(), connection(plain=False), connection(plain=False)
        old.names[CHANNEL] = "private-agent.old"
        writer.names[CHANNEL] = {"private-agent.old"}
        one = kept(1)
        writer.send_kept([plain, pusher, old], CHANNEL, [one])
        texts: list[Any] = [each.transport.texts for each in (plain, pusher, old)]  # type: ignore[attr-defined]
        assert texts[0] == [one.body.decode()]
        assert f'"event":"{event}"' in texts[1][0].replace(" ", "")
        assert [CHANNEL in texts[1][0], "private-agent.old" in texts[2][0]] == [True, True]
        assert [len(each) for each in texts] == [1, 1, 1]
        assert stats.delivered == 3


def test_nothing_is_delivered_behind_an_end() -> None:
    writer, stats, _ = a_writer(len(kept(1).body))
    reader = connection()
    writer.deliver(reader, CHANNEL, [])
    reader.end()
    writer.deliver(reader, CHANNEL, [kept(1), kept(2)])
    writer.send_kept([], CHANNEL, [kept(1)])
    assert (stats.delivered, stats.bytes_out) == (0, 0)
    writer.cut_off(reader)
    assert stats.slow_cuts == 0


# ------------------------------------------------------------------ a round


async def test_a_round_is_written_when_it_is_too_much_or_others_are_there() -> None:
    writer, stats, _ = a_writer(10 * TOGETHER)
    rounds, many = Rounds(writer), [connection() for _ in range(FEW + 1)]
    rounds.add(CHANNEL, many[:FEW], [kept(1)])
    assert stats.delivered == FEW, "a few wait for nothing"
    rounds.add(CHANNEL, many, [kept(2)])
    rounds.add("another", many, [kept(1)])
    assert stats.delivered == FEW
    rounds.add(CHANNEL, many[1:], [kept(3)])
    assert stats.delivered == FEW + len(many) + FEW, "the round of those before, then that of a few"
    rounds.add(CHANNEL, many, [kept(4, text="x" * TOGETHER)])
    assert stats.delivered == 2 * FEW + 2 * len(many), "it is too much to wait"
    rounds.leave_all()
    rounds.leave_all()
    assert stats.delivered == 2 * FEW + 3 * len(many)


async def test_a_round_leaves_by_itself() -> None:
    writer, stats, _ = a_writer(10 * TOGETHER)
    rounds, many = Rounds(writer), [connection() for _ in range(FEW + 1)]
    rounds.add(CHANNEL, many, [kept(1)])
    async with asyncio.timeout(30):
        while not stats.delivered:  # noqa: ASYNC110  its timer is not ours
            await asyncio.sleep(0.001)
    assert stats.delivered == len(many)


# ------------------------------------------------------------------- behind


def test_of_what_waits_a_reader_takes_what_continues_from_its_place() -> None:
    behind = Behind(greeted=True)
    behind.waiting = [kept(2), kept(3, epoch="other"), kept(3), kept(4), kept(6, prev=5)]
    behind.more.set()
    assert [each.envelope.seq for each in behind.next_ones(Position(EPOCH, 2))] == [3, 4]
    assert not behind.more.is_set()
    assert [each.envelope.seq for each in behind.waiting] == [6]
    assert behind.next_ones(Position(EPOCH, 4)) == []
    assert behind.next_ones(Position("other", 5)) == []
    assert behind.waiting == [], "what is of another history is not for this reader"


async def test_a_connection_ends_with_its_tasks() -> None:
    reader, ended = connection(), asyncio.Event()

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    reader.spawn(works())
    await asyncio.sleep(0)
    reader.fall_behind(CHANNEL, greeted=False)
    reader.end()
    async with asyncio.timeout(30):
        await ended.wait()
    assert (reader.gone, reader.behind(CHANNEL)) == (True, None)
