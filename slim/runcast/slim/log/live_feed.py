"""The live end of a thread, read once for all its readers in this process.

Knows the newest entries that some live reader lacks, in a ring of bounded size; does not know the storage. Durable entries
come from the writer of this process right after their commit (`take`), or from the store, which wakes the feed. A reader
is only a position. Behind the ring it reads pages from the store at its own pace; once it has caught up with the live end
it must stay within the ring, or it is cut with `ReaderTooSlow` and can come back. So a slow reader delays no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from runcast.slim.archive.pages import is_heavy, refuse_other_history, stored_entry
from runcast.slim.entry import Entry, bound, is_other_history
from runcast.slim.errors import ReaderTooSlow, StoreError, UnknownThread, WireError
from runcast.slim.log.batches import Standing
from runcast.slim.stores import Store, Watch
from runcast.slim.stores.records import Key, NewEvent
from runcast.slim.tasks import end
from runcast.slim.values.lifecycles import DELTAS

if TYPE_CHECKING:
    from runcast.slim.log.engine import Core
    from runcast.slim.log.log_options import Scope
    from runcast.slim.log.writer import OnEntry
    from runcast.slim.wire.codec import AnyEvent

LOG = logging.getLogger("runcast.log")
PAGE = 256  # entries read at once
PORTION = 64  # entries yielded to a reader before its lag is checked again
PAUSES = (
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    5.0,
    5.0,
    5.0,
)  # between attempts to read, before the feed breaks

Pages = Callable[
    [Key, int, int, str | None], Awaitable[tuple[str | None, list[Entry]]]
]  # after a seq of a history, so many: epoch and entries


class Feed:
    """One thread's live end. `attach` for every reader; close it when there is none left."""

    def __init__(
        self, key: Key, store: Store, pages: Pages, standing: Callable[[], Standing | None], size: int
    ) -> None:
        self.readers = 0
        self._key = key
        self._store = store
        self._pages = pages
        self._standing = standing  # as the writer of this process knows it, if it has the lease
        self._size = size
        self._ring: list[Entry] = []  # the newest entries, of which some reader lacks some
        self._live: dict[object, int] = {}  # the last seq taken, of each reader that has caught up
        self._head = 0  # the newest seq that is known
        self._epoch: str | None = None
        self._mark = ""  # of the run that holds the head
        self._broken: StoreError | None = None
        self._grown = asyncio.Event()  # replaced by a new one whenever it is set
        self._started: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    @property
    def broken(self) -> bool:
        """Whether the feed has ended; a new reader needs a new one."""
        return self._broken is not None

    async def attach(self, after: int, epoch: str | None) -> AsyncGenerator[Sequence[Entry]]:
        """History behind `after`, then new entries, in lots."""
        await self._start()
        await self._check(after, epoch or "")
        last, me = after, object()
        try:
            while True:
                if self._broken is not None:
                    raise type(self._broken)(str(self._broken))
                if last >= self._head:
                    self._live[me] = last
                    await self._grown.wait()
                    continue
                entries = await self._next(last, me in self._live)
                if entries:
                    yield entries
                    last = entries[-1].seq
                if me in self._live:
                    self._live[me] = last
        finally:
            self._live.pop(me, None)

    async def _check(self, after: int, history: str) -> None:
        """Refuse a position of another history or beyond the end. Asks the store, which this feed may lag behind."""
        if after > self._head or history not in ("", self._epoch):
            found = await self._store.events(self._key, after=after, limit=0)
            refuse_other_history(self._key, found, after, history)

    async def _next(self, last: int, live: bool) -> list[Entry]:
        lag = self._head - last
        if live and lag > self._size:
            raise ReaderTooSlow(last, lag)
        if lag <= len(self._ring):
            at = len(self._ring) - lag
            return self._ring[at : at + PORTION]
        return (await self._pages(self._key, last, PAGE, None))[1]

    async def _start(self) -> None:
        """Start to follow once; concurrent readers wait for it."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._open())
        await asyncio.shield(self._started)

    async def _open(self) -> None:
        watch = await self._store.watch(self._key)
        known = self._standing()
        if known is None and (thread := await self._store.thread(self._key)) is not None:
            known = Standing(thread.last_seq, thread.mark, thread.epoch, ((), ()))
        if known is not None:
            self._head, self._mark, self._epoch, untaken = known
            self._ring = self._as_stored(*untaken)
        self._task = asyncio.create_task(self._follow(watch), name=f"runcast-feed-{self._key.thread_id}")
        self._task.add_done_callback(self._stopped)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """When a task that reads ends, wake every reader with its error."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._break(StoreError(f"thread {self._key.thread_id!r} cannot be followed: {error}"))

    async def _follow(self, watch: Watch) -> None:
        """Read new entries at every wake-up."""
        try:
            while self._broken is None:
                await watch.wait()
                known = self._standing()
                if known is None or known.seq != self._head:  # else `take` brings what is written
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
                LOG.warning("thread %r cannot be read at the moment: %s", self._key.thread_id, error)
                await asyncio.sleep(pause)
                continue
            return
        self._break(
            StoreError(f"thread {self._key.thread_id!r} cannot be read: attach again when the store is back")
        )

    async def _read(self) -> None:
        while True:
            head, history = self._head, bound(self._epoch or "", self._mark)
            epoch, entries = await self._pages(self._key, head, PAGE, history)
            if self._epoch is not None and epoch is None:
                raise UnknownThread(
                    f"thread {self._key.thread_id!r} was deleted: restore it if it was created again"
                )
            self._epoch = epoch
            new = [entry for entry in entries if entry.seq > self._head]  # `take` may have been quicker
            if new:
                self._add(new)
            if len(entries) < PAGE:
                return

    def take(self, written: Sequence[Entry], events: Sequence[NewEvent]) -> None:
        """Take durable events from the writer, if they follow the newest entry; else the store is read."""
        first = written[0]
        follows = first.seq == self._head + 1 and self._epoch in (None, first.epoch)
        follows &= not is_other_history(self._head, self._mark, first.seq, first.mark)
        if self._task is None or self._broken is not None:
            return
        entries = self._as_stored(written, events) if follows else []
        if entries:
            self._epoch = first.epoch
            self._add(entries)
        else:
            self.look()

    def look(self) -> None:
        """Read the store soon, for what `take` could not bring."""
        if self._task is not None and self._broken is None and (not self._looking or self._looking.done()):
            self._looking = asyncio.create_task(self._read_patiently(), name="runcast-feed-look")
            self._looking.add_done_callback(self._stopped)

    def _as_stored(self, written: Sequence[Entry], events: Sequence[NewEvent]) -> list[Entry]:
        """The entries as the store gives them back; none where it has to be asked for them: its readers get what is wrong
        with an event, and large ones are read beside the event loop."""
        pairs = list(zip(written, events, strict=True))
        changed = [event for entry, event in pairs if not _is_plain(entry)]
        if is_heavy(changed):
            return []
        with suppress(WireError):
            return [
                entry
                if _is_plain(entry)
                else stored_entry(self._key, entry.epoch, entry.run_id, event, entry.mark)
                for entry, event in pairs
            ]
        return []

    def _add(self, entries: list[Entry]) -> None:
        """Keep new entries, and of those before them what some live reader has not taken yet."""
        behind = self._head - min(self._live.values(), default=self._head)
        del self._ring[: max(0, len(self._ring) - min(behind, self._size))]
        self._ring += entries
        self._head, self._mark = entries[-1].seq, entries[-1].mark
        self._wake()

    def _break(self, error: StoreError) -> None:
        self._broken = error
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    async def close(self) -> None:
        """Stop following, and end the readers with an error."""
        self._break(StoreError("the log was closed: open it again and attach with `after`"))
        await end([self._started])
        await end([self._task, self._looking])


def _is_plain(entry: Entry) -> bool:
    """Whether it is a delta of ids and text, which is the same before and after it was stored."""
    given = entry.event
    return type(given) in DELTAS and given.__dict__["metadata"] is None and not given.__pydantic_extra__


class Live:
    """The live ends of a log's threads, for a host that has many: written without a wait, read in lots."""

    def __init__(self, core: Core, scope: Scope) -> None:
        self._core = core
        self._scope = scope

    def flow(self, thread_id: str, on_entry: OnEntry) -> Callable[[AnyEvent], bool]:
        """A function that appends events to this thread, as `RunLog.append` does, if nothing has to be waited for; it
        returns False where an event has to be appended so. Nearly all events within a run flow."""
        key, known_writer = self._scope.key(thread_id), self._core.known_writer

        def append(event: AnyEvent) -> bool:
            writer = known_writer(key)
            return writer is not None and writer.flow(event, on_entry) is not None

        return append

    async def attach(
        self, thread_id: str, after: int | None = None, *, epoch: str | None = None
    ) -> AsyncGenerator[Sequence[Entry]]:
        """As `RunLog.attach`, with those entries together that are there at once."""
        key = self._scope.key(thread_id)
        feed = self._core.feed(key)
        try:
            async with aclosing(feed.attach(after or 0, epoch)) as lots:
                async for entries in lots:
                    yield entries
        except ReaderTooSlow:
            self._core.readers_cut += 1
            raise
        finally:
            await self._core.leave(key, feed)
