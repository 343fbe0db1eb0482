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
            '                if policy == "refuse" or resume is not None:\n                    raise',
            '                if policy == "refuse":\n                    raise',
        ),
        ("            after=max((each.note.at for each in waiting), default=0),", "            after=0,"),
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
)
