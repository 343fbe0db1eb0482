"""Retention: threads are forgotten, and raw events folded, when they are older than the host's `keep` and `keep_raw`.

One node does it at a time, a slice of threads after the other, so that neither the store nor the runs notice. Knows ages
and the log; how a thread is forgotten, `forgetting` knows.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from runcast.app.errors import AppError
from runcast.app.keeping.ages import kept_for
from runcast.app.nodes.note_lease import NoteLease
from runcast.slim import Pruned, SlimError, ThreadInfo

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

SLICE = 100  # threads between two pauses
BETWEEN = 0.05  # seconds of a pause
LEASE_MS = 60_000
FIRST = ("", "")

logger = logging.getLogger("runcast.app")


class Retention:
    """The retention of one host, for all its tenants."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._counts = dict.fromkeys(("rounds", "threads", "runs", "events", "bytes", "failures"), 0)
        self._lease = NoteLease(cast.log.notes, "retention", lasting_ms=LEASE_MS)
        self._holds = False

    def stats(self) -> dict[str, int]:
        """What was removed since the start, and whether this node does it at the moment."""
        return {**self._counts, "holds": int(self._holds)}

    async def serve(self) -> None:
        """A round at the start and every `keep_every` seconds, on one node; ends only by cancellation."""
        options = self._cast.options
        if options.keep is None and options.keep_raw is None:
            await asyncio.Event().wait()
        try:
            while True:
                self._holds = await self._lease.hold()
                if self._holds:
                    await self.apply()
                await asyncio.sleep(options.keep_every * random.uniform(0.9, 1.1))
        finally:
            self._holds = False
            await self._lease.release()  # else the next process waits for a whole `keep_every`

    async def plan(self) -> Pruned:
        """What a round would remove now."""
        total = Pruned(0, 0, 0, 0)
        after = FIRST
        while page := await self._cast.log.archive.every(limit=SLICE, after=after):
            for tenant, thread in page:
                total = _sum(total, await self._one(tenant, thread, dry_run=True))
            after = (page[-1][0], page[-1][1].thread_id)
        return total

    async def apply(self) -> None:
        """Remove what is too old, as long as this node holds the lease."""
        after = FIRST
        while page := await self._cast.log.archive.every(limit=SLICE, after=after):
            for tenant, thread in page:
                try:
                    gone = await self._one(tenant, thread, dry_run=False)
                except (AppError, SlimError) as error:
                    self._counts["failures"] += 1
                    logger.warning("thread %r is pruned in another round: %s", thread.thread_id, error)
                    continue
                for name in ("threads", "runs", "events", "bytes"):
                    self._counts[name] += getattr(gone, name)
            after = (page[-1][0], page[-1][1].thread_id)
            await asyncio.sleep(BETWEEN)
            if not await self._lease.hold():
                return
        self._counts["rounds"] += 1

    async def _one(self, tenant: str, thread: ThreadInfo, *, dry_run: bool) -> Pruned:
        options, now = self._cast.options, time.time_ns() // 1_000_000
        keep, raw = (kept_for(each, tenant, thread.thread_id) for each in (options.keep, options.keep_raw))
        if keep is not None and thread.owner is None and thread.updated_at <= now - _ms(keep):
            forgetter = self._cast.for_tenant(tenant).forgetter
            gone = dry_run or await forgetter.forget_idle(thread.thread_id, now - _ms(keep))
            return Pruned(0, int(gone), 0, 0)
        log = self._cast.log.for_tenant(tenant) if tenant else self._cast.log
        if raw is None or not any(
            not run.pruned and run.ended_at is not None and run.ended_at < now - _ms(raw)
            for run in await log.runs(thread.thread_id)
        ):
            return Pruned(0, 0, 0, 0)
        return await log.archive.prune(older_than=raw, thread_id=thread.thread_id, dry_run=dry_run)


def _ms(age: timedelta) -> int:
    return round(age / timedelta(milliseconds=1))


def _sum(one: Pruned, other: Pruned) -> Pruned:
    return Pruned(
        one.runs + other.runs,
        one.threads + other.threads,
        one.events + other.events,
        one.bytes + other.bytes,
    )
