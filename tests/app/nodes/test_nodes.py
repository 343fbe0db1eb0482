"""Several nodes over one store: what is asked of one is done by whoever can, and everybody sees it once and in order."""

from __future__ import annotations

import asyncio
import json

import pytest
from ag_ui.core import RunErrorEvent
from websockets.asyncio.client import connect

from runcast.app import Busy, Cast, NotFound, Over, RunHandle
from runcast.app.cli.doctor import Finding, examine
from runcast.app.nodes.node import Node
from runcast.app.nodes.requests import threads_of
from runcast.broadcast import Envelope
from runcast.slim import tasks, verify
from tests.app.agents import Gated, asker, parrot
from tests.app.nodes.stage import PATIENCE, ask, ended, knows, nodes, until, web, worker
from tests.app.serving import post_run, serving
from tests.broadcast.redis_process import RedisProcess, redis_there
from tests.servers import own_schema

__all__ = ["redis_there"]


async def test_a_run_is_stopped_on_any_node(url: str) -> None:
    gated = Gated()
    here, there = Cast.open(url, agents=[gated]), web(url)
    async with nodes(here, there):
        run = await here.start(gated, ask())
        assert await threads_of(there, "r1") == ["t1"]
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
            run: RunHandle = await front.start(front.agent("parrot"), ask(f"word {n}", f"t{n}", f"r{n}"))
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
    async with nodes(worker(url, asker), front := web(url)):
        await knows(front, "asker")
        first = await front.start(front.agent("asker"), ask())
        async with asyncio.timeout(PATIENCE):
            assert (await first.result()).status == "interrupted"
    async with nodes(front := web(url), cast := worker(url, parrot)):
        await knows(front, "asker", "parrot")
        late = await front.resume("t1", {"q1": "yes"})  # waits: no worker has the agent
        await (await cast.start(parrot, ask(run_id="r2"))).result()
        async with nodes(worker(url, asker)):
            async with asyncio.timeout(PATIENCE):
                refused = await late.result()
        assert (refused.status, refused.code) == ("failed", "overtaken")
        assert "has moved on since" in (refused.error or "")
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


async def test_health_of_a_worker_without_a_hub(url: str) -> None:
    async with serving(worker(url)) as host:
        assert (await host.http.get("/health")).json()["status"] == "ok"
        assert (await host.http.get("/app/runcast")).status_code == 404


async def test_the_doctor_sees_who_works_and_what_waits_for_nobody(url: str) -> None:
    def told(found: list[Finding]) -> tuple[str, str]:
        return next(((each.mark, each.text) for each in found if each.what == "workers"), ("", ""))

    async with worker(url) as here:
        assert told(await examine(url, role="web"))[0] == "ok"
        assert "1 active, with asker, parrot" in told(await examine(url))[1]
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


async def test_a_node_closes_though_a_driver_drops_its_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `asyncio.wait_for` of Python 3.11 does, which psycopg's pool waits with."""
    monkeypatch.setattr(tasks, "AGAIN", 0.01)
    dropped = asyncio.Event()

    async def duty() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not dropped.is_set():
                dropped.set()
                return
            raise

    async with Cast.open("memory://", agents=[parrot]) as cast:
        node = Node(cast)
        node.begin(duty)
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            await node.close()
    assert dropped.is_set()
