"""Faults of what waits and what other nodes are asked for: order, once, and the right run."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "app/runcast/app/nodes/queue.py",
        ("                if not said or run.expects(said[-1].id):", "                if not said:"),
        (
            "                if await self._cast.log.notes.exchange(each.note, each.begun()) is not None:",
            "                await self._cast.log.notes.exchange(each.note, each.begun())\n                if True:",
        ),
        (
            '        return last.status not in ("in_progress", "interrupted")',
            '        return last.status != "in_progress"',
        ),
        ("            if newest != (now[-1].run_id if now else None):", "            if False:"),
        (
            '        if resume is not None:  # it is of this moment, and no note holds it\n            policy = "refuse"\n',
            "",
        ),
        ("            after=max((each.note.at for each in waiting), default=0),", "            after=0,"),
    ),
    *faults(
        "app/runcast/app/host/cast.py",
        ("                    await note_stop(self, run.thread_id, run_id, hard)\n", ""),
    ),
    *faults(
        "app/runcast/app/nodes/requests.py",
        ("            if thread_id not in (None, thread.thread_id):\n                continue\n", ""),
        (
            '    return note.box.startswith("stop ") and note.key.thread_id == thread_id',
            '    return note.box.startswith("stop ")',
        ),
    ),
    *faults(
        "app/runcast/app/nodes/waiting.py",
        (
            "waiting, key=lambda each: (not each.request.begins, not each.ahead, each.note.at, each.note.id)",
            "waiting, key=lambda each: (not each.request.begins, each.note.at, each.note.id)",
        ),
        (
            'if request.on_busy != "rollback" or newest is None or newest.run_id != request.over:',
            'if request.on_busy != "rollback" or newest is None:',
        ),
        ("or self.request.agent != agent:", "or False:"),
    ),
    *faults(
        "app/runcast/app/nodes/node.py",
        ("        if run is not None and run.run_id == note.run_id:", "        if run is not None:"),
    ),
    *faults(
        "app/runcast/app/nodes/queue.py",
        ("        if len(waiting) >= MOST:\n", "        if len(waiting) > MOST:\n"),
        (
            "            return await resume_truncated(cast, thread_id, last.run_id) is None",
            "            return True",
        ),
        (
            "        if active is not None and Waiting(note, request).ahead:\n            await self._stop(thread_id, active)\n",
            "",
        ),
        (
            '        if policy == "steer" and not await self._can_steer(request, thread_id, active):',
            '        if policy == "steer" and active is None:',
        ),
        (
            '            if not await decline(cast, kept, error, "refused"):\n                return False\n',
            "",
        ),
    ),
    *faults(
        "app/runcast/app/nodes/waiting.py",
        ("return said if len(said) == len(new) else []", "return said"),
        (
            'while parent is not None and run.edge == "resume" and parent.status == "truncated":',
            'while parent is not None and run.edge == "resume":',
        ),
        ('append=True, edge="continue", parent=None)', 'append=True, edge="continue")'),
    ),
    *faults(
        "app/runcast/app/nodes/node.py",
        (
            '        if not any(info.status == "truncated" for info in ended):\n            await self.notes.take(note)',
            "        await self.notes.take(note)",
        ),
    ),
)
