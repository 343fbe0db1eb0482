"""Nodes for tests: workers and web nodes over one store, and what a test waits for on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from ag_ui.core import Event, RunAgentInput, RunFinishedEvent, RunStartedEvent, UserMessage

from runcast.app import Cast, Run
from runcast.slim import RunInfo
from tests.app.agents import asker, parrot
from tests.app.node_process import LEASE_MS

PATIENCE = 40.0


def ask(text: str = "hello you", thread_id: str = "t1", run_id: str = "r1") -> RunAgentInput:
    message = UserMessage(id=f"u-{run_id}", content=text)
    return RunAgentInput(thread_id=thread_id, run_id=run_id, messages=[message], tools=[], context=[])


def worker(url: str, *agents: Any, **more: Any) -> Cast:
    return Cast.open(url, agents=agents or (parrot, asker), watch=False, **{"lease_ms": LEASE_MS, **more})


def web(url: str, **more: Any) -> Cast:
    return Cast.open(url, work=False, **{"lease_ms": LEASE_MS, **more})


@asynccontextmanager
async def nodes(*casts: Cast) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for cast in casts:
            await stack.enter_async_context(cast)
            stack.push_async_callback(cast.aclose, grace=0.1)
        yield


async def until(so: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (found := await so()):  # noqa: ASYNC110  what is waited for is another process's
            await asyncio.sleep(0.02)
        return found


async def ended(cast: Cast, run_id: str, thread_id: str = "t1") -> RunInfo:
    async def over() -> RunInfo | None:
        runs = [run for run in await cast.log.runs(thread_id) if run.run_id == run_id]
        return runs[0] if runs and runs[0].terminal is not None else None

    found: RunInfo = await until(over)
    return found


async def knows(cast: Cast, *names: str) -> None:
    async def met() -> bool:
        return set(names) <= set(cast.agents)

    await until(met)


async def counting(front: Cast) -> Run:
    """A run of the agent that counts, which has begun on some other node."""
    await knows(front, "steady")
    run = await front.say("t1", "count", agent="steady")
    async with asyncio.timeout(PATIENCE):
        await run.begun()
    return run


@asynccontextmanager
async def lingering() -> AsyncIterator[tuple[Cast, Run, asyncio.Event]]:
    """A run that has ended in the log, and whose agent goes on until the event is set."""
    goes_on = asyncio.Event()

    async def lingers(input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)
        await goes_on.wait()

    async with Cast.open("memory://", agents=[lingers], watch=False) as cast:
        run = await cast.say("t1", "go")
        try:
            await ended(cast, run.run_id)
            yield cast, run, goes_on
        finally:
            goes_on.set()
