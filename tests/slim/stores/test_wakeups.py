"""Wake-ups by topic: each watcher for its own, and nothing is kept of one that has left."""

from __future__ import annotations

import asyncio

from runcast.slim.stores.records import Key
from runcast.slim.stores.wakeups import Wakeups, Watcher, box_topic, thread_topic


def test_topics_are_short_and_differ() -> None:
    keys = [Key("", "ab"), Key("a", "b"), Key("ab", ""), Key("a", "\ud800")]
    topics = {*map(thread_topic, keys), box_topic("ab"), box_topic("")}
    assert {len(each) for each in topics} == {32}
    assert len(topics) == 6


async def woken(*watchers: Watcher) -> list[bool]:
    """Which of them return at once."""
    waits = [asyncio.ensure_future(each.wait()) for each in watchers]
    for _ in range(3):
        await asyncio.sleep(0)
    found = [each.done() for each in waits]
    for each in waits:
        each.cancel()
    return found


async def test_a_watcher_wakes_for_its_topics_while_it_is_there() -> None:
    wakeups = Wakeups()
    one, both, other = wakeups.watch("a"), wakeups.watch("a", "b"), wakeups.watch("c")
    assert len(wakeups) == 4
    wakeups.wake("nobody's")
    assert await woken(one, both, other) == [False, False, False]
    wakeups.wake("a")
    wakeups.wake("a")
    assert await woken(one, both, other) == [True, True, False]
    assert await woken(one, both, other) == [False, False, False], "several wake-ups are one"
    one.close()
    one.close()
    assert len(wakeups) == 3
    wakeups.wake("a")
    assert await woken(one, both) == [False, True]
    both.close()
    other.close()
    assert len(wakeups) == 0
    wakeups.wake_all()
    assert await woken(one, both, other) == [False, False, False]
    again = wakeups.watch("a", "b")
    wakeups.wake_all()
    assert await woken(again) == [True]
