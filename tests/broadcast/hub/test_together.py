"""Envelopes that leave together are one write for each reader, and never more than fits at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from runcast.broadcast import Hub
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
