"""Envelopes that leave together are one write for each reader, and never more than fits at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from runcast.broadcast import Hub
from runcast.broadcast.hub.frame_writer import FEW, TOGETHER
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.e2e.stage import Log, a_hub, envelope


class Writes:
    """A skin that counts writes."""

    def __init__(self) -> None:
        self.groups: list[int] = []

    def send(self, transports: Sequence[Reader], texts: Sequence[str]) -> None:
        self.groups.append(len(texts))
        for reader in transports:
            for text in texts:
                reader.take(json.loads(text))


async def reading(hub: Hub, *, plain: bool) -> tuple[Reader, Writes]:
    reader, writes = Reader("reader"), Writes()
    reader.skin = writes  # type: ignore[assignment]
    await reader.come(hub, plain=plain)
    writes.groups.clear()
    return reader, writes


@pytest.mark.parametrize("plain", [True, False])
async def test_a_group_is_one_write(plain: bool):
    hub = a_hub()
    reader, writes = await reading(hub, plain=plain)
    await hub.publish(CHANNEL, [envelope(seq) for seq in (1, 2, 2, 3)])
    assert (writes.groups, reader.last, reader.faults) == ([3], 3, [])
    assert hub.stats()["delivered"] == 3
    assert hub.stats()["doubles"] == 1


async def test_a_group_of_large_ones_is_several_writes():
    hub = a_hub()
    reader, writes = await reading(hub, plain=True)
    await hub.publish(CHANNEL, [envelope(seq, text="x" * 40_000) for seq in (1, 2, 3)])
    assert (writes.groups, reader.last, reader.faults) == ([1, 1, 1], 3, [])


async def test_what_came_before_another_history_leaves_before_the_greeting():
    hub = a_hub()
    reader, writes = await reading(hub, plain=False)
    await hub.publish(
        CHANNEL, [envelope(1), envelope(2), envelope(1, epoch="other"), envelope(2, epoch="other")]
    )
    assert writes.groups == [2, 1, 2], "two envelopes, the greeting, two of the new history"
    assert (reader.epoch, reader.last, reader.faults) == ("other", 2, [])


async def test_a_hole_is_mended_between_what_leaves_before_and_behind_it():
    log = Log()
    hub = a_hub(history=log.history)
    reader, _ = await reading(hub, plain=False)
    log.head = 6
    await hub.publish(CHANNEL, [envelope(1), envelope(2), envelope(5), envelope(6)])
    assert reader.last == 2
    async with asyncio.timeout(30):
        while reader.last != 6:  # noqa: ASYNC110  the history answers in a task
            await asyncio.sleep(0)
    assert reader.faults == []


async def crowd(hub: Hub, count: int) -> tuple[list[Reader], Writes]:
    """So many readers of one skin, half of them in plain JSON."""
    writes = Writes()
    readers = [Reader(f"reader {at}") for at in range(count)]
    for at, reader in enumerate(readers):
        reader.skin = writes  # type: ignore[assignment]
        await reader.come(hub, plain=at % 2 == 0)
    writes.groups.clear()
    return readers, writes


async def all_have(readers: Sequence[Reader], seq: int) -> None:
    async with asyncio.timeout(60):
        while any(reader.last != seq for reader in readers):  # noqa: ASYNC110  a timer writes
            await asyncio.sleep(0.001)
    assert [fault for reader in readers for fault in reader.faults] == []


async def test_envelopes_of_a_moment_are_one_write_for_each_of_many_readers():
    hub = a_hub()
    readers, writes = await crowd(hub, FEW + 1)
    for seq in (1, 2, 3):
        await hub.publish(CHANNEL, [envelope(seq)])
    assert writes.groups == [], "written when the moment is over"
    await all_have(readers, 3)
    assert writes.groups == [3, 3], "for the readers of either mode"
    assert hub.stats()["delivered"] == 3 * len(readers)


async def test_a_few_readers_wait_for_nothing():
    hub = a_hub()
    readers, writes = await crowd(hub, FEW)
    for seq in (1, 2):
        await hub.publish(CHANNEL, [envelope(seq)])
    assert {reader.last for reader in readers} == {2}
    assert writes.groups == [1, 1, 1, 1]


async def test_what_waits_leaves_before_it_is_too_much():
    hub = a_hub()
    readers, _ = await crowd(hub, FEW + 1)
    for seq in (1, 2):
        await hub.publish(CHANNEL, [envelope(seq, text="x" * (TOGETHER // 2))])
    assert {reader.last for reader in readers} == {2}
    assert hub.stats()["slow_cuts"] == 0


async def test_who_comes_or_goes_in_that_moment_has_each_envelope_once():
    hub = a_hub()
    readers, _ = await crowd(hub, FEW + 3)
    await hub.publish(CHANNEL, [envelope(1)])
    late = Reader("late")
    await late.come(hub)
    await hub.publish(CHANNEL, [envelope(2)])
    again = readers[1]
    again.unsubscribe(hub)
    again.subscribe(hub, again.position)
    await hub.publish(CHANNEL, [envelope(3)])
    readers[3].drop(hub)
    await all_have([late, *readers[:3], *readers[4:]], 3)
    assert readers[3].last == 2, "who has gone is written to no more"


async def test_a_reader_that_does_not_read_is_cut_off_and_the_others_have_everything():
    hub = a_hub()
    readers, _ = await crowd(hub, FEW + 2)
    readers[5].stuck = True
    await hub.publish(CHANNEL, [envelope(1)])
    await hub.publish(CHANNEL, [envelope(2)])
    await all_have([reader for reader in readers if not reader.stuck], 2)
    assert (readers[5].ended, hub.stats()["slow_cuts"]) == (1006, 1)


async def test_a_closing_hub_writes_what_waits():
    hub = a_hub()
    readers, _ = await crowd(hub, FEW + 1)
    await hub.publish(CHANNEL, [envelope(1)])
    await hub.aclose()
    assert {(reader.last, reader.ended) for reader in readers} == {(1, 4200)}


async def test_another_event_of_the_channel_does_not_overtake():
    hub = a_hub()
    readers, _ = await crowd(hub, FEW + 1)
    await hub.publish(CHANNEL, [envelope(1)])
    await hub.trigger([CHANNEL], "news", "{}")
    assert [frame.get("event") for frame in readers[1].frames][-2:] == ["agent.custom", "news"]
    assert {reader.last for reader in readers} == {1}
