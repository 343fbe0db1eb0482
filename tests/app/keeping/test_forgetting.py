"""A thread is forgotten: nothing of it is left on any node, its watchers are sent away, and its id stays taken."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ag_ui.core import Event, RunAgentInput
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event as AdkEvent
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from runcast.adapters import Forgetting
from runcast.adapters.adk import AdkAdapter
from runcast.adapters.langgraph import LangGraphAdapter
from runcast.app import Cast, EventFunction
from runcast.app.keeping import forgetting
from runcast.slim import Forgotten, MemoryStore, RunLog
from runcast.slim.stores.records import Key
from tests.app.agents import Gated, asker, parrot
from tests.app.delays import Yielding
from tests.app.node_process import WorkerProcess
from tests.app.nodes.conftest import postgres_server, url
from tests.app.nodes.stage import ask, counting, knows, nodes, until, web, worker
from tests.app.serving import serving
from tests.broadcast.redis_process import RedisProcess, redis_there
from tests.conftest import LONG

__all__ = ["postgres_server", "redis_there", "url"]

PATIENCE = 60.0
WORD = "xylophone"
TABLES = ("events", "raws", "blobs", "runs", "notes")


def rows_with(url: str, word: str) -> int:
    """How many rows of the store hold a word, in whichever column."""
    found: list[Any] = []
    if url.startswith("sqlite"):
        database: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
    else:
        database = psycopg.connect(url)
    try:
        for table in TABLES:
            found += database.execute(f"SELECT * FROM runcast_{table}").fetchall()
    finally:
        database.close()
    return sum(any(word in _text(value) for value in row) for row in found)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


async def forgotten(cast: Cast, thread_id: str = "t1") -> None:
    """Wait until nothing is left to do about a thread."""

    async def done() -> bool:
        waiting = await cast.node.notes.read("forget", *(f"forget {name}" for name in cast.agents))
        return not waiting and await cast.log.archive.is_forgotten(thread_id)

    async with asyncio.timeout(PATIENCE):
        while not await done():  # noqa: ASYNC110  other nodes do it
            await asyncio.sleep(0.02)


def graph_with(saver: Any) -> LangGraphAdapter:
    builder: Any = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [AIMessage("Hello!")]})
    return LangGraphAdapter(builder.add_edge(START, "agent").compile(checkpointer=saver), name="graph")


def threads_in(saver: InMemorySaver) -> set[str]:
    """The threads that have a checkpoint."""
    return {each.config.get("configurable", {})["thread_id"] for each in saver.list(None)}


async def test_nothing_is_left_in_the_store_and_in_the_frameworks_checkpoints(
    url: str, tmp_path: Path
) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        async with Cast.open(url, agents=[graph_with(saver)]) as cast:
            for thread in ("t1", "t2"):
                await (await cast.say(thread, WORD)).result()
                await (await cast.say(thread, "again")).result()
            before = rows_with(url, "again")
            assert await cast.forget("t1") == "forgotten"
            assert 0 < rows_with(url, "again") < before
            config: Any = {"configurable": {"thread_id": "t1"}}
            other: Any = {"configurable": {"thread_id": "t2"}}
            assert await saver.aget_tuple(config) is None
            assert await saver.aget_tuple(other) is not None
            assert await cast.log.thread("t1") is None
            assert await cast.log.runs("t1") == []
            assert await cast.forget("t2") == "forgotten"
        assert rows_with(url, "again") == rows_with(url, WORD) == 0


async def test_a_forgotten_id_is_refused_until_its_tombstone_is_deleted(url: str) -> None:
    async with Cast.open(url, agents=[parrot]) as cast:
        await (await cast.say("t1", WORD)).result()
        assert [await cast.forget("t1") for _ in range(3)] == ["forgotten"] * 3
        assert cast.stats()["forgotten"] == 1
        with pytest.raises(Forgotten, match="use another id"):
            await cast.say("t1", "anyone there?")
        assert cast.active == []
        assert not cast.slots.has("")
        assert await cast.log.archive.delete("t1")
        assert (await (await cast.say("t1", "hello")).result()).status == "completed"


async def test_a_run_that_is_active_is_stopped_first() -> None:
    gated = Gated()
    async with Cast.open("memory://", agents=[gated]) as cast:
        run = await cast.start(gated, ask())
        gated.open(2)
        assert await cast.forget("t1") == "forgotten"
        assert not run.active
        assert await cast.log.thread("t1") is None


async def test_what_waits_goes_with_its_thread_and_never_begins() -> None:
    gated, begun = Gated(), list[str]()

    async def eager(input: RunAgentInput) -> AsyncIterator[Event]:
        begun.append(input.run_id)
        async for event in parrot(input):
            yield event

    async with Cast.open("memory://", agents=[eager], watch=False) as cast:
        cast.register(gated, name="gated")
        run = await cast.say("t1", "one", agent="gated")
        later = [await cast.say("t1", text, agent="eager", on_busy="queue") for text in ("two", "three")]
        assert await cast.forget("t1") == "forgotten"
        ends = [await each.result() for each in (run, *later)]
        assert [each.status for each in ends] == ["failed", "truncated", "truncated"]
        assert (begun, await cast.log.notes.of_thread("t1")) == ([], [])


async def test_a_run_on_another_node_is_stopped_and_its_framework_cleaned_by_a_worker(url: str) -> None:
    saver, gated = InMemorySaver(), Gated()
    here, front = worker(url, graph_with(saver), gated), web(url)
    async with nodes(here, front):
        await knows(front, "graph")
        await (await front.say("t1", WORD, agent="graph")).result()
        async with asyncio.timeout(PATIENCE):
            while here.slots.has(""):  # noqa: ASYNC110  the first run ends in the log before it ends there
                await asyncio.sleep(0.01)
        run = await here.start(gated, ask(run_id="r2"))
        async with asyncio.timeout(PATIENCE):
            assert await front.forget("t1") == "forgetting"  # the worker has yet to delete the checkpoints
        assert not run.active
        await forgotten(front)
        config: Any = {"configurable": {"thread_id": "t1"}}
        assert saver.get_tuple(config) is None
        with pytest.raises(Forgotten):
            await front.say("t1", "again", agent="graph")


async def test_a_run_that_waits_for_a_worker_never_starts(url: str) -> None:
    async with worker(url, parrot) as gone:
        pass
    async with nodes(front := web(url)):
        await knows(front, "parrot")
        run = await front.say("t1", WORD, agent="parrot")
        begun = asyncio.create_task(run.begun())
        await front.forget("t1")
        with pytest.raises(Forgotten):
            async with asyncio.timeout(PATIENCE):
                await begun
        assert rows_with(url, WORD) == 0
        async with worker(url, parrot) as late:
            await forgotten(late)
            assert await late.log.thread("t1") is None
    assert gone.closing


async def drained(socket: ClientConnection) -> None:
    """Receive until the other side closes."""
    while True:
        await socket.recv()


async def test_watchers_on_every_node_get_a_last_frame_and_are_closed(url: str) -> None:
    async with serving(Cast.open(url, agents=[parrot])) as here, serving(web(url)) as there:
        await (await here.cast.say("t1", WORD)).result()
        async with AsyncExitStack() as stack:
            sockets = [
                await stack.enter_async_context(
                    connect(f"{host.url.replace('http', 'ws')}/ws?channel=agent.t1&after=0")
                )
                for host in (here, there)
            ]
            for socket in sockets:
                assert json.loads(await socket.recv())["type"] == "hub.subscribed"
            epoch = (await here.http.get("/threads/t1/events")).json()["epoch"]
            streaming = stack.enter_async_context(
                there.http.stream("GET", "/threads/t1/events", headers={"accept": "text/event-stream"})
            )
            stream = await streaming
            lines = stream.aiter_lines()
            assert (await anext(lines)).startswith("id:")
            answer = await here.http.delete("/threads/t1")
            assert answer.status_code in (200, 202)
            async with asyncio.timeout(PATIENCE):
                for socket in sockets:
                    with pytest.raises(ConnectionClosed) as closed:
                        await drained(socket)
                    assert closed.value.rcvd is not None
                    assert closed.value.rcvd.code == 4010
                async for _ in lines:
                    pass
            for host in (here, there):
                again = {"accept": "text/event-stream", "last-event-id": f"{epoch}:3"}
                assert (await host.http.get("/threads/t1/events", headers=again)).status_code == 410
                assert host.cast.hub is not None
                assert host.cast.hub.stats()["remembered"] == 0
        refused = await here.http.post("/threads/t1/runs", json={"message": "again"})
        assert (refused.status_code, refused.json()["title"]) == (410, "Forgotten")


async def test_redis_streams_go_too(redis_there: None) -> None:
    async with RedisProcess() as redis, Cast.open("memory://", agents=[parrot], redis=redis.url) as cast:
        for thread in ("t1", "t2"):
            await (await cast.say(thread, WORD)).result()

        async def streams() -> bool:
            return len(await redis.ask("KEYS", "*")) == 4

        await until(streams)
        assert await cast.forget("t1") == "forgotten"
        left = [key.decode() for key in await redis.ask("KEYS", "*")]
        assert len(left) == 2
        assert not any("t1" in key for key in left)


async def test_while_redis_is_away_the_request_stays_and_is_finished_later(redis_there: None) -> None:
    async with (
        RedisProcess() as redis,
        Cast.open("memory://", agents=[parrot], redis=redis.url, lease_ms=200) as cast,
    ):
        await (await cast.say("t1", WORD)).result()
        redis.kill()
        assert await cast.forget("t1") == "forgetting"
        assert await cast.log.thread("t1") is None
        await redis.start()
        await forgotten(cast)


async def test_an_adk_session_and_its_artifacts_go_for_every_user(tmp_path: Path) -> None:
    class Says(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[AdkEvent]:
            assert ctx.artifact_service is not None
            place: Any = {"app_name": "app", "user_id": ctx.session.user_id, "session_id": ctx.session.id}
            await ctx.artifact_service.save_artifact(**place, filename="note", artifact=types.Part(text=WORD))
            yield AdkEvent(
                author=self.name, content=types.Content(role="model", parts=[types.Part(text=WORD)])
            )

    sessions, artifacts = (
        DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/adk.db"),
        InMemoryArtifactService(),
    )
    users: list[Any] = ["ann", lambda input: "ann"]
    for user in users:
        runner = Runner(
            app_name="app", agent=Says(name="says"), session_service=sessions, artifact_service=artifacts
        )
        adapter = AdkAdapter(runner, user_id=user)
        assert isinstance(adapter, Forgetting)
        async with Cast.open("memory://", agents=[adapter]) as cast:
            for thread in ("t1", "t2"):
                await (await cast.say(thread, "hi")).result()
            assert await cast.forget("t1") == "forgotten"
        kept = await sessions.list_sessions(app_name="app")
        assert [each.id for each in kept.sessions] == ["t2"]
        place: Any = {"app_name": "app", "user_id": "ann"}
        assert await artifacts.list_artifact_keys(**place, session_id="t1") == []
        assert await artifacts.list_artifact_keys(**place, session_id="t2") == ["note"]
    await sessions.close()


def test_a_synchronous_checkpointer_is_cleaned_too(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "sync.db")) as saver:
        adapter = graph_with(saver)
        for thread in ("t1", "t2"):
            list(adapter.run_sync(ask(thread_id=thread)))
        asyncio.run(adapter.forget("t1"))
        found = [saver.get_tuple({"configurable": {"thread_id": each}}) for each in ("t1", "t2")]
        assert found[0] is None
        assert found[1] is not None


async def test_a_tenant_forgets_its_own_thread_alone() -> None:
    saver = InMemorySaver()
    async with Cast.open("memory://", agents=[graph_with(saver)]) as host:
        ours, theirs = host.for_tenant("a"), host.for_tenant("b")
        for view in (ours, theirs):
            await (await view.say("t1", WORD)).result()
        threads = threads_in(saver)
        assert len(threads) == 2
        assert await ours.forget("t1") == "forgotten"
        assert await ours.log.thread("t1") is None
        assert await theirs.log.thread("t1") is not None
        assert len(threads_in(saver)) == 1


async def test_what_is_being_forgotten_here_is_not_begun_again() -> None:
    cleaning, goes_on, cleaned = asyncio.Event(), asyncio.Event(), list[str]()

    class Slow(EventFunction):
        async def forget(self, thread_id: str) -> None:
            cleaned.append(thread_id)
            cleaning.set()
            await goes_on.wait()

    log = RunLog(MemoryStore(), lease_ms=60)
    async with Cast(log, agents=[Slow(parrot, name="slow")]) as cast:
        await (await cast.say("t1", WORD)).result()
        forgetting = asyncio.create_task(cast.forgetter.forget("t1"))
        async with asyncio.timeout(PATIENCE):
            await cleaning.wait()
            (request,) = await cast.node.notes.read("forget")
            await until(lambda: _is_past(request.at + log.lease_ms))
            again = asyncio.create_task(cast.forgetter.look())
            await asyncio.wait({again}, timeout=2)
            goes_on.set()
            await again
            assert await forgetting == "forgotten"
    assert cleaned == ["t1"]


async def test_a_thread_that_is_forgotten_again_is_erased_again_on_other_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, erased = MemoryStore(), list[str]()
    async with Cast(RunLog(store), agents=[parrot]) as here, Cast(RunLog(store), work=False) as there:
        await there.node.close()  # it looks when the test has it look
        erase = there.followers.erase

        async def noting(thread_id: str) -> None:
            erased.append(thread_id)
            await erase(thread_id)

        monkeypatch.setattr(there.followers, "erase", noting)
        for times in (1, 2):
            await (await here.say("t1", WORD)).result()
            assert await here.forget("t1") == "forgotten"
            for _ in range(2):
                await there.forgetter.look()
            assert erased == ["t1"] * times
            assert await here.log.archive.delete("t1")  # the id may be used again
            (notice,) = await here.node.notes.read("forgotten")
            await until(lambda at=notice.at: _is_past(at))


async def test_an_agent_that_is_nowhere_now_is_asked_when_it_comes_back() -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot]) as cast:
        await (await cast.say("t1", WORD)).result()
    async with Cast(RunLog(store), agents=[asker]) as cast:
        assert await cast.forget("t1") == "forgetting"
        assert [each.body for each in await cast.node.notes.read("forget parrot")] == [b"t1"]


async def test_a_run_that_does_not_stop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(EventFunction):
        async def stop(self, run_id: str, *, hard: bool = False) -> None:
            """Go on."""

    monkeypatch.setattr(forgetting, "STUBBORN", 0.05)
    gated = Gated()
    async with Cast.open("memory://", agents=[Stubborn(gated, name="stubborn")]) as cast:
        run = await cast.start(cast.agent("stubborn"), ask())
        driven = cast.run(run.run_id)
        try:
            assert await cast.forget("t1") == "forgotten"
            assert not driven.active
        finally:
            gated.open()


async def _is_past(at_ms: int) -> bool:
    return time.time_ns() // 1_000_000 > at_ms


async def test_a_worker_is_killed_and_its_thread_forgotten_all_the_same(url: str) -> None:
    async with WorkerProcess(url) as process, nodes(front := web(url)):
        await counting(front)
        await process.kill()
        async with asyncio.timeout(PATIENCE):
            await front.forget("t1")
        assert await front.log.thread("t1") is None
        assert await front.log.archive.is_forgotten("t1")


@pytest.mark.parametrize("tenant", ["", "acme"] if LONG else ["acme"])
async def test_whatever_await_it_dies_at_another_node_finishes_it(tenant: str) -> None:
    """The request is durable before anything is deleted, and every step may be repeated."""
    done = finished = 0
    for nth in range(1, 1_000):
        store, saver, gated = Yielding(), InMemorySaver(), Gated()
        first = Cast(RunLog(store, lease_ms=60), agents=[graph_with(saver), gated, asker])
        async with first:
            view = first.for_tenant(tenant)
            await (await view.say("t1", WORD, agent="graph")).result()
            await view.start(gated, ask(run_id="r2"))
            gated.open(1)
            dead = await _dying(asyncio.create_task(view.forgetter.forget("t1")), nth)
            await first.aclose(grace=0)  # its run is not waited for
        async with Cast(RunLog(store, lease_ms=60), agents=[graph_with(saver), asker]) as second:
            asked = await second.node.notes.read("forget")
            async with asyncio.timeout(PATIENCE):
                while await second.node.notes.read("forget"):
                    await second.forgetter.look()
                    await asyncio.sleep(0.01)
            if asked or await store.thread(Key(tenant, "t1")) is None:
                assert await store.thread(Key(tenant, "t1")) is None, nth
                assert await store.forgotten(Key(tenant, "t1")), nth
                assert list(saver.list(None)) == [], nth
                finished += 1
            else:  # it died before the request was durable, and nothing was touched
                assert dead, nth
                assert list(saver.list(None)) != [], nth
        if not dead:
            break
        done += 1
    assert done >= 30
    assert finished >= 20


async def _dying(task: asyncio.Task[Any], nth: int) -> bool:
    """Cancel a task after it was resumed so many times; whether it was still alive."""
    for _ in range(nth):
        await asyncio.sleep(0)
        if task.done():
            return False
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return True
