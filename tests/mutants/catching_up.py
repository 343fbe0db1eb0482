"""Faults of positions: who is caught up from where, in a hub, and what a channel remembers."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "broadcast/runcast/broadcast/hub/audience.py",
        ("            connection.caught_up(channel)\n            self.greet", "            self.greet"),
        (
            "        self.rounds.leave(channel)\n        self._live.pop(channel, None)\n",
            "        self._live.pop(channel, None)\n",
        ),
        ("if each is not exclude and (plain or not each.plain):", "if each is not exclude:"),
        ("            self._watched(channel, False)\n", "            pass\n"),
        (
            "        self._live.pop(channel, None)\n        if channel != subscribe",
            "        if channel != subscribe",
        ),
        (
            "        self._live.pop(channel, None)\n        connection.caught_up",
            "        connection.caught_up",
        ),
        ("        self._live.pop(channel, None)\n        self._catch_up", "        self._catch_up"),
        ("        if live and len(live) == len(readers):\n", "        if live:\n"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/catchup.py",
        ("                position = _after(position, replay)\n", ""),
        (
            "                if connection.behind(channel) is not behind:\n                    return  # it left, or began anew\n",
            "",
        ),
        (
            "position = replace(position, offset=last.seq, mark=last.mark)",
            "position = replace(position, offset=last.seq)",
        ),
        (
            "                connection.caught_up(channel)\n                self._writer.deliver(connection, channel, behind.waiting)",
            "                connection.caught_up(channel)",
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/connection.py",
        ("kept.envelope.epoch == epoch and kept.envelope.seq > last]", "kept.envelope.seq > last]"),
        ("        for task in self._tasks:\n            task.cancel()", "        self._tasks.clear()"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/frame_writer.py",
        ("        if connection.held > self._buffer:", "        if False:"),
        (
            "        if waiting is not None and waiting.readers is not readers and waiting.readers != readers:",
            "        if False and readers:",
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/gate.py",
        (
            'if isinstance(user_id, bool) or not isinstance(user_id, str | int) or user_id == "":',
            'if not isinstance(user_id, str | int) or user_id == "":',
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/hub.py",
        ("connection.heard, connection.asked = now, None", "connection.heard = now"),
        ("            connection.asked = now\n            ping", "            ping"),
        ("        self._audience.rounds.leave_all()\n", ""),
        ("exclude=None if exclude is None else self._connections.get(exclude),", "exclude=None,"),
        ("self._audience.mend(channel, before)", "self._audience.mend(channel, ring.stands)"),
        ("if fit in (Fit.RESTART, Fit.HOLE):", "if fit is Fit.RESTART:"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/memory/channel_memory.py",
        ("        ring.expire(time.monotonic())\n", ""),
        ("        self.ring(channel).expect(replay.epoch)\n", ""),
        (
            "if size > self._limits.replay_bytes or len(replay.envelopes) > most:",
            "if len(replay.envelopes) > most:",
        ),
        ("        self._sessions.pop(channel, None)\n", ""),
        ("            self.size -= self._rings[name].clear()", "            self._rings[name].clear()"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/memory/ring.py",
        (
            'return [] if self.whole and position.mark in ("", self._place.mark) else None',
            "return [] if self.whole else None",
        ),
        (
            "        while self._kept and self._kept[0].envelope.seq == first.envelope.seq:\n            self.size",
            "        while False:\n            self.size",
        ),
        ("            self._anew = True\n", ""),
        ("or envelope.history in self._over:", "or False:"),
        (
            "        if fit is not Fit.NEXT:\n            self._kept.clear()\n            self.size = 0",
            "        if fit is not Fit.NEXT:\n            self._kept.clear()",
        ),
        (
            '        if known not in ("", epoch):\n            self._end(known, epoch)\n',
            '        if known not in ("", epoch):\n',
        ),
        (
            "        while len(self._kept) > self._most or self.size > self._most_bytes:",
            "        while len(self._kept) > self._most:",
        ),
        (
            'if position.epoch not in ("", replay.epoch) or position.offset > replay.head:',
            'if position.epoch not in ("", replay.epoch):',
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/protocol.py",
        ("        self.channels.discard(channel)\n", ""),
        (
            'not isinstance(user_id, str) or not valid_name(f"#server-to-user-{user_id}"):',
            "not isinstance(user_id, str):",
        ),
        (
            "isinstance(user_id, str | int) and not isinstance(user_id, bool)",
            "isinstance(user_id, str | int)",
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/signatures.py",
        (
            'object.__setattr__(self, "mark", mark if self.offset else "")',
            'object.__setattr__(self, "mark", mark)',
        ),
    ),
)
