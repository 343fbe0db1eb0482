"""Faults of logs and stores: batches, feeds, leases, derived data, archives, and held text."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "slim/runcast/slim/archive/blobs.py",
        (
            "        if blob.info.seq == info.seq:\n            return unpack(blob)",
            "        return unpack(blob)",
        ),
        ("seqs[: -max(1, keep)])", "seqs[:-keep])"),
    ),
    *faults(
        "slim/runcast/slim/archive/derived.py",
        ("if info.run in place and info.seq == runs[place[info.run]].last_seq]", "if info.run in place]"),
        ("if last.terminal is None and last is not runs[-1]:", "if last.terminal is None:"),
        ("if not index or index[-1].seq != thread.last_seq:", "if not index:"),
        ("    return info is not None and info.seq == run.last_seq", "    return info is not None"),
        (
            "                    after = segments[first.seq].seq  # a late event may have come behind it",
            "                    after = last.last_seq",
        ),
    ),
    *faults(
        "slim/runcast/slim/archive/joining.py",
        ('run.first_seq <= cut and run.edge != "aside"]', "run.first_seq <= cut]"),
        ("if events and entry.seq > after:", "if events and entry.seq >= after:"),
        (
            'run = replace(run, last_seq=cut, status="in_progress", terminal=None)',
            'run = replace(run, status="in_progress", terminal=None)',
        ),
        ("if cut > last or (after is not None and after < cut):", "if after is not None and after < cut:"),
    ),
    *faults(
        "slim/runcast/slim/archive/lineage.py",
        ("        if node.thread_id != thread_id:", "        if False:"),
        (
            "same = known is message or (known is not None and _canonical(known) == text)",
            "same = known is not None",
        ),
        ('"metadata": None if note["alone"] else metadata', '"metadata": metadata'),
    ),
    *faults(
        "slim/runcast/slim/archive/pages.py",
        ("after, history = entries[-1].seq, history and entries[-1].history", "after = entries[-1].seq"),
        ("if run.first_seq != after + 1 or not run.pruned:", "if not run.pruned:"),
        ("return kept.run_id == event.run_id", "return True"),
    ),
    *faults(
        "slim/runcast/slim/archive/segments.py",
        (
            "            oldest_of.setdefault((newest - seq).bit_length(), seq)",
            "            oldest_of[(newest - seq).bit_length()] = seq",
        ),
    ),
    *faults(
        "slim/runcast/slim/archive/transfer.py",
        (
            'if mark is not None and not (is_mark(mark) and mark.startswith(f"{first_seq}.")):',
            "if mark is not None and not is_mark(mark):",
        ),
    ),
    *faults(
        "slim/runcast/slim/archive/thread_lines.py",
        ('"status": "truncated" if run.status == "in_progress" else run.status', '"status": run.status'),
        ('            described.pop("mark", None)\n', "            pass\n"),
    ),
    *faults(
        "slim/runcast/slim/log/batches.py",
        ("self._raws.append(NewEvent(self._next,", "self._raws.append(NewEvent(self._next - 1,"),
        (
            "if run is not None and run.new is not None and not run.number and not self.unflushed:",
            "if run is not None and run.new is not None and not run.number:",
        ),
        (
            'self._durable = (lease.last_seq, lease.last_run.mark if lease.last_run else "")',
            'self._durable = (lease.last_seq, "")',
        ),
        ("first = events[0].seq if events else self._next", "first = self._next"),
        ("[each for each in self._callers if not each.done()]", "self._callers"),
    ),
    *faults(
        "slim/runcast/slim/log/engine.py",
        (
            "            if self._feeds.get(key) is feed:\n                del",
            "            if key in self._feeds:\n                del",
        ),
        (
            "                await renewal.close()\n            await self.rest()\n",
            "                await renewal.close()\n",
        ),
        (
            "return_exceptions=True)\n        for error in done:",
            "return_exceptions=False)\n        for error in done:",
        ),
        ("if run.parent is None or run.edge in APART:", "if run.parent is None:"),
        ('        if self.options.derive == "auto" and last', "        if last"),
    ),
    *faults(
        "slim/runcast/slim/log/live_feed.py",
        ("            if len(entries) < PAGE:\n                return", "            return"),
        ("if known is None or known.seq != self._head:", "if known is None:"),
        (
            "            self._head, self._mark, self._epoch, untaken = known\n",
            "            self._head, _, self._epoch, untaken = known\n",
        ),
        (
            "behind = self._head - min(self._live.values(), default=self._head)",
            "behind = self._head - max(self._live.values(), default=self._head)",
        ),
        ("            if self._epoch is not None and epoch is None:", "            if False:"),
    ),
    *faults(
        "slim/runcast/slim/log/notes.py",
        ("before=self._clock() - spare_ms", "before=self._clock()"),
        (
            "until = None if lasting_ms is None else now + lasting_ms",
            "until = now + lasting_ms if lasting_ms else None",
        ),
        ("note.until < self._clock()", "note.until <= self._clock()"),
    ),
    *faults(
        "slim/runcast/slim/log/recovery.py",
        ("now=now, since=now - since_ms)", "now=now, since=0)"),
        ("return [run for run in runs if run.run_id in cut]", "return runs"),
    ),
    *faults(
        "slim/runcast/slim/log/writer.py",
        (
            "            if seq is not None and await self._is_taken(seq):\n                await self.out.flush()\n",
            "            if seq is not None and await self._is_taken(seq):\n",
        ),
        (
            "        self._judge(event)\n        redactor, entries",
            "        redactor, entries",
        ),
        ("        elif raw is not None:\n            self._keep_raw(RawEvent(event=raw))\n", ""),
        ("            self._plan = replace(plan, claim=claim)", "            self._plan = plan"),
        (
            "            end = RunEnd(last.status, last.terminal, last.usage)\n",
            "            end = RunEnd(last.status, last.terminal)\n",
        ),
    ),
    *faults(
        "slim/runcast/slim/redaction/stream_redactor.py",
        (
            '                        recent.append(fields["delta"])\n                        return',
            "                        return",
        ),
        (
            '            self._hold(stream, "")\n            stream.muted = True\n',
            '            self._hold(stream, "")\n',
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/memory.py",
        (
            "            thread.updated_at = batch.now\n        return number",
            "        thread.updated_at = batch.now\n        return number",
        ),
        (
            'attempt=parent.attempt + 1 if parent and run.edge == "resume" else 1,',
            "attempt=parent.attempt + 1 if parent else 1,",
        ),
        ("return thread is not None or (buried and not tombstone)", "return thread is not None or buried"),
        (
            "if key.tenant == tenant and key.thread_id > after)",
            "if key.tenant == tenant and key.thread_id >= after)",
        ),
        ("        self._tombstones.discard(key)\n", ""),
    ),
    *faults(
        "slim/runcast/slim/stores/memory_notes.py",
        ("if kept is None or (kept.box, kept.body) != (note.box, note.body):", "if kept is None:"),
    ),
    *faults(
        "slim/runcast/slim/stores/memory_thread.py",
        ("for name in kept[:-SNAPSHOTS]:", "for name in kept[: 1 - SNAPSHOTS]:"),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/removal.py",
        ("return bool(epoch) or not tombstone", "return True"),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/statements.py",
        (
            "WHERE n.thread = t.id AND n.edge <> 'aside' ORDER BY n.first_seq",
            "WHERE n.thread = t.id ORDER BY n.first_seq",
        ),
        ("AND kind = 'snapshot' AND seq <= (", "AND seq <= ("),
    ),
)
