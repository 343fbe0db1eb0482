"""Recovery: runs of a process that died are found, marked truncated, and requested again.

A node that finds one leaves a request like any other; the worker that takes it reads under the thread's lease whether
the run is still cut short. Knows the log and requests; does not know how a run is driven.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

from runcast.app.nodes.handover import RunRequest
from runcast.app.nodes.requests import HOUR_MS, is_stop, leave
from runcast.slim import RunInfo

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

Recovery = Literal["report", "continue", "off"]
Found = list[tuple[str, RunInfo]]

LOOK_BACK_MS = HOUR_MS // 2  # for truncated runs with a finder that died before it requested them again

logger = logging.getLogger("runcast.app")


async def recover_runs(cast: Cast, policy: Literal["report", "continue"]) -> Found:
    """Recover every run without an owner; of several nodes that look at once, one reports each run."""
    found: Found = []
    go_on = policy == "continue"
    orphaned = await cast.log.recovery.orphaned_runs()
    truncated = await cast.log.recovery.truncated_unresumed(LOOK_BACK_MS) if go_on else []
    for each in [*orphaned, *truncated]:
        tenant, thread_id, run_id = each
        try:
            view = cast if tenant == cast.tenant else cast.for_tenant(tenant)
            resumed = await resume_truncated(view, thread_id, run_id) if go_on else None
            if resumed is not None:
                found += resumed
            elif each in orphaned:
                found += await _mark_truncated(view, thread_id)
        except Exception:  # a failing thread does not stop the others
            logger.exception("thread %r could not be recovered", thread_id)
    return found


async def _mark_truncated(cast: Cast, thread_id: str) -> Found:
    cut = await cast.log.recovery.mark_truncated(thread_id)
    for run in cut:
        logger.warning("run %r of thread %r was cut short and is not resumed", run.run_id, thread_id)
    return [(thread_id, run) for run in cut]


async def resume_truncated(cast: Cast, thread_id: str, run_id: str) -> Found | None:
    """Request that a truncated run is resumed; None when it has to stay as it is."""
    log = cast.log
    runs = await log.runs(thread_id)
    run = runs[-1] if runs else None
    if run is None or run.run_id != run_id or run.status != "truncated":
        return []  # the thread has moved on meanwhile
    agent = await cast.threads.agent_of(thread_id, run)
    stopped = any(is_stop(note, thread_id) for note in await log.notes.about(run_id))
    if agent is None or stopped or run.attempt >= cast.options.max_attempts:
        return None
    request = RunRequest(agent, None, "resume", run_id, unfinished=True, recovery=True)
    note = await leave(cast, thread_id, cast.options.new_id(), request)
    if note is None:
        return []
    logger.warning("run %r of thread %r lost its worker and is resumed", run_id, thread_id)
    if cast.options.work and agent in cast.agents:
        await cast.node.start_requested(note)
    return [(thread_id, run)]
