"""Requests about runs that this process does not drive, written to the store as notes.

Knows notes and the log; does not know who reads them (`node.py`) or how a run is driven.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Literal

from ag_ui.core import RunErrorEvent, RunStartedEvent

from runcast.adapters.run_frame import echoed
from runcast.app.errors import Busy, NotFound, Over
from runcast.app.nodes.handover import RemoteRun, RunRequest, note_id
from runcast.slim import Conflict, Forgotten, Note, RunInfo, SlimError, ThreadInfo

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

HOUR_MS = 3_600_000
ATTEMPTS = (
    3  # to find a run that is neither in the log nor requested: it may be on its way from one to the other
)

logger = logging.getLogger("runcast.app")
Stopping = Literal["stopped", "stopping", "asked"]


async def stop_elsewhere(cast: Cast, run_id: str, hard: bool, thread_id: str | None) -> Stopping:
    """Ask a run's owner to stop it, or decline a request that no worker has started."""
    for attempt in range(ATTEMPTS):
        await asyncio.sleep(0.05 * attempt)
        ended: RunInfo | None = None
        for thread, run in await cast.log.find(run_id):
            if thread_id not in (None, thread.thread_id):
                continue
            if run.status != "in_progress":
                ended = run
            elif await _ask_to_stop(cast, thread, run_id, hard):
                return "asked"
        if ended is not None:
            raise Over(f"run {run_id!r} is over: it ended as {ended.status}")
        for note in await cast.log.notes.about(run_id):
            if note.box.startswith("queue ") and thread_id in (None, note.key.thread_id):
                await cast.queue.withdraw(note.key.thread_id, run_id)
                return "stopped"
            if note.box.startswith("run ") and thread_id in (None, note.key.thread_id):
                stopped = Busy("the run was stopped before it began")
                if await decline(cast, note, stopped, "cancelled"):
                    await cast.log.notes.take(note)
                    return "stopped"
    raise NotFound(f"no run {run_id!r} is active here")


async def note_stop(cast: Cast, thread_id: str, run_id: str, hard: bool) -> None:
    """Write down that a run of this process is to stop: if the process dies before the run's end, no other resumes it.

    The run is stopped all the same when the store is away.
    """
    try:
        await _leave_stop(cast, thread_id, run_id, hard, cast.log.owner)
    except SlimError as error:
        logger.warning("run %r is stopped, and could be resumed if this process died: %s", run_id, error)


async def _leave_stop(cast: Cast, thread_id: str, run_id: str, hard: bool, owner: str | None) -> Note | None:
    return await cast.log.notes.leave(
        note_id("stop", cast.tenant, thread_id, run_id),
        box=f"stop {owner}",
        body=b"hard" if hard else b"soft",
        thread_id=thread_id,
        run_id=run_id,
        lasting_ms=HOUR_MS,
        replace=True,
    )


async def _ask_to_stop(cast: Cast, thread: ThreadInfo, run_id: str, hard: bool) -> bool:
    """Leave the request with the run's owner; False when the run has ended or moved meanwhile."""
    notes = cast.log.notes
    note = await _leave_stop(cast, thread.thread_id, run_id, hard, thread.owner)
    # Recovery looks for this note under the lease, so a run that is in progress now, and so its owner's, is stopped or not
    # resumed.
    for now, run in await cast.log.find(run_id):
        if now.thread_id == thread.thread_id and run.status == "in_progress":
            return True
    if note is not None:
        await notes.take(note)
    return False


def is_stop(note: Note, thread_id: str) -> bool:
    """Whether the note asks to stop a run of this thread."""
    return note.box.startswith("stop ") and note.key.thread_id == thread_id


async def threads_of(cast: Cast, run_id: str) -> list[str]:
    """The threads that have, had or wait for a run of this id: it is unique in a thread alone."""
    here = [run.thread_id for run in cast.slots.named(cast.tenant, run_id)]
    there = [thread.thread_id for thread, _ in await cast.log.find(run_id)]
    waiting = [note.key.thread_id for note in await cast.log.notes.about(run_id)]
    return list(dict.fromkeys([*here, *there, *waiting]))


async def queue_for_worker(cast: Cast, thread_id: str, run_id: str, request: RunRequest) -> RemoteRun:
    """Leave a run to the workers; durable when this returns."""
    log = cast.log
    thread = await log.thread(thread_id)
    if thread is None and await log.archive.is_forgotten(thread_id):
        raise Forgotten(f"thread {thread_id!r} was forgotten: use another id")
    if thread is not None and thread.owner is not None:
        raise Busy("a run of this thread is active on another node: wait for it, or stop it")
    if await is_used(cast, thread_id, run_id):
        raise Busy(f"the run id was used: run {run_id!r} is already in thread {thread_id!r}")
    if await leave(cast, thread_id, run_id, request) is None:
        await _drop_started(cast, thread_id)
        if await leave(cast, thread_id, run_id, request) is None:
            raise Busy("a run of this thread waits for a worker: wait for it, or stop it")
    return RemoteRun(
        log,
        cast.agent(request.agent),
        request.with_history(thread_id, run_id, ()),
        after=0 if thread is None else thread.last_seq,
        stop=lambda hard: cast.stop(run_id, hard, thread_id=thread_id),
    )


async def is_used(cast: Cast, thread_id: str, run_id: str) -> bool:
    """Whether the thread has a run of this id."""
    return any(thread.thread_id == thread_id for thread, _ in await cast.log.find(run_id))


async def leave(cast: Cast, thread_id: str, run_id: str, request: RunRequest) -> Note | None:
    """Write the request down; None while another one of this thread waits."""
    return await cast.log.notes.leave(
        note_id("run", cast.tenant, thread_id),
        box=f"run {request.agent}",
        body=request.encode(),
        thread_id=thread_id,
        run_id=run_id,
    )


async def _drop_started(cast: Cast, thread_id: str) -> None:
    """Delete the thread's request if a worker started the run but died before deleting the note."""
    name = note_id("run", cast.tenant, thread_id)
    for note in await cast.node.notes.read(*(f"run {each}" for each in cast.agents)):
        if note.id == name and await is_used(cast, thread_id, note.run_id):
            await cast.log.notes.take(note)


async def decline(cast: Cast, note: Note, error: Exception, code: str) -> bool:
    """Record a requested run as started and failed. False while the thread is busy, or when the run has started."""
    log, thread_id, request = cast.log, note.key.thread_id, RunRequest.decode(note.body)
    try:
        await log.start_run(thread_id, note.run_id)
    except Conflict:
        return False
    now = time.time_ns() // 1_000_000
    echo = None if request.input is None else echoed(request.input)
    started = RunStartedEvent(thread_id=thread_id, run_id=note.run_id, input=echo, timestamp=now)
    await log.append_many(thread_id, [started, RunErrorEvent(message=str(error), code=code, timestamp=now)])
    return True
