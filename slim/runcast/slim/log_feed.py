"""The live end of a thread, read once for everybody in this process who watches it.

Knows the newest entries, in a ring of bounded size, and who is behind it; does not know how entries are stored, or
who writes them: it reads what is durable, woken by the store. A reader is only a position. Behind the ring it reads
pages from the store at its own pace; once it has caught up with the live end it must stay within the ring, or it is
cut with `ReaderTooSlow` and can come back. So a slow reader costs nothing and delays nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable

from runcast.slim.entry import Entry
from runcast.slim.errors import ReaderTooSlow, StoreError, UnknownThread
from runcast.slim.stores import Store, Watch
from runcast.slim.stores.records import Key

LOG = logging.getLogger("runcast.log")
PAGE = 256  # entries read at once
PORTION = 64  # entries handed to a reader before it is asked again whether it keeps up
PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0, 5.0)  # between attempts to read, then it is given up

Pages = Callable[
    [Key, int, int], Awaitable[tuple[str | None, list[Entry]]]
]  # after a seq, so many: epoch and entries


class Feed:
    """One thread's live end. `attach` for every reader; close it when there is none left."""

    def __init__(self, key: Key, store: Store, pages: Pages, size: int) -> None:
        self.readers = 0
        self._key = key
        self._store = store
        self._pages = pages
        self._size = size
        self._ring: list[Entry] = []  # the newest, at most twice `size` before it is trimmed
        self._head = 0  # the newest seq that is known
        self._epoch: str | None = None
        self._broken: StoreError | None = None
        self._grown = asyncio.Event()  # replaced by a new one whenever it is set
        self._started: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def broken(self) -> bool:
        """Nobody gets anything more from this feed; a new reader needs a new one."""
        return self._broken is not None

    async def attach(self, after: int, epoch: str | None) -> AsyncGenerator[Entry]:
        """History behind `after`, then what comes, for ever."""
        await self._start()
        await self._check(after, epoch)
        last, live = after, False
        while True:
            if self._broken is not None:
                raise type(self._broken)(str(self._broken))
            if last >= self._head:
                live = True
                await self._grown.wait()
                continue
            for entry in await self._next(last, live):
                last = entry.seq
                yield entry

    async def _check(self, after: int, epoch: str | None) -> None:
        """Whether this place means anything here. The store is asked: this feed may be a moment behind it."""
        name = self._key.thread_id
        if epoch is not None and self._epoch is not None and epoch != self._epoch:
            raise UnknownThread(
                f"thread {name!r} was made anew (epoch {self._epoch}, not {epoch}): "
                "restore it and attach to what it is now"
            )
        if after > self._head:
            thread = await self._store.thread(self._key)
            last = thread.last_seq if thread else 0
            if after > last:
                raise UnknownThread(
                    f"thread {name!r} ends at seq {last}, before {after}: restore it and attach anew"
                )

    async def _next(self, last: int, live: bool) -> list[Entry]:
        lag = self._head - last
        if live and lag > self._size:
            raise ReaderTooSlow(last, lag)
        if lag <= len(self._ring):
            at = len(self._ring) - lag
            return self._ring[at : at + PORTION]
        return (await self._pages(self._key, last, PAGE))[1]

    async def _start(self) -> None:
        """Begin to follow, once; all who come meanwhile wait for it."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._open())
        await asyncio.shield(self._started)

    async def _open(self) -> None:
        watch = await self._store.watch(self._key)
        thread = await self._store.thread(self._key)
        if thread is not None:
            self._head, self._epoch = thread.last_seq, thread.epoch
        self._task = asyncio.create_task(self._follow(watch), name=f"runcast-feed-{self._key.thread_id}")
        self._task.add_done_callback(self._stopped)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """Whatever ended the following, nobody waits for a bell that will not ring."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._break(StoreError(f"thread {self._key.thread_id!r} cannot be followed: {error}"))

    async def _follow(self, watch: Watch) -> None:
        """Read whatever is new whenever the bell rings."""
        try:
            while self._broken is None:
                await watch.wait()
                await self._read_patiently()
        finally:
            watch.close()

    async def _read_patiently(self) -> None:
        for pause in PAUSES:
            try:
                await self._read()
            except UnknownThread as error:
                self._break(error)
            except StoreError as error:
                LOG.warning("thread %r cannot be read just now: %s", self._key.thread_id, error)
                await asyncio.sleep(pause)
                continue
            return
        self._break(
            StoreError(f"thread {self._key.thread_id!r} cannot be read: attach again when the store is back")
        )

    async def _read(self) -> None:
        while True:
            epoch, entries = await self._pages(self._key, self._head, PAGE)
            if self._epoch is not None and epoch != self._epoch:
                raise UnknownThread(
                    f"thread {self._key.thread_id!r} was deleted: restore it if it was made anew"
                )
            self._epoch = epoch
            if entries:
                self._take(entries)
            if len(entries) < PAGE:
                return

    def _take(self, entries: list[Entry]) -> None:
        self._ring += entries
        if len(self._ring) >= 2 * self._size:
            del self._ring[: -self._size]
        self._head = entries[-1].seq
        self._wake()

    def _break(self, error: StoreError) -> None:
        self._broken = error
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    async def close(self) -> None:
        """Stop following, and tell those who still read."""
        self._break(StoreError("the log was closed: open it again and attach with `after`"))
        for task in (self._started, self._task):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
