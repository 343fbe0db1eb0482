"""Forgets threads: all that is kept of one goes, on every node and in the agents' frameworks; a tombstone keeps its id.

A request is a note in the box `forget`, so that another node finishes it if this one dies; every step may be repeated.
When the log has let the thread go, a notice in the box `forgotten` makes the hubs of all nodes drop its channel, and a note
in `forget AGENT` asks a worker with that agent to delete what its framework keeps. These notes carry no thread as their
key, because the notes of a thread go with it. Knows the cast and its log; does not know the framework or HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import orjson

from runcast.adapters import Forgetting, UnknownRun
from runcast.app.errors import NotFound, Over
from runcast.app.nodes.handover import RemoteAgent, note_id
from runcast.app.nodes.mailboxes import at_every_ring
from runcast.app.nodes.requests import HOUR_MS, stop_elsewhere
from runcast.broadcast import BroadcastError
from runcast.slim import Conflict, Note, SlimError, UnknownThread

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

REQUESTS, NOTICES = "forget", "forgotten"
PAUSE = 0.05  # seconds between two attempts while a run of the thread ends
STUBBORN = 5.0  # seconds that an agent has to end its run, before the run is given up
LOOK = 5.0  # seconds between two looks without a ring
Forgot = Literal["forgotten", "forgetting"]

logger = logging.getLogger("runcast.app")


class Forgetter:
    """Forgets threads of one cast; the host's also does what other nodes ask for."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._active: set[str] = set()  # ids of requests that are carried out here
        self._seen: dict[str, int] = {}  # by id of a notice, when it was posted
        self.forgotten = 0

    async def forget(self, thread_id: str) -> Forgot:
        """Forget a thread, also while a run is active in it; harmless to repeat.

        `forgetting`: the request is durable, and a node finishes it: a run has yet to end, or an agent's worker to clean up.
        """
        return await self._carry_out(thread_id, await self._request(thread_id))

    async def forget_idle(self, thread_id: str, since: int) -> bool:
        """Forget a thread unless it is written to, or was since those milliseconds; whether it is forgotten."""
        with suppress(Conflict):
            await self._carry_out(thread_id, await self._request(thread_id, since))
            return True
        return False

    async def _request(self, thread_id: str, since: int | None = None) -> Note:
        """The durable request: the agents of the runs are in it, since the log will not know them."""
        cast = self._cast
        name = note_id(REQUESTS, cast.tenant, thread_id, *(() if since is None else ("idle",)))
        agents = sorted(await self._agents_of(thread_id))
        body = orjson.dumps({"thread_id": thread_id, "agents": agents, "idle_since": since})
        while True:
            note = await cast.log.notes.leave(name, box=REQUESTS, body=body)
            earlier = [each for each in await cast.node.notes.read(REQUESTS) if each.id == name]
            if note is not None or earlier:
                return note or earlier[0]

    async def _agents_of(self, thread_id: str) -> set[str]:
        found: set[str | None] = set()
        for run in await self._cast.log.runs(thread_id):
            with suppress(UnknownThread):  # its first event is pruned
                found.add(await self._cast.threads.agent_of(thread_id, run))
        return {each for each in found if each is not None}

    async def _carry_out(self, thread_id: str, request: Note) -> Forgot:
        cast, lease = self._cast, self._cast.log.lease_ms / 1_000
        wanted = orjson.loads(request.body)
        self._active.add(request.id)
        try:
            async with asyncio.timeout(2 * lease + 2 * STUBBORN):
                if (since := wanted.get("idle_since")) is None:
                    self.forgotten += await self._delete(thread_id)
                else:
                    self.forgotten += await self._delete_idle(thread_id, since, request)
            await _erase(cast, thread_id)
            await cast.log.notes.leave(
                note_id(NOTICES, cast.tenant, thread_id),
                box=NOTICES,
                body=request.body,
                lasting_ms=HOUR_MS,
                replace=True,
            )
            asked = await self._ask_frameworks(thread_id, wanted["agents"])
            await cast.log.notes.take(request)
        except (TimeoutError, BroadcastError) as error:
            logger.warning("thread %r is forgotten a little later: %r", thread_id, error)
            return "forgetting"
        finally:
            self._active.discard(request.id)
        return "forgetting" if asked else "forgotten"

    async def _delete_idle(self, thread_id: str, since: int, request: Note) -> bool:
        """Delete the thread from the log, or drop the request if somebody wrote to it since then."""
        try:
            return await self._cast.log.archive.forget(thread_id, idle_since=since)
        except Conflict:
            await self._cast.log.notes.take(request)
            raise

    async def _delete(self, thread_id: str) -> bool:
        """Delete the thread from the log, as soon as no run writes it."""
        while True:
            await self._stop_run(thread_id)
            with suppress(Conflict):
                return await self._cast.log.archive.forget(thread_id)
            await asyncio.sleep(PAUSE)

    async def _stop_run(self, thread_id: str) -> None:
        cast = self._cast
        for each in await cast.queue.waiting(thread_id):  # else it begins when the run has stopped
            await cast.log.notes.take(each.note)
        run = cast.slots.in_thread(cast.tenant, thread_id)
        if run is not None:
            with suppress(UnknownRun):
                await run.stop(hard=True)
            await asyncio.wait({asyncio.ensure_future(run.over())}, timeout=STUBBORN)
            if run.active:
                await run.abandon()
        if not cast.slots.is_starting(cast.tenant, thread_id):
            await cast.log.recovery.abandon(thread_id)
        for info in (await cast.log.runs(thread_id))[-1:]:
            if info.status == "in_progress":
                with suppress(Over, NotFound):
                    await stop_elsewhere(cast, info.run_id, True, thread_id)

    async def _ask_frameworks(self, thread_id: str, names: list[str]) -> bool:
        """Delete what the frameworks of agents here keep; whether workers with other agents were asked to."""
        cast, asked = self._cast, False
        for name in dict.fromkeys([*cast.agents, *names]):
            adapter: object = cast.agents.get(name)
            if isinstance(adapter, Forgetting):
                await adapter.forget(thread_id)
            elif adapter is None or isinstance(adapter, RemoteAgent):
                asked = True
                note = note_id(f"{REQUESTS} agent", cast.tenant, thread_id, name)
                await cast.log.notes.leave(
                    note, box=f"{REQUESTS} {name}", body=thread_id.encode(), replace=True
                )
        return asked

    # ----------------------------------------------------- for other nodes

    async def serve(self) -> None:
        """Do what other nodes ask for, and finish what they could not; ends only by cancellation."""
        await at_every_ring(self._cast.node.notes, self._boxes, self.look, every=LOOK)

    def _boxes(self) -> list[str]:
        return [NOTICES, *(f"{REQUESTS} {name}" for name in self._own())]

    def _own(self) -> list[str]:
        agents = self._cast.agents
        return [name for name in agents if not isinstance(agents[name], RemoteAgent)]

    async def look(self) -> None:
        """Read the mailboxes and act on their notes."""
        notes = self._cast.node.notes
        notices = await notes.read(NOTICES)
        for note in notices:
            if self._seen.get(note.id) != note.at:
                thread_id: str = orjson.loads(note.body)["thread_id"]
                await self._each(note, _erase(self._view(note), thread_id))
                self._seen[note.id] = note.at
        self._seen = {note.id: note.at for note in notices if note.id in self._seen}
        for name in self._own():
            for note in await notes.read(f"{REQUESTS} {name}"):
                await self._each(note, self._clean(note, name))
        now = time.time_ns() // 1_000_000
        for note in await notes.read(REQUESTS):
            if note.id not in self._active and note.at <= now - self._cast.log.lease_ms:
                await self._each(note, self._view(note).forgetter._finish(note))

    async def _finish(self, request: Note) -> None:
        """Carry out what another node has left."""
        with suppress(Conflict):  # of a thread that is not idle any more
            await self._carry_out(orjson.loads(request.body)["thread_id"], request)

    def _view(self, note: Note) -> Cast:
        return self._cast.for_tenant(note.key.tenant)

    async def _clean(self, note: Note, name: str) -> None:
        adapter: object = self._view(note).agents.get(name)
        if isinstance(adapter, Forgetting):
            await adapter.forget(note.body.decode())
        await self._cast.node.notes.take(note)

    async def _each(self, note: Note, work: Any) -> None:
        """One failing note does not stop the others; it is tried again."""
        try:
            await work
        except SlimError:
            raise
        except Exception:
            logger.exception("a forgotten thread is cleaned up later, by note %r", note.id)


async def _erase(cast: Cast, thread_id: str) -> None:
    """Drop what this process holds of a forgotten thread."""
    cast.threads.forget(thread_id)
    cast.annotations.forget(thread_id)
    await cast.followers.erase(thread_id)
