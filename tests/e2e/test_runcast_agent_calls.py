"""What an application asks a `RuncastAgent` for beside runs: threads, branches, and an end before the end; on each peer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.agents import Gated
from tests.app.serving import Served, over, serving
from tests.e2e import oracle
from tests.e2e.npm_client import PEERS, NodeClient, beside, compiled
from tests.reliability.network import Network, port_of
from tests.slim.logs import started

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("agui"), "agui")


@pytest.fixture
async def host() -> AsyncIterator[Served]:
    async with serving() as it:
        yield it


@pytest.fixture(params=PEERS)
async def node(request: pytest.FixtureRequest, built: Path, tmp_path: Path) -> AsyncIterator[NodeClient]:
    folder = beside(tmp_path / "node", request.param, built, oracle.HERE / "runcast_agent.mjs")
    async with NodeClient(folder, "runcast_agent.mjs", str(folder / built.name)) as it:
        yield it


class App:
    """An application with one agent a thread."""

    def __init__(self, node: NodeClient, host: str, agent: str) -> None:
        self._node = node
        self._url = f"{host}/agents/{agent}"

    async def begin(self, run: str, say: str = "count", thread: str = "t1") -> None:
        await self._node.ask("begin", url=self._url, thread=thread, run=run, say=say)

    async def end(self, thread: str = "t1") -> Any:
        return await self._node.ask("end", thread=thread)

    async def call(self, method: str, *args: Any, thread: str = "t1") -> Any:
        return await self._node.ask("call", url=self._url, thread=thread, method=method, args=list(args))

    async def look(self, thread: str = "t1") -> Any:
        return await self._node.ask("look", url=self._url, thread=thread)


def said(seen: Any) -> list[str]:
    return [each["content"] for each in seen["messages"]]


async def stopped(host: Served, run: str) -> bool:
    """Whether the run ended on the host because it was stopped. A function of one's own says so by an error."""
    await over(host.cast)
    end = (await host.cast.log.entries("t1"))[-1].event
    return (await host.cast.log.runs("t1"))[-1].run_id == run and getattr(end, "code", None) == "cancelled"


async def gated_run(app: App, gated: Gated, run: str = "r1") -> None:
    """A run in the middle: the agent has seen its first three tokens."""
    await app.begin(run)
    gated.open(3)
    async with asyncio.timeout(60):
        while said(await app.look())[-1] != "0 1 2 ":  # noqa: ASYNC110  another process has seen them
            await asyncio.sleep(0.02)


async def test_threads_are_listed_whole_over_any_number_of_pages(node: NodeClient, host: Served) -> None:
    for n in range(1001):
        await host.cast.log.append(f"t{n:04}", started("r1", thread_id=f"t{n:04}"))
    await host.cast.log.flush()
    rows = (await App(node, host.url, "parrot").call("threads"))["given"]
    assert sorted(row["thread_id"] for row in rows) == [f"t{n:04}" for n in range(1001)]
    assert set(rows[0]) >= {"thread_id", "last_seq", "created_at", "updated_at", "active"}


async def test_a_branch_is_shown_without_what_came_after_its_run(node: NodeClient, host: Served) -> None:
    app = App(node, host.url, "parrot")
    for run, say in (("r1", "one"), ("r2", "two")):
        await app.begin(run, say)
        await app.end()
    branched = await app.call("branch", "r1", "three")
    assert [text.strip() for text in said(branched)] == ["one", "one", "three", "three"]
    await node.ask("leave", thread="t1")
    assert (await app.call("connectAgent"))["messages"] == branched["messages"]


@pytest.mark.parametrize("hard", [True, False])
async def test_stop_ends_the_run_on_the_host_and_the_agent_sees_its_end(
    node: NodeClient, host: Served, hard: bool
) -> None:
    gated = Gated(6)
    host.cast.register(gated, name="helper")
    app = App(node, host.url, "helper")
    await gated_run(app, gated)
    assert (await app.call("running"))["given"] == "r1"
    assert (await app.call("stop", {"hard": hard}))["given"] is True
    gated.open()
    seen = await app.end()
    assert await stopped(host, "r1")
    assert seen["messages"][-1]["content"].startswith("0 1 2 ")
    assert seen["unhandled"] == 0
    assert (await app.call("running"))["given"] is None
    assert (await app.call("stop"))["given"] is False
    assert (await app.call("stop", thread="another"))["given"] is False


async def test_a_stop_button_ends_the_run_and_the_agent_runs_again(node: NodeClient, host: Served) -> None:
    gated = Gated(6)
    host.cast.register(gated, name="helper")
    app = App(node, host.url, "helper")
    await gated_run(app, gated)
    await app.call("abortRun")
    seen = await app.end()
    assert await stopped(host, "r1")
    gated.open()
    await app.begin("r2")
    again = await app.end()
    assert again["raised"] is None
    assert again["messages"][-1]["content"] == "0 1 2 3 4 5 "
    assert seen["unhandled"] == again["unhandled"] == 0


async def test_a_stop_button_leaves_a_run_whose_host_cannot_be_asked(node: NodeClient, host: Served) -> None:
    gated = Gated(6)
    host.cast.register(gated, name="helper")
    async with Network(port_of(host.url)) as line:
        app = App(node, f"http://127.0.0.1:{line.port}", "helper")
        await gated_run(app, gated)
        line.refusing = True
        line.cut()
        await app.call("abortRun")
        seen = await app.end()
    assert seen["unhandled"] == 0
    assert said(seen) == ["count", "0 1 2 "]
    gated.open()
    await over(host.cast)


async def test_an_agent_that_leaves_lets_its_run_go_on(node: NodeClient, host: Served) -> None:
    gated = Gated(6)
    host.cast.register(gated, name="helper")
    app = App(node, host.url, "helper")
    await gated_run(app, gated)
    await app.call("detachActiveRun")
    await app.end()
    assert (await app.call("running"))["given"] == "r1"
    gated.open()
    joined = await app.call("connectAgent")
    assert said(joined) == ["count", "0 1 2 3 4 5 "]
    assert gated.ran == 1
