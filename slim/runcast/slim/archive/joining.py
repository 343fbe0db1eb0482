"""Joining a thread late: the events that bring an empty client to a cut, then the rest as that client may apply it.

Knows where the history ends and the tail begins; does not know what a late client needs (`late_join` does).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace

from runcast.slim.archive.derived import Derived
from runcast.slim.archive.info import Portion
from runcast.slim.archive.pages import refuse_other_history
from runcast.slim.compaction.late_join import Join
from runcast.slim.entry import Entry
from runcast.slim.errors import UnknownThread
from runcast.slim.stores import Store
from runcast.slim.stores.records import Key, StoredRun
from runcast.slim.wire.codec import AnyEvent

Tail = Callable[[int], AsyncIterator[Entry]]


async def join_thread(
    store: Store,
    derived: Derived,
    key: Key,
    tail: Tail,
    *,
    at: int | None,
    after: int | None,
    epoch: str | None,
) -> AsyncGenerator[Portion]:
    """See `RunLog.join`."""
    thread = await store.thread(key)
    last = thread.last_seq if thread else 0
    cut = last if at is None else at
    if cut > last or (after is not None and after < cut):
        raise UnknownThread(
            f"thread {key.thread_id!r} ends at seq {last}: it cannot be joined at {cut} and read after {after}"
        )
    if after is not None and epoch is not None:
        refuse_other_history(key, await store.events(key, after=after, limit=0), after, epoch)
    view = Join(await _history(derived, key, await store.runs(key), cut), duplicates="keep")
    if after is None:
        after = cut
        mark = (await store.events(key, after=cut, limit=0)).mark
        yield Portion(thread.epoch if thread else None, cut, view.prelude(), mark)
    async for entry in tail(cut):
        events = view.feed(entry.event)
        if events and entry.seq > after:
            yield Portion(entry.epoch, entry.seq, events, entry.mark)


async def _history(derived: Derived, key: Key, runs: list[StoredRun], cut: int) -> list[AnyEvent]:
    """The events up to the cut of the run that was active or had ended last then, and of its ancestors."""
    there = [run for run in runs if run.first_seq <= cut and run.edge != "aside"]
    if not there:
        return []
    chain = await derived.chain(key, there[-1].run_id)
    run = chain[-1]
    if run.last_seq > cut:  # it continued after the cut, perhaps to its end
        run = replace(run, last_seq=cut, status="in_progress", terminal=None)
    if run.status != "in_progress":
        return await derived.outcome(key, chain)
    before = await derived.outcome(key, chain[:-1]) if len(chain) > 1 else []
    return [*before, *[event async for piece in derived.pieces(key, [run], folded=False) for event in piece]]
