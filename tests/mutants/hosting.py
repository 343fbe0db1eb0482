"""Faults of hosts: what waits, what runs, what is noted and told, and what is kept of threads."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "app/runcast/app/host/followers.py",
        (
            "thread.after, thread.epoch = last.seq, last.history",
            "thread.after, thread.epoch = last.seq, last.epoch",
        ),
        (
            "            except UnknownThread:  # it was deleted, and perhaps created again\n                thread.after = -1",
            "            except UnknownThread:  # it was deleted, and perhaps created again\n                thread.after = 0",
        ),
    ),
    *faults(
        "app/runcast/app/host/launch.py",
        ("attempt = parent.attempt + 1\n", "attempt = parent.attempt\n"),
        (
            "return state.to_messages(half_said=True) if request.edge",
            "return state.to_messages() if request.edge",
        ),
        ("            cast.followers.dismiss(run)\n", ""),
    ),
    *faults(
        "app/runcast/app/host/thread_reader.py",
        (
            "if left is None or (left.seq, left.history) != (claim.seq, claim.history):",
            "if left is None or left.seq != claim.seq:",
        ),
    ),
    *faults(
        "app/runcast/app/keeping/forgetting.py",
        ("agents = sorted(await self._agents_of(thread_id))", "agents = list[str]()"),
        (
            "        if not cast.slots.is_starting(cast.tenant, thread_id):\n            await",
            "        if True:\n            await",
        ),
    ),
    *faults(
        "app/runcast/app/keeping/thread_archives.py",
        ("and not any(run.pruned for run in runs):", "and True:"),
        ("and adapter.kept not in done:", "and True:"),
    ),
    *faults(
        "app/runcast/app/nodes/annotations.py",
        (
            "                return await run.announce(event)\n",
            "                await run.announce(event)\n                return True\n",
        ),
        ("RunFinishedEvent(**ids, **marks, outcome=outcome),", "RunFinishedEvent(**ids, **marks),"),
        ("if payload is not None and id not in known.by_id and", "if payload is not None and"),
    ),
    *faults(
        "app/runcast/app/nodes/node.py",
        (
            "        await self.notes.take(note)  # first, so that a change after this is announced again\n        await self._cast.for_tenant(note.key.tenant).queue.changed(note.key.thread_id)",
            "        await self._cast.for_tenant(note.key.tenant).queue.changed(note.key.thread_id)\n        await self.notes.take(note)",
        ),
        ("await self.notes.sweep(spare_ms=REMEMBERED_MS)", "await self.notes.sweep()"),
    ),
    *faults(
        "app/runcast/app/nodes/orphans.py",
        ("        except Exception:  # a failing", "        except SlimError:  # a failing"),
        ("view = cast if tenant == cast.tenant else cast.for_tenant(tenant)", "view = cast"),
    ),
    *faults(
        "app/runcast/app/nodes/queue.py",
        (
            "            if await self._cast.log.notes.take(found.note):\n                await self.changed(thread_id)\n                return",
            "            if await self._cast.log.notes.take(found.note):\n                return",
        ),
        ("if each.run_id == run_id and not each.request.begins:", "if each.run_id == run_id:"),
        ("and note.run_id != first.request.over for note", "for note"),
        ("return here.adapter.name == request.agent", "return True"),
        (
            "        if found:\n            self._cast.slots.note",
            "        if False:\n            self._cast.slots.note",
        ),
    ),
    *faults(
        "app/runcast/app/nodes/requests.py",
        ("[*here, *there, *waiting]", "[*here, *there]"),
    ),
    *faults(
        "app/runcast/app/nodes/waiting.py",
        ("        files = files_of(messages[at])\n", "        files = list[Any]()\n"),
    ),
    *faults(
        "app/runcast/app/runs/newest.py",
        ("        self.weight -= weight\n        return thing", "        return thing"),
    ),
    *faults(
        "app/runcast/app/runs/run.py",
        (
            "        async with self._turn:\n            if self._abandoned:\n                return\n",
            "        async with asyncio.Lock():\n            if self._abandoned:\n                return\n",
        ),
        (
            "        if self._abandoned or self._handed:\n            return False",
            "        if self._abandoned:\n            return False",
        ),
        (
            "        if due is None and self._terminal is None:\n            return",
            "        if due is None:\n            return",
        ),
        (
            "if len({each.id for each in history}) < len(history) or not self._has_state:",
            "if not self._has_state:",
        ),
        ("or state is None or self._snapshot_seq < last.seq:", "or state is None:"),
    ),
    *faults(
        "app/runcast/app/runs/run_slots.py",
        ("        if self._reserved.get(key) == run_id:\n", "        if key in self._reserved:\n"),
        ("            self._noted.discard(key)\n", ""),
        ("return len(self._reserved) >= self.most", "return len(self._reserved) > self.most"),
    ),
    *faults(
        "app/runcast/app/webhooks/letters.py",
        (
            "for event in (each.event for each in entries if each.run_id == run.run_id):",
            "for event in (each.event for each in entries):",
        ),
    ),
    *faults(
        "app/runcast/app/webhooks/outbox.py",
        (
            "            if note.at < _now() - PATIENCE_MS:  # it was refused\n                await",
            "            if True:  # it was refused\n                await",
        ),
    ),
    *faults(
        "app/runcast/app/webhooks/posting.py",
        ("port = parts.port or (443 if secure else 80)", "port = parts.port or 443"),
    ),
    *faults(
        "app/runcast/app/webhooks/webhook.py",
        (
            '"\\0".join((self.url, self.tenant or "", self.thread_id or ""))',
            '"".join((self.url, self.tenant or "", self.thread_id or ""))',
        ),
    ),
)
