"""The demo without a person: kills the worker at a random point, brings it back, and compares everything with the log.

Checks that no watcher lost or doubled an envelope, however often its connection broke, that the thread reads as without
the kill, and that only the unfinished step ran again. Knows the desk and the watchers; prints nothing.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import StepFinishedEvent, StepStartedEvent, ToolCallResultEvent, ToolCallStartEvent

from runcast.app.demo.desk import UNFINISHED, Desk
from runcast.app.demo.watch import Watcher, in_order
from runcast.app.host.cast import Cast
from runcast.broadcast import Envelope, Position
from runcast.slim import fold
from runcast.slim.folding.run_metadata import metadata_of
from runcast.slim.tasks import end

THREAD, CONTROL = "night-train", "undisturbed"
PATIENCE = 90.0


class DemoFailed(Exception):
    """Something was lost, doubled or different."""


@dataclass(slots=True)
class Figures:
    """What was measured."""

    killed_at: int = 0  # the last entry that was durable when the worker died
    back_after: float = 0.0  # seconds from the kill to the next entry
    lines_lost: int = 0
    fetched: int = 0
    envelopes: int = 0
    entries: int = 0
    runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    size: dict[str, Any] = field(default_factory=dict[str, Any])


async def perform(desk: Desk, url: str, *, seed: int, token: str, watchers: int = 3) -> Figures:
    """The whole demo; raises `DemoFailed` when a check fails."""
    chance = random.Random(seed)
    figures = Figures()
    crowd = [
        Watcher(url, THREAD, token=token, chance=random.Random(chance.random())) for _ in range(watchers)
    ]
    tasks = [asyncio.create_task(each.watch()) for each in crowd]
    try:
        async with asyncio.timeout(PATIENCE):
            await desk.ask(THREAD)
            await _kill(desk, chance, figures)
            await finish(desk, THREAD)
            await desk.ask(CONTROL)
            await finish(desk, CONTROL)
            await _compare(desk, crowd, figures)
    finally:
        await end(tasks)
    return figures


async def _kill(desk: Desk, chance: random.Random, figures: Figures) -> None:
    """Kill the worker somewhere in the first run, and bring it back."""
    target = chance.randint(3, 150)
    while await _head(desk, THREAD) < target and await status(desk, THREAD) == "in_progress":  # noqa: ASYNC110
        await asyncio.sleep(0.002)
    await desk.worker.kill()
    figures.killed_at = await _head(desk, THREAD)
    since = time.monotonic()
    await desk.bring_back()
    while await _head(desk, THREAD) <= figures.killed_at and await status(desk, THREAD) in UNFINISHED:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    figures.back_after = time.monotonic() - since


async def finish(desk: Desk, thread_id: str) -> None:
    """Answer the agent's questions until the thread's newest run has ended."""
    while True:
        match await status(desk, thread_id):
            case "interrupted":
                waiting = await desk.cast.state(thread_id)
                asked = () if waiting is None else waiting.interrupts
                await desk.answer(thread_id, {each.id: True for each in asked})
            case "in_progress":
                await asyncio.sleep(0.02)
            case "completed":
                return
            case other:
                last = (await desk.log.entries(thread_id))[-1].event
                why = getattr(last, "message", "it has no end")
                raise DemoFailed(f"a run of thread {thread_id} is {other}: {why}")


async def status(desk: Desk, thread_id: str) -> str:
    """The status of a thread's newest run."""
    return (await desk.newest(thread_id)).status


async def _head(desk: Desk, thread_id: str) -> int:
    thread = await desk.log.thread(thread_id)
    return 0 if thread is None else thread.last_seq


async def _compare(desk: Desk, crowd: list[Watcher], figures: Figures) -> None:
    truth = await history(desk.cast, THREAD)
    last = truth[-1].seq
    for each in crowd:
        while (each.reader.last or 0) < last:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        if in_order(each.envelopes) != in_order(truth):
            raise DemoFailed("a watcher has other envelopes than the log")
        figures.lines_lost += each.dropped
        figures.fetched += each.fetched
        figures.envelopes += len(each.envelopes)
    if await spoken(desk.cast, THREAD) != await spoken(desk.cast, CONTROL):
        raise DemoFailed("the thread reads differently from one without a kill")
    await _only_unfinished(desk)
    figures.entries = await _head(desk, THREAD)
    runs = await desk.log.runs(THREAD)
    figures.runs = [{"attempt": run.attempt, "status": run.status, "edge": run.edge} for run in runs]
    await desk.log.archive.compact(THREAD)
    figures.size = await desk.cast.threads.size(THREAD)


async def _only_unfinished(desk: Desk) -> None:
    """A step that had finished when the worker died does not begin again in the run that resumes."""
    runs = await desk.log.runs(THREAD)
    cut = next((run for run in runs if run.status == "truncated"), None)
    if cut is None:
        return
    after = next(run.run_id for run in runs if run.parent == cut.run_id)
    done: list[str] = []
    for entry in await desk.log.entries(THREAD):
        event = entry.event
        if entry.run_id == cut.run_id:
            done += _finished(event)
        elif entry.run_id == after and (again := _begun(event)) is not None and done.count(again) == 1:
            # A step that the agent repeats by itself (the model after its tools) may begin once more.
            raise DemoFailed(f"{again} ran again although it had finished")


def _finished(event: Any) -> list[str]:
    if isinstance(event, ToolCallResultEvent):
        return [f"call {event.tool_call_id}"]
    if isinstance(event, StepFinishedEvent) and not _failed(event):
        return [f"step {event.step_name}"]
    return []


def _begun(event: Any) -> str | None:
    if isinstance(event, ToolCallStartEvent):
        return f"call {event.tool_call_id}"
    return f"step {event.step_name}" if isinstance(event, StepStartedEvent) else None


def _failed(event: StepFinishedEvent) -> bool:
    return bool(metadata_of(event).get("errors"))


async def history(cast: Cast, thread_id: str) -> list[Envelope]:
    """Every envelope of a thread, from the log."""
    found = await cast.history.read(thread_id, Position("", 0), most=100_000)
    return list(found.envelopes)


async def spoken(cast: Cast, thread_id: str) -> list[tuple[str, str]]:
    """A thread's conversation without its ids, and without messages that a later attempt repeats in full."""
    messages = fold(await cast.log.restore(thread_id)).messages
    whole = [(message.role, str(message.content)) for message in messages if message.role != "activity"]
    return [
        (role, text)
        for n, (role, text) in enumerate(whole)
        if not any(other == role and again.startswith(text) for other, again in whole[n + 1 :])
    ]
