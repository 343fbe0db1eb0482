"""What a process does for the others that share its log: it starts requested runs, stops its own, recovers lost ones.

Requests are notes in the store: durable once acknowledged, and possible on every store. There are three kinds of
mailbox: `stop OWNER` for runs of this process, `run AGENT` for runs that any worker with that agent may start, and
`agents`, where workers announce theirs. A notification wakes the listener; mailboxes are also polled, so a missed
notification only adds a short delay. Knows the cast; does not know HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from runcast.adapters import UnknownRun, drawing_of
from runcast.app.errors import AppError, Busy, Closing, Full, Over, Overtaken
from runcast.app.nodes.agent_descriptions import all_described
from runcast.app.nodes.annotations import MARK
from runcast.app.nodes.handover import RemoteAgent, RunRequest
from runcast.app.nodes.orphans import recover_runs
from runcast.app.nodes.requests import HOUR_MS, decline, is_used
from runcast.app.nodes.waiting import heads
from runcast.slim import Forgotten, Note, SlimError, Watch
from runcast.slim.outage import Outage
from runcast.slim.tasks import end

if TYPE_CHECKING:
    from runcast.adapters import Adapter
    from runcast.app.host.cast import Cast

AGENTS = "agents"
POLL = 5.0  # seconds between two looks without a notification
RETRY = 0.5  # seconds until something that failed is tried again
AT_ONCE = 32  # requests that are being started at the same time
REMEMBERED_MS = HOUR_MS  # how long an agent is known after its last worker was seen
FAREWELL = 2.0  # seconds that a worker tries to withdraw its agents
PUT_OFF = 60.0  # seconds that an agent is announced without its schemas at most, while runs are active
HEAVY = 0.01  # seconds that a worker waits at most for every run it has, so that idle workers come first

logger = logging.getLogger("runcast.app")


class Node:
    """The work for other nodes. One per host; tenants' views share it."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._options = cast.options
        self.notes = cast.log.notes
        self._tasks: list[asyncio.Task[None]] = []
        self._acting: dict[str, asyncio.Task[None]] = {}  # by note id
        self._stuck: set[str] = set()  # ids of notes to be tried again
        self._again: set[str] = set()  # threads to be looked at once more
        self._woken = asyncio.Event()
        self._outage = Outage(logger)
        self._failing: set[Callable[[], Awaitable[None]]] = (
            set()
        )  # duties that have not reached the store since
        self._named: dict[str, float] = {}  # agents without schemas: when they were announced first
        self._made: set[str] = set()  # agents with their schemas
        self._idle = False  # nothing waited at the last look
        self._mailboxes_changed = False

    async def join(self) -> None:
        """Publish this worker's agents, or read the others', before serving."""
        try:
            await (self._publish(self._cast.log.lease_ms) if self._options.work else self.look())
        except SlimError as error:
            logger.warning("the other nodes cannot be reached yet: %s", error)

    def begin(self, *duties: Callable[[], Awaitable[None]]) -> None:
        """Listen from now on, and do these duties as long as the host is open; harmless to repeat."""
        if self._tasks:
            return
        work = [self._listen, *duties]
        if self._options.work:
            work.append(self._announce)
        if self._options.recover != "off":
            work.append(self._recover)
        self._tasks = [asyncio.create_task(self._repeatedly(each)) for each in work]

    def wake(self, *, agents: bool = False) -> None:
        """Look again: there is another agent, or room for a run, if one may wait for it."""
        self._mailboxes_changed = self._mailboxes_changed or agents
        if agents or not self._idle:
            self._woken.set()

    async def close(self) -> None:
        """Stop listening; requests that were not started stay for other nodes."""
        await end([*self._tasks, *self._acting.values()])
        if self._tasks and self._options.work:
            with suppress(SlimError, TimeoutError):  # otherwise the announcement expires with the lease
                async with asyncio.timeout(FAREWELL):
                    await self._publish(0)
        self._tasks = []

    async def _repeatedly(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except SlimError as error:
                if work in (self._listen, self._announce, self._recover):  # these call `_works`
                    self._failing.add(work)
                self._outage.lost(f"the other nodes cannot be reached just now: {error}")
            except Exception:  # one bad note must not stop the listener
                logger.exception("work for other nodes failed and is started again")
            await asyncio.sleep(RETRY * random.uniform(0.5, 1.5))

    def _works(self, duty: Callable[[], Awaitable[None]]) -> None:
        """This duty reached the store; once all do that failed, the others are back."""
        self._failing.discard(duty)
        if not self._failing:
            self._outage.over("the other nodes are reached again")

    # ------------------------------------------------------------- listening

    def _mailboxes(self) -> list[str]:
        if not self._options.work:
            return [AGENTS]
        return [f"run {name}" for name in self._cast.agents]

    def _queues(self) -> list[str]:
        return [f"queue {name}" for name in self._cast.agents] if self._options.work else []

    async def _listen(self) -> None:
        self._mailboxes_changed = False
        bell = await self.notes.listen(f"stop {self._cast.log.owner}", *self._mailboxes(), *self._queues())
        try:
            while not self._mailboxes_changed:
                await self.look()
                self._works(self._listen)
                await self._wait(bell)
        finally:
            bell.close()

    async def _wait(self, bell: Watch) -> None:
        waits: set[asyncio.Task[Any]] = {
            asyncio.create_task(bell.wait()),
            asyncio.create_task(self._woken.wait()),
        }
        try:
            timeout = RETRY if self._stuck else POLL
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(waits)
        self._woken.clear()

    async def look(self) -> None:
        """Read the mailboxes and act on their notes."""
        self._idle = False
        for note in await self.notes.read(f"stop {self._cast.log.owner}"):
            self._act(note, self._act_for(note))
        if not self._options.work:
            self._learn(await self.notes.read(AGENTS))
        elif not self._cast.closing and not self._cast.slots.full:
            notes = await self.notes.read(*self._mailboxes(), limit=AT_ONCE + len(self._stuck))
            self._stuck &= {note.id for note in notes}
            starting = sum(task.get_name().startswith("runcast run ") for task in self._acting.values())
            for note in notes[: max(0, AT_ONCE - starting)]:
                self._act(note, self.start_requested)
            waiting = heads(await self.notes.read(*self._queues()))
            self._idle = not notes and not waiting
            for note in waiting:
                self.begin_next(self._cast.for_tenant(note.key.tenant), note.key.thread_id)

    def begin_next(self, view: Cast, thread_id: str) -> None:
        """Begin the message that waits next in a thread, in a background task."""
        name = f"queue {view.tenant} {thread_id}"
        self._again.add(name)
        if name in self._acting or view.closing:
            return

        async def act() -> None:
            while name in self._again:
                self._again.discard(name)
                try:
                    await view.queue.begin_next(thread_id)
                except SlimError as error:
                    logger.warning("the messages of thread %r wait: %s", thread_id, error)
                except Exception:
                    logger.exception("the next message of thread %r did not begin", thread_id)

        task = self._acting[name] = asyncio.create_task(act(), name=f"runcast {name}")
        task.add_done_callback(lambda _: self._acting.pop(name, None))

    def _act(self, note: Note, do: Callable[[Note], Awaitable[bool]]) -> None:
        """Handle the note in a background task; retry if it is still there."""
        if note.id in self._acting:
            return

        async def act() -> None:
            try:
                done = await do(note)
            except SlimError as error:
                logger.warning("the request for run %r waits: %s", note.run_id, error)
                done = False
            except Exception:
                logger.exception("the request for run %r failed", note.run_id)
                done = False
            if done:
                self._stuck.discard(note.id)
                return
            self._stuck.add(note.id)
            asyncio.get_running_loop().call_later(RETRY, self._woken.set)  # `_wait` began before it was stuck

        task = asyncio.create_task(act(), name=f"runcast {note.box}")
        self._acting[note.id] = task
        task.add_done_callback(lambda _: self._acting.pop(note.id, None))

    # ------------------------------------------------------------------ acts

    def _act_for(self, note: Note) -> Callable[[Note], Awaitable[bool]]:
        if note.body.startswith(MARK):
            return self._cast.for_tenant(note.key.tenant).annotations.deliver
        return self._announce_queue if note.body == b"queue" else self._stop

    async def _stop(self, note: Note) -> bool:
        """Stop a run of this process; False while it is about to begin.

        A run that lost its lease is not stopped by this process: the note stays, and keeps others from resuming it.
        """
        slots, (tenant, thread_id) = self._cast.slots, note.key
        run = slots.in_thread(tenant, thread_id)
        if run is None and slots.is_starting(tenant, thread_id):
            return False
        if run is not None and run.run_id == note.run_id:
            try:
                await run.stop(hard=note.body == b"hard")
            except UnknownRun:
                if run.active:
                    return False
            await run.over()
        log = self._cast.for_tenant(tenant).log
        ended = [info for thread, info in await log.find(note.run_id) if thread.thread_id == thread_id]
        if not any(info.status == "truncated" for info in ended):
            await self.notes.take(note)
        return True

    async def _announce_queue(self, note: Note) -> bool:
        """Announce what waits in a thread that is driven here."""
        await self.notes.take(note)  # first, so that a change after this is announced again
        await self._cast.for_tenant(note.key.tenant).queue.changed(note.key.thread_id)
        return True

    async def start_requested(self, note: Note) -> bool:
        """Start a requested run; False when it has to wait. The run id ensures that it starts once."""
        await asyncio.sleep(random.random() * HEAVY * len(self._cast.slots))
        view, request = self._cast.for_tenant(note.key.tenant), RunRequest.decode(note.body)
        try:
            if not await is_used(view, note.key.thread_id, note.run_id):
                await view.launcher.launch(request, note.key.thread_id, note.run_id)
        except (Overtaken, Over) as error:
            if not request.recovery and not await decline(view, note, error, "overtaken"):
                return False
        except (Busy, Full, Closing):
            return False
        except Forgotten:
            pass  # nothing may be written about it
        except AppError as error:
            if not await decline(view, note, error, "refused"):
                return False
        await self.notes.take(note)
        return True

    # ---------------------------------------------------------------- agents

    async def _announce(self) -> None:
        """Publish this worker's agents for as long as it lives."""
        while True:
            await self._publish(self._cast.log.lease_ms)
            self._works(self._announce)
            await asyncio.sleep(self._cast.log.lease_ms / 3_000)

    async def _publish(self, lasting_ms: int) -> None:
        agents = list(self._cast.agents.values())
        if not agents:
            return
        found = await all_described(agents, self._options.redactor, brief=self._put_off(agents))
        rows = [{**row, "drawing": asdict(drawing_of(each))} for row, each in zip(found, agents, strict=True)]
        name = f"node {self._cast.log.owner}"
        await self.notes.leave(name, box=AGENTS, body=orjson.dumps(rows), lasting_ms=lasting_ms, replace=True)

    def _put_off(self, agents: Iterable[Adapter]) -> set[str]:
        """The agents that are announced without their schemas for now. Making those holds Python's lock, however they are
        made: the envelopes of active runs would wait."""
        now, idle = time.monotonic(), not len(self._cast.slots)
        for each in agents:
            if each.name not in self._made and (
                idle or now - self._named.setdefault(each.name, now) > PUT_OFF
            ):
                self._named.pop(each.name, None)
                self._made.add(each.name)
        return set(self._named)

    def _learn(self, notes: list[Note]) -> None:
        """Know the agents that workers announce, until their announcements were swept."""
        rows = [each for note in notes for each in orjson.loads(note.body)]
        agents = [
            RemoteAgent(each["name"], each["capabilities"], each.get("schemas"), each.get("drawing"))
            for each in rows
        ]
        self._cast.agents.set_remote({each.name: each for each in agents})

    # -------------------------------------------------------------- recovery

    async def _recover(self) -> None:
        """Find runs with a process that died. Every node looks, at random intervals; one resumes each run."""
        while True:
            await asyncio.sleep(self._options.recover_every * random.uniform(0.75, 1.25))
            if not self._cast.closing:
                await recover_runs(
                    self._cast, "continue" if self._options.recover == "continue" else "report"
                )
                await self.notes.sweep(spare_ms=REMEMBERED_MS)
                self._works(self._recover)
