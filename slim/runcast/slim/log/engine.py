"""The engine of a log: one writer and one feed for each thread, their leases, and deferred work.

Knows the life of these parts and the order in which they end; does not know the public calls (`run_log`), nor tenants
except as a part of every key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from ag_ui.core import Message, RunStartedEvent

from runcast.slim.archive.derived import Derived
from runcast.slim.archive.info import LogStats
from runcast.slim.archive.lineage import normalize_started
from runcast.slim.archive.pages import Pages
from runcast.slim.entry import Entry
from runcast.slim.errors import SlimError
from runcast.slim.log.batches import Counters, Standing
from runcast.slim.log.committer import Committer
from runcast.slim.log.lease_renewal import LeaseRenewal
from runcast.slim.log.live_feed import Feed
from runcast.slim.log.log_options import LogOptions
from runcast.slim.log.redaction import EventStream
from runcast.slim.log.writer import Writer
from runcast.slim.stores import Store
from runcast.slim.stores.blob_codec import Codec, chosen
from runcast.slim.stores.records import APART, Key, Lease, NewEvent, NewRun

LOG = logging.getLogger("runcast.log")
TOGETHER = 64  # events of a thread that are compacted at once: reading fewer costs no more than a segment
MOST_WRITERS = 1_000  # kept after their run for late events; idle ones are dropped first


class Core:
    """What all views of one log share."""

    def __init__(self, store: Store, options: LogOptions, redactor: Callable[[], EventStream | None]) -> None:
        self.store = store
        self.options = options
        self.owner = options.owner or f"log-{options.new_id()}"
        self.codec: Codec = chosen(options.codec)
        self.derived = Derived(store, codec=self.codec, clock=options.clock)
        self.pages = Pages(store, self.derived)
        self.readers_cut = 0
        self.count = Counters()
        self.committer = Committer(store, options.flush_ms)
        self.redactor = redactor
        self._derive_errors = 0
        self._writers: dict[Key, Writer] = {}
        self._feeds: dict[Key, Feed] = {}
        self._renewal: LeaseRenewal | None = None
        self._later: set[asyncio.Task[None]] = set()

    def writer(self, key: Key) -> Writer:
        """The thread's writer."""
        found = self._writers.get(key)
        if found is None:
            self._make_room()
            found = self._writers[key] = Writer(key, self)
        if self._renewal is None:
            self._renewal = LeaseRenewal(self.store, self.options, self._leases, self._lost)
        return found

    def known_writer(self, key: Key) -> Writer | None:
        """The thread's writer, if there is one."""
        return self._writers.get(key)

    def _make_room(self) -> None:
        if len(self._writers) >= MOST_WRITERS:
            for key in [key for key, writer in self._writers.items() if writer.idle]:
                del self._writers[key]

    async def settle(self, key: Key) -> None:
        """Make durable what this log holds of a thread, so that it can be read."""
        writer = self._writers.get(key)
        if writer is not None:
            await writer.settle()

    async def abandon(self, key: Key, *, cut: bool = True) -> None:
        """Release the thread's lease; appended events stay, and an active run is truncated (`cut`) or left open."""
        writer = self._writers.get(key)
        if writer is not None:
            await writer.close(cut=cut)

    def forget(self, key: Key) -> None:
        """Drop the writer of a deleted thread."""
        self._writers.pop(key, None)

    def owns(self, key: Key) -> bool:
        """Whether this log holds the thread's lease, as far as it knows."""
        writer = self._writers.get(key)
        return writer is not None and writer.out.lease is not None

    def hand_over(self, key: Key, entries: Sequence[Entry], events: Sequence[NewEvent]) -> bool:
        """Pass durable events on to the readers of this process, which need not read them from the store; False when
        there are none."""
        feed = self._feeds.get(key)
        if feed is not None:
            feed.take(entries, events)
        return feed is not None

    def is_read(self, key: Key) -> bool:
        """Whether a reader of this process follows the thread."""
        return key in self._feeds

    def look(self, key: Key) -> None:
        """Have the thread's feed read the store: this process does not write the thread any more."""
        feed = self._feeds.get(key)
        if feed is not None:
            feed.look()

    def _standing(self, key: Key) -> Standing | None:
        writer = self._writers.get(key)
        return None if writer is None else writer.out.standing

    def feed(self, key: Key) -> Feed:
        """The thread's feed, with one reader more."""
        found = self._feeds.get(key)
        if found is None or found.broken:
            standing = partial(self._standing, key)
            found = self._feeds[key] = Feed(
                key, self.store, self.pages.page, standing, self.options.reader_queue
            )
        found.readers += 1
        return found

    async def leave(self, key: Key, feed: Feed) -> None:
        """Remove a reader; the last one closes the feed."""
        feed.readers -= 1
        if feed.readers == 0:
            if self._feeds.get(key) is feed:
                del self._feeds[key]
            await feed.close()

    def _leases(self) -> list[Lease]:
        """All leases that are held; called in another thread, for which `list` copies at one stroke."""
        return [lease for writer in list(self._writers.values()) if (lease := writer.out.lease) is not None]

    def _lost(self, lease: Lease) -> None:
        writer = self._writers.get(lease.key)
        if writer is not None:
            writer.out.lose(lease)

    async def shorten(
        self, key: Key, event: RunStartedEvent, run: NewRun, before: Iterable[Message] | None
    ) -> RunStartedEvent:
        """RUN_STARTED without the messages that the run's history already holds; `before`, if it was read already."""
        if run.parent is None or run.edge in APART:
            return event
        if event.input is None or not event.input.messages:
            return event
        try:
            held = await self.derived.messages(key, run.parent) if before is None else before
            return normalize_started(event, held)
        except SlimError as error:
            LOG.warning("the input of run %r is stored whole: %s", event.run_id, error)
            return event

    def ended(self, key: Key, run_id: str, first: int, last: int) -> None:
        """Derive from ended runs, in the background, the data that makes their thread quick to restore. A run of few
        events waits for those that follow."""
        if self.options.derive == "auto" and last // TOGETHER > (first - 1) // TOGETHER:
            task = asyncio.create_task(self._derive(key), name=f"runcast-derive-{run_id}")
            self._later.add(task)
            task.add_done_callback(self._derived)

    async def _derive(self, key: Key) -> None:
        await self.derived.compact(key)

    def _derived(self, task: asyncio.Task[None]) -> None:
        self._later.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._derive_errors += 1  # derived data can be made again: a log line is enough
            LOG.warning("a thread could not be compacted, and stays as it is", exc_info=error)

    async def flush(self, covers: Callable[[Key], bool]) -> None:
        """Make everything in these threads durable. A failing thread does not stop the others."""
        await self._each(Writer.flush, [writer for key, writer in self._writers.items() if covers(key)])

    async def _each(self, work: Callable[[Writer], Coroutine[Any, Any, None]], writers: list[Writer]) -> None:
        """Do the work for all writers at once; raise the first error when all are done."""
        done = await asyncio.gather(*map(work, writers), return_exceptions=True)
        for error in done:
            if error is not None:
                raise error

    async def rest(self) -> None:
        """Wait for deferred work."""
        while self._later:
            await asyncio.wait(self._later)

    async def close(self) -> None:
        """Release all leases, end all readers, close the store."""
        try:
            await self._each(Writer.close, list(self._writers.values()))
        finally:
            renewal, self._renewal = self._renewal, None
            if renewal is not None:
                await renewal.close()
            await self.rest()
            self._writers.clear()
            for feed in list(self._feeds.values()):
                await feed.close()
            self._feeds.clear()
            await self.store.close()

    def stats(self) -> LogStats:
        """Counters so far, and the present load."""
        count = self.count
        return LogStats(
            **asdict(count),
            unflushed=sum(writer.out.unflushed for writer in self._writers.values()),
            writers=len(self._writers),
            readers=sum(feed.readers for feed in self._feeds.values()),
            readers_cut=self.readers_cut,
            derive_errors=self._derive_errors,
        )
