"""How a run begins: in its place in the thread, under the thread's lease; or on another node, when this one does not work.

Knows the order of things and what has to be undone when one of them fails; does not know why a run is begun.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from ag_ui.core import RunAgentInput

from runcast.adapters import Adapter, ResumePoint
from runcast.app.control import hand_over
from runcast.app.errors import Busy, Closing, Overtaken
from runcast.app.mending import mended
from runcast.app.run import Run
from runcast.app.wanted import Edge, Want
from runcast.slim import AgentState, Conflict, SlimError

if TYPE_CHECKING:
    from runcast.app.cast import Cast


class How(TypedDict, total=False):
    """Where a run belongs in its thread, and what it goes on from."""

    edge: Edge  # to go on from the newest run, when nothing else is said
    parent: str | None
    resume: ResumePoint | None
    state: AgentState | None  # the thread as the run finds it, where that is known
    attempt: int
    newest: str | None  # the run that has to be the thread's newest still


async def launch(cast: Cast, adapter: Adapter, input: RunAgentInput, how: How) -> Run:
    """Begin a run here, or hand it over."""
    cast.agents.setdefault(adapter.name, adapter)
    if cast.closing:
        raise Closing("this host is shutting down; ask again in a moment")
    if not cast.work:
        unfinished = how.get("resume") is not None
        want = Want(adapter.name, input, how.get("edge", "continue"), how.get("parent"), unfinished)
        wanted = await hand_over(cast, input, want)
        cast.wanted.add(wanted)
        return wanted
    cast.at_work.take(cast.tenant, input.thread_id, input.run_id)
    begun: list[Run] = []
    try:
        run = await _begin(cast, adapter, input, how, begun)
    except Conflict as error:
        await _not_begun(cast, input, begun)
        raise Busy(f"this thread is written elsewhere, or the run id was used: {error}") from error
    except BaseException:
        await _not_begun(cast, input, begun)
        raise
    cast.followers.follow(run)
    return run


async def _begin(cast: Cast, adapter: Adapter, input: RunAgentInput, how: How, begun: list[Run]) -> Run:
    log, thread_id = cast.log, input.thread_id
    await log.start_run(thread_id, input.run_id, parent=how.get("parent"), edge=how.get("edge", "continue"))
    try:
        newest = how.get("newest")
        if newest is not None and (await log.runs(thread_id))[-1].run_id != newest:
            raise Overtaken("the thread has gone on since this was asked for")
        state = how.get("state")
        base = state if state is not None else await cast.state(thread_id)
    except BaseException:
        with suppress(SlimError):  # else its lease would be renewed for nothing
            await log.abandon(thread_id)
        raise
    way = mended(adapter, input, how.get("resume"), base)
    run = Run(
        log,
        adapter,
        way.input,
        serializer=cast.serializer,
        cadence=cast.cadence,
        base=base,
        attempt=how.get("attempt", 1),
        resume=way.resume,
        corrections=way.corrections,
        ended=lambda run: _over(cast, run),
    )
    begun.append(run)
    cast.at_work.began(cast.tenant, run)
    cast.followers.expect(run)
    run.begin()
    await run.begun()
    return run


async def _not_begun(cast: Cast, input: RunAgentInput, begun: list[Run]) -> None:
    """Free the thread for others."""
    for run in begun:
        if run.active:  # whoever waited for it was cancelled; it goes on
            asyncio.ensure_future(run.begun()).add_done_callback(partial(_late, cast, run))
            return
        cast.followers.dismiss(run)
        with suppress(SlimError):
            await cast.log.abandon(input.thread_id)
    cast.at_work.free(cast.tenant, input.thread_id, input.run_id)


def _late(cast: Cast, run: Run, begun: asyncio.Future[None]) -> None:
    if not begun.cancelled() and begun.exception() is None:
        cast.followers.follow(run)


def _over(cast: Cast, run: Run) -> None:
    cast.at_work.free(cast.tenant, run.thread_id, run.run_id)
    cast.node.nudge()  # there is room for another
