"""The renewal of a log's leases, in a thread with an event loop of its own: no work in the log's loop can hold it up.

Knows threads and time; does not know events. A stopped process renews nothing. Neither does a log whose event loop has
given no sign of life for `SILENT_LEASES` leases: it hangs for good, and its runs are left to others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from time import monotonic

from runcast.slim.errors import StoreError
from runcast.slim.log.log_options import LogOptions
from runcast.slim.stores.base import Store
from runcast.slim.stores.records import Lease
from runcast.slim.tasks import end

LOG = logging.getLogger("runcast.log")
SILENT_LEASES = 8  # two minutes by default
SHORTEST_PAUSE = 0.01  # seconds between two renewals


class LeaseRenewal:
    """Renews the leases that a log holds, a third of a lease after the other, until it is closed."""

    def __init__(
        self,
        store: Store,
        options: LogOptions,
        held: Callable[[], list[Lease]],  # called in the thread
        lost: Callable[[Lease], None],  # called in the log's event loop
    ) -> None:
        self._store = store
        self._options = options
        self._held = held
        self._lost = lost
        self._pause = max(options.lease_ms / 3_000, SHORTEST_PAUSE)
        self._closed: Future[None] = Future()
        self._loop = asyncio.get_running_loop()
        self._seen = monotonic()  # when the log's event loop gave a sign of life
        self._living = asyncio.create_task(self._live(), name="runcast-heartbeat")
        self._thread = Thread(target=self._run, name="runcast-leases", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """End the thread."""
        await end([self._living])
        self._end()
        await asyncio.to_thread(self._thread.join)

    async def _live(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._pause)
                self._seen = monotonic()
        finally:
            self._end()  # also when the event loop is closed and the log is not

    def _end(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    def _run(self) -> None:
        asyncio.run(self._renew_all())

    async def _renew_all(self) -> None:
        closed = asyncio.wrap_future(self._closed)
        async with self._store.apart() as store:
            while not closed.done():
                await asyncio.wait({closed}, timeout=self._pause)
                renewing = asyncio.ensure_future(self._renew(store))
                await asyncio.wait({closed, renewing}, return_when=asyncio.FIRST_COMPLETED)
                renewing.cancel()

    async def _renew(self, store: Store) -> None:
        held = self._held()
        if not held or monotonic() - self._seen > SILENT_LEASES * self._options.lease_ms / 1_000:
            return
        try:
            for lease in await store.renew(held, until=self._options.clock() + self._options.lease_ms):
                with suppress(RuntimeError):  # the log's event loop is closed
                    self._loop.call_soon_threadsafe(self._lost, lease)
        except StoreError as error:
            LOG.warning("%d leases could not be renewed: %s", len(held), error)
