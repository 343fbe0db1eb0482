"""Faults where two parts meet: a statement and the script that runs it, a lease and its next owner, a letter and its
receiver, a proof and its time, what is held back and what releases it."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "app/runcast/app/http/http_messages.py",
        ("                    if size > most:\n", "                    if size >= most:\n"),
        (
            "            async with turn:\n                await send(message)\n",
            "            await send(message)\n",
        ),
        ("        return min(int(text), most)\n", "        return int(text)\n"),
    ),
    *faults(
        "app/runcast/app/http/sse.py",
        ('wanted.epoch in ("", known) and int(at)', "int(at)"),
        ("            continue\n        except SlimError:", "            return\n        except SlimError:"),
    ),
    *faults(
        "app/runcast/app/keeping/forgetting.py",
        ("note.at <= now - self._cast.log.lease_ms:", "note.at <= now:"),
    ),
    *faults(
        "app/runcast/app/nodes/node.py",
        ("        if run is None and slots.is_starting(tenant, thread_id):\n            return False\n", ""),
        ("            await run.over()\n        log =", "        log ="),
        (
            "        except Forgotten:\n            pass  # nothing",
            "        except Forgotten:\n            return False  # nothing",
        ),
    ),
    *faults(
        "app/runcast/app/nodes/orphans.py",
        ("run.attempt >= cast.options.max_attempts:", "run.attempt > cast.options.max_attempts:"),
        (
            'run is None or run.run_id != run_id or run.status != "truncated"',
            'run is None or run.status != "truncated"',
        ),
    ),
    *faults(
        "app/runcast/app/nodes/queue.py",
        ('                raise Changed("the thread has moved on")\n', "                pass\n"),
        ('(last.status == "interrupted" and first.ahead)', 'last.status == "interrupted"'),
        ("            await cast.log.flush(thread_id)\n", "            pass\n"),
    ),
    *faults(
        "app/runcast/app/nodes/requests.py",
        (
            "        lasting_ms=HOUR_MS,\n        replace=True,\n    )\n\n\nasync def _ask_to_stop",
            "        lasting_ms=HOUR_MS,\n    )\n\n\nasync def _ask_to_stop",
        ),
        (
            'if note.box.startswith("run ") and thread_id in (None, note.key.thread_id):',
            'if note.box.startswith("run "):',
        ),
    ),
    *faults(
        "app/runcast/app/tenants/access_policy.py",
        ('return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")', "return True"),
        ('    if not host.isprintable() or " " in host:\n        return ""\n', ""),
        ("return (mapped or found).is_loopback", "return found.is_loopback"),
        (
            "        if not name:\n            raise NotAllowed",
            "        if name is None:\n            raise NotAllowed",
        ),
        ("        self._authorize = authorize or self._authorize\n", "        self._authorize = authorize\n"),
        ("not _TOKEN.fullmatch(given)", "not _TOKEN.match(given)"),
    ),
    *faults(
        "app/runcast/app/tenants/tenant_adapter.py",
        ("await self._adapter.steer(self._prefix + run_id, take)", "await self._adapter.steer(run_id, take)"),
    ),
    *faults(
        "app/runcast/app/webhooks/answer_links.py",
        ("if asked.expires <= now:", "if asked.expires < now:"),
    ),
    *faults(
        "app/runcast/app/webhooks/posting.py",
        ('name = parts.netloc.rpartition("@")[2]', "name = parts.netloc"),
        ("[found.ipv4_mapped, found.sixtofour]", "[found.ipv4_mapped]"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/catchup.py",
        ("        return replay.recovered\n", "        return True\n"),
        ("return _Now.LIVE if ring.whole or mid else _Now.AHEAD", "return _Now.LIVE"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/fanout.py",
        ("failed = 0 if self._connects > before else failed + 1", "failed = 0"),
        (
            "            if before - occupied:\n                await ear.unsubscribe(*map(self._keys.topic, before - occupied))\n",
            "",
        ),
        (
            "        same = [each for each in found if each.epoch == position.epoch]\n",
            "        same = found\n",
        ),
        (
            "elif top.epoch != position.epoch or _contradicts(top, position):",
            "elif top.epoch != position.epoch:",
        ),
        ("return last if len(last) == parts else []", "return last"),
        ("                self.connected.clear()\n", "                pass\n"),
        ("            if fresh:\n                await self._hub.catch_up(channel)\n", "            pass\n"),
        (
            "            if not vouched(position, there, found[0] if found else None):\n",
            "            if False:\n",
        ),
        ("or follow(found, position.offset) != len(found):", "or False:"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/gate.py",
        (
            'isinstance(user_id, bool) or not isinstance(user_id, str | int) or user_id == ""',
            "isinstance(user_id, bool) or not isinstance(user_id, str | int)",
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/hub.py",
        ("            if self._memory.is_erased(channel, envelope.epoch):\n                continue\n", ""),
        (
            '        if self._closing:\n            return p.Close(p.RECONNECT, "the hub is closing; come back at once")\n',
            "",
        ),
        ("        if code == p.NO_PONG and connection.transport.buffered():\n", "        if False:\n"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/signatures.py",
        ("if made < now - self._window]:", "if made <= now - self._window]:"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/skins/pusher_api.py",
        ("known = all(read_envelope(", "known = any(read_envelope("),
        ("        if not allowed or member is None:\n", "        if not allowed:\n"),
        ("    if len(data) > LARGEST_DATA:\n", "    if False:\n"),
    ),
    *faults(
        "broadcast/runcast/broadcast/publishers/redis.py",
        ("  redis.call('DEL', KEYS[1])\n", ""),
        ("redis.call('EXPIRE', KEYS[2], ARGV[7])\n", ""),
        ("(seq == held and part <= heldpart)", "(seq == held and part < heldpart)"),
    ),
    *faults(
        "slim/runcast/slim/archive/transfer.py",
        ("return min(now, _whole_number(line, name))", "return _whole_number(line, name)"),
    ),
    *faults(
        "slim/runcast/slim/log/batches.py",
        ("if not self._under_way and self.lease is not None and", "if self.lease is not None and"),
        (
            "self.lease = self.run = self.failure = self.snapshot = None",
            "self.lease = self.run = self.failure = None",
        ),
    ),
    *faults(
        "slim/runcast/slim/log/committer.py",
        ("        if self._gathering or self._waiting:\n", "        if self._gathering:\n"),
    ),
    *faults(
        "slim/runcast/slim/log/engine.py",
        (
            "            if self._feeds.get(key) is feed:\n                del self._feeds[key]",
            "            self._feeds.pop(key, None)",
        ),
        ("            await self.rest()\n            self._writers", "            self._writers"),
    ),
    *faults(
        "slim/runcast/slim/log/keeping.py",
        ("        self._core.forget(key)\n", ""),
    ),
    *faults(
        "slim/runcast/slim/log/live_feed.py",
        ("max(0, len(self._ring) - min(behind, self._size))]", "max(0, len(self._ring) - behind)]"),
        ("        await asyncio.shield(self._started)", "        await self._started"),
    ),
    *faults(
        "slim/runcast/slim/log/recovery.py",
        (
            "since=now - since_ms)\n        return [(key.tenant, key.thread_id, run.run_id) for key, run in found if not self._core.owns(key)]",
            "since=now - since_ms)\n        return [(key.tenant, key.thread_id, run.run_id) for key, run in found]",
        ),
    ),
    *faults(
        "slim/runcast/slim/log/writer.py",
        ("            self._count.lost += 1\n            return []", "            return []"),
    ),
    *faults(
        "slim/runcast/slim/redaction/stream_redactor.py",
        (
            "return [*self._release(0, event.message_id), *self._release(1, event.message_id)]",
            "return self._release(0, event.message_id)",
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/postgres.py",
        ('            await connection.execute("SET LOCAL lock_timeout = 0")\n', ""),
        ("if not connection.broken or attempt == self._size:", "if attempt == self._size:"),
        ("            if self._returns:\n                await asyncio.wait(self._returns)\n", ""),
        ("for seconds in (self._timeout, self._silence)]", "for seconds in (self._silence, self._timeout)]"),
        (
            "                    pause = FIRST_PAUSE\n                    self._outage",
            "                    self._outage",
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/removal.py",
        ("else last - 1)", "else last)"),
        ('("events", "raws", "blobs", "runs")', '("events", "raws", "runs")'),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/sql_store.py",
        ("wanted = None if limit is None else limit - len(found)", "wanted = limit"),
        (
            "[(holder[0], holder[2]) for holder in holders] != [(lease.owner, lease.token)]",
            "[holder[0] for holder in holders] != [lease.owner]",
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/statements.py",
        ("kind = 'snapshot' AND seq <= (", "kind = 'snapshot' AND seq < ("),
        ("h.first_seq <= {seq} ORDER", "h.first_seq < {seq} ORDER"),
        (
            "body = excluded.body, at = excluded.at, until = excluded.until",
            "body = excluded.body, at = excluded.at",
        ),
    ),
    *faults(
        "slim/runcast/slim/stores/sqlite.py",
        ("            if found != schema.VERSION:\n", "            if found > schema.VERSION:\n"),
        ("self._reader = writer if self._path == MEMORY else await self._connect()", "self._reader = writer"),
        ("if not _locked(error) or loop.time() > patience:", "if not _locked(error):"),
        ("max(1, self._max_bytes // page)", "max(1, self._max_bytes)"),
        ("while len(self._wakeups) and self._writer is not None:", "while self._writer is not None:"),
        ("                    seen = now\n", ""),
    ),
)
