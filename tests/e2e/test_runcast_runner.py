"""`RuncastRunner` as CopilotKit's runtime calls it, on both peers: its process may die, and another one has the thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, RunFinishedCancelledOutcome, RunFinishedEvent, RunStartedEvent

from tests.app.agents import Gated
from tests.app.serving import Served, over, run_input, serving
from tests.e2e import oracle
from tests.e2e.npm_client import PEERS, NodeClient, beside, compiled

pytestmark = pytest.mark.oracle
Runtime = Callable[[], AbstractAsyncContextManager[NodeClient]]


async def failing(input: RunAgentInput) -> AsyncIterator[Event]:
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    raise RuntimeError("the model is gone")


async def stopped(input: RunAgentInput) -> AsyncIterator[Event]:
    ids = {"thread_id": input.thread_id, "run_id": input.run_id}
    yield RunStartedEvent(**ids)
    yield RunFinishedEvent(**ids, outcome=RunFinishedCancelledOutcome())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("agui"), "agui")


@pytest.fixture
async def host() -> AsyncIterator[Served]:
    async with serving() as it:
        yield it


@pytest.fixture(params=PEERS)
def runtime(request: pytest.FixtureRequest, built: Path, tmp_path: Path, host: Served) -> Runtime:
    """Starts one more process of the runtime."""
    folder = beside(tmp_path / "node", request.param, built, oracle.HERE / "runcast_runner.mjs")
    return lambda: NodeClient(folder, "runcast_runner.mjs", str(folder / built.name), host.url)


async def to_end(client: NodeClient) -> list[dict[str, Any]]:
    """The events that come until the stream is complete."""
    events: list[dict[str, Any]] = []
    while (event := await client.answer()) != {"over": True}:
        events.append(event)
    return events


def text(events: list[dict[str, Any]]) -> str:
    """What the assistant says in these events."""
    found = ""
    for event in events:
        if event["type"] == "MESSAGES_SNAPSHOT":
            found = "".join(str(each["content"]) for each in event["messages"] if each["role"] == "assistant")
        found += event.get("delta", "") if event["type"] == "TEXT_MESSAGE_CONTENT" else ""
    return found


async def test_a_thread_outlives_the_runtime_and_another_one_joins_in_the_middle(
    host: Served, runtime: Runtime
) -> None:
    gated = Gated(6)
    host.cast.register(gated, name="helper")
    async with runtime() as first:
        await first.send("run", thread="t1", run="r1", say="count")
        gated.open(3)
        seen: list[dict[str, Any]] = []
        while text(seen) != "0 1 2 ":
            seen.append(await first.answer())
    async with runtime() as second:
        assert await second.ask("running", thread="t1") is True
        await second.send("connect", thread="t1")
        joined = [await second.answer()]
        while text(joined) != "0 1 2 ":
            joined.append(await second.answer())
        gated.open()
        joined += await to_end(second)
        assert (text(joined), joined[-1]["type"]) == ("0 1 2 3 4 5 ", "RUN_FINISHED")
        assert await second.ask("running", thread="t1") is False
        await second.send("connect", thread="t1")
        assert text(await to_end(second)) == "0 1 2 3 4 5 "
    assert gated.ran == 1


async def test_a_run_that_the_server_started_is_followed_and_stopped_by_name(
    host: Served, runtime: Runtime
) -> None:
    gated = Gated(6)
    host.cast.register(gated, name="helper")
    run = await host.cast.say("t1", "count", agent="helper")
    gated.open(2)
    async with runtime() as client:
        await client.send("connect", thread="t1")
        seen = [await client.answer()]
        while text(seen) != "0 1 ":
            seen.append(await client.answer())
    async with runtime() as other:
        assert await other.ask("stop", thread="t1", run="another") is False
        assert await other.ask("stop", thread="t1", run=run.run_id) is True
        await over(host.cast)
        assert await other.ask("stop", thread="t1") is False


async def test_an_old_error_does_not_break_a_replay_and_a_new_one_is_shown(
    host: Served, runtime: Runtime
) -> None:
    host.cast.register(failing, name="helper")
    async with runtime() as client:
        await client.send("run", thread="t1", run="r1", say="go")
        failed = await to_end(client)
        assert [each["type"] for each in failed] == ["RUN_STARTED", "RUN_ERROR"]
        await client.send("connect", thread="t1")
        replayed = await to_end(client)
        assert replayed[-1]["type"] == "RUN_FINISHED"
        assert replayed[-1]["metadata"]["runcast"]["error"]["code"] == "agent_error"
        await client.send("connect", thread="unknown")
        assert await to_end(client) == []


async def test_a_refusal_and_a_lost_server_end_a_run_and_leave_the_runtime_alive(
    host: Served, runtime: Runtime
) -> None:
    async with host.http.stream("POST", "/agents/parrot", json=run_input(run="taken")) as response:
        await response.aread()
    async with runtime() as client:
        await client.send("run", thread="t1", run="r1", say="hello")  # there is no agent of this name
        (refused,) = await to_end(client)
        assert (refused["type"], "404" in refused["message"]) == ("RUN_ERROR", True)
        host.server.should_exit = True
        while True:
            await client.send("connect", thread="t1")
            events = await to_end(client)
            if events[-1]["type"] == "RUN_ERROR":
                break
        assert events[-1]["code"] == "runcast_unreachable"


async def test_the_outcome_of_a_stopped_run_which_older_clients_refuse_is_left_out(
    host: Served, runtime: Runtime
) -> None:
    host.cast.register(stopped, name="helper")
    async with runtime() as client:
        await client.send("run", thread="t1", run="r1", say="go")
        ran = await to_end(client)
        await client.send("connect", thread="t1")
        for events in (ran, await to_end(client)):
            assert events[-1]["type"] == "RUN_FINISHED"
            assert "outcome" not in events[-1]
    assert "outcome" in (await host.cast.log.entries("t1"))[-1].event.model_dump(exclude_none=True)
