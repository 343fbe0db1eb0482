"""Faults of leases: who may write a thread, how long, and what a run that lost its owner may still do."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

LOG = "slim/runcast/slim/log/"
SQL = "slim/runcast/slim/stores/sql/"
APP = "app/runcast/app/"


FAULTS: tuple[Fault, ...] = (
    *faults(
        LOG + "lease_renewal.py",
        ("while not closed.done():", "while False:"),
        ("await asyncio.wait({closed}, timeout=self._pause)", "await asyncio.wait({closed})"),
        ("> SILENT_LEASES * self._options.lease_ms / 1_000", "> self._options.lease_ms / 1_000"),
        ("if not held or monotonic() - self._seen > SILENT_LEASES", "if not held or 0 > SILENT_LEASES"),
        ("until=self._options.clock() + self._options.lease_ms", "until=self._options.clock()"),
        ("self._loop.call_soon_threadsafe(self._lost, lease)", "pass"),
        (
            "        except StoreError as error:\n            LOG",
            "        except LookupError as error:\n            LOG",
        ),
        ("            self._end()  # also when", "            pass  # also when"),
        ("                self._seen = monotonic()\n", "                pass\n"),
        ('LOG.warning("%d leases could', 'LOG.debug("%d leases could'),
    ),
    *faults(
        LOG + "engine.py",
        ("            writer.out.lose(lease)", "            pass"),
        ("if (lease := writer.out.lease) is not None]", "if (lease := writer.out.lease) is None]"),
        ("return writer is not None and writer.out.lease is not None", "return writer is not None"),
        ("return writer is not None and writer.out.lease is not None", "return False"),
        ("            await self._each(Writer.close, list(self._writers.values()))", "            pass"),
        ("            await writer.close(cut=cut)", "            await writer.close()"),
    ),
    *faults(
        LOG + "batches.py",
        (
            "if not self._under_way and self.lease is not None and self.lease.token == lease.token:",
            "if False:",
        ),
        ("now + self._options.lease_ms, self._options.new_id()", "now, self._options.new_id()"),
        (
            "            self._send(self._made(lease, (), (), release=True))",
            "            self._send(self._made(lease, (), ()))",
        ),
        (
            "        elif cut and run is not None and run.end is None:",
            "        elif run is not None and run.end is None:",
        ),
        (
            "        elif cut and run is not None and run.end is None:",
            "        elif not cut and run is not None and run.end is None:",
        ),
        ("until = None if end is not None or release else now", "until = None if release else now"),
        (
            "            self._sent = replace(self._sent, until=self._options.clock() + self._options.lease_ms)",
            "            pass",
        ),
        (
            "        if batch.until is None:\n            self.lease = None",
            "        if batch.until is None:\n            pass",
        ),
        ("        self.fenced = error\n", "        self.fenced = None\n"),
        ("        self.lease = self.run = self.failure = self", "        self.run = self.failure = self"),
        ("        self._count.leases_lost += 1", "        self._count.leases_lost += 0"),
    ),
    *faults(
        LOG + "writer.py",
        ("                await out.release()  # or the thread", "                pass  # or the thread"),
        (
            "            if lease.last_run is not None and await self._is_used(plan.run_id):",
            "            if False:",
        ),
        (
            '            if out.is_running:\n                raise Conflict(f"run {out.run_id!r} is active here: end it before another',
            '            if False:\n                raise Conflict(f"run {out.run_id!r} is active here: end it before another',
        ),
        (
            "            if self.out.lease is not None:\n                return ()  #",
            "            if False:\n                return ()  #",
        ),
        (
            "        elif self.out.fenced is not None:\n            raise _again(self.out.fenced)",
            "        elif False:\n            raise _again(self.out.fenced)",
        ),
        (
            "                if running:\n                    self._start_checks()",
            "                if False:\n                    self._start_checks()",
        ),
    ),
    *faults(
        LOG + "recovery.py",
        (
            "for key, run in found if not self._core.owns(key)]\n\n    async def truncated",
            "for key, run in found]\n\n    async def truncated",
        ),
        (
            "self._core.abandon(self._scope.key(thread_id), cut=False)",
            "self._core.abandon(self._scope.key(thread_id))",
        ),
        ("self._core.store.orphaned_runs(self._scope.only,", "self._core.store.orphaned_runs(None,"),
        (
            "        except Conflict:  # another process was quicker",
            "        except LookupError:  # another process was quicker",
        ),
    ),
    *faults(
        SQL + "statements.py",
        (
            "OR runcast_threads.until < ?\n    AND (substr",
            "OR runcast_threads.until <= ?\n    AND (substr",
        ),
        ("token = runcast_threads.token + 1,\n    epoch", "token = runcast_threads.token,\n    epoch"),
        ("WHERE runcast_threads.epoch <> ''\n  AND (runcast", "WHERE (runcast"),
        (
            "WHERE thread = ? AND status = 'in_progress'\nRETURNING run_id",
            "WHERE thread = ? AND status = 'truncated'\nRETURNING run_id",
        ),
        (
            "WHERE id = free.thread AND runcast_threads.owner = free.owner AND runcast_threads.token = free.token\nRETURNING",
            "WHERE id = free.thread AND runcast_threads.owner = free.owner\nRETURNING",
        ),
        (
            "WHERE id = free.thread AND runcast_threads.owner = free.owner AND runcast_threads.token = free.token\nRETURNING",
            "WHERE id = free.thread AND runcast_threads.token = free.token\nRETURNING",
        ),
        (
            "WHERE id = free.thread AND runcast_threads.owner = free.owner AND runcast_threads.token = free.token\n  AND last_seq",
            "WHERE id = free.thread AND runcast_threads.owner = free.owner\n  AND last_seq",
        ),
        (
            "WHERE id = free.thread AND runcast_threads.owner = free.owner AND runcast_threads.token = free.token\n  AND last_seq",
            "WHERE id = free.thread AND runcast_threads.token = free.token\n  AND last_seq",
        ),
        (
            "AND owner = ? AND token = ? AND last_seq = ? - 1 AND",
            "AND owner = ? AND token >= ? AND last_seq = ? - 1 AND",
        ),
        (
            "AND owner = ? AND token = ? AND last_seq = ? - 1 AND",
            "AND owner = ? AND token = ? AND last_seq >= ? - 1 AND",
        ),
        ("AND COALESCE(batch, '') <> ?\nRETURNING id", "AND ? <> ''\nRETURNING id"),
        ("(t.owner IS NULL OR t.until < ? AND substr", "(t.until < ? AND substr"),
        ("OR t.until < ? AND substr(t.owner, 1, {len(IMPORTER)}) <> '{IMPORTER}')", "OR t.until < ?)"),
        ("AND r.ended_at >= t.created_at AND", "AND"),
        (
            "AND (t.owner IS NULL OR t.until < ?)\n  AND NOT EXISTS",
            "AND (t.owner IS NULL OR t.until > ?)\n  AND NOT EXISTS",
        ),
        (
            "WHERE tenant = ? AND thread_id = ? AND (owner IS NULL OR until < ?)",
            "WHERE tenant = ? AND thread_id = ? AND ? > 0",
        ),
        (
            "WHERE (runcast_threads.owner IS NULL OR runcast_threads.until < ?)\n  AND (runcast_threads.updated",
            "WHERE ? > 0\n  AND (runcast_threads.updated",
        ),
    ),
    *faults(
        SQL + "sql_store.py",
        ("!= [(lease.owner, lease.token)]:", "!= [(lease.owner, holder[2])]:"),
        ("                    lost.append(lease)", "                    pass"),
        ("lots = [leases[at : at + IN_ONE_TRANSACTION] for", "lots = [leases[:IN_ONE_TRANSACTION] for"),
        (
            "            cut = tuple(row[0] for row in (yield Query(say.TRUNCATE, (thread,))))",
            "            cut = ()",
        ),
        ("        if (owner, token) != (batch.owner, batch.token):", "        if owner != batch.owner:"),
    ),
    *faults(
        "slim/runcast/slim/stores/memory.py",
        ("if half or thread.holder(now) not in (None", "if half or thread.holder(now + 1) not in (None"),
        ("if half or thread.holder(now) not in (None", "if thread.holder(now) not in (None"),
        ("(thread.owner, thread.token) != (batch.owner, batch.token)", "thread.owner != batch.owner"),
        ("(thread.owner, thread.token) != (lease.owner, lease.token)", "thread.owner != lease.owner"),
        ("                thread.until = until\n", "                pass\n"),
        ("        cut = self._truncate(thread)", "        cut = ()"),
        (
            "if thread is not None and thread.holder(now) is not None:",
            "if thread is not None and thread.owner is None:",
        ),
        ("            thread.owner = None\n        self._wakeups", "            pass\n        self._wakeups"),
    ),
    *faults(
        "slim/runcast/slim/stores/postgres.py",
        ('skip_locked = "FOR NO KEY UPDATE OF t SKIP LOCKED"', 'skip_locked = "FOR NO KEY UPDATE OF t"'),
        (
            "own = PostgresDatabase(self._url, pool_size=1, timeout_ms=round(self._timeout * 1000))",
            "own = self",
        ),
    ),
    *faults(
        APP + "host/launch.py",
        ('        if parent.status != "truncated":', "        if False:"),
        ("        if any(is_stop(note, thread_id)", "        if False and any(is_stop(note, thread_id)"),
        ('if request.edge != "branch" and runs[-1].run_id != name:', "if False:"),
        (
            "                await log.recovery.abandon(start.thread_id)\n            raise",
            "                pass\n            raise",
        ),
        ("            await start.claim()\n", ""),
        (
            "            check_answers(request, parent, state)\n            asked =",
            "            asked =",
        ),
        ('elif request.unfinished and parent.status == "completed":', "elif False:"),
    ),
    *faults(
        APP + "nodes/orphans.py",
        ('run.run_id != run_id or run.status != "truncated":', "run.run_id != run_id:"),
        (
            "if agent is None or stopped or run.attempt >= cast.options.max_attempts:",
            "if agent is None or stopped:",
        ),
        ("if agent is None or stopped or run.attempt", "if agent is None or run.attempt"),
    ),
    *faults(
        "slim/runcast/slim/log/writer.py",
        (
            '            if self.out.lease is not None:\n                raise Conflict(\n                    f"run {self.out.run_id!r} is active here: end it before the thread gets a new epoch"\n                )\n',
            "",
        ),
        (
            "return self.out.lease is None and not self.out.unflushed and not self._turn.locked()",
            "return not self.out.unflushed and not self._turn.locked()",
        ),
        ("                await self.out.release(cut=cut)\n", "                await self.out.release()\n"),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/sql_store.py",
        (
            "head = next((run for run in reversed(newest) if run.edge not in APART), None)",
            "head = last",
        ),
        ("holder = None if batch.until is None else batch.owner", "holder = batch.owner"),
    ),
    *faults(
        "app/runcast/app/host/launch.py",
        (
            '        if last.status == "in_progress":\n            raise Busy(',
            "        if False:\n            raise Busy(",
        ),
        (
            "        except Conflict as error:\n            await self._not_begun(start, begun)\n",
            "        except Conflict as error:\n",
        ),
        (
            "            if run.active:  # the caller was cancelled, and the run goes on; or the run is about to end",
            "            if False:",
        ),
    ),
    *faults(
        "app/runcast/app/runs/run.py",
        (
            "            self._fail(error)\n            await self._release()\n            return truncated",
            "            self._fail(error)\n            return truncated",
        ),
        (
            "if not self.active or self._terminal is not None or self._abandoned:",
            "if not self.active or self._abandoned:",
        ),
    ),
    *faults(
        "app/runcast/app/nodes/note_lease.py",
        ("if note.body != self._own and not self._notes.is_over(note):", "if False:"),
        ("if note.body != self._own and not self._notes.is_over(note):", "if note.body != self._own:"),
        ("                if note.body == self._own:\n                    await", "                await"),
    ),
)
