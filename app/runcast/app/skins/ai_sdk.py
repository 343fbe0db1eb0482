"""The AI SDK's `useChat` over a cast: a posted message becomes a run, and a run's events become its stream.

A chat is a thread. The run goes on when the browser leaves; a stream that is opened again begins at the message's first
run. Knows `Cast`; does not know HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import orjson
from ag_ui.core import Message

from runcast.app.errors import BadRequest
from runcast.app.host.cast import Cast
from runcast.app.host.followers import entries_of
from runcast.app.nodes.handover import RemoteAgent, RemoteRun, input_for
from runcast.app.runs.run import Run
from runcast.app.skins.ui_chunks import Chunk
from runcast.app.skins.ui_messages import Replay, Request, UiMessage
from runcast.slim import RunInfo, SlimError

HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
CUT = "the run was cut short here; send the message again, or resume the thread"
DONE = b"data: [DONE]\n\n"
PAGE = 1_000  # entries read at once
FRESH_MS = 10_000  # since the end of a message that is still streamed to a page that resumes
LOOK = 0.5  # seconds between two looks for a run that resumes one that was cut short
Before = tuple[RunInfo, Replay]  # a thread's newest run, and the thread up to its end


async def answer(cast: Cast, request: Request, agent: str) -> AsyncGenerator[bytes]:
    """Start the run that a client's messages ask for; returns its stream."""
    runs = await cast.log.runs(request.chat)
    if request.answers_questions:
        return _stream(cast, await _go_on(cast, request, agent, runs), whole=False)
    before = (runs[-1], await _replay(cast, request.chat, runs[-1].run_id)) if runs else None
    return _stream(cast, await _say(cast, request, agent, before), whole=False, before=before)


async def active(cast: Cast, thread_id: str) -> AsyncGenerator[bytes] | None:
    """The stream of the message that is being written, from its beginning; None when there is none.

    A message that has just ended is one too: a page may have loaded the others before it did.
    """
    runs = await cast.log.runs(thread_id)
    if not runs or not (runs[-1].status == "in_progress" or _just_ended(runs[-1])):
        return None
    return _stream(cast, _handle(cast, thread_id, runs[-1]), whole=True)


def _just_ended(run: RunInfo) -> bool:
    return run.ended_at is not None and time.time() * 1000 - run.ended_at < FRESH_MS


async def messages(cast: Cast, thread_id: str) -> list[UiMessage]:
    """The thread's messages, without the one that is being written: `active` has it."""
    runs = await cast.log.runs(thread_id)
    if not runs:
        return []
    writing = runs[-1].status == "in_progress"
    replay = await _replay(cast, thread_id, runs[-1].run_id)
    return replay.before if writing else replay.messages


async def stop(cast: Cast, thread_id: str) -> str | None:
    """Stop the active run; its id, or None when none is active."""
    runs = await cast.log.runs(thread_id)
    if not runs or runs[-1].status != "in_progress":
        return None
    await cast.stop(runs[-1].run_id, thread_id=thread_id)
    return runs[-1].run_id


# ------------------------------------------------------------------ starting


async def _say(cast: Cast, request: Request, agent: str, before: Before | None) -> Run:
    """A new message, behind the last one that the client shows: an edit or another try is a branch."""
    message: Sequence[Message] = [request.said()]
    if before is None:
        return await cast.say(request.chat, message, agent=agent, tools=request.tools)
    last, replay = before
    shown = [replay.last_runs[each] for each in request.shown if each in replay.last_runs]
    if not shown:
        input = input_for(request.chat, cast.options.new_id(), message, tools=request.tools)
        return await cast.start(cast.agent(agent), input)
    newest = shown[-1] == last.run_id
    parent = None if newest else shown[-1]
    return await cast.say(request.chat, message, agent=agent, from_run=parent, tools=request.tools)


async def _go_on(cast: Cast, request: Request, agent: str, runs: Sequence[RunInfo]) -> Run:
    """Answers to the questions of the newest message, or results of the client's own tools."""
    state = await cast.state(request.chat)
    if state is None:
        raise BadRequest("this chat has no message to answer: send one of the user's first")
    if state.interrupts:
        return await cast.resume(request.chat, request.resumed(state.interrupts))
    results = request.results(state.pending_tool_call_ids)
    if not results:
        raise BadRequest("nothing waits for an answer here: send a message of the user's")
    return await cast.say(request.chat, results, agent=agent, tools=request.tools)


# ----------------------------------------------------------------- streaming


async def _replay(cast: Cast, thread_id: str, run_id: str | None) -> Replay:
    """The thread up to the end of a run, along the runs that led to it."""
    replay = Replay()
    runs = {run.run_id: run for run in await cast.log.runs(thread_id)}
    lineage: dict[str, RunInfo] = {}
    while run_id is not None:
        lineage[run_id] = runs[run_id]
        run_id = runs[run_id].parent
    after, last = 0, max((run.last_seq for run in lineage.values()), default=0)
    while after < last and (page := await cast.log.entries(thread_id, after, PAGE)):
        after = page[-1].seq
        for entry in page:
            if entry.run_id in lineage:
                replay.feed(entry.event)
    return replay


def _handle(cast: Cast, thread_id: str, run: RunInfo) -> Run:
    """A run that was started elsewhere, or before."""
    here = cast.slots.in_thread(cast.tenant, thread_id)
    if here is not None and here.run_id == run.run_id:
        return here
    given = input_for(thread_id, run.run_id)

    async def ask(hard: bool) -> object:
        return await cast.stop(run.run_id, hard, thread_id=thread_id)

    return RemoteRun(cast.log, RemoteAgent(""), given, after=run.first_seq - 1, stop=ask)


async def _stream(
    cast: Cast, run: Run, *, whole: bool, before: Before | None = None
) -> AsyncGenerator[bytes]:
    """The run's chunks, and those of runs that resume it after a cut."""
    replay: Replay | None = None
    following: Run | None = run
    while following is not None:
        try:
            await following.begun()
            if replay is None:
                replay = await _past(cast, run, before)
            async with aclosing(_chunks(cast, following, replay, whole=whole)) as found:
                async for chunk in found:
                    yield _sse(chunk)
        except SlimError:
            pass  # reported below
        finally:
            if isinstance(following, RemoteRun):
                await following.abandon()
        whole = False
        following = None if replay is None or replay.ended else await _resumed(cast, following)
    if replay is None or not replay.ended:
        for chunk in (replay or Replay()).cut(CUT):
            yield _sse(chunk)
    yield DONE


async def _past(cast: Cast, run: Run, before: Before | None) -> Replay:
    """The thread up to the run: as it was read for the start, if nothing came in between."""
    parent = (await cast.threads.known(run.thread_id, run.run_id)).parent
    if before is not None and before[0].run_id == parent:
        last, replay = before
        if last == await cast.threads.known(run.thread_id, parent):
            return replay
    return await _replay(cast, run.thread_id, parent)


async def _chunks(cast: Cast, run: Run, replay: Replay, *, whole: bool) -> AsyncGenerator[Chunk]:
    async with aclosing(entries_of(run, cast.log)) as entries:
        async for entry in entries:
            if entry.run_id != run.run_id:
                return
            chunks = replay.feed(entry.event)
            if entry.seq == run.first_seq:
                chunks = _beginning(replay, chunks, whole)
            for chunk in chunks:
                yield chunk


def _beginning(replay: Replay, chunks: list[Chunk], whole: bool) -> list[Chunk]:
    """The first chunks of a stream: of a message that goes on all, or that it goes on."""
    if not replay.continues:
        return chunks
    return replay.chunks if whole else [{"type": "start", "messageId": replay.message_id}, *chunks]


async def _resumed(cast: Cast, cut: Run) -> Run | None:
    """The run that resumes one that was cut short, where nodes recover such runs; None when none comes."""
    looks = 2 * cast.log.lease_ms / 1000 / LOOK if cast.options.recover == "continue" else 0
    while looks > 0:
        runs = await cast.log.runs(cut.thread_id)
        if runs[-1].run_id != cut.run_id:
            return _handle(cast, cut.thread_id, runs[-1]) if runs[-1].parent == cut.run_id else None
        looks -= 1
        await asyncio.sleep(LOOK)
    return None


def _sse(chunk: Mapping[str, Any]) -> bytes:
    return b"data: %s\n\n" % orjson.dumps(chunk)
