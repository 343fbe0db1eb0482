"""The SQL of the store, in the language that SQLite (3.35 on) and PostgreSQL share; `?` marks an argument.

Knows the effect of each statement on the tables of `schema`; does not know their order.
"""

from __future__ import annotations

from functools import lru_cache

from runcast.slim.stores.records import IMPORTER, SNAPSHOTS

ENDLESS = 2**62

_THREAD = "(SELECT id FROM runcast_threads WHERE tenant = ? AND thread_id = ?)"
_NEWEST = "(SELECT id FROM runcast_runs WHERE thread = ? {only} ORDER BY first_seq DESC LIMIT 1)"

# The lease. A row is returned only if the lease was taken; what a killed import has left is an importer's.
ACQUIRE = f"""
INSERT INTO runcast_threads (tenant, thread_id, epoch, owner, token, until, created_at, updated_at)
VALUES (?, ?, ?, ?, 1, ?, ?, ?)
ON CONFLICT (tenant, thread_id) DO UPDATE
SET owner = excluded.owner, until = excluded.until, token = runcast_threads.token + 1,
    epoch = CASE WHEN ? = 1 THEN excluded.epoch ELSE runcast_threads.epoch END
WHERE runcast_threads.epoch <> ''
  AND (runcast_threads.owner IS NULL OR runcast_threads.owner = ? OR runcast_threads.until < ?
    AND (substr(runcast_threads.owner, 1, {len(IMPORTER)}) <> '{IMPORTER}' OR substr(excluded.owner, 1, {len(IMPORTER)}) = '{IMPORTER}'))
RETURNING id, epoch, token, last_seq, (SELECT COUNT(*) FROM runcast_notes n WHERE n.tenant = ? AND n.thread_id = ?)
"""
HOLDER = """
SELECT owner, until, token, last_seq, batch, epoch FROM runcast_threads WHERE tenant = ? AND thread_id = ?
"""
TRUNCATE = """
UPDATE runcast_runs
SET status = 'truncated', ended_at = (SELECT t.updated_at FROM runcast_threads t WHERE t.id = thread)
WHERE thread = ? AND status = 'in_progress'
RETURNING run_id
"""

# Appending. A thread is returned only if its batch fits right behind the last event, under the lease, for the first
# time. A batch that only releases the lease has no name.
CLAIM = """
UPDATE runcast_threads
SET last_seq = last_seq + ?, batch = COALESCE(?, batch), owner = ?, until = ?, updated_at = COALESCE(?, updated_at)
WHERE tenant = ? AND thread_id = ? AND owner = ? AND token = ? AND last_seq = ? - 1 AND COALESCE(batch, '') <> ?
RETURNING id
"""
_CLAIM_ALL = """
WITH batches (tenant, thread_id, owner, token, first_seq, events, name, holder, until, now) AS (
  VALUES {rows}
), free AS (
  SELECT t.id AS thread, b.* FROM batches b
  JOIN runcast_threads t ON t.tenant = b.tenant AND t.thread_id = b.thread_id ORDER BY t.id {skip_locked}
)
UPDATE runcast_threads
SET last_seq = last_seq + free.events, batch = COALESCE(free.name, batch), owner = free.holder, until = free.until,
    updated_at = COALESCE(free.now, updated_at)
FROM free
WHERE id = free.thread AND runcast_threads.owner = free.owner AND runcast_threads.token = free.token
  AND last_seq = free.first_seq - 1 AND COALESCE(batch, '') <> COALESCE(free.name, ' ')
RETURNING runcast_threads.tenant, runcast_threads.thread_id, id
"""
_BATCH = ("TEXT", "TEXT", "TEXT", "BIGINT", "BIGINT", "BIGINT", "TEXT", "TEXT", "BIGINT", "BIGINT")
_CLAIM_ROW = "(" + ", ".join(f"CAST(? AS {type})" for type in _BATCH) + ")"


@lru_cache
def claim_all(batches: int, skip_locked: str) -> str:
    """The claim for a number of batches."""
    return _CLAIM_ALL.format(rows=", ".join([_CLAIM_ROW] * batches), skip_locked=skip_locked)


_RENEW = """
WITH held (tenant, thread_id, owner, token) AS (
  VALUES {rows}
), free AS (
  SELECT t.id AS thread, h.owner, h.token FROM held h
  JOIN runcast_threads t ON t.tenant = h.tenant AND t.thread_id = h.thread_id ORDER BY t.id {skip_locked}
)
UPDATE runcast_threads SET until = CAST(? AS BIGINT) FROM free
WHERE id = free.thread AND runcast_threads.owner = free.owner AND runcast_threads.token = free.token
RETURNING tenant, thread_id
"""
_RENEW_ROW = "(" + ", ".join(f"CAST(? AS {type})" for type in _BATCH[:4]) + ")"


@lru_cache
def renew(leases: int, skip_locked: str) -> str:
    """The renewal of a number of leases."""
    return _RENEW.format(rows=", ".join([_RENEW_ROW] * leases), skip_locked=skip_locked)


PARENT = "SELECT id, attempt FROM runcast_runs WHERE thread = ? AND run_id = ?"
RUN_NUMBER = f"SELECT id FROM runcast_runs WHERE thread = {_THREAD} AND run_id = ?"
BEGIN_RUN = """
INSERT INTO runcast_runs
  (thread, run_id, parent, edge, attempt, first_seq, started_at, wire_parent, mark, status)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'in_progress')
ON CONFLICT (thread, run_id) DO NOTHING
RETURNING id
"""
END_RUN = """
UPDATE runcast_runs SET status = ?, terminal = ?, usage = ?, ended_at = ? WHERE id = ? AND thread = ? RETURNING id
"""
EVENT_COLUMNS = {
    "thread": "BIGINT",
    "run": "BIGINT",
    "seq": "BIGINT",
    "at": "BIGINT",
    "type": "TEXT",
    "payload": "BYTEA",
}

# Reading. A row without an epoch is the tombstone of a forgotten thread.
_MARK = """
  COALESCE((
    SELECT h.mark FROM runcast_runs h WHERE h.thread = t.id AND h.first_seq <= {seq} ORDER BY h.first_seq DESC LIMIT 1
  ), '')"""
_OF_THREAD = f"""t.tenant, t.thread_id, t.epoch, t.last_seq, t.owner, t.until, t.created_at, t.updated_at, t.title,
  (SELECT n.status FROM runcast_runs n WHERE n.thread = t.id AND n.edge <> 'aside' ORDER BY n.first_seq DESC LIMIT 1),
  {_MARK.format(seq="t.last_seq")}"""
EVERY = f"SELECT {_OF_THREAD} FROM runcast_threads t WHERE t.epoch <> ''"
THREADS = f"{EVERY} AND t.tenant = ?"
RENAME = (
    "UPDATE runcast_threads SET title = ? WHERE tenant = ? AND thread_id = ? AND epoch <> '' RETURNING id"
)
FORGOTTEN = "SELECT id FROM runcast_threads WHERE tenant = ? AND thread_id = ? AND epoch = ''"
EVENTS = f"""
SELECT t.epoch, t.last_seq, t.mark, e.seq, r.run_id, e.at, e.type, e.payload, r.mark
FROM (
  SELECT t.id, t.epoch, t.last_seq, {_MARK.format(seq="?")} AS mark
  FROM runcast_threads t WHERE t.tenant = ? AND t.thread_id = ? AND t.epoch <> ''
) t
LEFT JOIN runcast_events e ON e.thread = t.id AND e.seq > ? AND e.seq <= ?
LEFT JOIN runcast_runs r ON r.id = e.run
ORDER BY e.seq
"""
NEXT_EVENT = f"SELECT MIN(seq) FROM runcast_events WHERE thread = {_THREAD} AND seq > ?"
RAWS = f"SELECT seq, at, type, payload FROM runcast_raws WHERE thread = {_THREAD} AND seq > ? ORDER BY id LIMIT ?"
RUNS = """
SELECT r.id, r.run_id, r.parent, r.edge, r.attempt, r.first_seq,
  COALESCE(
    (SELECT MIN(n.first_seq) - 1 FROM runcast_runs n WHERE n.thread = r.thread AND n.first_seq > r.first_seq),
    t.last_seq
  ),
  r.started_at, r.ended_at, r.status, r.terminal, r.wire_parent, r.usage, r.pruned, r.mark
FROM runcast_runs r JOIN runcast_threads t ON t.id = r.thread
"""
NEWEST_RUNS = f"""
{RUNS}
WHERE r.id IN ({_NEWEST.format(only="")}, {_NEWEST.format(only="AND edge NOT IN ('spawn', 'aside')")})
ORDER BY r.first_seq
"""
_CHAIN = f"""
WITH RECURSIVE chain (id, parent, edge) AS (
  {{start}}
  UNION ALL
  SELECT p.id, p.parent, p.edge FROM chain c JOIN runcast_runs p ON p.id = c.parent WHERE c.edge NOT IN ('spawn', 'aside')
)
{RUNS} WHERE r.id IN (SELECT id FROM chain) ORDER BY r.first_seq
"""
LINEAGE = _CHAIN.format(
    start=f"SELECT id, parent, edge FROM runcast_runs WHERE thread = {_THREAD} AND run_id = ?"
)
HEAD_LINEAGE = _CHAIN.format(
    start=f"""SELECT id, parent, edge FROM runcast_runs WHERE id = (
    SELECT id FROM runcast_runs WHERE thread = {_THREAD} AND edge NOT IN ('spawn', 'aside') ORDER BY first_seq DESC LIMIT 1
  )"""
)
ORPHANED = f"""
{RUNS.replace("FROM runcast_runs r", ", t.tenant, t.thread_id FROM runcast_runs r")}
WHERE r.status = 'in_progress' AND (t.owner IS NULL OR t.until < ? AND substr(t.owner, 1, {len(IMPORTER)}) <> '{IMPORTER}')
"""
UNRESUMED = f"""
{RUNS.replace("FROM runcast_runs r", ", t.tenant, t.thread_id FROM runcast_runs r")}
WHERE r.status = 'truncated' AND r.ended_at >= ? AND r.ended_at >= t.created_at AND (t.owner IS NULL OR t.until < ?)
  AND NOT EXISTS (SELECT 1 FROM runcast_runs n WHERE n.thread = r.thread AND n.first_seq > r.first_seq AND n.edge <> 'aside')
"""
NAMED = f"""
{
    RUNS.replace(
        "FROM runcast_runs r",
        f", {_OF_THREAD} FROM runcast_runs r",
    )
}
WHERE t.tenant = ? AND r.run_id = ?
ORDER BY r.id
"""
SIZES = f"""
SELECT r.id, COALESCE(e.events, 0), COALESCE(e.size, 0), COALESCE(w.size, 0)
FROM runcast_runs r
LEFT JOIN (
  SELECT run, COUNT(*) AS events, SUM(LENGTH(payload)) AS size
  FROM runcast_events WHERE thread = {_THREAD} GROUP BY run
) e ON e.run = r.id
LEFT JOIN (
  SELECT run, SUM(LENGTH(payload)) AS size FROM runcast_raws WHERE thread = {_THREAD} GROUP BY run
) w ON w.run = r.id
WHERE r.thread = {_THREAD}
ORDER BY r.first_seq
"""

# Derived data.
_PUT_BLOB = """
INSERT INTO runcast_blobs (thread, kind, seq, run, at, codec, events, sha256, size, body)
{values}
ON CONFLICT (thread, kind, seq, run) DO UPDATE
SET at = excluded.at, codec = excluded.codec, events = excluded.events, sha256 = excluded.sha256,
    size = excluded.size, body = excluded.body
RETURNING thread
"""
PUT_BLOB = _PUT_BLOB.format(
    values="""SELECT t.id, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM runcast_threads t
WHERE t.tenant = ? AND t.thread_id = ? AND t.epoch <> ''"""
)
PUT_SNAPSHOT = _PUT_BLOB.format(values="VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
DROP_OLD_SNAPSHOTS = f"""
DELETE FROM runcast_blobs WHERE thread = ? AND kind = 'snapshot' AND seq <= (
  SELECT seq FROM runcast_blobs WHERE thread = ? AND kind = 'snapshot' ORDER BY seq DESC LIMIT 1 OFFSET {SNAPSHOTS}
)
"""
_BLOB = "SELECT kind, run, seq, at, codec, events, sha256, size{body} FROM runcast_blobs WHERE thread = {thread} AND kind = ?"
BLOB_INFO = _BLOB.format(body="", thread=_THREAD)
BLOBS = _BLOB.format(body=", body", thread=_THREAD)
DROP_BLOBS = f"DELETE FROM runcast_blobs WHERE thread = {_THREAD} AND kind = ?"

# Notes.
_NOTE = "id, box, tenant, thread_id, run_id, body, at, until"
POST = f"INSERT INTO runcast_notes ({_NOTE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO {{}} RETURNING id"
POST_ONCE = POST.format("NOTHING")
POST_ANEW = POST.format(
    """UPDATE SET box = excluded.box, tenant = excluded.tenant, thread_id = excluded.thread_id,
    run_id = excluded.run_id, body = excluded.body, at = excluded.at, until = excluded.until"""
)
NOTES = f"SELECT {_NOTE} FROM runcast_notes WHERE box IN {{}} ORDER BY at, id LIMIT ?"
NOTES_ABOUT = f"SELECT {_NOTE} FROM runcast_notes WHERE tenant = ? AND {{}} = ? ORDER BY at, id"
EXCHANGE = """UPDATE runcast_notes SET box = ?, tenant = ?, thread_id = ?, run_id = ?, body = ?, at = ?, until = ?
WHERE id = ? AND box = ? AND body = ? RETURNING id"""
UNPOST = "DELETE FROM runcast_notes WHERE id = ? AND box = ? AND body = ? RETURNING id"
SWEEP_NOTES = "DELETE FROM runcast_notes WHERE until < ? RETURNING id"

# Removal.
MARK_PRUNED = (
    f"UPDATE runcast_runs SET pruned = 1 WHERE id = ? AND thread = {_THREAD} RETURNING thread, first_seq"
)
NEXT_RUN = "SELECT MIN(first_seq) FROM runcast_runs WHERE thread = ? AND first_seq > ?"
STRETCH = "WHERE thread = ? AND seq >= ? AND seq <= ?"
FREE_THREAD = """
UPDATE runcast_threads SET token = token + 1, owner = NULL
WHERE tenant = ? AND thread_id = ? AND (owner IS NULL OR until < ?) AND (updated_at <= ? OR epoch = '')
RETURNING id, epoch
"""
# Serialised with `ACQUIRE` by the row, which it makes where there is none.
BURY = """
INSERT INTO runcast_threads (tenant, thread_id, epoch, token, created_at, updated_at) VALUES (?, ?, '', 1, ?, ?)
ON CONFLICT (tenant, thread_id) DO UPDATE
SET token = runcast_threads.token + 1, owner = NULL, until = NULL, batch = NULL
WHERE (runcast_threads.owner IS NULL OR runcast_threads.until < ?)
  AND (runcast_threads.updated_at <= ? OR runcast_threads.epoch = '')
RETURNING id, epoch
"""
TOMBSTONE = "UPDATE runcast_threads SET epoch = '', title = NULL, last_seq = 0, updated_at = ? WHERE id = ?"
DROP_NOTES = "DELETE FROM runcast_notes WHERE tenant = ? AND thread_id = ? AND thread_id <> ''"
