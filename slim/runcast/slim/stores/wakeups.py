"""Wake-ups of the watchers in one process, by topic.

Knows topics and their watchers; does not know the source of a wake-up: a commit of this process, or a notification of
the database.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b

from runcast.slim.stores.records import Key


def thread_topic(key: Key) -> str:
    """The topic of a thread, short enough for the payload of a notification."""
    return _short(f"{len(key.tenant)}:{key.tenant}{key.thread_id}")


def box_topic(box: str) -> str:
    """The topic of a box of notes, different from that of any thread."""
    return _short(f"box {box}")


def _short(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Wakeups:
    """The watchers of one process."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Watcher]] = {}

    def watch(self, *topics: str) -> Watcher:
        """A new watcher of these topics."""
        watcher = Watcher(self, topics)
        for topic in topics:
            self._watchers.setdefault(topic, set()).add(watcher)
        return watcher

    def wake(self, topic: str) -> None:
        """Wake the watchers of a topic."""
        for watcher in self._watchers.get(topic, ()):
            watcher.woken.set()

    def wake_all(self) -> None:
        """Wake all watchers: the topic of the change is not known."""
        for topic in self._watchers:
            self.wake(topic)

    def forget(self, watcher: Watcher) -> None:
        """Remove a watcher."""
        for topic in watcher.topics:
            watchers = self._watchers.get(topic, set())
            watchers.discard(watcher)
            if not watchers:
                self._watchers.pop(topic, None)

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))


class Watcher:
    """A `Watch`, made by `Wakeups.watch`. A pending wake-up is remembered; several collapse into one."""

    def __init__(self, wakeups: Wakeups, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.woken = asyncio.Event()
        self._wakeups = wakeups

    async def wait(self) -> None:
        """Return after the next wake-up; at once if there was one since the last return."""
        await self.woken.wait()
        self.woken.clear()

    def close(self) -> None:
        """Stop listening."""
        self._wakeups.forget(self)
