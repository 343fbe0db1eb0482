"""The promises about leases and appending.

Knows the races of two writers; of the reads it knows those of events alone.
"""

from __future__ import annotations

import asyncio
from threading import Thread

from runcast.slim.errors import Conflict, LineageError
from runcast.slim.stores.base import Store
from runcast.slim.stores.contract.tools import (
    NOW,
    THREAD,
    TTL,
    Broken,
    batch,
    blob,
    refuses,
    same,
    seqs,
    take,
    wakes,
)
from runcast.slim.stores.records import (
    IMPORTER,
    Key,
    Lease,
    NewEvent,
    NewRun,
    Note,
    Page,
    RunEnd,
)


async def a_thread_begins_with_its_first_lease(store: Store) -> None:
    """An empty thread has an epoch, no event and an owner."""
    same(await store.thread(THREAD), None, "a thread without a writer does not exist")
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
        "and names its owner",
    )
    same([t.key for t in await store.threads("acme", limit=10)], [THREAD], "and is listed")
    same((await take(store, epoch="e2", now=NOW + 1)).epoch, "e1", "a thread keeps its epoch")


async def a_lease_counts_the_notes_about_its_thread(store: Store) -> None:
    """So that nobody has to look whether something waits in it."""
    same((await take(store)).notes, 0, "none")
    for n, key in enumerate((THREAD, THREAD, THREAD, Key("acme", "other"), Key("b", THREAD.thread_id))):
        await store.post(Note(f"n{n}", f"box {n}", key, "r", b"", NOW))
    same((await take(store, now=NOW + 1)).notes, 3, "in all boxes")


async def a_batch_brings_a_snapshot_of_its_run(store: Store) -> None:
    """With its events or not at all, and the newest few stay."""
    lease = await take(store)
    run = NewRun("a", None, "continue")
    number = await store.append(batch(lease, 1, 2, run=run, snapshot=blob("snapshot", 0, 2)))
    same(await store.blobs(THREAD, "snapshot", [number]), [blob("snapshot", number, 2)], "it is the run's")
    refused = store.append(batch(lease, 9, run=number, snapshot=blob("snapshot", 0, 9)))
    await refuses(Conflict, refused, "a batch that does not fit")
    for seq in range(3, 6):
        wanted = batch(lease, seq, run=number, snapshot=blob("snapshot", 0, seq))
        same(await store.append_all([wanted]) in ([None], [number]), True, "it goes with others too")
        if (await store.thread(THREAD) or lease).last_seq < seq:
            await store.append(wanted)
    same([info.seq for info in await store.blob_index(THREAD, "snapshot")], [3, 4, 5], "the newest stay")


async def a_lease_is_exclusive_until_it_expires(store: Store) -> None:
    """No other owner gets it before, and another one gets it afterwards."""
    first = await take(store)
    await refuses(Conflict, take(store, owner="other"), "a live lease of another owner is respected")
    await refuses(Conflict, take(store, owner="other", now=NOW + TTL), "to its last millisecond")
    second = await take(store, owner="other", now=NOW + TTL + 1)
    same(second.token > first.token, True, "a later holder has a higher token")
    await refuses(
        Conflict, store.append(batch(first, 1, run=NewRun("r", None, "continue"))), "an older one is fenced"
    )
    same((await store.events(THREAD, after=0)).last_seq, 0, "and has written nothing")
    run = await store.append(batch(second, 1, run=NewRun("r", None, "continue")))
    third = await take(store, owner="other", now=NOW + TTL + 2)
    await refuses(
        Conflict, store.append(batch(second, 2, run=run)), "an older token of the same owner is fenced"
    )
    await store.append(batch(third, 2, run=run))


async def a_lease_may_begin_a_thread_anew(store: Store) -> None:
    """With another epoch, under which the entries stay; and only when that is asked for."""
    lease = await take(store)
    await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue")))
    same((await take(store, now=NOW + 1, epoch="e2")).epoch, "e1", "an epoch stays")
    await refuses(
        Conflict,
        store.acquire(THREAD, owner="other", now=NOW, until=NOW + 9, epoch="e2", anew=True),
        "a lease is in the way",
    )
    anew = await store.acquire(THREAD, owner="me", now=NOW + 2, until=NOW + 9, epoch="e2", anew=True)
    same((anew.epoch, anew.last_seq), ("e2", 2), "the lease names the new one")
    page = await store.events(THREAD, after=0)
    same((page.epoch, len(page.events)), ("e2", 2), "and so does a page, with all entries")


async def a_lease_can_be_renewed_and_released(store: Store) -> None:
    """By its present holder, many at once; released by a batch without events, or along with the last ones."""
    lease = await take(store)
    others = [await take(store, Key("acme", f"thread {n}")) for n in range(300)]
    same(await store.renew([lease, *others], until=NOW + 5 * TTL), [], "held leases are renewed")
    for key in (THREAD, others[0].key, others[-1].key):
        await refuses(
            Conflict, take(store, key, owner="other", now=NOW + 4 * TTL), "a renewed lease runs longer"
        )
    same((await store.events(THREAD, after=0)).last_seq, 0, "and nothing is written")
    await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue"), until=None))
    await refuses(Conflict, store.append(batch(lease, 3)), "a released lease is gone")
    same(await store.renew([lease, others[0]], until=NOW + 9 * TTL), [lease], "and is reported as lost")
    theirs = await take(store, owner="other")
    same(await store.renew([lease], until=NOW + 9 * TTL), [lease], "so is that of an earlier owner")
    again = await take(store, owner="other", now=NOW + 1)
    same(await store.renew([theirs], until=NOW + 9 * TTL), [theirs], "and an earlier one of the same owner")
    await take(store, owner="me", now=NOW + 2 * TTL)
    same(await store.renew([again], until=NOW + 9 * TTL), [again], "which expired as before")
    await store.delete(others[0].key, now=NOW + 20 * TTL)
    same(await store.renew(others[:2], until=NOW + 9 * TTL), others[:1], "and one of a deleted thread")


async def a_lease_can_be_renewed_while_the_event_loop_is_busy(store: Store) -> None:
    """By another thread, with an event loop of its own."""
    lease = await take(store)
    answers: list[list[Lease]] = []

    async def renew() -> None:
        async with store.apart() as other:
            answers.append(await other.renew([lease], until=NOW + 5 * TTL))

    thread = Thread(target=lambda: asyncio.run(renew()))
    thread.start()
    thread.join(30)  # and nothing else runs here meanwhile
    same(len(answers), 1, "it is answered")
    same(answers[0], [], "and renewed")
    await refuses(Conflict, take(store, owner="other", now=NOW + 4 * TTL), "it runs longer")
    await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    same(seqs(await store.events(THREAD, after=0)), [1], "and the store goes on")


async def of_many_owners_one_gets_the_lease(store: Store) -> None:
    """However many try at once."""
    takers = [take(store, owner=f"owner {n}") for n in range(8)]
    results = await asyncio.gather(*takers, return_exceptions=True)
    same(sum(isinstance(result, Lease) for result in results), 1, "one owner gets it")
    same(sum(isinstance(result, Conflict) for result in results), 7, "the others are refused")


async def seq_has_no_hole_and_no_double(store: Store) -> None:
    """A batch goes right behind the last event, or nowhere."""
    lease = await take(store)
    run = await store.append(batch(lease, 1, 3, run=NewRun("r", None, "continue")))
    await refuses(Conflict, store.append(batch(lease, 5, run=run)), "a gap is refused")
    await refuses(Conflict, store.append(batch(lease, 3, run=run, id="again")), "a double is refused")
    same(await store.append(batch(lease, 4, 600, run=run)), run, "the next batch is written")
    same(seqs(await store.events(THREAD, after=0)), list(range(1, 604)), "1, 2, 3, … without holes")
    racing = [store.append(batch(lease, 604, run=run, id=f"racer {n}")) for n in range(6)]
    results = await asyncio.gather(*racing, return_exceptions=True)
    same(sum(result == run for result in results), 1, "of several at one place one wins")
    same((await store.events(THREAD, after=0)).last_seq, 604, "and the others leave nothing")


async def the_same_batch_again_writes_nothing(store: Store) -> None:
    """A batch can be retried after a lost answer, even after the lease is gone."""
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
    same(len(await store.raws(THREAD, after=0)), 1, "and so are their raw parts")
    again = await take(store)
    raw = batch(again, 5, 0, run=run, id="raws alone", raws=(NewEvent(4, NOW, "RAW", b"2"),))
    same([await store.append(raw), await store.append(raw)], [run, run], "a batch without events likewise")
    same(len(await store.raws(THREAD, after=0)), 2, "its raw parts are there once")


async def a_refused_batch_leaves_nothing(store: Store) -> None:
    """Not its run, not its events, not its place."""
    lease = await take(store)
    other = await take(store, Key("acme", "elsewhere"))
    await store.append(batch(other, 1, run=NewRun("there", None, "continue")))
    orphan = batch(lease, 1, 2, run=NewRun("r", "unknown", "continue"))
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
    end = RunEnd("completed", "RUN_FINISHED")
    await refuses(
        Conflict, store.append(batch(lease, 2, run=10**9, end=end)), "a run that this thread does not have"
    )
    same(seqs(await store.events(THREAD, after=0)), [1], "nothing of the refused is there")
    runs = [(run.run_id, run.status) for run in await store.runs(THREAD)]
    same(runs, [("r", "in_progress")], "nor their runs and ends")


async def a_thread_has_the_time_of_its_last_write(store: Store) -> None:
    """A lease that is taken, renewed or released writes nothing: it moves no time and forgets no batch."""
    lease = await take(store)

    async def times(promise: str, *wanted: object) -> None:
        thread = await store.thread(THREAD)
        same(thread and (thread.created_at, thread.updated_at, thread.until), wanted, promise)

    await times("a new thread", NOW, NOW, NOW + TTL)
    first = batch(lease, 1, 2, run=NewRun("r", None, "continue"), now=NOW + 3)
    run = await store.append(first)
    await times("a write", NOW, NOW + 3, NOW + TTL)
    await store.append(batch(lease, 3, 0, now=NOW + 5, until=NOW + 2 * TTL))
    await store.renew([lease], until=NOW + 3 * TTL)
    await times("a renewal", NOW, NOW + 3, NOW + 3 * TTL)
    same(await store.append(first), run, "the batch before it is still known")
    await store.append(batch(lease, 3, 0, now=NOW + 7, until=None))
    await times("a release", NOW, NOW + 3, None)
    await take(store, now=NOW + 9)
    await times("another lease", NOW, NOW + 3, NOW + 9 + TTL)
    runs = await store.runs(THREAD)
    same(
        [(each.started_at, each.ended_at) for each in runs], [(NOW + 3, NOW + 3)], "a run that was cut short"
    )


async def batches_of_several_threads_are_written_together(store: Store) -> None:
    """The batches that fit, or some of them; the others leave nothing, and can be appended alone."""
    keys = [Key("acme", f"t{n}") for n in range(8)]
    leases = [await take(store, key) for key in keys]
    runs = [await store.append(batch(lease, 1, run=NewRun("r", None, "continue"))) for lease in leases[:6]]
    await take(store, keys[1], owner="other", now=NOW + TTL + 1)
    repeated = batch(leases[2], 2, run=runs[2])
    await store.append(repeated)
    end = RunEnd("completed", "RUN_FINISHED")
    raw = NewEvent(2, NOW, "RAW", b"raw")
    batches = [
        batch(leases[0], 2, 3, run=runs[0], raws=(raw,)),
        batch(leases[1], 2, run=runs[1]),
        repeated,
        batch(leases[3], 3, run=runs[3]),
        batch(leases[4], 2, 0, until=NOW + 9 * TTL),
        batch(leases[5], 2, run=runs[5], end=end, until=None),
        batch(leases[6], 1, run=NewRun("r", None, "continue")),
    ]
    answers = await store.append_all(batches)
    same([answers[1], answers[3]], [None, None], "what does not fit is left to `append`")
    for place in (1, 3):
        await refuses(Conflict, store.append(batches[place]), "which refuses it")
    for place in (0, 2, 5):
        same(answers[place] in (None, runs[place]), True, "the number of its run, or None")
        same(await store.append(batches[place]), runs[place], "the same batch again has the same answer")
    for place in (4, 6):
        if answers[place] is None:
            await store.append(batches[place])
    lasts = [(await store.events(key, after=0)).last_seq for key in keys]
    same(lasts, [4, 1, 2, 1, 1, 2, 1, 0], "and the fitting ones are written")
    same(await store.raws(keys[0], after=0), [raw], "with its raw parts")
    same((await store.runs(keys[5]))[0].status, "completed", "and its end")
    await refuses(
        Conflict, take(store, keys[4], owner="other", now=NOW + 8 * TTL), "a renewed lease is longer"
    )
    await take(store, keys[5], owner="other")
    orphan = batch(leases[7], 1, run=NewRun("r", "unknown", "continue"))
    fitting = batch(leases[0], 5, run=runs[0])
    same((await store.append_all([orphan, fitting]))[0], None, "a run without its parent is left to `append`")
    await refuses(LineageError, store.append(orphan), "which refuses it")
    same(await store.append(fitting), runs[0], "and it alone")
    same((await store.events(keys[0], after=0)).last_seq, 5, "each batch is written once")
    same(await store.append_all([]), [], "no batch, no answer")


async def an_orphaned_run_is_truncated(store: Store) -> None:
    """Found when its lease has expired, marked when the thread gets another owner, without a terminal event."""
    lease = await take(store)
    await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue")))
    same(await store.orphaned_runs("acme", now=NOW + TTL), [], "a run with an owner is not orphaned")
    stranded = await store.orphaned_runs("acme", now=NOW + TTL + 1)
    same([(key, run.run_id) for key, run in stranded], [(THREAD, "r")], "one without is")
    same(await store.orphaned_runs("other", now=NOW + TTL + 1), [], "for its tenant")
    later = await take(store, owner="other", now=NOW + TTL + 1)
    run = later.last_run
    if run is None:
        raise Broken("a new lease names the run that was truncated")
    same(
        (run.status, run.terminal, run.ended_at, run.last_seq),
        ("truncated", None, NOW, 2),
        "no end is made up",
    )
    same(await store.orphaned_runs("acme", now=NOW + 9 * TTL), [], "and it is not found twice")
    await store.append(batch(later, 3, 1, run=NewRun("open", "r", "resume"), until=None))
    found = await store.orphaned_runs("acme", now=NOW)
    same([run.run_id for _, run in found], ["open"], "a run that was left open is found at once")


async def a_truncated_run_is_found_until_a_run_continues_it(store: Store) -> None:
    """The process that truncated it may have died before it resumed it."""
    lease = await take(store)
    await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue")))
    late = NOW + TTL + 1
    same(await store.truncated_unresumed("acme", now=late, since=0), [], "a run in progress was not cut")
    later = await take(store, owner="other", now=late)
    same(await store.truncated_unresumed("acme", now=late, since=0), [], "its thread has an owner")
    gone = late + TTL + 1
    same(await store.truncated_unresumed("acme", now=gone - 1, since=0), [], "to its last millisecond")
    for tenant in (None, "acme"):
        left = await store.truncated_unresumed(tenant, now=gone, since=NOW)
        same(
            [(key, run.run_id, run.status) for key, run in left],
            [(THREAD, "r", "truncated")],
            "its thread has no owner now",
        )
    same(await store.truncated_unresumed("acme", now=gone, since=NOW + 1), [], "it is too long ago")
    same(await store.truncated_unresumed("other", now=gone, since=0), [], "it is another tenant's")
    number = await store.append(batch(later, 3, 1, run=NewRun("s", "r", "resume")))
    same(await store.truncated_unresumed("acme", now=9 * gone, since=0), [], "a run continues it")
    end = RunEnd("completed", "RUN_FINISHED")
    await store.append(batch(later, 4, 1, run=number, end=end, now=late, until=None))
    same(await store.truncated_unresumed("acme", now=9 * gone, since=0), [], "and has ended well")


async def an_imported_run_is_not_found(store: Store) -> None:
    """It ended before its thread was made here, and an import that broke off leaves no run of this host."""
    lease = await take(store)
    end = RunEnd("truncated", None, None)
    await store.append(
        batch(lease, 1, 2, run=NewRun("r", None, "continue"), end=end, now=NOW - 1, until=None)
    )
    same(await store.truncated_unresumed(None, now=NOW + TTL, since=0), [], "it was cut elsewhere")
    half = await take(store, owner=f"{IMPORTER}someone")
    await store.append(batch(half, 3, 1, run=NewRun("s", "r", "continue")))
    same(await store.orphaned_runs(None, now=NOW + 9 * TTL), [], "its import broke off")


async def what_a_killed_import_has_left_is_an_importers(store: Store) -> None:
    """It is half a thread: no run goes on in it, however long its lease is over."""
    half = await take(store, owner=f"{IMPORTER}someone")
    await store.append(batch(half, 1, 2, run=NewRun("r", None, "continue")))
    late = NOW + 9 * TTL
    await refuses(Conflict, take(store, owner="two", now=late), "a writer is refused after its lease too")
    again = await take(store, owner=f"{IMPORTER}another", now=late)
    same((again.last_seq, again.cut), (2, ("r",)), "an importer takes it")
    await store.append(
        batch(again, 3, 1, run=NewRun("s", "r", "continue"), end=RunEnd("completed", None, None), until=None)
    )
    same((await take(store, owner="two")).last_seq, 3, "and what it has given back is a thread")


async def a_watch_wakes_at_every_append(store: Store) -> None:
    """For its thread and no other, before or during a wait."""
    watch = await store.watch(THREAD)
    quiet = await store.watch(Key("other", "thread"))
    lease = await take(store)
    run = await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await wakes(watch, "after an append")
    waiting = asyncio.ensure_future(wakes(watch, "during a wait"))
    await asyncio.sleep(0)
    await store.append(batch(lease, 2, run=run))
    await waiting
    silence = asyncio.ensure_future(quiet.wait())
    await asyncio.wait([silence], timeout=0.05)
    same(silence.done(), False, "a watch of another tenant's thread stays asleep")
    silence.cancel()
    quiet.close()
    watch.close()
    await store.append(batch(lease, 3, run=run))
