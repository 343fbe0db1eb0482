"""The engine of a log: one writer and one feed a thread, the heartbeat of leases, and work that can wait.

Knows the life of these parts and in which order they end; does not know what is asked of the log (`log`), and
nothing of tenants but that they are part of every key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ag_ui.core import RunStartedEvent

from runcast.slim.errors import SlimError
from runcast.slim.lineage import normalize_started
from runcast.slim.log_derived import Derived
from runcast.slim.log_feed import Feed
from runcast.slim.log_info import LogStats
from runcast.slim.log_outbox import Counters, Timing
from runcast.slim.log_pages import Pages
from runcast.slim.log_redaction import EventStream
from runcast.slim.log_writer import Policy, Writer
from runcast.slim.stores import Store
from runcast.slim.stores.codec import Codec
from runcast.slim.stores.records import Key, NewRun

LOG = logging.getLogger("runcast.log")
MOST_WRITERS = 1_000  # kept after their run for what may still come; idle ones go first


@dataclass(frozen=True, slots=True)
class Settings:
    """What a log was told at its making; see `RunLog`."""

    timing: Timing
    redactor: Callable[[], EventStream | None]
    verify: Literal["off", "warn", "reject"]
    raw: Literal["drop", "keep"]
    on_store_error: Literal["raise", "continue"]
    patience_ms: int
    buffer_events: int
    reader_queue: int
    codec: Codec
    derive: Literal["auto", "manual"]


class Core:
    """What all views of one log share."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.derived = Derived(store, codec=settings.codec, clock=settings.timing.clock)
        self.pages = Pages(store, self.derived)
        self.readers_cut = 0
        self._count = Counters()
        self._derive_errors = 0
        self._writers: dict[Key, Writer] = {}
        self._feeds: dict[Key, Feed] = {}
        self._heart: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self._policy = Policy(
            verify=settings.verify,
            raw=settings.raw,
            on_store_error=settings.on_store_error,
            patience_ms=settings.patience_ms,
            buffer_events=settings.buffer_events,
            redactor=settings.redactor,
            shorten=self._shorten,
            ended=self._ended,
        )

    def writer(self, key: Key) -> Writer:
        """The thread's writer."""
        found = self._writers.get(key)
        if found is None:
            self._make_room()
            found = Writer(key, self.store, self.settings.timing, self._policy, self._count)
            self._writers[key] = found
        if self._heart is None:
            self._heart = asyncio.create_task(self._beat(), name="runcast-heartbeat")
        return found

    def _make_room(self) -> None:
        if len(self._writers) >= MOST_WRITERS:
            for key in [key for key, writer in self._writers.items() if writer.idle]:
                del self._writers[key]

    async def settle(self, key: Key) -> None:
        """Make durable what this log has of a thread, so that it can be read."""
        writer = self._writers.get(key)
        if writer is not None:
            await writer.settle()

    async def abandon(self, key: Key, *, cut: bool = True) -> None:
        """Give the thread's lease back; what was appended stays, and a run that is open is cut short, or left open."""
        writer = self._writers.get(key)
        if writer is not None:
            await writer.close(cut=cut)

    def forget(self, key: Key) -> None:
        """Drop the writer of a thread that is no more."""
        self._writers.pop(key, None)

    def owns(self, key: Key) -> bool:
        """Whether this log has the thread's lease, as far as it knows."""
        writer = self._writers.get(key)
        return writer is not None and writer.out.lease is not None

    def feed(self, key: Key) -> Feed:
        """The thread's feed, with one reader more."""
        found = self._feeds.get(key)
        if found is None or found.broken:
            found = self._feeds[key] = Feed(key, self.store, self.pages.page, self.settings.reader_queue)
        found.readers += 1
        return found

    async def leave(self, key: Key, feed: Feed) -> None:
        """A reader goes; the last one closes the feed."""
        feed.readers -= 1
        if feed.readers == 0:
            if self._feeds.get(key) is feed:
                del self._feeds[key]
            await feed.close()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.settings.timing.lease_ms / 3_000)
            for writer in list(self._writers.values()):
                if writer.out.lease is None:
                    continue
                try:
                    await writer.out.beat()
                except Exception as error:  # noqa: BLE001  # the leases of the others must not run out for it
                    LOG.warning("a lease could not be renewed: %s", error)

    async def _shorten(self, key: Key, event: RunStartedEvent, run: NewRun) -> RunStartedEvent:
        """RUN_STARTED without the messages that the run's history holds already."""
        if run.parent is None or run.edge == "spawn":
            return event
        if event.input is None or not event.input.messages:
            return event
        try:
            return normalize_started(event, await self.derived.messages(key, run.parent))
        except SlimError as error:
            LOG.warning("the input of run %r is stored whole: %s", event.run_id, error)
            return event

    def _ended(self, key: Key, run_id: str) -> None:
        """A run is over: derive from it what makes its thread quick to restore, when there is time."""
        if self.settings.derive == "auto":
            task = asyncio.create_task(self._derive(key), name=f"runcast-derive-{run_id}")
            self._later.add(task)
            task.add_done_callback(self._derived)

    async def _derive(self, key: Key) -> None:
        await self.derived.compact(key)

    def _derived(self, task: asyncio.Task[None]) -> None:
        """Whatever went wrong with what can be made anew, it is no more than a line in the program's log."""
        self._later.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._derive_errors += 1
            LOG.warning("a thread could not be compacted, and stays as it is", exc_info=error)

    async def flush(self, only: Callable[[Key], bool]) -> None:
        """Make everything durable in these threads. One that fails keeps the others from nothing."""
        errors: list[SlimError] = []
        for key, writer in list(self._writers.items()):
            if only(key):
                try:
                    await writer.flush()
                except SlimError as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    async def rest(self) -> None:
        """Wait for the work that could wait."""
        while self._later:
            await asyncio.wait(self._later)

    async def close(self) -> None:
        """Give all leases back, end all readers, close the store."""
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.wait([self._heart])
            self._heart = None
        errors: list[SlimError] = []
        try:
            for writer in list(self._writers.values()):
                try:
                    await writer.close()
                except SlimError as error:
                    errors.append(error)
        finally:
            await self.rest()
            self._writers.clear()
            for feed in list(self._feeds.values()):
                await feed.close()
            self._feeds.clear()
            await self.store.close()
        if errors:
            raise errors[0]

    def stats(self) -> LogStats:
        """Counters so far, and what is held right now."""
        count = self._count
        return LogStats(
            appended=count.appended,
            flushed=count.flushed,
            batches=count.batches,
            unflushed=sum(writer.out.unflushed for writer in self._writers.values()),
            lost=count.lost,
            violations=count.violations,
            raw_dropped=count.raw_dropped,
            store_errors=count.store_errors,
            leases_lost=count.leases_lost,
            writers=len(self._writers),
            readers=sum(feed.readers for feed in self._feeds.values()),
            readers_cut=self.readers_cut,
            derive_errors=self._derive_errors,
        )
