"""Runs whose worker died are resumed by one other, or stay as they are, whoever finds them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from runcast.app import Cast
from runcast.app.host.event_function import EventFunction
from tests.app.agents import steady
from tests.app.node_process import WorkerProcess
from tests.app.nodes.stage import PATIENCE, counting, ended, knows, nodes, until, web, worker


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
                return free and not await front.log.recovery.orphaned_runs()

            await until(settled)
            assert await other.recover("continue") == [], "nor later, when it is found as one that was left"
            assert [each.status for each in await front.log.runs("t1")] == ["truncated"]
            assert not other.active


async def test_a_run_whose_own_node_was_to_stop_it_is_not_taken_up(url: str) -> None:
    """It answered `stopping`, and went away before the run came to a place where it stops."""

    class Deaf(EventFunction):
        async def stop(self, run_id: str, *, hard: bool = False) -> None:
            if hard:
                await super().stop(run_id)

    agent = Deaf(steady, name="steady")
    front = worker(url, agent, recover="continue", recover_every=60)
    async with nodes(front):
        run = await front.say("t1", "count")
        await run.begun()
        assert await front.stop(run.run_id) == "stopping"
        await front.aclose(grace=0)
    async with nodes(other := worker(url, steady, recover="continue", recover_every=60)):
        await other.recover("continue")
        assert [(each.edge, each.status) for each in await other.log.runs("t1")] == [
            ("continue", "truncated")
        ]


async def test_a_run_is_taken_up_though_the_node_that_cut_it_short_died_too(url: str) -> None:
    async with WorkerProcess(url) as dead, nodes(front := web(url)):
        await counting(front)
        await dead.kill()

        async def orphaned_runs() -> bool:
            return bool(await front.log.recovery.orphaned_runs())

        await until(orphaned_runs)
        assert await front.log.recovery.mark_truncated("t1"), (
            "it takes the thread, and dies before it goes on"
        )
        assert await front.log.recovery.orphaned_runs() == []
        async with nodes(worker(url, steady, recover="continue", recover_every=0.2)):

            async def taken() -> bool:
                return [each.edge for each in await front.log.runs("t1")] == ["continue", "resume"]

            await until(taken)
