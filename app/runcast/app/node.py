"""What a process does for the others that share its log: hears what is asked of it, takes runs up, finds the stranded.

Requests travel as notes in the store, so that they work on every store, are durable once they are acknowledged, and
need nothing else to be there. Three boxes: `stop OWNER` for runs that this process owns, `run AGENT` for runs that any
worker with that agent may begin, and `agents`, where workers say whom they have. A bell wakes whoever listens; the
boxes are also looked at now and then, so that a lost ring costs a moment. Knows the cast; does not know HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import orjson

from runcast.adapters import UnknownRun
from runcast.app.control import decline, take_up
from runcast.app.errors import AppError, Busy, Closing, Full, Overtaken
from runcast.app.wanted import Far, Want
from runcast.slim import Note, SlimError, Watch

if TYPE_CHECKING:
    from runcast.app.cast import Cast

AGENTS = "agents"
POLL = 5.0  # seconds between two looks when no bell rings
AGAIN = 0.5  # seconds until something that could not be done is tried again
AT_ONCE = 32  # runs that are being taken up at the same time
SPARE_MS = 3_600_000  # how long an agent is remembered after its last worker was seen
FAREWELL = 2.0  # seconds that a worker tries to say that it goes
HEAVY = 0.01  # seconds that a worker waits at most, for every run it has, so that idle ones are first

Policy = Literal["report", "continue", "off"]

logger = logging.getLogger("runcast.app")


class Node:
    """One a host; tenants' views have none."""

    def __init__(self, cast: Cast, *, policy: Policy, every: float) -> None:
        self._cast = cast
        self.notes = cast.log.notes
        self._policy = policy
        self._every = every
        self._tasks: list[asyncio.Task[None]] = []
        self._taking: dict[str, asyncio.Task[None]] = {}  # notes that are being acted on
        self._stuck: set[str] = set()  # notes that could not be acted on yet
        self._woken = asyncio.Event()
        self._changed = False  # the boxes are not those that are listened to

    async def arrive(self) -> None:
        """Say whom this node has, or learn whom the others have, before anything is asked of it."""
        try:
            await (self._say(self._cast.log.lease_ms) if self._cast.work else self.look())
        except SlimError as error:
            logger.warning("other nodes are not heard yet: %s", error)

    def begin(self) -> None:
        """Listen from now on, once."""
        if self._tasks:
            return
        work: list[Callable[[], Awaitable[None]]] = [self._listen]
        if self._cast.work:
            work.append(self._announce)
        if self._policy != "off":
            work.append(self._recover)
        self._tasks = [asyncio.create_task(self._patiently(each)) for each in work]

    def nudge(self, *, agents: bool = False) -> None:
        """Look again: there is room for a run, or another agent."""
        self._changed = self._changed or agents
        self._woken.set()

    async def close(self) -> None:
        """Listen no more; what was not begun is left for others."""
        tasks = [*self._tasks, *self._taking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._tasks and self._cast.work:
            with suppress(SlimError, TimeoutError):  # without it the others find out when the lease is over
                async with asyncio.timeout(FAREWELL):
                    await self._say(0)
        self._tasks = []

    async def _patiently(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except SlimError as error:
                logger.warning("other nodes are not heard just now: %s", error)
            except Exception:  # one bad note must not make this node deaf
                logger.exception("a node's work broke; it begins anew")
            await asyncio.sleep(AGAIN * random.uniform(0.5, 1.5))

    # ------------------------------------------------------------- listening

    def _boxes(self) -> list[str]:
        if not self._cast.work:
            return [AGENTS]
        return [f"run {name}" for name in self._cast.agents]

    async def _listen(self) -> None:
        self._changed = False
        bell = await self.notes.listen(f"stop {self._cast.log.owner}", *self._boxes())
        try:
            while not self._changed:
                await self.look()
                await self._rest(bell)
        finally:
            bell.close()

    async def _rest(self, bell: Watch) -> None:
        waits: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(bell.wait()),
            asyncio.ensure_future(self._woken.wait()),
        }
        try:
            timeout = AGAIN if self._stuck else POLL
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.wait(waits)
        self._woken.clear()

    async def look(self) -> None:
        """Read the boxes, and act on what lies there."""
        for note in await self.notes.read(f"stop {self._cast.log.owner}"):
            self._act(note, self._stop)
        if not self._cast.work:
            self._meet(await self.notes.read(AGENTS))
        elif not self._cast.closing and not self._cast.full:
            notes = await self.notes.read(*self._boxes(), limit=AT_ONCE + len(self._stuck))
            self._stuck &= {note.id for note in notes}
            for note in notes:
                if len(self._taking) < AT_ONCE:
                    self._act(note, self.take_up)

    def _act(self, note: Note, do: Callable[[Note], Awaitable[bool]]) -> None:
        """Do it beside everything else; a note that stays is tried again."""
        if note.id in self._taking:
            return

        async def act() -> None:
            try:
                done = await do(note)
            except SlimError as error:
                logger.warning("run %s waits: %s", note.run_id, error)
                done = False
            except Exception:
                logger.exception("a note about run %s could not be acted on", note.run_id)
                done = False
            (self._stuck.discard if done else self._stuck.add)(note.id)

        task = asyncio.create_task(act(), name=f"runcast {note.box}")
        self._taking[note.id] = task
        task.add_done_callback(lambda _: self._taking.pop(note.id, None))

    # ------------------------------------------------------------------ acts

    async def _stop(self, note: Note) -> bool:
        """Stop a run of ours that somebody asked to have stopped; False while it is only about to begin."""
        cast, (tenant, thread_id) = self._cast, note.key
        run = cast.at_work.in_thread(tenant, thread_id)
        if run is None and cast.at_work.is_starting(tenant, thread_id):
            return False
        if run is not None and run.run_id == note.run_id:
            try:
                await run.stop(hard=note.body == b"hard")
            except UnknownRun:
                if run.active:
                    return False
        await self.notes.take(note)
        return True

    async def take_up(self, note: Note) -> bool:
        """Begin a run that is wanted; False when that has to wait. Its id sees to it that it begins once."""
        await asyncio.sleep(random.random() * HEAVY * len(self._cast.at_work))
        view, want = self._cast.for_tenant(note.key.tenant), Want.decode(note.body)
        try:
            await take_up(view, note.key.thread_id, note.run_id, want)
        except Overtaken as error:
            if not want.recovery and not await decline(
                view, note.key.thread_id, note.run_id, want, error, "overtaken"
            ):
                return False
        except (Busy, Full, Closing):
            return False
        except AppError as error:
            if not await decline(view, note.key.thread_id, note.run_id, want, error, "refused"):
                return False
        await self.notes.take(note)
        return True

    # ---------------------------------------------------------------- agents

    async def _announce(self) -> None:
        """Say whom this worker has, for as long as it lives."""
        while True:
            await self._say(self._cast.log.lease_ms)
            await asyncio.sleep(self._cast.log.lease_ms / 3_000)

    async def _say(self, lasting_ms: int) -> None:
        if not self._cast.agents:
            return
        told = [
            {"name": each.name, "capabilities": _plain(each.capabilities())}
            for each in self._cast.agents.values()
        ]
        name = f"node {self._cast.log.owner}"
        await self.notes.leave(name, box=AGENTS, body=orjson.dumps(told), lasting_ms=lasting_ms, replace=True)

    def _meet(self, notes: list[Note]) -> None:
        """Know the agents that workers tell of, and no longer those that nobody has told of for an hour."""
        told = {each["name"]: each["capabilities"] for note in notes for each in orjson.loads(note.body)}
        self._cast.meet({name: Far(name, capabilities) for name, capabilities in told.items()})

    # -------------------------------------------------------------- recovery

    async def _recover(self) -> None:
        """Find runs whose process died, wherever it was. All nodes look, at times of their own; one takes each up."""
        while True:
            await asyncio.sleep(self._every * random.uniform(0.75, 1.25))
            if not self._cast.closing:
                await self._cast.recover("continue" if self._policy == "continue" else "report")
                await self.notes.sweep(spare_ms=SPARE_MS)


def _plain(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)
