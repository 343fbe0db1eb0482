"""Faults of keeping: what is removed too early, too late or half, and what an archive brings."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "slim/runcast/slim/archive/pruning.py",
        ("gone = [old for old in some if old.run.seq in sound]", "gone = list(some)"),
        ("if info.run not in pruned and info.at <=", "if info.at <="),
        ("            weight -= old.size.bytes + old.size.raw_bytes\n", ""),
    ),
    *faults(
        "app/runcast/app/keeping/forgetting.py",
        (
            "        for each in await cast.queue.waiting(thread_id):  # else it begins when the run has stopped\n            await cast.log.notes.take(each.note)\n",
            "",
        ),
        ("            await _erase(cast, thread_id)\n", ""),
        ("        return self._cast.for_tenant(note.key.tenant)\n", "        return self._cast\n"),
        ("            if note.id not in self._active and note.at <= now", "            if note.at <= now"),
        (
            "            elif adapter is None or isinstance(adapter, RemoteAgent):",
            "            elif adapter is None:",
        ),
    ),
    *faults(
        "app/runcast/app/keeping/retention.py",
        (
            "forgetter = self._cast.for_tenant(tenant).forgetter",
            "forgetter = self._cast.forgetter",
        ),
        ("thread.thread_id, now - _ms(keep))", "thread.thread_id, now)"),
        (
            "if keep is not None and thread.owner is None and thread.updated_at",
            "if keep is not None and thread.updated_at",
        ),
    ),
    *faults(
        "slim/runcast/slim/archive/transfer.py",
        ("                now = min(now, self._now - 1)", "                pass"),
        (' or header["last_seq"] > thread.last_seq:', ":"),
        ("(run.run_id, run.first_seq) == (given", "(run.run_id, self._next) == (given"),
        ('given.get("mark", run.mark) == run.mark', "True"),
        ("self._run.last_seq >= self._next - 1", "True"),
        ("            self._passes = True\n", "            raise\n"),
        ("        return await self._store.delete(lease.key, now=until + 1)\n", "        return True\n"),
        ("                await self._beside.clear(key.thread_id)\n", "                pass\n"),
        ("        if await self._store.renew([lease], until=until):\n            return False\n", ""),
        (
            "        return _is_importers(thread) and (thread.until or 0) < self._clock()",
            "        return _is_importers(thread)",
        ),
        ("        if _is_importers(thread):\n", "        if False:\n"),
    ),
    *faults(
        "app/runcast/app/keeping/beside_log.py",
        (
            "            elif messages:\n                await self._note(thread_id, WAITING)\n",
            "",
        ),
        (
            "        if self._waiting:\n            await self._let_wait(thread_id, messages)",
            "        if messages:\n            await self._let_wait(thread_id, messages)",
        ),
        ("            if await anext(here, None) is None:", "            if True:"),
        (
            '                        (identifier("a run\'s id", given["run_id"]), to_wait(plain, "queue", None))',
            '                        (identifier("a run\'s id", given["run_id"]), request)',
        ),
    ),
    *faults(
        "app/runcast/app/keeping/forgetting.py",
        ("            if self._seen.get(note.id) != note.at:", "            if note.id not in self._seen:"),
        (
            "            if run.active:\n                await run.abandon()\n",
            "",
        ),
        ("for name in dict.fromkeys([*cast.agents, *names]):", "for name in cast.agents:"),
    ),
    *faults(
        "app/runcast/app/keeping/retention.py",
        ("            if not await self._lease.hold():\n                return\n", ""),
        ("not run.pruned and run.ended_at is not None", "run.ended_at is not None"),
    ),
    *faults(
        "slim/runcast/slim/archive/pruning.py",
        (
            "for old in sorted(candidates, key=lambda old: old.run.ended_at or 0):",
            "for old in candidates:",
        ),
        (
            "                except Conflict:  # it is being written again\n                    continue",
            "                except LookupError:\n                    continue",
        ),
    ),
    *faults(
        "slim/runcast/slim/archive/pruning.py",
        ("now=self._now, idle_since=oldest)", "now=self._now)"),
    ),
    *faults(
        "slim/runcast/slim/stores/memory.py",
        ("idle_since is not None and thread.updated_at > idle_since", "False"),
    ),
)
