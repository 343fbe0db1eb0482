"""The contract bites: a store that breaks a promise is caught, each by a check that is about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from runcast.slim.errors import Conflict
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.contract import CONTRACT, Broken
from runcast.slim.stores.records import (
    Batch,
    BlobKind,
    Key,
    Lease,
    NewEvent,
    NewRun,
    Note,
    Page,
    StoredRun,
)
from runcast.slim.stores.wakeups import Wakeups, Watcher, thread_topic


class Trusting(MemoryStore):
    """Gives the lease to whoever asks."""

    async def acquire(self, key: Key, **asked: Any) -> Lease:
        return await super().acquire(key, **{**asked, "now": asked["now"] + 10**9})


class Unfenced(MemoryStore):
    """Forgets that a lease was taken over."""

    async def append(self, batch: Batch) -> int:
        thread = self._threads.get(batch.key)
        if thread is not None:
            thread.owner, thread.token = batch.owner, batch.token
        return await super().append(batch)


class Ageless(MemoryStore):
    """Takes an older token of the same owner."""

    async def append(self, batch: Batch) -> int:
        thread = self._threads.get(batch.key)
        if thread is not None and thread.owner == batch.owner:
            thread.token = batch.token
        return await super().append(batch)


class Generous(MemoryStore):
    """Renews what was lost."""

    async def renew(self, leases: Sequence[Lease], *, until: int) -> list[Lease]:
        for lease in leases:
            if (thread := self._threads.get(lease.key)) is not None:
                thread.until = until
        return []


class Unanswering(MemoryStore):
    """Lets one refused batch fail the others."""

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        return [await self.append(batch) for batch in batches]


class Rawful(MemoryStore):
    """Keeps the raw parts of a deleted thread."""

    _left: ClassVar[dict[Key, list[tuple[int, NewEvent]]]] = {}

    async def delete(self, key: Key, *, now: int, **more: Any) -> bool:
        thread = self._threads.get(key)
        gone = await super().delete(key, now=now, **more)
        if gone and thread is not None:
            self._left[key] = thread.raws
        return gone

    async def raws(self, key: Key, *, after: int, limit: int | None = None) -> list[NewEvent]:
        return [
            *await super().raws(key, after=after, limit=limit),
            *(raw for _, raw in self._left.get(key, [])),
        ]


class Reviving(MemoryStore):
    """Gives the id of a forgotten thread to the next writer."""

    async def acquire(self, key: Key, **given: Any) -> Lease:
        self._tombstones.discard(key)
        return await super().acquire(key, **given)


class Careless(MemoryStore):
    """Writes a batch wherever it says."""

    async def append(self, batch: Batch) -> int:
        thread = self._threads.get(batch.key)
        last = thread.last_seq if thread is not None else 0
        return await super().append(replace(batch, first_seq=last + 1))


class Repeating(MemoryStore):
    """Does not know a batch that it has seen."""

    async def append(self, batch: Batch) -> int:
        return await super().append(replace(batch, batch_id=f"{batch.batch_id} {id(batch)} {object()}"))


class HalfHearted(MemoryStore):
    """Has begun the run when it refuses the batch."""

    async def append(self, batch: Batch) -> int:
        if isinstance(batch.run, NewRun) and batch.run.parent is not None:
            await super().append(replace(batch, run=replace(batch.run, parent=None), batch_id="half"))
        return await super().append(batch)


class Mingling(MemoryStore):
    """Keeps all tenants' threads in one drawer."""

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        for other in self._threads:
            if other.thread_id == key.thread_id:
                return await super().events(other, after=after, upto=upto, limit=limit)
        return await super().events(key, after=after, upto=upto, limit=limit)


class Sociable(MemoryStore):
    """Takes siblings for ancestors."""

    async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
        chain = await super().lineage(key, run_id)
        return [run for run in await self.runs(key) if chain and run.seq <= chain[-1].seq]


class Mute(MemoryStore):
    """Never wakes."""

    async def watch(self, key: Key) -> Watcher:
        return Wakeups().watch(thread_topic(key))


class Mangling(MemoryStore):
    """Takes payloads for text."""

    async def append(self, batch: Batch) -> int:
        events = tuple(
            event._replace(payload=event.payload.decode(errors="replace").encode()) for event in batch.events
        )
        return await super().append(replace(batch, events=events))


class Forgetful(MemoryStore):
    """Forgets more than it was asked to."""

    async def drop_events(self, key: Key, runs: Sequence[int]) -> None:
        await super().drop_events(key, [run.seq for run in await self.runs(key)])

    async def drop_blobs(self, key: Key, kind: BlobKind, seqs: Sequence[int]) -> None:
        await super().drop_blobs(key, kind, [info.seq for info in await self.blob_index(key, kind)])


class Pushy(MemoryStore):
    """Lets a second note of a name have the place of the first."""

    async def post(self, note: Note, *, replace: bool = False) -> bool:
        return await super().post(note, replace=True)


class Rash(MemoryStore):
    """Takes off whatever has the name."""

    async def unpost(self, note: Note, *, instead: Note | None = None) -> bool:
        kept = self._notes.get(note.id)
        return await super().unpost(kept or note, instead=instead)


class Swapping(MemoryStore):
    """Replaces whatever has the name, or nothing."""

    async def unpost(self, note: Note, *, instead: Note | None = None) -> bool:
        if instead is None:
            return await super().unpost(note)
        return await self.post(instead, replace=True)


class Absent(MemoryStore):
    """Does not hear what is posted."""

    async def listen(self, *boxes: str) -> Watcher:
        return Wakeups().watch(*boxes)


class Inventive(MemoryStore):
    """Gives a run an end that nobody wrote."""

    async def acquire(self, key: Key, **more: Any) -> Lease:
        lease = await super().acquire(key, **more)
        last = lease.last_run and replace(lease.last_run, status="completed", terminal="RUN_FINISHED")
        return replace(lease, last_run=last)


@pytest.mark.parametrize(
    ("store", "about"),
    [
        (Trusting, "a_lease_is_exclusive_until_it_expires"),
        (Unfenced, "a_lease_is_exclusive_until_it_expires"),
        (Ageless, "a_lease_is_exclusive_until_it_expires"),
        (Generous, "a_lease_can_be_renewed_and_released"),
        (Unanswering, "batches_of_several_threads_are_written_together"),
        (Rawful, "a_thread_can_be_forgotten"),
        (Reviving, "a_tombstone_keeps_an_id_and_nothing_else"),
        (Careless, "seq_has_no_hole_and_no_double"),
        (Repeating, "the_same_batch_again_writes_nothing"),
        (HalfHearted, "a_refused_batch_leaves_nothing"),
        (Mingling, "tenants_never_meet"),
        (Sociable, "a_lineage_is_the_ancestors_alone"),
        (Mute, "a_watch_wakes_at_every_append"),
        (Mangling, "payloads_are_returned_unchanged"),
        (Forgetful, "events_can_be_forgotten_by_run"),
        (Inventive, "an_orphaned_run_is_truncated"),
        (Pushy, "the_id_of_a_note_is_unique"),
        (Rash, "the_id_of_a_note_is_unique"),
        (Swapping, "of_many_callers_one_replaces_a_note"),
        (Absent, "a_listener_wakes_at_every_post"),
    ],
)
async def test_a_broken_promise_is_caught(store: type[MemoryStore], about: str):
    broken: list[str] = []
    for check in CONTRACT:
        try:
            await check(store())
        except (Broken, Conflict):
            broken.append(check.__name__)
    assert about in broken


async def test_who_keeps_all_promises_is_left_in_peace():
    for check in CONTRACT:
        await check(MemoryStore())
