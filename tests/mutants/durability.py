"""Faults of durability: events written, in order, once, and not forgotten on the way."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

LOG = "slim/runcast/slim/log/"
STORES = "slim/runcast/slim/stores/"

FAULTS: tuple[Fault, ...] = (
    *faults(
        LOG + "batches.py",
        ("        while self._send_next() is not None:", "        if self._send_next() is not None:"),
        (
            "            await self._answered()\n        self._cancel_retry()",
            "            break\n        self._cancel_retry()",
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
        ("lease.last_seq + 1\n            self._epoch", "lease.last_seq\n            self._epoch"),
        ("place = run.number or run.new or 0", "place = run.new or run.number or 0"),
        ("        self.run.number = number\n", "        pass\n"),
        (
            "            self._core.hand_over(self.key, durable, batch.events)",
            "            pass",
        ),
        ("        self._count.lost += lost\n", "        pass\n"),
    ),
    *faults(
        LOG + "committer.py",
        ("            self._task = None\n\n    async def _rest", "            pass\n\n    async def _rest"),
        ("            _end(self._pause)\n        self._start()", "            pass\n        self._start()"),
        ("        await asyncio.wait([write], timeout=SLOW)", "        await asyncio.wait([write])"),
        ("            answers = [error] * len(lot)", "            answers = [None] * len(lot)"),
        (
            "                if answer is not None:\n                    answered(answer)",
            "                if isinstance(answer, int):\n                    answered(answer)",
        ),
        (
            "        except (StoreError, LineageError) as error:\n            answer = error",
            "        except StoreError as error:\n            answer = error",
        ),
        ("if loaded else 0.0", "if loaded else pause"),
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
        ("            if self._is_same(kept, event):", "            if True:"),
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
        ("            return await asyncio.shield(work)\n", "            return await work\n"),
        ("PRAGMA synchronous = {self._synchronous}", "PRAGMA synchronous = OFF"),
        ("            await self._write_ahead(writer)", "            pass"),
        ('            await writer.rows(f"PRAGMA max_page_count', '            (f"PRAGMA max_page_count'),
        (
            "                    self._wakeups.wake_all()\n        except",
            "                    pass\n        except",
        ),
        ("                self._wakeups.wake(topic)", "                pass"),
        ('        if self._mode == "ro":\n            raise refusals.read_only(self._path)\n', ""),
    ),
    *faults(
        STORES + "sql/sql_store.py",
        ("        if last_batch == batch.batch_id:", "        if False:"),
        (
            "                if not (yield Query(say.END_RUN, ended)):\n                    raise refusals.unknown_run(batch.key, run)",
            "                yield Query(say.END_RUN, ended)",
        ),
        ('        yield Insert("runcast_raws", say.EVENT_COLUMNS, raws)\n', ""),
        ("        yield Wake([thread_topic(key) for key in runs])", "        yield Wake([])"),
        ("        if run.run_id in known:\n            raise refusals.used(batch.key, run.run_id)\n", ""),
        ("        yield Query(say.REMEMBER_RUN, (number, thread))\n", ""),
        ('        attempt = attempt + 1 if run.edge == "resume" else 1', "        attempt = attempt + 1"),
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
)
