"""Data kept beside the entries: snapshots, raw parts, and the size of everything.

Knows their place in the store; does not know the content of a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from runcast.slim.archive.info import Snapshot, ThreadSize
from runcast.slim.entry import Entry
from runcast.slim.errors import StoreError
from runcast.slim.stores import Store
from runcast.slim.stores.base import Blobs
from runcast.slim.stores.blob_codec import Codec, pack, unpack
from runcast.slim.stores.records import BlobInfo, BlobKind, Key, StoredRun
from runcast.slim.wire.codec import decode


async def keep_snapshot(
    store: Store, key: Key, run: StoredRun, data: Mapping[str, Any], codec: Codec, now: int, keep: int
) -> Snapshot:
    """Store a snapshot at the present end of this run, and keep only the newest few."""
    body = snapshot_body(data)
    blob = pack("snapshot", body, codec=codec, run=run.seq, seq=run.last_seq, at=now, events=1)
    await store.put_blob(key, blob)
    seqs = [info.seq for info in await store.blob_index(key, "snapshot")]
    await store.drop_blobs(key, "snapshot", seqs[: -max(1, keep)])
    return Snapshot(key.thread_id, run.run_id, run.last_seq, now, json.loads(body), blob.info.size)


def snapshot_body(data: Mapping[str, Any], *, plain: bool = False) -> bytes:
    """A snapshot as bytes; refused when it is not JSON. `plain`: it is known to be JSON, as a `SlimSerializer` makes it."""
    with suppress(TypeError):  # half a surrogate pair, or a number beyond 64 bits
        if plain:
            return orjson.dumps(data)
    try:
        # ASCII: half a surrogate pair has no other spelling.
        return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"a snapshot must be JSON: {error}") from error


async def newest_snapshot(store: Store, key: Key) -> Snapshot | None:
    """The newest snapshot that can be read."""
    names = {run.seq: run.run_id for run in await store.runs(key)}
    for info in reversed(await store.blob_index(key, "snapshot")):
        body = await sound_body(store, key, info)
        if body is not None:
            run_id = names.get(info.run, "")
            return Snapshot(key.thread_id, run_id, info.seq, info.at, json.loads(body), info.size)
    return None


async def sound_body(store: Blobs, key: Key, info: BlobInfo) -> bytes | None:
    """The body of one blob; None when it is damaged or gone."""
    for blob in await store.blobs(key, info.kind, [info.run]):
        if blob.info.seq == info.seq:
            return unpack(blob)
    return None


async def raw_entries(store: Store, key: Key, after: int, limit: int | None) -> list[Entry]:
    """Raw parts as entries, each under the seq it came with."""
    thread, runs = await store.thread(key), await store.runs(key)
    if thread is None:
        return []
    names = [(run.first_seq, run.run_id, run.mark) for run in runs]
    found: list[Entry] = []
    for raw in await store.raws(key, after=after, limit=limit):
        _, run_id, mark = next((each for each in reversed(names) if each[0] <= raw.seq), (0, "", ""))
        event = decode(raw.payload, legacy=False)
        found.append(Entry(key.thread_id, raw.seq, thread.epoch, run_id, raw.at, event, mark))
    return found


async def thread_size(store: Store, key: Key) -> ThreadSize:
    """The size of the thread in bytes of payload."""
    runs = await store.sizes(key)
    return ThreadSize(
        entries=sum(run.events for run in runs),
        events=sum(run.bytes for run in runs),
        raw=sum(run.raw_bytes for run in runs),
        segments=await _weight(store, key, "segment"),
        checkpoints=await _weight(store, key, "checkpoint"),
        snapshots=await _weight(store, key, "snapshot"),
    )


async def _weight(store: Store, key: Key, kind: BlobKind) -> int:
    return sum(info.size for info in await store.blob_index(key, kind))
