"""Several nodes over one store: what is asked of one is done by whoever can, and everybody sees it once and in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, RunErrorEvent, UserMessage
from websockets.asyncio.client import connect

from runcast.app import Busy, Cast, NotFound, Over, Overtaken, Run
from runcast.app.doctor import Finding, examine
from runcast.broadcast import Envelope
from runcast.slim import RunInfo, verify
from tests.app.agents import Gated, asker, parrot, steady
from tests.app.node_process import LEASE_MS, WorkerProcess
from tests.app.serving import post_run, serving
from tests.broadcast.redis_process import RedisProcess, redis_there
from tests.servers import own_schema, postgres_server

__all__ = ["postgres_server", "redis_there"]

PATIENCE = 40.0


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Something empty that several processes can open."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/runs.db"
    return own_schema(request.getfixturevalue("postgres_server"))


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


async def test_a_run_is_stopped_on_any_node(url: str) -> None:
    gated = Gated()
    here, there = Cast.open(url, agents=[gated]), web(url)
    async with nodes(here, there):
        run = await here.start(gated, ask())
        assert await there.threads_of("r1") == ["t1"]
        assert await there.stop("r1", hard=True) == "asked"
        async with asyncio.timeout(PATIENCE):
            assert (await run.result()).code == "cancelled"

        async def read() -> bool:
            return not await there.log.notes.about("r1")

        await until(read)
        with pytest.raises(Over, match="it ended as failed"):
            await there.stop("r1")
        with pytest.raises(NotFound):
            await there.stop("r2")


async def test_a_stop_is_answered_truthfully_over_http(url: str) -> None:
    gated = Gated()
    async with worker(url, gated) as here, serving(web(url)) as host:
        run = await here.start(gated, ask())
        asked = await host.http.post("/runs/r1/stop")
        assert (asked.status_code, asked.json()["status"]) == (202, "asked")
        async with asyncio.timeout(PATIENCE):
            await run.result()
        assert (await host.http.post("/runs/r1/stop")).status_code == 409
        assert (await host.http.post("/runs/r2/stop")).status_code == 404


async def test_a_web_node_hands_runs_over_and_one_worker_begins_each(url: str) -> None:
    workers, front = [worker(url) for _ in range(3)], web(url)
    async with nodes(*workers, front):
        await knows(front, "parrot", "asker")
        for n in range(12):
            run = await front.start(front.agent("parrot"), ask(f"word {n}", f"t{n}", f"r{n}"))
            assert run.run_id == f"r{n}"
        for n in range(12):
            assert (await ended(front, f"r{n}", f"t{n}")).status == "completed"
            stream = [entry.event for entry in await front.log.entries(f"t{n}")]
            assert not verify(stream)
            assert sum(each.type == "RUN_STARTED" for each in stream) == 1
            assert (await front.snapshot(f"t{n}"))["messages"][-1]["content"] == f"word {n} "


async def test_a_question_is_answered_and_a_run_branched_from_a_web_node(url: str) -> None:
    async with nodes(worker(url), front := web(url)):
        await knows(front, "asker")
        first = await front.say("t1", "go", agent="asker")
        async with asyncio.timeout(PATIENCE):
            assert (await first.result()).status == "interrupted"
            second = await (await front.resume("t1", {"q1": "yes"})).result()
        assert second.status == "completed"
        branch = await front.say("t1", "other", agent="parrot", from_run=first.run_id)
        async with asyncio.timeout(PATIENCE):
            assert (await branch.result()).status == "completed"
        runs = await front.log.runs("t1")
        assert [(run.edge, run.parent) for run in runs] == [
            ("continue", None), ("resume", first.run_id), ("branch", first.run_id),
        ]  # fmt: skip


async def test_the_agui_endpoint_of_a_web_node_streams_a_workers_run(url: str) -> None:
    async with worker(url), serving(web(url)) as host:
        await knows(host.cast, "parrot")
        told = await post_run(host.http)
        assert [each.event["type"] for each in told][:1] == ["RUN_STARTED"]
        assert told[-1].event["type"] == "RUN_FINISHED"
        assert [int(each.id.split(":")[1]) for each in told] == list(range(1, len(told) + 1))


async def test_a_wanted_run_waits_and_is_refused_or_stopped_meanwhile(url: str) -> None:
    async with worker(url) as gone:
        assert gone.agents
    async with nodes(front := web(url)):  # the worker is away, its agents are remembered
        await knows(front, "parrot")
        run = await front.start(front.agent("parrot"), ask())
        with pytest.raises(Busy, match="waits for a worker"):
            await front.start(front.agent("parrot"), ask(run_id="r2"))
        await front.start(front.agent("parrot"), ask(thread_id="t2", run_id="r3"))
        assert await front.stop("r3") == "stopped"
        (refused,) = await front.log.runs("t2")
        assert (refused.status, refused.run_id) == ("failed", "r3")
        last = (await front.log.entries("t2"))[-1].event
        assert isinstance(last, RunErrorEvent)
        assert last.code == "cancelled"
        async with nodes(worker(url)):
            async with asyncio.timeout(PATIENCE):
                assert (await run.result()).status == "completed"
        assert [each.run_id for each in await front.log.runs("t1")] == ["r1"]
        with pytest.raises(NotFound, match="no agent is called 'ghost'"):
            await front.say("t1", "x", agent="ghost")


async def test_a_thread_that_another_node_writes_is_busy(url: str) -> None:
    gated = Gated()
    here, also, front = Cast.open(url, agents=[gated]), worker(url), web(url)
    async with nodes(here, also, front):
        await knows(front, "parrot")
        await here.start(gated, ask())
        with pytest.raises(Busy):
            await also.start(parrot, ask(run_id="r2"))
        with pytest.raises(Busy, match="active on another node"):
            await front.start(front.agent("parrot"), ask(run_id="r2"))
        with pytest.raises(Busy):
            await also.resume("t1")


async def test_a_run_that_the_thread_has_gone_past_is_not_taken_up_again(url: str) -> None:
    async with nodes(cast := worker(url)):
        first = await (await cast.start(asker, ask())).result()
        assert first.status == "interrupted"
        state = await cast.threads.stands("t1", "r1")
        await (await cast.start(parrot, ask(run_id="r2"))).result()
        late = ask(run_id="r3")
        with pytest.raises(Overtaken, match="has gone on since"):
            await cast.launch(asker, late, edge="resume", parent="r1", state=state, newest="r1")
        async with nodes(other := worker(url)):  # and the thread is free for anybody
            assert (await (await other.start(parrot, ask(run_id="r4"))).result()).status == "completed"


async def test_a_worker_that_is_full_leaves_the_rest_to_others(url: str) -> None:
    gated = Gated()
    full, front = worker(url, gated, parrot, max_runs=1), web(url)
    async with nodes(full, front):
        await knows(front, "parrot")
        run = await full.start(gated, ask())
        waiting = await front.start(front.agent("parrot"), ask(thread_id="t2", run_id="r2"))
        await asyncio.sleep(0.3)
        assert await front.log.runs("t2") == []
        gated.open()
        async with asyncio.timeout(PATIENCE):
            await run.result()
            assert (await waiting.result()).status == "completed"


# ------------------------------------------------------------------- watching


async def test_a_watcher_on_any_node_sees_everything_once_and_in_order(url: str) -> None:
    gated = Gated(20)
    here, front = worker(url, gated), web(url)
    async with nodes(here, front):
        async with serving(front) as host:
            seen = asyncio.create_task(watch(host.url))
            await until(lambda: occupied(front))
            run = await here.start(gated, ask())
            for _ in range(4):
                gated.open(5)
                await asyncio.sleep(0.03)
            gated.open()
            async with asyncio.timeout(PATIENCE):
                await run.result()
                envelopes = await seen
        holds(envelopes)
        text = "".join(each.payload["chunk"] for each in envelopes if each.type == "agent.stream.chunk")
        assert text == "".join(f"{n} " for n in range(20))


async def occupied(cast: Cast) -> bool:
    return cast.hub is not None and bool(cast.hub.occupied())


async def watch(url: str, *, ends: int = 1) -> list[Envelope]:
    """Watch over a plain socket until so many runs have ended."""
    found: list[Envelope] = []
    async with connect(f"{url.replace('http', 'ws')}/ws?channel=agent.t1&after=0") as socket:
        assert json.loads(await socket.recv())["type"] == "hub.subscribed"
        async for text in socket:
            told = json.loads(text)
            if "seq" in told:
                found.append(Envelope.from_dict(told))
                ends -= told["type"] == "agent.status" and told["payload"]["status"] != "in_progress"
                if not ends:
                    break
    return found


def holds(envelopes: list[Envelope]) -> None:
    """Each follows the one before: nothing is missing, doubled or out of order."""
    last = 0
    for each in envelopes:
        if each.part is None or each.part[0] == 1:
            assert each.prev == last, [(e.prev, e.seq, e.type) for e in envelopes]
        last = each.seq


@pytest.mark.usefixtures("redis_there")
async def test_redis_brings_what_others_say_and_the_log_does_when_redis_is_away(postgres_server: str) -> None:
    url = own_schema(postgres_server)
    gated = Gated(30)
    async with RedisProcess() as redis:
        here, front = worker(url, gated, redis=redis.url), web(url, redis=redis.url)
        async with nodes(here, front), serving(front) as host:
            seen = asyncio.create_task(watch(host.url))
            await until(lambda: occupied(front))
            run = await here.start(gated, ask())
            gated.open(10)
            await asyncio.sleep(0.2)
            redis.kill()
            gated.open(10)
            await asyncio.sleep(0.2)
            gated.open()
            async with asyncio.timeout(PATIENCE):
                await run.result()
                envelopes = await seen
            holds(envelopes)
            text = "".join(each.payload["chunk"] for each in envelopes if each.type == "agent.stream.chunk")
            assert text == "".join(f"{n} " for n in range(30))


async def test_threads_that_nobody_watches_are_not_followed(url: str) -> None:
    gated = Gated()
    here, front = worker(url, gated), web(url)
    async with nodes(here, front), serving(front) as host:
        for n in range(5):
            await here.start(gated, ask(thread_id=f"t{n}", run_id=f"r{n}"))
        assert front.stats()["followers"] == 0
        seen = asyncio.create_task(watch(host.url))

        async def followed() -> bool:
            return front.stats()["followers"] == 1

        await until(followed)
        gated.open()
        async with asyncio.timeout(PATIENCE):
            await seen

        async def alone() -> bool:
            return front.stats()["followers"] == 0

        await until(alone)


# ------------------------------------------------------------------- recovery


async def test_a_killed_workers_run_is_taken_up_by_one_other(url: str) -> None:
    async with WorkerProcess(url) as dead, AsyncExitStack() as stack:
        front = await stack.enter_async_context(web(url))
        run = await counting(front)
        await until(lambda: longer(front, 20))
        others = [worker(url, steady, recover="continue", recover_every=0.3) for _ in range(3)]
        for each in others:
            await stack.enter_async_context(each)
            stack.push_async_callback(each.aclose, grace=0.1)
        await dead.kill()

        async def taken() -> bool:
            return len(await front.log.runs("t1")) > 1

        await until(taken)
        await asyncio.sleep(1.0)
        runs = await front.log.runs("t1")
        assert [(each.edge, each.attempt, each.status) for each in runs] == [
            ("continue", 1, "truncated"), ("resume", 2, "in_progress"),
        ]  # fmt: skip
        assert runs[1].parent == run.run_id
        assert sum(len(each.active) for each in others) == 1
        assert await front.stop(runs[1].run_id, hard=True) == "asked"
        assert (await ended(front, runs[1].run_id)).status in ("failed", "cancelled")


async def longer(cast: Cast, than: int) -> bool:
    thread = await cast.log.thread("t1")
    return thread is not None and thread.last_seq > than


async def test_a_run_is_resumed_from_another_node_after_its_worker_was_killed(url: str) -> None:
    async with WorkerProcess(url) as dead, nodes(front := web(url)):
        await counting(front)
        await dead.kill()

        async def cut() -> bool:
            return (await front.log.runs("t1"))[-1].status == "truncated"

        await until(cut)
        again = await front.resume("t1")
        async with nodes(other := worker(url, steady)):
            async with asyncio.timeout(PATIENCE):
                await again.begun()
            assert [each.run_id for each in other.active] == [again.run_id]
            assert (await front.log.runs("t1"))[-1].edge == "resume"


async def test_the_stranded_of_all_tenants_are_taken_up(url: str) -> None:
    async with WorkerProcess(url) as dead, nodes(front := web(url)):
        await knows(front, "steady")
        views = [front.for_tenant(name) for name in ("acme", "other")]
        runs = [await view.say("t1", "count", agent="steady") for view in views]
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(run.begun() for run in runs))
        await dead.kill()
        async with nodes(other := worker(url, steady, recover="continue", recover_every=0.2)):
            for view in views:

                async def taken(view: Cast = view) -> bool:
                    return len(await view.log.runs("t1")) == 2

                await until(taken)
                (run,) = other.for_tenant(view.tenant).active
                assert (await view.log.runs("t1"))[-1].run_id == run.run_id
        assert await front.log.runs("t1") == []


async def test_views_of_tenants_that_nobody_uses_are_let_go(url: str) -> None:
    gated = Gated()
    async with nodes(cast := Cast.open(url, agents=[gated], max_tenants=3)):
        busy = cast.for_tenant("busy")
        run = await busy.start(cast.agent(gated_name(cast)), ask())
        views = [cast.for_tenant(f"tenant {n}") for n in range(10)]
        assert cast.for_tenant("busy") is busy
        assert cast.for_tenant("tenant 9") is views[9]
        assert cast.for_tenant("tenant 0") is not views[0]
        gated.open()
        assert (await run.result()).status == "completed"


def gated_name(cast: Cast) -> str:
    return next(iter(cast.agents))


async def test_a_run_that_was_to_be_stopped_is_not_taken_up(url: str) -> None:
    async with WorkerProcess(url) as dead, nodes(front := web(url)):
        run = await counting(front)
        thread = await front.log.thread("t1")
        assert thread is not None
        await dead.kill()
        assert await front.stop(run.run_id) == "asked"
        async with nodes(other := worker(url, steady, recover="continue", recover_every=0.2)):

            async def settled() -> bool:
                # In this order: a lease that runs out in between shows as a stranded run.
                free = (await front.log.thread("t1")).owner is None  # type: ignore[union-attr]  # it is there
                return free and not await front.log.stranded()

            await until(settled)
            assert await other.recover("continue") == [], "nor later, when it is found as one that was left"
            assert [each.status for each in await front.log.runs("t1")] == ["truncated"]
            assert not other.active


async def test_a_run_is_taken_up_though_the_node_that_cut_it_short_died_too(url: str) -> None:
    async with WorkerProcess(url) as dead, nodes(front := web(url)):
        await counting(front)
        await dead.kill()

        async def stranded() -> bool:
            return bool(await front.log.stranded())

        await until(stranded)
        assert await front.log.reclaim("t1"), "it takes the thread, and dies before it goes on"
        assert await front.log.stranded() == []
        async with nodes(worker(url, steady, recover="continue", recover_every=0.2)):

            async def taken() -> bool:
                return [each.edge for each in await front.log.runs("t1")] == ["continue", "resume"]

            await until(taken)


async def test_health_of_a_worker_without_a_hub(url: str) -> None:
    async with serving(worker(url)) as host:
        assert (await host.http.get("/health")).json()["status"] == "ok"
        assert (await host.http.get("/app/runcast")).status_code == 404


async def test_the_doctor_sees_who_works_and_what_waits_for_nobody(url: str) -> None:
    def told(found: list[Finding]) -> tuple[str, str]:
        return next(((each.mark, each.told) for each in found if each.what == "workers"), ("", ""))

    async with worker(url) as here:
        assert told(await examine(url, role="web"))[0] == "ok"
        assert "1 work, for asker, parrot" in told(await examine(url))[1]
        assert here.agents
    async with nodes(front := web(url)):
        await knows(front, "parrot")
        await front.start(front.agent("parrot"), ask())

        async def bad() -> bool:
            mark, sentence = told(await examine(url, redis="redis://127.0.0.1:1"))
            return mark == "bad" and "1 runs wait, some of them for parrot" in sentence

        await until(bad)


@pytest.mark.usefixtures("redis_there")
async def test_tenants_do_not_meet_in_redis(postgres_server: str) -> None:
    url = own_schema(postgres_server)
    async with RedisProcess() as redis:
        here, front = worker(url, redis=redis.url), web(url, redis=redis.url)
        async with nodes(here, front):
            for cast in (here.for_tenant("acme"), here.for_tenant("other"), here):
                await (await cast.start(parrot, ask(f"for {cast.tenant}"))).result()

            async def published() -> bool:
                return len(await redis.ask("KEYS", "runcast:*:top")) == 3

            await until(published)
            keys = {key.decode() for key in await redis.ask("KEYS", "runcast:*:top")}
            assert "runcast:stream:private-agent.t1:top" in keys
            assert sum(key.startswith("runcast:@") for key in keys) == 2
