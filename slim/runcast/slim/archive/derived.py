"""Data that can be derived again from the log at any time: histories, segments, checkpoints.

Knows how to walk from a run to its ancestors and to start at the nearest checkpoint; does not know writers or readers.
A segment or checkpoint that is missing, stale or damaged is skipped, and the events are read instead, for as long as
they are stored. Raw events are removed only on request, and only those of runs with a sound segment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from ag_ui.core import Message, RunErrorEvent

from runcast.slim.archive.blobs import sound_body
from runcast.slim.archive.info import Compacted
from runcast.slim.archive.segments import (
    Timed,
    fold_rows,
    from_bytes,
    list_from_bytes,
    list_to_bytes,
    worth_keeping,
)
from runcast.slim.compaction.compactor import compact
from runcast.slim.errors import CheckpointRefused, StoreError, UnknownThread
from runcast.slim.folding.checkpoint import Checkpoint
from runcast.slim.folding.conversation import fold
from runcast.slim.stores import Store
from runcast.slim.stores.blob_codec import Codec, pack, unpack
from runcast.slim.stores.records import APART, Blob, BlobInfo, BlobKind, Key, StoredEvent, StoredRun
from runcast.slim.tasks import beside
from runcast.slim.wire.codec import AnyEvent, decode

RUNS_AT_ONCE = 50
EVENTS_AT_ONCE = 500  # read and decoded before the event loop runs again
HEAVY = 2_000  # more events are folded in a thread
SMALL_CHECKPOINT = 8_192  # below so many bytes of segments a checkpoint saves nothing


class Segment(NamedTuple):
    """A run folded, up to a seq."""

    seq: int
    events: list[Timed]


class Derived:
    """Histories of one store's threads, and the data that makes them quick to read."""

    def __init__(self, store: Store, *, codec: Codec, clock: Callable[[], int]) -> None:
        self._store = store
        self._codec: Codec = codec
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    # reading

    async def chain(self, key: Key, run_id: str | None) -> list[StoredRun]:
        """The run and its history, oldest first; without an id, the thread's newest run that was not spawned."""
        found = await self._store.lineage(key, run_id)
        if not found and run_id is None:
            raise UnknownThread(f"thread {key.thread_id!r} has no run yet")
        if not found:
            raise UnknownThread(
                f"thread {key.thread_id!r} has no run {run_id!r}: log.runs() lists what it has"
            )
        return found

    async def restore(self, key: Key, run_id: str | None, *, compacted: bool) -> list[AnyEvent]:
        """A stream that brings an empty client to the state after the run."""
        if run_id is None and compacted:
            found = await self._end(key)
            if found is not None:
                return found
        runs = await self.chain(key, run_id)
        if compacted:
            return await self.outcome(key, runs)
        return [event async for piece in self.pieces(key, runs, folded=False) for event in piece]

    async def _end(self, key: Key) -> list[AnyEvent] | None:
        """The checkpoint at the very end of the thread, which saves the walk over ancestors."""
        thread = await self._store.thread(key)
        if thread is None or not thread.last_seq:
            raise UnknownThread(f"thread {key.thread_id!r} has no run yet")
        index = await self._store.blob_index(key, "checkpoint")
        if not index or index[-1].seq != thread.last_seq:
            return None
        body = await sound_body(self._store, key, index[-1])
        return None if body is None else list_from_bytes(body)

    async def outcome(self, key: Key, runs: Sequence[StoredRun]) -> list[AnyEvent]:
        """The outcome of the runs as a checkpoint; where none can express it, all their events compacted."""
        found = await self._checkpoint(key, runs)
        if found is not None:
            return found
        return compact([event async for piece in self.pieces(key, runs) for event in piece])

    async def messages(self, key: Key, parent: str | None) -> list[Message]:
        """The messages that a run with this parent begins with."""
        if parent is None:
            return []
        base, rest = await self.nearest(key, await self.chain(key, parent))
        conversation = fold(base)
        async for piece in self.pieces(key, rest):
            fold(piece, conversation)
        return conversation.messages

    async def _checkpoint(self, key: Key, runs: Sequence[StoredRun]) -> list[AnyEvent] | None:
        base, rest = await self.nearest(key, runs)
        if not rest:
            return base
        it = Checkpoint()
        for event in base:
            it.feed(event)
        async for piece in self.pieces(key, rest):
            for event in piece:
                it.feed(event)
        try:
            return it.events(duplicates="keep")
        except CheckpointRefused:
            return None

    async def nearest(
        self, key: Key, runs: Sequence[StoredRun]
    ) -> tuple[list[AnyEvent], Sequence[StoredRun]]:
        """The newest sound checkpoint among the runs, and the runs behind it."""
        place = {run.seq: n for n, run in enumerate(runs) if run.status != "in_progress"}
        index = await self._store.blob_index(key, "checkpoint")
        usable = [info for info in index if info.run in place and info.seq == runs[place[info.run]].last_seq]
        for info in sorted(usable, key=lambda info: place[info.run], reverse=True):
            body = await sound_body(self._store, key, info)
            if body is not None:
                return list_from_bytes(body), runs[place[info.run] + 1 :]
        return [], runs

    async def pieces(
        self, key: Key, runs: Sequence[StoredRun], *, folded: bool = True
    ) -> AsyncIterator[list[AnyEvent]]:
        """The events of runs in order, some at a time: from segments (`folded`), or all stored ones. A truncated run
        is closed as failed, except at the end."""
        for at in range(0, len(runs), RUNS_AT_ONCE):
            some = runs[at : at + RUNS_AT_ONCE]
            wanted = [run for run in some if run.pruned or (folded and run.status != "in_progress")]
            segments = await self.segments(key, wanted)
            for stretch in _stretches(some, segments):
                first, last, after = stretch[0], stretch[-1], stretch[0].first_seq - 1
                if first.seq in segments:
                    yield [event for _, event in segments[first.seq].events]
                    after = segments[first.seq].seq  # a late event may have come behind it
                async for piece in self._raw(key, after, last.last_seq):
                    yield piece
                if last.terminal is None and last is not runs[-1]:
                    yield [_cut_short(last)]

    async def segments(self, key: Key, runs: Sequence[StoredRun]) -> dict[int, Segment]:
        """The sound segments of these runs by number; of a pruned run even when a late event follows it."""
        by_number = {run.seq: run for run in runs}
        bodies: dict[int, tuple[int, bytes]] = {}
        blobs = await self._store.blobs(key, "segment", list(by_number)) if runs else []
        for blob in blobs:
            run, seq = by_number[blob.info.run], blob.info.seq
            body = unpack(blob) if run.pruned or seq == run.last_seq else None
            if body is not None:
                bodies[run.seq] = seq, body
        for run in runs:
            if run.pruned and run.seq not in bodies:
                raise StoreError(
                    f"the events of run {run.run_id!r} were pruned and its segment is damaged: import a copy of the thread"
                )
        return {number: Segment(seq, from_bytes(body)) for number, (seq, body) in bodies.items()}

    async def _raw(self, key: Key, after: int, upto: int) -> AsyncIterator[list[AnyEvent]]:
        async for rows in self._rows(key, after, upto):
            yield [decode(row.payload, legacy=False) for row in rows]

    async def _rows(self, key: Key, after: int, upto: int) -> AsyncIterator[list[StoredEvent]]:
        """Stored events in slices: many records at a time would soon bring a collection of the whole heap."""
        while after < upto:
            page = await self._store.events(key, after=after, upto=upto, limit=EVENTS_AT_ONCE)
            yield page.events
            after = page.events[-1].seq if page.events else upto

    # making

    async def compact(self, key: Key) -> Compacted:
        """Give every ended run its segment, and the newest a checkpoint when that saves work."""
        async with self._one_at_a_time:
            runs = await self._store.runs(key)
            ended = [run for run in runs if run.status != "in_progress"]
            have = {info.run: info for info in await self._store.blob_index(key, "segment")}
            lacking = [run for run in ended if not run.pruned and not _is_current(have.get(run.seq), run)]
            done = [await self._segment(key, run, have.get(run.seq)) for run in lacking]
            sizes = {run: info.size for run, info in have.items()}
            sizes |= {run.seq: made[-1] for run, made in zip(lacking, done, strict=True)}
            size = await self._add_checkpoint(key, ended, sizes)
        before, after, raw, small = (
            (sum(column) for column in zip(*done, strict=True)) if done else (0, 0, 0, 0)
        )
        return Compacted(len(done), before, after, raw, small, size)

    async def _segment(self, key: Key, run: StoredRun, stale: BlobInfo | None) -> tuple[int, int, int, int]:
        times: list[int] = []
        lines: list[bytes] = []
        async for rows in self._rows(key, run.first_seq - 1, run.last_seq):
            times += [row.at for row in rows]
            lines += [row.payload for row in rows]

        def folded() -> tuple[int, Blob]:
            kept, body = fold_rows(times, lines)
            return kept, self._packed("segment", run, kept, body)

        kept, blob = await beside(folded) if len(lines) >= HEAVY else folded()
        await self._store.put_blob(key, blob)
        if stale is not None and stale.seq != run.last_seq:
            await self._store.drop_blobs(key, "segment", [stale.seq])
        return len(lines), kept, sum(map(len, lines)), blob.info.size

    async def _add_checkpoint(self, key: Key, ended: Sequence[StoredRun], sizes: Mapping[int, int]) -> int:
        """Add a checkpoint after the newest run, once as many bytes have come since the last one as it holds."""
        tips = [run for run in ended if run.edge not in APART]
        if not tips or sum(sizes.values()) < SMALL_CHECKPOINT:
            return 0
        runs = await self._store.lineage(key, tips[-1].run_id)
        index = {info.run: info for info in await self._store.blob_index(key, "checkpoint")}
        since, last = 0, SMALL_CHECKPOINT
        for run in reversed(runs):
            if _is_current(index.get(run.seq), run):
                last = max(last, index[run.seq].size)
                break
            since += sizes.get(run.seq, 0)
        return await self._put_checkpoint(key, runs) if since >= last else 0

    async def _put_checkpoint(self, key: Key, runs: Sequence[StoredRun]) -> int:
        kept, run = await self._checkpoint(key, runs), runs[-1]
        if kept is None:
            return 0
        blob = self._packed("checkpoint", run, len(kept), list_to_bytes(kept))
        await self._store.put_blob(key, blob)
        seqs = [info.seq for info in await self._store.blob_index(key, "checkpoint")]
        await self._store.drop_blobs(key, "checkpoint", sorted(set(seqs) - worth_keeping(seqs)))
        return blob.info.size

    def _packed(self, kind: BlobKind, run: StoredRun, events: int, body: bytes) -> Blob:
        at = self._clock()
        return pack(kind, body, codec=self._codec, run=run.seq, seq=run.last_seq, at=at, events=events)


def _is_current(info: BlobInfo | None, run: StoredRun) -> bool:
    """False when a late RUN_ERROR has made the run longer."""
    return info is not None and info.seq == run.last_seq


def _cut_short(run: StoredRun) -> RunErrorEvent:
    """An end for the client, which cannot begin a run inside another one; the log holds none."""
    return RunErrorEvent(message=f"run {run.run_id!r} was cut short", code="truncated")


def _stretches(runs: Sequence[StoredRun], apart: Container[int]) -> Iterator[list[StoredRun]]:
    """Runs in order, grouped so that a group is read at once: adjacent, ended, and not `apart`."""
    together: list[StoredRun] = []
    for run in runs:
        last = together[-1] if together else run
        if together and (
            run.seq in apart
            or last.seq in apart
            or last.terminal is None
            or last.last_seq + 1 != run.first_seq
        ):
            yield together
            together = []
        together.append(run)
    if together:
        yield together
