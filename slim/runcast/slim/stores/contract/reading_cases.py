"""The promises about reading, derived data and removal.

Knows a thread as readers see it; does not know the races of writers.
"""

from __future__ import annotations

from runcast.slim.errors import Conflict, Forgotten
from runcast.slim.stores.base import Store
from runcast.slim.stores.contract.tools import (
    NOW,
    THREAD,
    TTL,
    batch,
    blob,
    refuses,
    same,
    seqs,
    take,
    wakes,
    write_run,
)
from runcast.slim.stores.records import (
    Batch,
    Edge,
    Key,
    NewEvent,
    NewRun,
    Note,
    Page,
    RunEnd,
)

PAYLOADS = [
    b"{}",
    b"",
    b'{"text":"caf\xc3\xa9 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac"}',
    b'{"nul":"\\u0000","half":"\\ud83d"}',
    bytes(range(256)),
    b'{"twice":1,"twice":2,"huge":1e400,"zero":-0,"big":9007199254740993}',
    b"x" * 1_000_000,
]


FIRST = Key("", "")  # before every thread


async def payloads_are_returned_unchanged(store: Store) -> None:
    """Byte by byte, with any content."""
    lease = await take(store)
    events = tuple(NewEvent(n, NOW + n, "CUSTOM", payload) for n, payload in enumerate(PAYLOADS, 1))
    await store.append(
        Batch(THREAD, "me", lease.token, "b", 1, NewRun("r\u00e9\U0001f642", None, "continue"), events)
    )
    page = await store.events(THREAD, after=0)
    same([event.payload for event in page.events], PAYLOADS, "a payload is bytes")
    same({event.run_id for event in page.events}, {"r\u00e9\U0001f642"}, "an event knows its run")
    same([event.at for event in page.events], [event.at for event in events], "and its time")


async def events_are_read_in_ranges(store: Store) -> None:
    """After a seq, up to another, and at most a number of them."""
    lease = await take(store)
    await store.append(batch(lease, 1, 10, run=NewRun("r", None, "continue")))
    same(seqs(await store.events(THREAD, after=7)), [8, 9, 10], "after")
    same(seqs(await store.events(THREAD, after=2, upto=5)), [3, 4, 5], "after, up to")
    same(seqs(await store.events(THREAD, after=2, limit=2)), [3, 4], "after, so many")
    same(seqs(await store.events(THREAD, after=2, upto=3, limit=9)), [3], "the nearer bound counts")
    same(await store.events(THREAD, after=10), Page("e1", 10, []), "nothing behind the last")
    same(await store.events(THREAD, after=99, limit=5), Page("e1", 10, []), "nor far behind it")
    same(await store.events(THREAD, after=0, limit=0), Page("e1", 10, []), "none when none are asked for")


async def raw_parts_stay_apart(store: Store) -> None:
    """It takes no seq and is no event."""
    lease = await take(store)
    raws = tuple(NewEvent(seq, NOW, "RAW", b"%d" % n) for n, seq in enumerate((1, 1, 2)))
    run = await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue"), raws=raws))
    late = NewEvent(2, NOW, "RAW", b"late")
    await store.append(batch(lease, 3, 0, run=run, id="raw alone", raws=(late,)))
    same(seqs(await store.events(THREAD, after=0)), [1, 2], "raws are no events")
    same(await store.raws(THREAD, after=0), [*raws, late], "they come back in their order")
    same(await store.raws(THREAD, after=1), [raws[2], late], "after a seq")
    same(await store.raws(THREAD, after=0, limit=1), [raws[0]], "and so many")


async def runs_are_ranges_of_their_thread(store: Store) -> None:
    """Each knows where it begins and ends, how, and after which."""
    lease = await take(store)
    one = await write_run(store, lease, "one")
    wire = NewRun("two", "one", "continue", wire_parent="elsewhere")
    two = await store.append(batch(lease, 4, 2, run=wire))
    first, second = await store.runs(THREAD)
    same(
        (first.seq, first.run_id, first.first_seq, first.last_seq),
        (one, "one", 1, 3),
        "a run ends before the next",
    )
    same(
        (first.status, first.terminal, first.usage, first.ended_at),
        ("completed", "RUN_FINISHED", b"[]", NOW),
        "ended",
    )
    same(
        (second.seq, second.parent_seq, second.first_seq, second.last_seq),
        (two, one, 4, 5),
        "or at the last event",
    )
    same(
        (second.status, second.ended_at, second.terminal),
        ("in_progress", None, None),
        "or is still in progress",
    )
    same((second.wire_parent, second.edge), ("elsewhere", "continue"), "its edge and wire parent")
    await store.append(batch(lease, 6, run=two, end=RunEnd("completed", "RUN_FINISHED")))
    await store.append(batch(lease, 7, run=two, end=RunEnd("failed", "RUN_ERROR")))
    ended = (await store.runs(THREAD))[1]
    same(
        (ended.status, ended.terminal, ended.last_seq), ("failed", "RUN_ERROR", 7), "an end can be corrected"
    )
    again = await take(store, now=NOW + 1)
    same(again.last_run, ended, "a new lease names the newest run")
    same(again.last_seq, 7, "and the last seq")


async def a_place_has_the_mark_of_its_run(store: Store) -> None:
    """Whatever is read from there, so that a position can be bound to its history."""
    lease = await take(store)
    await store.append(batch(lease, 1, 2, run=NewRun("a", None, "continue", mark="1.a")))
    await store.append(batch(lease, 3, 2, run=NewRun("b", "a", "continue", mark="3.b")))
    pages = [await store.events(THREAD, after=n, limit=n % 2) for n in range(6)]
    same(
        [page.mark for page in pages], ["", "1.a", "1.a", "3.b", "3.b", "3.b"], "a page, of the seq before it"
    )
    page = await store.events(THREAD, after=0)
    same([event.mark for event in page.events], ["1.a", "1.a", "3.b", "3.b"], "an event")
    same([run.mark for run in await store.runs(THREAD)], ["1.a", "3.b"], "a run")
    same(
        [thread.mark for thread in await store.threads(THREAD.tenant, limit=9)],
        ["3.b"],
        "a thread, of its end",
    )
    same([thread.mark for thread, _ in await store.named(THREAD.tenant, "a")], ["3.b"], "however it is found")
    same(
        (await take(store, now=NOW + 1)).last_run, (await store.runs(THREAD))[-1], "and a lease's newest run"
    )


async def a_lineage_is_the_ancestors_alone(store: Store) -> None:
    """No sibling, and nothing above a spawned run."""
    lease = await take(store)
    edges: list[tuple[str, str | None, Edge]] = [
        ("1", None, "continue"),
        ("2", "1", "continue"),
        ("3", "1", "branch"),
        ("4", "3", "resume"),
        ("5", "4", "resume"),
        ("6", "5", "spawn"),
        ("7", "6", "continue"),
    ]
    for run_id, parent, edge in edges:
        await write_run(store, lease, run_id, parent, edge=edge)
    wanted = {"1": "1", "2": "12", "3": "13", "4": "134", "5": "1345", "6": "6", "7": "67"}
    for run_id, chain in wanted.items():
        found = await store.lineage(THREAD, run_id)
        same("".join(run.run_id for run in found), chain, f"the lineage of run {run_id}")
        same(found, [run for run in await store.runs(THREAD) if run.run_id in chain], "as the runs are")
    same(await store.lineage(THREAD, "8"), [], "an unknown run has none")
    same(
        await store.lineage(THREAD),
        await store.lineage(THREAD, "7"),
        "the newest run is the one that is meant",
    )
    same(
        [run.attempt for run in await store.runs(THREAD)],
        [1, 1, 1, 2, 3, 1, 1],
        "a resumed run counts attempts",
    )
    await write_run(store, lease, "8", "7", edge="spawn")
    same(await store.lineage(THREAD), await store.lineage(THREAD, "7"), "unless it was spawned")
    same(await store.lineage(Key("acme", "nothing")), [], "nothing has none")
    again = await take(store)
    newest = (again.last_run and again.last_run.run_id, again.head and again.head.run_id)
    same(newest, ("8", "7"), "a spawned run is the newest, but not the head")


async def blobs_are_stored_replaced_and_dropped(store: Store) -> None:
    """By kind, run and seq."""
    nowhere = store.put_blob(THREAD, blob("segment", 1, 1))
    await refuses(Conflict, nowhere, "a blob needs its thread")
    lease = await take(store)
    runs = [await write_run(store, lease, run_id) for run_id in "abc"]
    for n, run in enumerate(runs):
        await store.put_blob(THREAD, blob("segment", run, 3 * n + 3, bytes([0, n])))
    await store.put_blob(THREAD, blob("checkpoint", runs[1], 6))
    await store.put_blob(THREAD, blob("segment", runs[2], 9, b"better"))
    index = await store.blob_index(THREAD, "segment")
    same(
        [(info.run, info.seq, info.size) for info in index],
        list(zip(runs, (3, 6, 9), (2, 2, 6), strict=True)),
        "index",
    )
    found = await store.blobs(THREAD, "segment", [runs[2], runs[0], 10**9])
    same(found, [blob("segment", runs[0], 3, b"\0\0"), blob("segment", runs[2], 9, b"better")], "bodies")
    same(await store.blobs(THREAD, "segment", []), [], "of no run")
    await store.drop_blobs(THREAD, "segment", [3, 6])
    same([info.seq for info in await store.blob_index(THREAD, "segment")], [9], "dropped by seq")
    same(len(await store.blob_index(THREAD, "checkpoint")), 1, "of one kind")


async def events_can_be_forgotten_by_run(store: Store) -> None:
    """The run stays, and so do the events around it."""
    lease = await take(store)
    runs = [await write_run(store, lease, run_id, events=4) for run_id in "abc"]
    early, raw = NewEvent(2, NOW, "RAW", b"early"), NewEvent(12, NOW, "RAW", b"raw")
    for run, kept in ((runs[0], early), (runs[2], raw)):
        await store.append(batch(lease, 13, 0, run=run, id=kept.type + str(run), raws=(kept,)))
    sizes = await store.sizes(THREAD)
    same(
        [(size.run, size.events, size.raw_bytes) for size in sizes],
        [(runs[0], 4, 5), (runs[1], 4, 0), (runs[2], 4, 3)],
        "sizes",
    )
    same(sizes[0].bytes, 4 * len(b'{"n":1}'), "in bytes of payload")
    await store.drop_events(THREAD, runs[1:2])
    same(seqs(await store.events(THREAD, after=0)), [1, 2, 3, 4, 9, 10, 11, 12], "those on both sides stay")
    await store.drop_events(THREAD, runs[2:])
    await store.append(batch(lease, 13, 2, run=NewRun("d", "c", "continue")))
    same(seqs(await store.events(THREAD, after=0)), [1, 2, 3, 4, 13, 14], "the others stay")
    same(seqs(await store.events(THREAD, after=2, limit=3)), [3, 4, 13], "and are read across the hole")
    same(seqs(await store.events(THREAD, after=5, upto=11, limit=3)), [], "which is empty")
    same([run.pruned for run in await store.runs(THREAD)], [False, True, True, False], "the run is marked")
    same(await store.raws(THREAD, after=0), [early], "raw parts go with the events of their run")
    await store.drop_events(THREAD, runs[:1])
    same(await store.raws(THREAD, after=0), [], "and with no others")


async def a_thread_can_be_forgotten(store: Store) -> None:
    """Completely, once no writer holds it; a new one of that id has another epoch."""
    lease = await take(store)
    run = await write_run(store, lease, "a")
    await write_run(store, lease, "b", "a")
    await store.put_blob(THREAD, blob("snapshot", run, 3))
    raws = (NewEvent(7, NOW, "RAW", b"raw"),)
    await store.append(batch(lease, 7, 1, run=run, raws=raws))
    for now in (NOW, NOW + TTL):
        await refuses(Conflict, store.delete(THREAD, now=now), "a thread that is being written stays")
    same(await store.delete(THREAD, now=NOW + TTL + 1), True, "then it goes")
    same(await store.delete(THREAD, now=NOW + TTL + 1), False, "once")
    same(await store.thread(THREAD), None, "it is not there")
    same(await store.runs(THREAD), [], "nor its runs")
    same(await store.blob_index(THREAD, "snapshot"), [], "nor its blobs")
    await refuses(Conflict, store.append(batch(lease, 8, run=run)), "its writer is refused")
    again = await take(store, epoch="e2")
    same((again.epoch, again.last_seq, again.last_run), ("e2", 0, None), "a new one begins anew")
    await write_run(store, again, "a", events=8)
    same(await store.raws(THREAD, after=0), [], "and has no raw part of the old one")
    same(await store.blob_index(THREAD, "snapshot"), [], "and no blob")
    await store.append(batch(again, 9, 0, until=None))
    early = store.delete(THREAD, now=NOW, idle_since=NOW - 1)
    await refuses(Conflict, early, "one that was written to since stays")
    same(await store.delete(THREAD, now=NOW, idle_since=NOW), True, "one that was released goes at once")


async def a_tombstone_keeps_an_id_and_nothing_else(store: Store) -> None:
    """The thread goes with its notes; its id is refused until the tombstone is deleted."""
    lease, other = await take(store), Key(THREAD.tenant, "other")
    run = await write_run(store, lease, "a")
    await store.put_blob(THREAD, blob("snapshot", run, 3))
    keys = (THREAD, other, Key("b", "t"), Key(THREAD.tenant, ""))
    notes = [Note(f"n{n}", "box", key, "a", b"", NOW) for n, key in enumerate(keys)]
    for note in notes:
        await store.post(note)
    later = NOW + TTL + 1
    await refuses(
        Conflict, store.delete(THREAD, now=NOW, tombstone=True), "a thread that is being written stays"
    )
    early = store.delete(THREAD, now=later, tombstone=True, idle_since=NOW - 1)
    await refuses(Conflict, early, "and one that was written to since")
    same(await store.forgotten(THREAD), False, "without a tombstone")
    watch = await store.watch(THREAD)
    same(await store.delete(THREAD, now=later, tombstone=True), True, "then it goes")
    await wakes(watch, "its watchers wake")
    watch.close()
    same(await store.delete(THREAD, now=later, tombstone=True, idle_since=0), False, "once")
    same(await store.forgotten(THREAD), True, "its tombstone stays")
    same(await store.rename(THREAD, "x"), False, "which has no title")
    same(await store.thread(THREAD), None, "it is no thread")
    same(await store.threads(THREAD.tenant, limit=9), [], "in no list")
    same(await store.every(limit=9, after=FIRST), [], "of anyone")
    same(await store.events(THREAD, after=0), Page(None, 0, []), "it has no events")
    same(await store.blob_index(THREAD, "snapshot"), [], "no blobs")
    same(await store.notes("box"), notes[1:], "no notes, and those of others stay")
    await refuses(Conflict, store.put_blob(THREAD, blob("snapshot", run, 3)), "it takes no blob")
    await refuses(Conflict, store.append(batch(lease, 4, run=run)), "its writer is refused")
    await refuses(Forgotten, take(store, now=later), "and so is the next one")
    await store.delete(keys[-1], now=later)
    same(await store.notes("box"), notes[1:], "nor do notes go that are about no thread")
    same(await store.delete(other, now=NOW, tombstone=True), False, "what never was")
    await refuses(Forgotten, take(store, other), "can be refused from the start")
    same(await store.delete(THREAD, now=later), True, "a tombstone can be deleted")
    same((await take(store, epoch="e2")).epoch, "e2", "and the id used again")


async def the_threads_of_all_tenants_can_be_walked(store: Store) -> None:
    """By tenant and id, a page at a time."""
    keys = [Key(*each) for each in (("", "b"), ("a", "a"), ("a", "b"), ("b", "a"))]
    for key in reversed(keys):
        await take(store, key)
    first = await store.every(limit=3, after=FIRST)
    same([each.key for each in first], keys[:3], "a page")
    same([each.key for each in await store.every(limit=3, after=first[-1].key)], keys[3:], "and the next")


async def tenants_never_meet(store: Store) -> None:
    """The same thread id under two tenants is two threads, for every call."""
    mine, theirs = Key("a", "t"), Key("b", "t")
    lease = await take(store, mine)
    run = await write_run(store, lease, "r")
    await store.put_blob(mine, blob("snapshot", run, 3))
    same(await store.thread(theirs), None, "thread")
    same(await store.threads("b", limit=9), [], "threads")
    same(await store.events(theirs, after=0), Page(None, 0, []), "events")
    same(await store.raws(theirs, after=0), [], "raws")
    same(await store.runs(theirs), [], "runs")
    same(await store.lineage(theirs, "r"), [], "lineage")
    same(await store.blobs(theirs, "snapshot", [run]), [], "blobs")
    same(await store.blob_index(theirs, "snapshot"), [], "blob_index")
    same(await store.sizes(theirs), [], "sizes")
    await store.drop_events(theirs, [run])
    await store.drop_blobs(theirs, "snapshot", [3])
    same(await store.delete(theirs, now=NOW + 9 * TTL), False, "delete")
    other = await take(store, theirs, owner="other", epoch="e9")
    same((other.epoch, other.last_seq), ("e9", 0), "acquire")
    same(len((await store.events(mine, after=0)).events), 3, "nothing of mine was touched")
    same(len(await store.blobs(mine, "snapshot", [run])), 1, "nor its blobs")
    same(await store.rename(mine, "Trains"), True, "rename")
    same((await store.threads("b", limit=9))[0].title, None, "a title is of one tenant's thread")
    names = [Key("a", "t2"), Key("a", "t1")]
    for key in names:
        await take(store, key)
    same([t.key for t in await store.threads("a", limit=2)], [mine, names[1]], "threads are listed by id")
    same([t.key for t in await store.threads("a", limit=9, after="t1")], [names[0]], "after one")


async def a_thread_has_a_title_and_the_status_of_its_newest_run(store: Store) -> None:
    """The title is stored beside the events, whoever writes them, and goes with the thread."""
    same(await store.rename(THREAD, "Trains"), False, "a thread that is not there")
    lease = await take(store)
    same([(t.title, t.status) for t in await store.threads("acme", limit=9)], [(None, None)], "none yet")
    await write_run(store, lease, "a")
    same(await store.rename(THREAD, "Trains"), True, "no lease is needed")
    await store.append(batch(lease, 4, run=NewRun("b", "a", "continue")))
    thread = await store.thread(THREAD)
    same(thread and (thread.title, thread.status), ("Trains", "in_progress"), "of the newest run")
    same(
        [found.title for found, _ in await store.named("acme", "a")], ["Trains"], "wherever a thread is read"
    )
    same(await store.rename(THREAD, None), True, "a title can be taken away")
    same([t.title for t in await store.threads("acme", limit=9)], [None], "and is gone")
    await store.rename(THREAD, "Again")
    await store.delete(THREAD, now=NOW + TTL + 1)
    await take(store, epoch="e2")
    same([t.title for t in await store.threads("acme", limit=9)], [None], "a new thread of this id has none")


async def an_aside_is_no_history_and_changes_nothing_of_its_thread(store: Store) -> None:
    """It is a run of the store, with its events and its mark; what asks for the thread's newest run does not see it."""
    lease = await take(store)
    await write_run(store, lease, "a")
    cut = RunEnd("truncated", None)
    await store.append(batch(lease, 4, run=NewRun("b", "a", "continue"), end=cut))
    before = await store.truncated_unresumed("acme", now=NOW + TTL + 1, since=0)
    await write_run(store, lease, "n", edge="aside")
    same([run.run_id for run in await store.runs(THREAD)], ["a", "b", "n"], "a run")
    same([t.status for t in await store.threads("acme", limit=9)], ["truncated"], "not the newest")
    same(await store.lineage(THREAD), await store.lineage(THREAD, "b"), "nor the head")
    same([run.run_id for run in await store.lineage(THREAD, "n")], ["n"], "without a history")
    after = await store.truncated_unresumed("acme", now=NOW + TTL + 1, since=0)
    same([run.run_id for _, run in before], ["b"], "a run that was cut short")
    same([run.run_id for _, run in after], ["b"], "is not continued by it")
    anew = await take(store, now=NOW + TTL + 2)
    same(
        (anew.head and anew.head.run_id, anew.last_run and anew.last_run.run_id), ("b", "n"), "a lease tells"
    )


async def a_store_can_be_closed_and_opened_again(store: Store) -> None:
    """With everything in it; opening twice is opening once."""
    await store.open()
    await store.open()
    lease = await take(store)
    run = await write_run(store, lease, "r")
    await store.close()
    await store.close()
    same(seqs(await store.events(THREAD, after=0)), [1, 2, 3], "the events are stored")
    await store.append(batch(lease, 4, run=run))
