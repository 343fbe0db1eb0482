"""Sends webhooks at least once, each with one id, from one node at a time.

Before a run begins, or a message waits, a note asks for its letters (`webhook armed`), so that no kill can lose it.
When the run is over in the log, or the message waits, that note becomes one note for each webhook (`webhook due`), whose
body is retried with growing pauses for a day; then it is a dead letter (`webhook dead`), which `doctor` and the metrics show. The notes belong to the thread: they
go when it is forgotten. Knows the log and notes; does not know HTTP routes.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from runcast.app.nodes.handover import note_id
from runcast.app.nodes.mailboxes import at_every_ring
from runcast.app.nodes.note_lease import NoteLease
from runcast.app.nodes.requests import HOUR_MS
from runcast.app.webhooks.letters import message, told_of
from runcast.app.webhooks.posting import NotSent, post
from runcast.app.webhooks.webhook import GAPS, Happening, Webhook, hooks_for, signed
from runcast.slim import Note, RunInfo, SlimError

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

ARMED, OVER, DUE, DEAD = "webhook armed", "webhook over", "webhook due", "webhook dead"
LOOK = 2.0  # seconds between two looks without a ring
LEASE_MS = 30_000
AT_ONCE, AT_ONCE_EACH = 16, 4  # attempts, and those at one webhook: a slow receiver holds up no other
DEAD_MS = 30 * 24 * HOUR_MS  # how long a dead letter is kept
PATIENCE_MS = HOUR_MS // 2  # that a run that lost its worker has to be resumed, before it counts as failed
GONE = 410  # the receiver wants no more
ENDS: dict[str, Happening] = {
    "completed": "completed",
    "interrupted": "interrupted",
    "failed": "failed",
    "truncated": "failed",
}

logger = logging.getLogger("runcast.app")


class Outbox:
    """The webhooks of one cast; the host's also sends them."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._lease = NoteLease(cast.log.notes, "webhooks", lasting_ms=LEASE_MS)
        self._later: set[asyncio.Task[None]] = set()
        # by letter, its webhook and the attempt
        self._sending: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self._counts = dict.fromkeys(("delivered", "failures", "given_up"), 0)
        self._waiting = self._dead = 0

    def stats(self) -> dict[str, int]:
        """Deliveries since the start, and the letters that wait or are dead, as this node saw them last."""
        return {**self._counts, "waiting": self._waiting, "dead": self._dead}

    # ------------------------------------------------------------- telling

    def _hooks(self, happening: Happening, thread_id: str) -> list[Webhook]:
        tenant = self._cast.tenant
        known = hooks_for(self._cast.options.webhooks, tenant, thread_id)
        return [each for each in known if each.wants(happening, tenant, thread_id)]

    async def arm(self, thread_id: str, run_id: str) -> None:
        """Make sure that the end of a run is sent; durable when this returns."""
        if any(self._hooks(each, thread_id) for each in ("completed", "failed", "interrupted")):
            name = note_id("webhook", self._cast.tenant, thread_id, run_id)
            await self._cast.log.notes.leave(name, box=ARMED, body=b"", thread_id=thread_id, run_id=run_id)

    def ring(self, thread_id: str, run_id: str) -> None:
        """Wake the node that sends: a run of this process is over, or its message waits."""
        if self._cast.options.webhooks:
            task = asyncio.create_task(self._ring(thread_id, run_id), name="runcast webhook ring")
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def _ring(self, thread_id: str, run_id: str) -> None:
        name = note_id("webhook over", self._cast.tenant, thread_id, run_id)
        try:
            await self._cast.log.notes.leave(
                name, box=OVER, body=b"", thread_id=thread_id, run_id=run_id, lasting_ms=HOUR_MS
            )
        except SlimError as error:
            logger.warning("the webhooks of run %r are sent a little later: %s", run_id, error)

    async def arm_queued(self, thread_id: str, run_id: str, data: dict[str, Any]) -> None:
        """Make sure that the wait of a message is sent; durable when this returns."""
        if self._hooks("queued", thread_id):
            told = {"tenant": self._cast.tenant, "thread_id": thread_id, "run_id": run_id, "status": "queued"}
            await self._cast.log.notes.leave(
                note_id("webhook queued", self._cast.tenant, thread_id, run_id),
                box=ARMED,
                body=orjson.dumps({**told, **data}),
                thread_id=thread_id,
                run_id=run_id,
            )

    async def tell(self, happening: Happening, thread_id: str, run_id: str, data: dict[str, Any]) -> None:
        """Write a letter for each webhook that wants to hear of this."""
        now, tenant = _now(), self._cast.tenant
        body = message(happening, data, at_ms=now)
        for hook in self._hooks(happening, thread_id):
            name = note_id("webhook due", tenant, thread_id, run_id, happening, hook.key)
            head = orjson.dumps({"hook": hook.key, "id": f"msg_{name.split()[-1]}", "attempt": 0, "due": now})
            await self._cast.log.notes.leave(
                name, box=DUE, body=head + b"\n" + body, thread_id=thread_id, run_id=run_id
            )

    # ------------------------------------------------------------- sending

    async def serve(self) -> None:
        """Send what is due, while this node holds the lease; ends only by cancellation."""
        if not self._cast.options.webhooks:
            await asyncio.Event().wait()
        try:
            await at_every_ring(self._cast.log.notes, lambda: (OVER, DUE), self.look, every=LOOK)
        finally:
            for _, task in list(self._sending.values()):
                task.cancel()
            await self._lease.release()

    async def look(self) -> None:
        """Turn the ends of runs into letters, and send those that are due."""
        if not await self._lease.hold():
            return
        notes = self._cast.log.notes
        over = await notes.read(OVER)
        for note in await notes.read(ARMED):
            await self._settle(note)
        for note in over:
            await notes.take(note)
        before = set(self._sending)  # one of these may be delivered while the notes are read
        due = await notes.read(DUE)
        self._waiting, self._dead = len(due), len(await notes.read(DEAD))
        for note in due:
            head = orjson.loads(note.body.partition(b"\n")[0])
            if head["due"] <= _now() and note.id not in before and self._has_room(head["hook"]):
                task = asyncio.create_task(self._send(note, head), name="runcast webhook")
                self._sending[note.id] = head["hook"], task
                task.add_done_callback(partial(self._sent, note.id))

    def _has_room(self, hook: str) -> bool:
        busy = [each for each, _ in self._sending.values()]
        return len(busy) < AT_ONCE and busy.count(hook) < AT_ONCE_EACH

    def _sent(self, id: str, task: asyncio.Task[None]) -> None:
        del self._sending[id]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a webhook could not be sent, and is tried again", exc_info=error)

    async def _settle(self, note: Note) -> None:
        """Tell of the run that this note is about, if it is over, or that its message waits."""
        view, thread_id = self._cast.for_tenant(note.key.tenant), note.key.thread_id
        if note.body and await view.queue.waits(thread_id, note.run_id):
            await view.outbox.tell("queued", thread_id, note.run_id, orjson.loads(note.body))
            await self._cast.log.notes.take(note)
            return
        runs = await view.log.runs(thread_id)
        run = next((each for each in runs if each.run_id == note.run_id), None)
        if run is None:
            if note.at < _now() - PATIENCE_MS:  # it was refused
                await self._cast.log.notes.take(note)
            return
        if run.status == "in_progress":
            return
        resumed = run.status == "truncated" and runs[-1].run_id != run.run_id
        if run.status == "truncated" and not resumed and self._may_resume(run):
            return
        happening = ENDS.get(run.status)
        if happening is not None and not resumed:
            data = await told_of(view, thread_id, run)
            links = view.options.answer_links
            if happening == "interrupted" and links is not None:
                now = _now() // 1_000
                data["answer_url"] = links.link(view.tenant, thread_id, run.run_id, now=now)
            await view.outbox.tell(happening, thread_id, run.run_id, data)
        await self._cast.log.notes.take(note)

    def _may_resume(self, run: RunInfo) -> bool:
        """Whether a node may still resume a truncated run: then the end of that run is sent."""
        return self._cast.options.recover == "continue" and (run.ended_at or 0) > _now() - PATIENCE_MS

    async def _send(self, note: Note, head: dict[str, Any]) -> None:
        view, body = self._cast.for_tenant(note.key.tenant), note.body.partition(b"\n")[2]
        known = hooks_for(view.options.webhooks, view.tenant, note.key.thread_id)
        hook = next((each for each in known if each.key == head["hook"]), None)
        try:
            if hook is None:
                raise NotSent("this host has no such webhook any more")
            headers = signed(hook.secrets, head["id"], _now() // 1_000, body)
            headers |= {"content-type": "application/json", "user-agent": "runcast"}
            status = await post(hook.url, body, headers, private=hook.private)
            if 200 <= status < 300:
                self._counts["delivered"] += 1
                await self._cast.log.notes.take(note)
                return
            why, last = f"status {status}", status == GONE
        except NotSent as error:
            why, last = str(error), False
        await self._again(note, head, why, last=last)

    async def _again(self, note: Note, head: dict[str, Any], why: str, *, last: bool) -> None:
        """Try later, or give up: then it is a dead letter."""
        self._counts["failures"] += 1
        attempt: int = head["attempt"]
        log = self._cast.for_tenant(note.key.tenant).log
        dead = last or attempt >= len(GAPS)
        gap = 0 if dead else round(GAPS[attempt] * 1_000 * random.uniform(0.9, 1.1))
        text = note.body.partition(b"\n")[2]
        body = orjson.dumps({**head, "attempt": attempt + 1, "due": _now() + gap, "why": why}) + b"\n" + text
        await log.notes.leave(
            note.id,
            box=DEAD if dead else DUE,
            body=body,
            thread_id=note.key.thread_id,
            run_id=note.run_id,
            lasting_ms=DEAD_MS if dead else None,
            replace=True,
        )
        if await log.archive.is_forgotten(note.key.thread_id):  # meanwhile
            for each in await self._cast.log.notes.read(DUE, DEAD):
                if each.id == note.id:
                    await self._cast.log.notes.take(each)
        if dead:
            self._counts["given_up"] += 1
            logger.error("a webhook of run %r is given up: %s", note.run_id, why)


def _now() -> int:
    return time.time_ns() // 1_000_000
