"""What a worker stores that slept past its lease: another worker has its run by then, or has finished it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, RunErrorEvent, UserMessage
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.platform.time import set_time_provider
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from pydantic import TypeAdapter

from tests.adapters.adk.fakes import Steady, call, calls, text
from tests.adapters.adk.frozen_worker import life
from tests.adapters.adk.scenes import look
from tests.adapters.adk.stage import Stage
from tests.conftest import LONG
from tests.e2e.oracle import Oracle
from tests.forked import everything, spawn
from tests.servers import own_schema, postgres_server

__all__ = ["postgres_server"]
pytestmark = pytest.mark.oracle
SERVICES = ["memory", "database", *(["sqlite", "postgres"] if LONG else [])]


class Sleeper(Steady):
    """Sleeps in its model call of this number until it is woken."""

    at: int = -1
    sleeps: asyncio.Event
    wakes: asyncio.Event

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if self.turn_of(llm_request) == self.at:
            self.sleeps.set()
            await self.wakes.wait()
        async for each in super().generate_content_async(llm_request, stream):
            yield each


class Worker(Stage):
    """A worker with a session service of its own, over a store that others have too."""

    def __init__(self, name: str, service: BaseSessionService, at: int = -1) -> None:
        script = [calls(call("look", {"q": name})), *[text(f"{n} of {name}") for n in range(1, 6)]]
        self.model = Sleeper(script=script, at=at, sleeps=asyncio.Event(), wakes=asyncio.Event())
        super().__init__(LlmAgent(name="root", model=self.model, tools=[look]), service=service)

    async def falls_asleep(self, words: str) -> tuple[AsyncIterator[Event], asyncio.Task[Event]]:
        """Begin a run, which its host calls truncated when it sleeps; the run, and its next event."""
        said = UserMessage(id="asleep", content=words)
        given = [*await self.messages(), said]
        input = RunAgentInput(thread_id=self.thread, run_id=self.next_run(), messages=given)
        run, events = aiter(self.adapter.run(input)), list[Event]()
        sleeping = asyncio.ensure_future(self.model.sleeps.wait())
        while True:
            event = asyncio.ensure_future(anext(run))
            await asyncio.wait({event, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            if not event.done():
                self.took(input, [*events, RunErrorEvent(message="cut short", code="truncated")])
                return run, event
            events.append(event.result())

    def takes_over(self, other: Stage) -> None:
        """Have the log of another worker."""
        self.runs, self.inputs = other.runs, other.inputs

    async def reads(self) -> str:
        """What its model reads in the next turn."""
        await self.say("next")
        return str([part.text or part for it in self.model.calls[-1].contents for part in it.parts or ()])


@pytest.fixture(params=SERVICES)
async def services(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Callable[[], Any]]:
    """Session services over one store, each for one worker."""
    async with opened(request, tmp_path) as service:
        yield service


@asynccontextmanager
async def opened(request: pytest.FixtureRequest, folder: Path) -> AsyncGenerator[Callable[[], Any]]:
    made: list[Any] = []
    shared = InMemorySessionService()

    def service() -> Any:
        match request.param:
            case "memory":
                return shared
            case "sqlite":
                return SqliteSessionService(str(folder / "sessions.db"))
            case "database":
                made.append(DatabaseSessionService(f"sqlite+aiosqlite:///{folder / 'sessions.db'}"))
            case _:
                url = schema.replace("postgresql://", "postgresql+psycopg://")
                made.append(DatabaseSessionService(url))
        return made[-1]

    schema = own_schema(request.getfixturevalue("postgres_server")) if request.param == "postgres" else ""
    yield service
    for each in made:
        await each.close()


async def ends(run: AsyncIterator[Event], event: asyncio.Task[Event]) -> None:
    await event
    async for _ in run:
        pass


@pytest.mark.parametrize(("at", "more"), [(0, 0), (1, 1), *([(0, 1), (1, 0)] if LONG else [])])
async def test_what_it_stores_behind_the_end_of_its_run_is_passed_over(
    oracle: Oracle, services: Callable[[], Any], at: int, more: int
) -> None:
    asleep, awake = Worker("sleeper", services(), at), Worker("other", services())
    run, event = await asleep.falls_asleep("hi")
    awake.takes_over(asleep)
    await awake.go_on()
    for number in range(more):
        await awake.say(f"turn {number}")
    before = await awake.messages()
    asleep.model.wakes.set()
    await ends(run, event)
    read = await awake.reads()
    assert "of sleeper" not in read
    assert (await awake.messages())[: len(before)] == before
    assert len(await awake.messages()) == len(before) + 2
    await awake.check(oracle)


@pytest.mark.parametrize("at", [0, 1])
async def test_what_it_stores_while_another_worker_has_its_run_is_passed_over(
    oracle: Oracle, services: Callable[[], Any], at: int
) -> None:
    asleep, awake = Worker("sleeper", services(), at), Worker("other", services(), at)
    run, event = await asleep.falls_asleep("hi")
    awake.takes_over(asleep)
    going = asyncio.ensure_future(awake.go_on())
    await awake.model.sleeps.wait()
    asleep.model.wakes.set()
    await ends(run, event)
    awake.model.wakes.set()
    assert (await going)[-1].type.value == "RUN_FINISHED"
    assert "1 of sleeper" not in await awake.reads()
    await awake.check(oracle)


@asynccontextmanager
async def frozen(url: str, at: int) -> AsyncGenerator[tuple[int, Connection, list[Event]]]:
    """The pid of a worker that is frozen in a model call, its pipe, and the events that it gave until then."""
    process, pipe = spawn(life, url, at)
    try:
        told = [await asyncio.to_thread(pipe.recv)]
        while told[-1]:
            told.append(await asyncio.to_thread(pipe.recv))
        assert process.pid is not None
        yield process.pid, pipe, [TypeAdapter[Event](Event).validate_json(line) for line in told[:-1]]
    finally:
        process.kill()
        process.join()


FROZEN = [(1, False), (0, False), (0, True), (1, True)]


@pytest.mark.parametrize("services", ["database", "postgres"], indirect=True)
@pytest.mark.parametrize(("at", "meanwhile"), FROZEN)
async def test_a_process_that_was_frozen_stores_nothing_that_counts(
    oracle: Oracle, services: Callable[[], Any], at: int, meanwhile: bool
) -> None:
    service = services()
    async with (
        asyncio.timeout(60),
        frozen(str(service.db_engine.url.render_as_string(False)), at) as (pid, pipe, events),
    ):
        awake = Worker("other", service, at if meanwhile else -1)
        set_time_provider(time.time)  # a store orders events by their times, and two processes share no count
        said = RunAgentInput(thread_id="t1", run_id="r1", messages=[UserMessage(id="asleep", content="hi")])
        awake.took(said, [*events, RunErrorEvent(message="cut short", code="truncated")])
        going = asyncio.ensure_future(awake.go_on())
        await (awake.model.sleeps.wait() if meanwhile else going)
        os.kill(pid, signal.SIGCONT)
        rest = await asyncio.to_thread(everything, pipe)
        awake.model.wakes.set()
        assert (await going)[-1].type.value == "RUN_FINISHED"
    assert "RUN_ERROR" in str(rest)  # ADK refuses it, by the note of the run that took over
    assert "of sleeper" not in await awake.reads()
    await awake.check(oracle)
