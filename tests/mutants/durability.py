"""Faults of durability: events written, in order, once, and not forgotten on the way."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

LOG = "slim/runcast/slim/log/"
STORES = "slim/runcast/slim/stores/"

FAULTS: tuple[Fault, ...] = (
    *faults(
        LOG + "batches.py",
        ("        while self._send_next():", "        if self._send_next():"),
        (
            "        while self._send_next():\n            await self._answered()",
            "        while self._send_next():\n            break",
        ),
        (
            "            self._retry = asyncio.get_running_loop().call_later(RETRY_MS / 1000, self.arm)",
            "            pass",
        ),
        ("        if error is None and self._owes():", "        if False:"),
        ("        self._next += 1\n", "        self._next += 2\n"),
        ("            self.failure = answer\n", "            self.failure = None\n"),
        ("        self._sent = self.failure = None\n", "        self.failure = None\n"),
        (
            "            events, self._fresh = tuple(self._fresh), []",
            "            events, self._fresh = tuple(self._fresh[:256]), []",
        ),
        (
            "self.lease, self._next = lease, lease.last_seq + 1",
            "self.lease, self._next = lease, lease.last_seq",
        ),
        ("place = run.number or run.new or 0", "place = run.new or run.number or 0"),
        ("        self.run.number = number\n", "        pass\n"),
        (
            "            taken = self._core.hand_over(self.key, durable, batch.events)",
            "            taken = True",
        ),
        ("        self._count.lost += lost\n", "        pass\n"),
    ),
    *faults(
        LOG + "committer.py",
        ("                self._go_on()\n\n    def _over", "                pass\n\n    def _over"),
        ("        if not self._waiting:\n            pause =", "        if True:\n            pause ="),
        ("        if rest >= self._gathering.get(send, rest + 1):", "        if send in self._gathering:"),
        ("call_later(SLOW, self._go_on)", "call_later(3_600, self._go_on)"),
        ("        if busy is self._busy:", "        if True:"),
        ("            answers = [error] * len(lot)", "            answers = [None] * len(lot)"),
        (
            "                if answer is not None:\n                    answered(answer)",
            "                if isinstance(answer, int):\n                    answered(answer)",
        ),
        (
            "        except (StoreError, LineageError) as error:\n            answer = error",
            "        except StoreError as error:\n            answer = error",
        ),
        ("            self._load = 0.0\n", "            pass\n"),
    ),
    *faults(
        LOG + "writer.py",
        (
            "            await out.flush()\n        if isinstance(event, RunStartedEvent):",
            "            pass\n        if isinstance(event, RunStartedEvent):",
        ),
        (
            '            out.run.end = RunEnd("truncated", None)\n        await out.flush()',
            '            out.run.end = RunEnd("truncated", None)',
        ),
        (
            "                for event in self._redactor.close():\n                    self.out.put(event)",
            "                pass",
        ),
        (
            "            await self._flush_by_choice()\n            return entries",
            "            return entries",
        ),
        ("        if end is not None or starts or out.is_due:", "        if end is not None or out.is_due:"),
        ("        if end is not None or starts or out.is_due:", "        if starts or out.is_due:"),
        ("        else:\n            out.arm()", "        else:\n            pass"),
        ("        if seq > last + 1:", "        if seq > last + 2:"),
        ("        return seq <= last\n", "        return seq < last\n"),
        ("last.run_id == out.ended and out.last_seq == written:", "last.run_id == out.ended:"),
        (
            "        plan, self._plan = self._plan, None\n        if plan is None or plan.run_id != event.run_id:",
            "        plan, self._plan = self._plan, None\n        if plan is None:",
        ),
        (
            '            if self._options.on_store_error == "raise":\n                raise\n            LOG',
            "            LOG",
        ),
        (
            "                if loop.time() + pause > deadline:\n                    raise",
            "                raise",
        ),
        ('        if self._options.on_store_error == "raise":\n            raise error\n', ""),
        (
            "            for error in (self.out.fenced, self._unrecorded):",
            "            for error in (self._unrecorded,):",
        ),
        ('        if self._options.verify == "reject":', "        if False:"),
    ),
    *faults(
        STORES + "sqlite.py",
        ('        connection.execute("COMMIT")', "        pass"),
        ('        if connection.in_transaction:\n            connection.execute("ROLLBACK")', "        pass"),
        ('    connection.execute("BEGIN IMMEDIATE")', '    connection.execute("BEGIN")'),
        ("        return  # its caller was cancelled\n", "        pass\n"),
        ("    if error is None and then is not None:\n        then()", "    pass"),
        ("PRAGMA synchronous = {self._synchronous}", "PRAGMA synchronous = OFF"),
        ("            await self._write_ahead(writer)", "            pass"),
        ('            await writer.rows(f"PRAGMA max_page_count', '            (f"PRAGMA max_page_count'),
        (
            "                    seen = now\n                    self._wakeups.wake_all()\n",
            "                    seen = now\n",
        ),
        ("            self._wakeups.wake(topic)", "            pass"),
    ),
    *faults(
        STORES + "sql/sql_store.py",
        ("        if last_batch == batch.batch_id:", "        if False:"),
        (
            "                if not (yield Query(say.END_RUN, ended)):\n                    raise refusals.unknown_run(batch.key, run)",
            "                yield Query(say.END_RUN, ended)",
        ),
        ('(("runcast_events", events), ("runcast_raws", raws))', '(("runcast_events", events),)'),
        ("        yield Wake([thread_topic(key) for key in runs])", "        yield Wake([])"),
        (
            "                return batch.run\n            return int((yield Query(say.RUN",
            "                pass\n            return int((yield Query(say.RUN",
        ),
        (
            '            attempt = before + 1 if run.edge == "resume" else 1',
            "            attempt = before + 1",
        ),
        (
            '                return Page(epoch, last_seq, found, mark or "")',
            "                return Page(epoch, last_seq, found, before)",
        ),
        (
            "after = end if gap[0][0] is None else int(gap[0][0]) - 1",
            "after = end if gap[0][0] is None else int(gap[0][0])",
        ),
    ),
    *faults(
        STORES + "sql/removal.py",
        ('("events", "raws", "blobs", "runs")', '("events", "blobs", "runs")'),
        ("            yield Query(say.DROP_NOTES, key)\n", ""),
        ('                    yield Query(f"DELETE FROM runcast_raws {say.STRETCH}", stretch)\n', ""),
        ("say.ENDLESS if last is None else last - 1)", "say.ENDLESS)"),
    ),
    *faults(
        "slim/runcast/slim/log/batches.py",
        (
            "self.head = lease.head.run_id if lease.head else None",
            "self.head = lease.last_run.run_id if lease.last_run else None",
        ),
        ("self._next\n        self.fenced = None\n", "self._next\n"),
        (
            "            self.lease = self.run = None\n            self._core.look",
            "            self.run = None\n            self._core.look",
        ),
    ),
    *faults(
        "slim/runcast/slim/log/committer.py",
        ("return [each for each, answer in zip(lot, answers, strict=True) if answer is None]", "return []"),
    ),
    *faults(
        "slim/runcast/slim/log/writer.py",
        (
            'self._plan, redactor = RunPlan(started.run_id, None, "aside")',
            'self._plan, redactor = RunPlan(started.run_id, None, "continue")',
        ),
        (
            "safe = events if redactor is None else [each for event in events for each in redactor.feed(event)]",
            "safe = events",
        ),
        ("return any(thread.key == self._key for thread, _ in named)", "return bool(named)"),
        (
            "for each in [event] if self._redactor is None else self._redactor.feed(event):",
            "for each in [event]:",
        ),
        (
            "            try:\n                return await self._whole_run(events)\n            finally:\n                await self.out.release()",
            "            return await self._whole_run(events)",
        ),
    ),
    *faults(
        "slim/runcast/slim/log/engine.py",
        ("if found is None or found.broken:", "if found is None:"),
        (
            "for key in [key for key, writer in self._writers.items() if writer.idle]:",
            "for key in list(self._writers):",
        ),
    ),
    *faults(
        "slim/runcast/slim/log/live_feed.py",
        ("        follows &= not is_other_history(self._head, self._mark, first.seq, first.mark)\n", ""),
        (
            "await self._pages(self._key, head, PAGE, history)",
            "await self._pages(self._key, head, PAGE, None)",
        ),
        ('if after > self._head or history not in ("", self._epoch):', "if after > self._head:"),
        ("new = [entry for entry in entries if entry.seq > self._head]", "new = entries"),
        ("        if live and lag > self._size:\n            raise ReaderTooSlow(last, lag)\n", ""),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/sql_store.py",
        (
            "                raise refusals.no_parent(batch.key, run.parent)\n            parent, before",
            "                return 0\n            parent, before",
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/statements.py",
        (
            'UNPOST = "DELETE FROM runcast_notes WHERE id = ? AND box = ? AND body = ? RETURNING id"',
            "UNPOST = \"DELETE FROM runcast_notes WHERE id = ? AND box = ? AND ? <> '' RETURNING id\"",
        ),
        (
            'WHERE id = ? AND box = ? AND body = ? RETURNING id"""',
            'WHERE id = ? AND box = ? AND ? <> \'\' RETURNING id"""',
        ),
        ('WHERE tenant = ? AND {{}} = ? ORDER BY at, id"', 'WHERE tenant >= ? AND {{}} = ? ORDER BY at, id"'),
        (
            'WHERE t.tenant = ? AND t.thread_id = ? AND t.epoch <> \'\'"""\n)\nPUT_SNAPSHOT',
            'WHERE t.tenant = ? AND t.thread_id = ?"""\n)\nPUT_SNAPSHOT',
        ),
        (
            "WHERE t.tenant = ? AND r.run_id = ?\nORDER BY r.id",
            "WHERE t.tenant >= ? AND r.run_id = ?\nORDER BY r.id",
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/postgres.py",
        ("                    self._wakeups.wake_all()\n", ""),
        ("if not connection.broken or attempt == self._size:", "if True:"),
    ),
    *faults(
        "slim/runcast/slim/log/notes.py",
        ("            max(now, after + 1),", "            now,"),
        (
            "        if not self._scope.covers(note.key):\n            raise _refused()\n        return await",
            "        return await",
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/removal.py",
        ("            yield Wake([thread_topic(key)])\n", ""),
    ),
    *faults(
        "slim/runcast/slim/log/batches.py",
        ("raws, self._raws = tuple(self._raws), []", "raws, self._raws = (), []"),
        (
            "            self.ended, self.run = self.run.run_id, None",
            "            self.ended, self.run = None, None",
        ),
        ("return bool(self._fresh or self._raws or (", "return bool(self._fresh or ("),
    ),
    *faults(
        "slim/runcast/slim/log/writer.py",
        (
            "if type(event) not in PHASES or self._turn.locked() or not self.out.flows:",
            "if type(event) not in PHASES or not self.out.flows:",
        ),
        (
            "            if self._unrecorded is not None or self.out.fenced is not None:\n                self._start_checks()\n",
            "",
        ),
        ("            self._unrecorded, self._logged = None, set()\n", "            self._logged = set()\n"),
        (
            'parent = out.head if plan.parent is None and plan.edge not in (*APART, "branch") else plan.parent',
            "parent = out.head if plan.parent is None else plan.parent",
        ),
    ),
    *faults(
        "slim/runcast/slim/log/committer.py",
        (
            "answer: Answer = StoreError(BROKEN_OFF)\n        try:\n            answer = await self._store.append(batch)",
            "answer: Answer = 0\n        try:\n            answer = await self._store.append(batch)",
        ),
        ("elif alone:\n            await asyncio.gather", "elif False:\n            await asyncio.gather"),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/sql_store.py",
        ("                yield Query(say.DROP_OLD_SNAPSHOTS, (thread, thread))\n", ""),
        ("            if window >= end or len(found) == limit:", "            if window >= end or found:"),
        (
            "        if not epoch:\n            raise refusals.gone(batch.key)\n        if last_batch",
            "        if last_batch",
        ),
    ),
)
