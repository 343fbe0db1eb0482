"""The promises about leases and appending.

Knows how two writers get in each other's way; does not know what is read afterwards but the events.
"""

from __future__ import annotations

import asyncio

from runcast.slim.errors import Conflict, LineageError
from runcast.slim.stores.base import Store
from runcast.slim.stores.contract_tools import (
    NOW,
    THREAD,
    TTL,
    Broken,
    batch,
    refuses,
    rings,
    same,
    seqs,
    take,
)
from runcast.slim.stores.records import (
    Key,
    Lease,
    NewEvent,
    NewRun,
    Page,
    RunEnd,
)


async def a_thread_begins_with_its_first_lease(store: Store) -> None:
    """An empty thread has an epoch, no event and an owner."""
    same(await store.thread(THREAD), None, "a thread that nobody wrote is not there")
    same(await store.events(THREAD, after=0), Page(None, 0, []), "it has no epoch and no events")
    lease = await take(store)
    same(
        (lease.epoch, lease.last_seq, lease.last_run, lease.head),
        ("e1", 0, None, None),
        "a new thread is empty",
    )
    thread = await store.thread(THREAD)
    if thread is None:
        raise Broken("a thread is there as soon as it has a lease")
    same(
        (thread.key, thread.epoch, thread.last_seq, thread.owner),
        (THREAD, "e1", 0, "me"),
        "and says whose it is",
    )
    same([t.key for t in await store.threads("acme", limit=10)], [THREAD], "and is listed")
    same((await take(store, epoch="e2", now=NOW + 1)).epoch, "e1", "a thread keeps its epoch")


async def a_lease_is_exclusive_until_it_runs_out(store: Store) -> None:
    """Nobody else gets it meanwhile, and somebody else gets it afterwards."""
    first = await take(store)
    await refuses(Conflict, take(store, owner="other"), "a live lease of another owner is respected")
    await refuses(Conflict, take(store, owner="other", now=NOW + TTL), "to its last millisecond")
    second = await take(store, owner="other", now=NOW + TTL + 1)
    same(second.token > first.token, True, "a later holder has a higher token")
    await refuses(
        Conflict, store.append(batch(first, 1, run=NewRun("r", None, "continue"))), "an older one is fenced"
    )
    same((await store.events(THREAD, after=0)).last_seq, 0, "and has written nothing")
    await store.append(batch(second, 1, run=NewRun("r", None, "continue")))


async def a_lease_can_be_renewed_and_given_back(store: Store) -> None:
    """By a batch without events, or along with the last ones."""
    lease = await take(store)
    await store.append(batch(lease, 1, 0, until=NOW + 5 * TTL))
    await refuses(Conflict, take(store, owner="other", now=NOW + 4 * TTL), "a renewed lease runs longer")
    await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue"), until=None))
    await refuses(Conflict, store.append(batch(lease, 3)), "a lease that was given back is gone")
    await refuses(Conflict, store.append(batch(lease, 3, 0)), "and cannot be renewed")
    await take(store, owner="other")


async def of_many_takers_one_wins(store: Store) -> None:
    """However many try at once."""
    takers = [take(store, owner=f"owner {n}") for n in range(8)]
    results = await asyncio.gather(*takers, return_exceptions=True)
    same(sum(isinstance(result, Lease) for result in results), 1, "one taker wins")
    same(sum(isinstance(result, Conflict) for result in results), 7, "the others are told")


async def seq_has_no_hole_and_no_double(store: Store) -> None:
    """A batch goes right behind the last event, or nowhere."""
    lease = await take(store)
    run = await store.append(batch(lease, 1, 3, run=NewRun("r", None, "continue")))
    await refuses(Conflict, store.append(batch(lease, 5, run=run)), "a gap is refused")
    await refuses(Conflict, store.append(batch(lease, 3, run=run, id="again")), "a double is refused")
    same(await store.append(batch(lease, 4, 600, run=run)), run, "what fits is written")
    same(seqs(await store.events(THREAD, after=0)), list(range(1, 604)), "1, 2, 3, … without holes")
    racing = [store.append(batch(lease, 604, run=run, id=f"racer {n}")) for n in range(6)]
    results = await asyncio.gather(*racing, return_exceptions=True)
    same(sum(result == run for result in results), 1, "of several at one place one wins")
    same((await store.events(THREAD, after=0)).last_seq, 604, "and the others leave nothing")


async def the_same_batch_again_writes_nothing(store: Store) -> None:
    """A lost answer can be asked for again, even after the lease is gone."""
    lease = await take(store)
    first = batch(lease, 1, 2, run=NewRun("r", None, "continue"))
    run = await store.append(first)
    same(await store.append(first), run, "the same batch has the same answer")
    last = batch(
        lease, 3, 2, run=run, raws=(NewEvent(4, NOW, "RAW", b"1"),), end=RunEnd("failed", "RUN_ERROR")
    )
    last_released = batch(lease, 3, 2, run=run, raws=last.raws, end=last.end, until=None)
    same(await store.append(last_released), run, "a batch that ends a run")
    same(await store.append(last_released), run, "has the same answer when it is repeated")
    same(seqs(await store.events(THREAD, after=0)), [1, 2, 3, 4], "its events are there once")
    same(len(await store.raws(THREAD, after=0)), 1, "and so is what came with them")


async def a_refused_batch_leaves_nothing(store: Store) -> None:
    """Not its run, not its events, not its place."""
    lease = await take(store)
    other = await take(store, Key("acme", "elsewhere"))
    await store.append(batch(other, 1, run=NewRun("there", None, "continue")))
    orphan = batch(lease, 1, 2, run=NewRun("r", "nobody", "continue"))
    await refuses(LineageError, store.append(orphan), "a parent has to be there")
    await refuses(
        LineageError, store.append(batch(lease, 1, run=NewRun("r", "there", "branch"))), "in this thread"
    )
    await refuses(
        LineageError, store.append(batch(lease, 1, run=NewRun("r", "r", "continue"))), "and not itself"
    )
    await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await refuses(
        Conflict, store.append(batch(lease, 2, run=NewRun("r", None, "continue"))), "a run id is used once"
    )
    same(seqs(await store.events(THREAD, after=0)), [1], "nothing of the refused is there")
    same([run.run_id for run in await store.runs(THREAD)], ["r"], "nor their runs")


async def a_run_whose_owner_died_is_truncated(store: Store) -> None:
    """Found while its lease has run out, marked when the thread gets another owner, given no end of its own."""
    lease = await take(store)
    await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue")))
    same(await store.stranded("acme", now=NOW + TTL), [], "a run with an owner is not stranded")
    stranded = await store.stranded("acme", now=NOW + TTL + 1)
    same([(key, run.run_id) for key, run in stranded], [(THREAD, "r")], "one without is")
    same(await store.stranded("other", now=NOW + TTL + 1), [], "for its tenant")
    later = await take(store, owner="other", now=NOW + TTL + 1)
    run = later.last_run
    if run is None:
        raise Broken("a new lease names the run that was truncated")
    same(
        (run.status, run.terminal, run.ended_at, run.last_seq),
        ("truncated", None, NOW, 2),
        "no end is made up",
    )
    same(await store.stranded("acme", now=NOW + 9 * TTL), [], "and it is not found twice")


async def a_truncated_run_is_left_until_somebody_goes_on_from_it(store: Store) -> None:
    """Whoever cut it may have died before it went on."""
    lease = await take(store)
    await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue")))
    late = NOW + TTL + 1
    same(await store.left("acme", now=late, since=0), [], "a run in progress was not cut")
    later = await take(store, owner="other", now=late)
    same(await store.left("acme", now=late, since=0), [], "its thread has an owner")
    gone = late + TTL + 1
    for tenant in (None, "acme"):
        left = await store.left(tenant, now=gone, since=NOW)
        same(
            [(key, run.run_id, run.status) for key, run in left], [(THREAD, "r", "truncated")], "nobody's now"
        )
    same(await store.left("acme", now=gone, since=NOW + 1), [], "it is too long ago")
    same(await store.left("other", now=gone, since=0), [], "it is another tenant's")
    await store.append(batch(later, 3, 1, run=NewRun("s", "r", "resume")))
    same(await store.left("acme", now=9 * gone, since=0), [], "it was gone on from")


async def a_watch_rings_at_every_append(store: Store) -> None:
    """For its thread and no other, before or after somebody waits."""
    watch = await store.watch(THREAD)
    quiet = await store.watch(Key("other", "thread"))
    lease = await take(store)
    run = await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await rings(watch, "after an append")
    waiting = asyncio.ensure_future(rings(watch, "while somebody waits"))
    await asyncio.sleep(0)
    await store.append(batch(lease, 2, run=run))
    await waiting
    silence = asyncio.ensure_future(quiet.wait())
    await asyncio.wait([silence], timeout=0.05)
    same(silence.done(), False, "the bell of another tenant's thread is quiet")
    silence.cancel()
    quiet.close()
    watch.close()
    await store.append(batch(lease, 3, run=run))
