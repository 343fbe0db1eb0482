"""The tools of the contract's checks: short batches, runs and leases, and two assertions.

Knows how to make a small thread; does not know which promise is being checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from hashlib import sha256
from typing import Any

from runcast.slim.stores.base import Store, Watch
from runcast.slim.stores.records import (
    Batch,
    Blob,
    BlobInfo,
    BlobKind,
    Edge,
    Key,
    Lease,
    NewEvent,
    NewRun,
    Page,
    RunEnd,
)

THREAD = Key("acme", "thread")
NOW = 1_700_000_000_000
TTL = 10_000


class Broken(AssertionError):
    """A store that does not keep a promise."""


def same(got: object, wanted: object, promise: str) -> None:
    """Raise `Broken` unless the two are equal."""
    if got != wanted:
        raise Broken(f"{promise}: got {got!r:.500}, wanted {wanted!r:.500}")


async def refuses(kind: type[Exception], call: Awaitable[Any], promise: str) -> None:
    """Raise `Broken` unless the call is refused with this class."""
    try:
        got = await call
    except kind:
        return
    raise Broken(f"{promise}: not refused, but answered {got!r:.200}")


async def wakes(watch: Watch, promise: str) -> None:
    """Raise `Broken` unless the watch wakes within two seconds."""
    try:
        await asyncio.wait_for(watch.wait(), 2)
    except TimeoutError:
        raise Broken(f"{promise}: the watch did not wake") from None


async def sleeps(watch: Watch) -> bool:
    """Whether the watch stays asleep for a moment."""
    waking = asyncio.ensure_future(watch.wait())
    await asyncio.wait([waking], timeout=0.05)
    return waking.cancel()  # False: it is awake


async def take(
    store: Store, key: Key = THREAD, *, owner: str = "me", now: int = NOW, epoch: str = "e1"
) -> Lease:
    """Take a thread's lease."""
    return await store.acquire(key, owner=owner, now=now, until=now + TTL, epoch=epoch)


def batch(
    lease: Lease, first: int, count: int = 1, *, run: NewRun | int = 0, id: str = "", **more: Any
) -> Batch:
    """A batch of `count` events that begins at `first`."""
    events = tuple(NewEvent(first + n, NOW + n, "CUSTOM", b'{"n":%d}' % (first + n)) for n in range(count))
    kept: dict[str, Any] = {"until": NOW + TTL, "now": NOW, **more}
    return Batch(lease.key, lease.owner, lease.token, id or f"at {first}", first, run, events, **kept)


async def write_run(
    store: Store,
    lease: Lease,
    run_id: str,
    parent: str | None = None,
    *,
    edge: Edge = "continue",
    events: int = 3,
) -> int:
    """A whole run behind the last event, completed."""
    first = (await store.events(lease.key, after=0, limit=0)).last_seq + 1
    end = RunEnd("completed", "RUN_FINISHED", b"[]")
    return await store.append(batch(lease, first, events, run=NewRun(run_id, parent, edge), end=end))


def seqs(page: Page) -> list[int]:
    """The `seq` of every event of a page."""
    return [event.seq for event in page.events]


def blob(kind: BlobKind, run: int, seq: int, body: bytes = b"body") -> Blob:
    """A blob."""
    return Blob(BlobInfo(kind, run, seq, NOW, "none", 3, sha256(body).digest(), len(body)), body)
