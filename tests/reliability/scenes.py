"""What scenes share: a host with counters in it, watchers around it, and the ledger made up at the end.

Knows how a scene is set up and settled; does not know what goes wrong in it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx

from runcast.app import Cast
from runcast.app.serve import serving
from runcast.app.tenants.access_policy import AccessPolicy
from runcast.slim import RunLog, StoreError
from tests.app.serving import anyone
from tests.reliability.counting import asked, plan, words
from tests.reliability.ledger import Ledger
from tests.reliability.watchers import KINDS, Kind, Watcher

PATIENCE = 60.0  # seconds that anything may take that is waited for


def open_access() -> AccessPolicy:
    """For a hub of a scene's own: what `hosting` says for the cast."""
    access = AccessPolicy()
    access.use(authorize=anyone)
    return access


@asynccontextmanager
async def hosting(cast: Cast) -> AsyncIterator[str]:
    """A cast in front of its users; gives its address."""
    async with cast, serving(cast, cast.asgi(authorize=anyone)) as address:
        yield address


async def begin(cast: Cast, ledger: Ledger, thread: str, nodes: int, size: int, pause: float) -> None:
    """Start a counter in a thread of its own."""
    ledger.plan(thread, nodes, size)
    await cast.start(cast.agent("counter"), asked(thread, f"{thread}-r1", plan(nodes, size, pause)))


@asynccontextmanager
async def watching(
    ledger: Ledger,
    http: httpx.AsyncClient,
    address: Callable[[], str],
    *,
    kinds: Sequence[Kind] = KINDS,
    threads: Iterable[str] | None = None,
    patience: float = PATIENCE,
    quiet: float = 60.0,
) -> AsyncIterator[list[Watcher]]:
    """One watcher of each kind on each thread during the block; it ends when all were told the end."""
    watchers = [
        Watcher(kind, thread, address, http, quiet=quiet)
        for thread in threads or ledger.threads
        for kind in kinds
    ]
    async with told_the_end(ledger, watchers, patience):
        yield watchers


@asynccontextmanager
async def told_the_end(ledger: Ledger, watchers: Sequence[Watcher], patience: float) -> AsyncIterator[None]:
    """They watch during the block; it ends when all were told the end, and the ledger has what they saw."""
    tasks = [asyncio.create_task(each.watch()) for each in watchers]
    try:
        yield
        async with asyncio.timeout(patience):
            await asyncio.gather(*tasks)
    except TimeoutError:
        left = [f"{each.kind} on {each.thread} at {each.last}" for each in watchers if not each.completed]
        raise AssertionError(f"{len(left)} of {len(watchers)} were not told the end: {left[:10]}") from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for each in watchers:
        each.told(ledger)
    ledger.note("connections", sum(each.connects for each in watchers))


async def settle(ledger: Ledger, log: RunLog, effects: Path | None = None) -> None:
    """Read the log, and make the ledger up."""
    for thread in ledger.threads:
        where = [
            f"{run.run_id} {run.edge} of {run.parent}: {run.status}, seq {run.first_seq}-{run.last_seq}, attempt "
            f"{run.attempt}, {run.started_at}-{run.ended_at}"
            for run in await log.runs(thread)
        ]
        ledger.stored(thread, words(await log.entries(thread)), where)
    if effects is not None:
        ledger.effects(effects)
    ledger.settle()


async def until(so: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Wait until something is so."""
    try:
        async with asyncio.timeout(seconds):
            while not so():  # noqa: ASYNC110  whatever it is, it has no event
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"after {seconds} s still not: {what}") from None


async def over(log: RunLog, thread: str, status: str = "completed") -> None:
    """Wait until the thread's newest run has this status, as far as the store answers."""
    found = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while found != status:
                with suppress(StoreError):
                    found = (await log.runs(thread))[-1].status
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{thread} is {found}, not {status}") from None


def one_of(addresses: Sequence[str], seed: int = 1) -> Callable[[], str]:
    """Any of these, another one each time."""
    rng = random.Random(seed)
    return lambda: rng.choice(addresses)
