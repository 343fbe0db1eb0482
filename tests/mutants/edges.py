"""Faults at edges, in all risky files: a value at its bound, what is left after a failure, which of two comes first, what
is counted, what an empty list means, and when time is up."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "app/runcast/app/host/launch.py",
        ("        self._cast.threads.remember(run)\n", "        pass\n"),
        ("        self._cast.node.wake()  # there is room for another run\n", ""),
    ),
    *faults(
        "app/runcast/app/host/thread_reader.py",
        ("for found in reversed(fold(events).messages):", "for found in fold(events).messages:"),
        ("        return found[-1]\n", "        return found[0]\n"),
        (
            "            after = entries[-1].seq\n            for entry",
            "            after += 1\n            for entry",
        ),
    ),
    *faults(
        "app/runcast/app/http/site.py",
        ("            await self.cast.aclose()\n", "            pass\n"),
        ("find_file(path) if paged else None", "find_file(path)"),
        ("if origin in self._refused or len(self._refused) >= REPORTED:", "if origin in self._refused:"),
    ),
    *faults(
        "app/runcast/app/http/sse.py",
        (
            "                    last, known = entry.seq, entry.history\n",
            "                    last = entry.seq\n",
        ),
        (
            "each.pruned and each.first_seq <= int(at) < each.last_seq for",
            "each.pruned and each.first_seq <= int(at) <= each.last_seq for",
        ),
        ("and int(at) <= int(seq) <= head", "and int(seq) <= head"),
        ("                if entry.run_id != run.run_id:\n                    break\n", ""),
        ("            await run.abandon()  # this reader", "            pass  # this reader"),
    ),
    *faults(
        "app/runcast/app/keeping/beside_log.py",
        ("stored[:-1] if isinstance(error, AdapterError) else stored)", "stored)"),
        ("            at = at if note is None else note.at\n", "            pass\n"),
        ("            await self._cast.queue.changed(thread_id)\n", "            pass\n"),
        ("        self.left = +left\n", "        self.left = left\n"),
    ),
    *faults(
        "app/runcast/app/keeping/forgetting.py",
        ("            self._active.discard(request.id)\n", "            pass\n"),
        ("                lasting_ms=HOUR_MS,\n", "                lasting_ms=1,\n"),
    ),
    *faults(
        "app/runcast/app/keeping/retention.py",
        ("                    continue\n", "                    return\n"),
        ('        self._counts["rounds"] += 1\n', ""),
    ),
    *faults(
        "app/runcast/app/nodes/annotations.py",
        (
            "        except BaseException:\n            cast.followers.dismiss(aside)\n            raise",
            "        except BaseException:\n            raise",
        ),
        ("            self.by_id.pop(id, None)\n", ""),
        ("if not 0 < len(meta_type) <= LONGEST_TYPE:", "if not 0 < len(meta_type) < LONGEST_TYPE:"),
        (
            "            found = Standing()\n            await self._read_on",
            "            await self._read_on",
        ),
    ),
    *faults(
        "app/runcast/app/nodes/handover.py",
        (
            "return [each for each in messages[last + 1 :] if each.role",
            "return [each for each in messages[last:] if each.role",
        ),
        ('"".join(f"{len(each)}:{each}" for each in (tenant, *names))', '"".join((tenant, *names))'),
        ('own = [message for message in history if message.role != "activity"]', "own = [*history]"),
    ),
    *faults(
        "app/runcast/app/nodes/node.py",
        (
            "task.add_done_callback(lambda _: self._acting.pop(note.id, None))",
            "task.add_done_callback(lambda _: None)",
        ),
        ("        self._woken.clear()\n", ""),
        ("            self._stuck &= {note.id for note in notes}\n", ""),
    ),
    *faults(
        "app/runcast/app/nodes/queue.py",
        ('"count": len(waiting)}', '"count": len(waiting[:LISTED])}'),
        ("for each in waiting[:LISTED]]", "for each in waiting]"),
    ),
    *faults(
        "app/runcast/app/nodes/requests.py",
        ("    if note is not None:\n        await notes.take(note)\n    return False", "    return False"),
        ("    echo = None if request.input is None else echoed(request.input)\n", "    echo = None\n"),
    ),
    *faults(
        "app/runcast/app/runs/run.py",
        (
            "        if self._snapshot_seq < self.last_seq:  # no terminal event, or events after it\n            await self._keep()\n",
            "",
        ),
        ("            if close is not None:\n                await close()\n", "            pass\n"),
    ),
    *faults(
        "app/runcast/app/tenants/access_policy.py",
        ("return await user if inspect.isawaitable(user) else user", "return user"),
    ),
    *faults(
        "app/runcast/app/tenants/cursors.py",
        ("key, coded = _key(secret), cursor", "key, coded = _key(None), cursor"),
    ),
    *faults(
        "app/runcast/app/tenants/tenant_views.py",
        ("            if len(self._views) < self._most:\n                break\n", ""),
        ("or view.slots.has(view.tenant))", "or False)"),
        (
            "for each in self if len(self._views) >= self._most else ():",
            "for each in self if len(self._views) > self._most else ():",
        ),
    ),
    *faults(
        "app/runcast/app/webhooks/posting.py",
        ("        writer.transport.abort()  # nothing", "        pass  # nothing"),
        ("if number == len(addresses):", "if number == 1:"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/fanout.py",
        ("            self._hub.on_watch.remove(self._watched)\n", "            pass\n"),
        ("if missing or len(found) > most or", "if len(found) > most or"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/hub.py",
        ("            self._stats.holes += fit is Fit.HOLE\n", ""),
        (
            "limits.unsubscribed:\n            self._stats.timeouts += 1",
            "limits.unsubscribed:\n            pass",
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/memory/ring.py",
        ("now - self._kept[0].at > self._age", "now - self._kept[0].at >= self._age"),
    ),
    *faults(
        "broadcast/runcast/broadcast/publishers/lots.py",
        ("size += len(message) + 1  # the", "size += len(message)  # the"),
        ("        done += len(lot)\n", "        done += 1\n"),
    ),
    *faults(
        "broadcast/runcast/broadcast/publishers/workers.py",
        ("await asyncio.sleep(max(pause, after or 0.0))", "await asyncio.sleep(pause)"),
        ("            await end([lane.worker])\n", "            pass\n"),
        ("            lane.failed, lane.refusing = 0, False\n", "            lane.refusing = False\n"),
        ("lane.singly = max(0, lane.singly - len(delivered))", "lane.singly = 0"),
    ),
    *faults(
        "slim/runcast/slim/archive/transfer.py",
        ("            self._lease, self._next = None, 1\n", "            self._lease = None\n"),
        ('            if "title" in self._header:\n', "            if False:\n"),
    ),
    *faults(
        "slim/runcast/slim/log/committer.py",
        ("        self._written = asyncio.get_running_loop().time()\n", ""),
    ),
    *faults(
        "slim/runcast/slim/log/engine.py",
        ("            self._derive_errors += 1  # derived", "            pass  # derived"),
    ),
    *faults(
        "slim/runcast/slim/log/lease_renewal.py",
        (
            "self._pause = max(options.lease_ms / 3_000, SHORTEST_PAUSE)",
            "self._pause = max(options.lease_ms / 1_000, SHORTEST_PAUSE)",
        ),
    ),
    *faults(
        "slim/runcast/slim/log/live_feed.py",
        ("                await asyncio.sleep(pause)\n                continue", "                continue"),
    ),
    *faults(
        "slim/runcast/slim/redaction/stream_redactor.py",
        (
            '        stream.owed = ""\n        stream.released(text[since:][-CONTEXT:])',
            "        stream.released(text[since:][-CONTEXT:])",
        ),
        ("if type(event) is kind and event.__dict__[name] in (None, key):", "if type(event) is kind:"),
    ),
    *faults(
        "slim/runcast/slim/stores/postgres.py",
        ("            watcher.close()\n            raise StoreError", "            raise StoreError"),
        ("            await asyncio.shield(back)\n", "            await back\n"),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/side_tables.py",
        ("        if not boxes:\n            return []\n", ""),
    ),
    *faults(
        "slim/runcast/slim/stores/sql/sql_store.py",
        ("            end = min(end, last_seq)\n", ""),
    ),
    *faults(
        "slim/runcast/slim/stores/sqlite.py",
        ("                now: object = None\n", "                now: object = seen\n"),
        ("                    await writer.close()\n                    raise", "                    raise"),
        ("    if error is None and then is not None:", "    if then is not None:"),
    ),
)
