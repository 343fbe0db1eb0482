"""Requests about runs that another process owns, or that nobody has begun: left in the store as notes.

Knows notes and the log; does not know who hears them (`node.py`) or how a run is driven.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ag_ui.core import RunAgentInput, RunErrorEvent, RunStartedEvent

from runcast.app.errors import Busy, NotFound, Over, Overtaken
from runcast.app.wanted import Want, Wanted, input_for, note_id
from runcast.slim import Conflict, Note, RunInfo, RunLog

if TYPE_CHECKING:
    from runcast.app.cast import Cast
    from runcast.app.node import Node

HOUR_MS = 3_600_000
LOOKED_BACK_MS = HOUR_MS // 2  # for runs that were cut short by a node that died before it went on from them
LOOKS = 3  # at a run that is neither in the log nor wanted: it may be on its way from the one to the other
Stopping = Literal["stopped", "stopping", "asked"]

logger = logging.getLogger("runcast.app")


async def stop_elsewhere(cast: Cast, run_id: str, hard: bool, thread_id: str | None) -> Stopping:
    """Ask a run's owner to stop it, or see to it that one that is only wanted never begins."""
    log, ended = cast.log, None
    for attempt in range(LOOKS):
        await asyncio.sleep(0.05 * attempt)
        for thread, run in await log.find(run_id):
            if thread_id not in (None, thread.thread_id):
                continue
            if run.status != "in_progress":
                ended = run
                continue
            name = note_id("stop", cast.tenant, thread.thread_id, run_id)
            await log.notes.leave(
                name,
                box=f"stop {thread.owner}",
                body=b"hard" if hard else b"soft",
                thread_id=thread.thread_id,
                run_id=run_id,
                lasting_ms=HOUR_MS,
                replace=True,
            )
            return "asked"
        if ended is not None:
            raise Over(f"run {run_id!r} is over: it ended as {ended.status}")
        for note in await log.notes.about(run_id):
            if note.box.startswith("run ") and thread_id in (None, note.key.thread_id):
                stopped = Busy("the run was stopped before it began")
                if await decline(
                    cast, note.key.thread_id, run_id, Want.decode(note.body), stopped, "cancelled"
                ):
                    await log.notes.take(note)
                    return "stopped"
    raise NotFound(f"no run {run_id!r} is active here")


async def threads_of(cast: Cast, run_id: str) -> list[str]:
    """The threads that have, had or wait for a run of this id."""
    here = [run.thread_id for run in cast.at_work.named(cast.tenant, run_id)]
    there = [thread.thread_id for thread, _ in await cast.log.find(run_id)]
    waiting = [note.key.thread_id for note in await cast.log.notes.about(run_id)]
    return list(dict.fromkeys([*here, *there, *waiting]))


async def hand_over(cast: Cast, input: RunAgentInput, want: Want) -> Wanted:
    """Leave a run for a worker; when this returns it is durable, and one of them will begin it."""
    log, thread_id, run_id = cast.log, input.thread_id, input.run_id
    thread = await log.thread(thread_id)
    if thread is not None and thread.owner is not None:
        raise Busy("a run of this thread is active on another node: wait for it, or stop it")
    if any(found.thread_id == thread_id for found, _ in await log.find(run_id)):
        raise Busy(f"the run id was used: run {run_id!r} is already in thread {thread_id!r}")
    if await _leave(cast, thread_id, run_id, want) is None:
        await _forget_begun(cast, thread_id)
        if await _leave(cast, thread_id, run_id, want) is None:
            raise Busy("a run of this thread waits for a worker: wait for it, or stop it")
    return Wanted(
        log,
        cast.agent(want.agent),
        input,
        after=0 if thread is None else thread.last_seq,
        stop=lambda hard: cast.stop(run_id, hard, thread_id=thread_id),
    )


async def _leave(cast: Cast, thread_id: str, run_id: str, want: Want) -> Note | None:
    name = note_id("run", cast.tenant, thread_id)
    box = f"run {want.agent}"
    return await cast.log.notes.leave(name, box=box, body=want.encode(), thread_id=thread_id, run_id=run_id)


async def _forget_begun(cast: Cast, thread_id: str) -> None:
    """Take off the thread's want, if a worker has begun it and did not live to do so."""
    name = note_id("run", cast.tenant, thread_id)
    for note in await cast.host_notes.read(*(f"run {each}" for each in cast.agents)):
        if note.id == name and any(
            thread.thread_id == thread_id for thread, _ in await cast.log.find(note.run_id)
        ):
            await cast.log.notes.take(note)


async def take_up(cast: Cast, thread_id: str, run_id: str, want: Want) -> None:
    """Begin a run that this node or another one was asked for."""
    log, input, edge, parent = cast.log, want.input, want.edge, want.parent
    if any(thread.thread_id == thread_id for thread, _ in await log.find(run_id)):
        return  # whoever began it did not live to say so
    adapter = cast.agent(want.agent)
    if parent is None:
        await cast.launch(adapter, input or input_for(thread_id, run_id, []))
        return
    before = (await log.runs(thread_id))[-1:]
    if edge == "resume" and (not before or before[0].run_id != parent):
        raise Overtaken("the thread has gone on since this was asked for")
    state = await cast.threads.stands(thread_id, parent)
    point = replace(state, framework={**state.framework, "unfinished": True}) if want.unfinished else None
    await cast.launch(
        adapter,
        input or input_for(thread_id, run_id, state.to_messages(half_said=True), parent=parent),
        edge=edge,
        parent=parent,
        resume=point,
        state=state,
        attempt=before[0].attempt + 1 if edge == "resume" else 1,
        newest=parent if edge == "resume" else None,
    )


async def decline(cast: Cast, thread_id: str, run_id: str, want: Want, error: Exception, code: str) -> bool:
    """Record a wanted run that will not be: begun, and ended with the reason. False while the thread is another's,
    or when it has begun after all."""
    log = cast.log
    try:
        await log.start_run(thread_id, run_id)
    except Conflict:
        return False
    now = time.time_ns() // 1_000_000
    started = RunStartedEvent(thread_id=thread_id, run_id=run_id, input=want.input, timestamp=now)
    await log.append_many(thread_id, [started, RunErrorEvent(message=str(error), code=code, timestamp=now)])
    return True


async def recover_one(
    cast: Cast, node: Node, thread_id: str, run_id: str, *, go_on: bool, most: int
) -> list[tuple[str, RunInfo]]:
    """Take care of a run whose process died, unless somebody has: have it taken up, or mark it truncated."""
    if go_on:
        taken = await go_on_from(cast, node, thread_id, run_id, most)
        if taken is not None:
            return taken
        logger.error("run %s of thread %s is not taken up again", run_id, thread_id)
    cut = await cast.log.reclaim(thread_id)
    for run in cut:
        logger.warning("run %s of thread %s was cut short", run.run_id, thread_id)
    return [(thread_id, run) for run in cut]


async def go_on_from(
    cast: Cast, node: Node, thread_id: str, run_id: str, most: int
) -> list[tuple[str, RunInfo]] | None:
    """Have a run that was cut short taken up; None when it is to stay as it is."""
    log = cast.log
    runs = await log.runs(thread_id)
    run = runs[-1] if runs else None
    if run is None or run.run_id != run_id or run.status != "truncated":
        return []  # the thread has gone on meanwhile
    agent = await _agent(log, thread_id, run)
    notes = [note for note in await log.notes.about(run_id) if note.key.thread_id == thread_id]
    if agent is None or run.attempt >= most or any(note.box.startswith("stop ") for note in notes):
        return None
    want = Want(agent, None, "resume", run_id, unfinished=True, recovery=True)
    note = await _leave(cast, thread_id, cast.fresh_id(), want)
    if note is None:
        return []
    logger.warning("run %s of thread %s was cut short, and is taken up again", run_id, thread_id)
    if cast.work and agent in cast.agents:
        await node.take_up(note)
    return [(thread_id, run)]


async def _agent(log: RunLog, thread_id: str, run: RunInfo) -> str | None:
    """Whose run it is, as its RUN_STARTED says."""
    entries = await log.entries(thread_id, run.first_seq - 1, 1)
    metadata: dict[str, Any] = (getattr(entries[0].event, "metadata", None) or {}) if entries else {}
    name: Any = metadata.get("runcast", {}).get("agent")
    return name if isinstance(name, str) else None
