"""Bells: how a reader in this process learns that a thread has grown.

Knows names and who waits for them; does not know who rings, this process after a commit or another one through a
database's own notification.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b

from runcast.slim.stores.records import Key


def bell_name(key: Key) -> str:
    """One short name per thread, safe as the payload of a notification."""
    return _short(f"{len(key.tenant)}:{key.tenant}{key.thread_id}")


def box_name(box: str) -> str:
    """The same for a box of notes; no thread has the bell of a box."""
    return _short(f"box {box}")


def _short(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Bells:
    """The bells of one process. Level-triggered: a ring that nobody waits for is kept, and two are one."""

    def __init__(self) -> None:
        self._bells: dict[str, set[Bell]] = {}

    def watch(self, *names: str) -> Bell:
        """A new bell, rung under any of these names."""
        bell = Bell(self, names)
        for name in names:
            self._bells.setdefault(name, set()).add(bell)
        return bell

    def ring(self, name: str) -> None:
        """Wake whoever watches under this name."""
        for bell in self._bells.get(name, ()):
            bell.rung.set()

    def ring_all(self) -> None:
        """Wake everybody: something happened, and nobody can say where."""
        for name in self._bells:
            self.ring(name)

    def forget(self, bell: Bell) -> None:
        """Take a bell down."""
        for name in bell.names:
            bells = self._bells.get(name, set())
            bells.discard(bell)
            if not bells:
                self._bells.pop(name, None)

    def __len__(self) -> int:
        return sum(map(len, self._bells.values()))


class Bell:
    """One watcher's bell, made by `Bells.watch`."""

    def __init__(self, bells: Bells, names: tuple[str, ...]) -> None:
        self.names = names
        self.rung = asyncio.Event()
        self._bells = bells

    async def wait(self) -> None:
        """Return after the next ring; at once if there was one since the last return."""
        await self.rung.wait()
        self.rung.clear()

    def close(self) -> None:
        """Stop listening."""
        self._bells.forget(self)
