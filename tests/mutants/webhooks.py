"""Faults of webhooks and of links that answer: who is told, at which address, and what a link opens."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

FAULTS: tuple[Fault, ...] = (
    *faults(
        "app/runcast/app/http/answer_page.py",
        (
            'if not runs or runs[-1].run_id != wanted.run_id or runs[-1].status != "interrupted":',
            'if not runs or runs[-1].status != "interrupted":',
        ),
        (
            '    text = escape(str(asked.get("message") or asked.get("reason") or "The agent asks."))',
            '    text = str(asked.get("message") or asked.get("reason") or "The agent asks.")',
        ),
    ),
    *faults(
        "app/runcast/app/webhooks/answer_links.py",
        ("        if asked.expires <= now:", "        if False:"),
    ),
    *faults(
        "app/runcast/app/webhooks/posting.py",
        (
            "if not private and not all(map(is_public, addresses)):",
            "if not private and not any(map(is_public, addresses)):",
        ),
        (
            "await _connected(addresses, port, host if secure else None)",
            "await _connected([host], port, host if secure else None)",
        ),
        ("    if found in NAT64:", "    if False:"),
    ),
    *faults(
        "app/runcast/app/webhooks/outbox.py",
        ("            if 200 <= status < 300:", "            if 200 <= status < 400:"),
        ("        if await log.archive.is_forgotten(note.key.thread_id):  # meanwhile", "        if False:"),
        ('        if run.status == "in_progress":\n            return\n', ""),
        (
            "                await self._cast.log.notes.take(note)\n                return\n            why, last",
            "                return\n            why, last",
        ),
    ),
    *faults(
        "app/runcast/app/webhooks/webhook.py",
        (
            "happening in self.events and self.tenant in (None, tenant) and self.thread_id in (None, thread_id)",
            "happening in self.events and self.thread_id in (None, thread_id)",
        ),
        ("        if parts.username is not None or parts.password is not None:", "        if False:"),
        ("for each in secrets)\n", "for each in secrets[:1])\n"),
    ),
    *faults(
        "app/runcast/app/webhooks/outbox.py",
        (
            '            why, last = f"status {status}", status == GONE',
            '            why, last = f"status {status}", False',
        ),
        ("dead = last or attempt >= len(GAPS)", "dead = last or attempt > len(GAPS)"),
        ('resumed = run.status == "truncated" and runs[-1].run_id != run.run_id', "resumed = False"),
        ("return len(busy) < AT_ONCE and busy.count(hook) < AT_ONCE_EACH", "return len(busy) < AT_ONCE"),
    ),
    *faults(
        "app/runcast/app/webhooks/answer_links.py",
        ("raw[:32], self._proof(raw[32:])", "raw[:16], self._proof(raw[32:])[:16]"),
        (
            'self.secret.encode(), b"runcast answers", "sha256"',
            'b"runcast answers", b"runcast answers", "sha256"',
        ),
    ),
    *faults(
        "app/runcast/app/webhooks/webhook.py",
        ('text = b"%s.%d.%s" % (id.encode(), at, body)', 'text = b"%s.%d.%s" % (id.encode(), 0, body)'),
    ),
    *faults(
        "app/runcast/app/webhooks/posting.py",
        ("found.is_global and not found.is_multicast", "found.is_global"),
    ),
)
