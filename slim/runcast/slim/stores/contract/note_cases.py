"""The promises about notes between processes, and about finding a run by its name.

Knows boxes, watches and races; does not know the content of a note.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from runcast.slim.stores.base import Store
from runcast.slim.stores.contract.tools import NOW, THREAD, TTL, Broken, batch, same, sleeps, take, wakes
from runcast.slim.stores.records import Key, NewRun, Note

NOTE = Note("stop r", "to one", THREAD, "r", bytes(range(256)), NOW)


async def a_note_stays_in_its_box_until_it_is_removed(store: Store) -> None:
    """Found in that box and by its run, oldest first, unchanged."""
    same(await store.notes("to one"), [], "an empty box is empty")
    same(await store.post(NOTE), True, "a note is posted")
    later = Note("stop s", "to one", Key("other", "t"), "r", b"", NOW + 1, NOW + TTL)
    elsewhere = Note("start", "to other", THREAD, "s", b"x", NOW - 1)
    same([await store.post(later), await store.post(elsewhere)], [True, True], "and others")
    same(await store.notes("to one"), [NOTE, later], "it is found in its box, as it was")
    same(await store.notes("to other", "to one"), [elsewhere, NOTE, later], "boxes are read together")
    same(await store.notes("to other", "to one", limit=2), [elsewhere, NOTE], "at most as many as asked for")
    same(await store.notes(), [], "no box holds no note")
    same(await store.notes_about("acme", "r"), [NOTE], "it is found by its run, and the tenant's")
    same(await store.unpost(NOTE), True, "it is removed")
    same(await store.unpost(NOTE), False, "once")
    same(await store.notes("to one"), [later], "and no other note goes with it")


async def the_id_of_a_note_is_unique(store: Store) -> None:
    """A second note is refused, or replaces the first; a copy of the first no longer removes it."""
    await store.post(NOTE)
    second = replace(NOTE, box="to other", body=b"hard", run_id="s")
    same(await store.post(second), False, "a second of the same id is refused")
    same(await store.notes("to one", "to other"), [NOTE], "and leaves nothing")
    same(await store.post(second, replace=True), True, "unless it is to replace it")
    same(await store.notes("to one", "to other"), [second], "then it is there instead")
    same(await store.unpost(NOTE), False, "the replaced note cannot be removed any more")
    for other in (replace(second, body=b"soft"), replace(second, box="to one")):
        same(await store.unpost(other), False, "and a copy with another body or box removes nothing")
    same(await store.notes("to other"), [second], "and the new one stays")


async def of_many_callers_one_replaces_a_note(store: Store) -> None:
    """A note that has changed, or was removed, is not replaced; all notes of a thread are found."""
    await store.post(NOTE)
    await store.post(replace(NOTE, id="b", box="to other", at=NOW - 1))
    await store.post(replace(NOTE, id="c", key=Key("other", THREAD.thread_id)))
    await store.post(replace(NOTE, id="d", key=Key("acme", "another thread")))
    news = [replace(NOTE, box="to other", body=b"%d" % n) for n in range(8)]
    done = await asyncio.gather(*(store.unpost(NOTE, instead=new) for new in news))
    same(sum(done), 1, "one replaces it")
    new = news[done.index(True)]
    same(
        [each.id for each in await store.notes_about("acme", thread_id=THREAD.thread_id)],
        ["b", NOTE.id],
        "those of a thread, oldest first",
    )
    same(
        await store.notes_about("acme", thread_id=THREAD.thread_id),
        [replace(NOTE, id="b", box="to other", at=NOW - 1), new],
        "as they are now",
    )
    same(await store.unpost(NOTE), False, "what it was cannot be removed any more")
    same(await store.unpost(new), True, "what it is can be")
    same(await store.unpost(new, instead=NOTE), False, "and a removed note does not come back")
    same(
        [each.id for each in await store.notes_about("acme", thread_id=THREAD.thread_id)],
        ["b"],
        "nor leaves anything",
    )


async def of_many_callers_one_removes_a_note(store: Store) -> None:
    """And of many that post it, one succeeds."""
    posts = await asyncio.gather(*(store.post(NOTE) for _ in range(8)))
    same(sum(posts), 1, "one posts it")
    takes = await asyncio.gather(*(store.unpost(NOTE) for _ in range(8)))
    same(sum(takes), 1, "one removes it")


async def a_listener_wakes_at_every_post(store: Store) -> None:
    """To its boxes and to no other, before or after it waits."""
    ear = await store.listen("to one", "to me too")
    quiet = await store.listen("to no other")
    await store.post(NOTE)
    await wakes(ear, "after a post")
    waiting = asyncio.ensure_future(wakes(ear, "during a wait"))
    await asyncio.sleep(0)
    await store.post(replace(NOTE, id="other", box="to me too"))
    await waiting
    await store.post(replace(NOTE, body=b"anew"), replace=True)
    await wakes(ear, "after a replacement")
    await store.unpost(replace(NOTE, body=b"anew"), instead=NOTE)
    await wakes(ear, "after an exchange")
    same(await sleeps(quiet), True, "a watch of another box stays asleep")
    for _ in range(10):  # what a note before it said may come late, but not each time
        same(await store.post(NOTE), False, "a note that is refused")
        same(await store.unpost(replace(NOTE, body=b"none"), instead=NOTE), False, "or not exchanged")
        if await sleeps(ear):
            break
    else:
        raise Broken("a note that is refused wakes a watch")
    quiet.close()
    ear.close()
    await store.post(replace(NOTE, id="last"))


async def stale_notes_are_swept(store: Store) -> None:
    """Notes past their `until`, and no others."""
    await store.post(NOTE)
    await store.post(replace(NOTE, id="short", until=NOW + 1))
    await store.post(replace(NOTE, id="long", until=NOW + 9))
    same(await store.sweep_notes(before=NOW + 1), 0, "none is stale in its last millisecond")
    same(await store.sweep_notes(before=NOW + 5), 1, "one is stale")
    same({each.id for each in await store.notes("to one")}, {"stop r", "long"}, "the others stay")


async def a_run_is_found_by_its_id(store: Store) -> None:
    """In every thread of its tenant, with the thread's lease."""
    for n, tenant in enumerate(("acme", "acme", "other")):
        lease = await take(store, Key(tenant, f"t{n}"), owner=f"owner {n}")
        await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue")))
    found = await store.named("acme", "r")
    found_runs = [
        (thread.key.thread_id, thread.owner, run.run_id, run.status, run.last_seq) for thread, run in found
    ]
    wanted = [("t0", "owner 0", "r", "in_progress", 2), ("t1", "owner 1", "r", "in_progress", 2)]
    same(found_runs, wanted, "the tenant's, oldest first")
    same(await store.named("acme", "s"), [], "and none by another id")


async def orphaned_runs_of_all_tenants_are_found_together(store: Store) -> None:
    """Each with its tenant; the lease that truncated a run names it."""
    for tenant in ("acme", "other"):
        lease = await take(store, Key(tenant, "t"))
        await store.append(batch(lease, 1, 2, run=NewRun("r", None, "continue")))
        same(lease.cut, (), "a new thread has no run to truncate")
    late = NOW + TTL + 1
    found = [(key, run.run_id) for key, run in await store.orphaned_runs(None, now=late)]
    same(found, [(Key("acme", "t"), "r"), (Key("other", "t"), "r")], "of all tenants")
    first = await take(store, Key("acme", "t"), owner="one", now=late)
    same(first.cut, ("r",), "the lease names the runs it truncated")
    again = await take(store, Key("acme", "t"), owner="two", now=late + TTL + 1)
    same(again.cut, (), "and no other lease does")
    same(
        [key.tenant for key, _ in await store.orphaned_runs(None, now=late)],
        ["other"],
        "the rest is still there",
    )
