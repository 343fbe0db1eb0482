"""A thread as JSON Lines, for import into another store.

The lines: a header, then for every run a line about it and a line for each of its entries, with the bytes of the event as
they were stored; raw parts follow the entry they came with. A thread with pruned runs is exported as the content of its
segments, and is imported under another epoch with seqs of its own; any other keeps epoch and seqs. Derived data are not
exported: they are made again. Does not know files or compression.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from typing import Any

import orjson

from runcast.slim.archive.derived import Derived
from runcast.slim.errors import UnknownThread
from runcast.slim.stores import Store
from runcast.slim.stores.records import Key, NewEvent, StoredRun
from runcast.slim.wire.codec import encode

FORMAT, WITH_RAWS = 1, 2  # the second has lines with raw parts too
PAGE = 1_000
MARK, RAW = b',"event":', b',"raw":'
Line = dict[str, Any]


async def export_lines(store: Store, derived: Derived, key: Key) -> AsyncIterator[bytes]:
    """The lines of a thread, each with its line break."""
    thread = await store.thread(key)
    if thread is None:
        raise UnknownThread(f"there is no thread {key.thread_id!r}")
    runs = await store.runs(key)
    whole = not any(run.pruned for run in runs)
    raws = await store.raws(key, after=0)
    header: Line = {
        "runcast": WITH_RAWS if raws else FORMAT,
        "thread_id": key.thread_id,
        "whole": whole,
        "epoch": thread.epoch,
    }
    if thread.title is not None:
        header["title"] = thread.title
    if not whole:  # another epoch, the same for every export of what is left
        pruned = [run.run_id for run in runs if run.pruned]
        header["epoch"] = sha256(orjson.dumps([thread.epoch, thread.last_seq, pruned])).hexdigest()[:32]
    yield _line(header | {"last_seq": await _length(store, key, runs)})
    names = {run.seq: run.run_id for run in runs}
    for run in runs:
        described = _described(run, names)
        if not whole:  # its seqs are others there
            described.pop("mark", None)
        yield _line({"run": described})
        last = None if run is runs[-1] else run.last_seq  # a part may come before an entry that never came
        mine = [raw for raw in raws if run.first_seq <= raw.seq and (last is None or raw.seq <= last)]
        async for seq, line in _entries(store, derived, key, run):
            while mine and mine[0].seq < seq:
                yield _raw_line(mine.pop(0))
            yield line
        for raw in mine:
            yield _raw_line(raw)


def _raw_line(raw: NewEvent) -> bytes:
    return b'{"at":%d,"type":%s%s%s}\n' % (raw.at, orjson.dumps(raw.type), RAW, raw.payload)


async def _length(store: Store, key: Key, runs: Sequence[StoredRun]) -> int:
    """The number of entries that an export of these runs holds, whatever the thread got since they were read."""
    pruned = {run.seq: run for run in runs if run.pruned}
    index = await store.blob_index(key, "segment") if pruned else []
    folded = {info.run: info for info in index if info.run in pruned}
    saved = [info.seq - pruned[run].first_seq + 1 - info.events for run, info in folded.items()]
    return max((run.last_seq for run in runs), default=0) - sum(saved)


async def _entries(
    store: Store, derived: Derived, key: Key, run: StoredRun
) -> AsyncIterator[tuple[int, bytes]]:
    """The lines of a run, each with its seq here."""
    after = run.first_seq - 1
    if run.pruned:
        segment = (await derived.segments(key, [run]))[run.seq]
        for at, event in segment.events:
            yield after, b'{"at":%d%s%s}\n' % (at, MARK, encode(event))
        after = segment.seq
    while after < run.last_seq:
        page = await store.events(key, after=after, upto=run.last_seq, limit=PAGE)
        for row in page.events:
            yield row.seq, b'{"seq":%d,"at":%d%s%s}\n' % (row.seq, row.at, MARK, row.payload)
        after = page.events[-1].seq if page.events else run.last_seq


def _described(run: StoredRun, names: dict[int, str]) -> Line:
    line: Line = {
        "run_id": run.run_id,
        "parent": names.get(run.parent_seq or 0),
        "edge": run.edge,
        "wire_parent": run.wire_parent,
        "mark": run.mark or None,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "status": "truncated" if run.status == "in_progress" else run.status,
        "terminal": run.terminal,
        "usage": None if run.usage is None else orjson.loads(run.usage),
    }
    return {name: value for name, value in line.items() if value is not None}


def _line(value: Line) -> bytes:
    return orjson.dumps(value) + b"\n"
