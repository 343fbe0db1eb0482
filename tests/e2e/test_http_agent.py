"""The official `HttpAgent` against our endpoint: runs, tools, questions, errors, and a client that leaves."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, RunStartedEvent, TextMessageStartEvent
from ag_ui_validate.pytest_plugin import validate_agui

from runcast.app import Cast
from tests.app.agents import LONG, Gated, asker, parrot, tooled
from tests.app.serving import Served, over, post_run, serving
from tests.conftest import missing
from tests.e2e import oracle

pytestmark = pytest.mark.oracle


async def failing(input: RunAgentInput) -> AsyncIterator[Event]:
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    yield TextMessageStartEvent(message_id="m1")
    raise RuntimeError("the model is gone")


@pytest.fixture
async def host() -> AsyncIterator[Served]:
    cast = Cast.open("memory://", agents=[parrot, asker, tooled, failing])
    async with serving(cast) as it:
        yield it


async def client(host: Served, agent: str, *runs: dict[str, Any]) -> list[Any]:
    """What the official client saw, run by run."""
    node = shutil.which("node")
    if node is None or not oracle.available():
        missing(oracle.MISSING)
    process = await asyncio.create_subprocess_exec(
        str(node),
        "http_agent.mjs",
        cwd=oracle.HERE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    asked = {"url": f"{host.url}/agents/{agent}", "threadId": "t1", "runs": runs}
    async with asyncio.timeout(30):
        out, _ = await process.communicate(json.dumps(asked).encode())
    found: list[Any] = json.loads(out)
    return found


def text(answer: Any) -> str:
    return str(answer["messages"][-1]["content"])


async def test_it_runs_and_runs_again(host: Served) -> None:
    first, second = await client(host, "parrot", {"say": "hello you"}, {"say": "and again"})
    assert first["events"][0] == "RUN_STARTED"
    assert first["events"][-1] == "RUN_FINISHED"
    assert (text(first), text(second)) == ("hello you ", "and again ")
    assert [each["role"] for each in second["messages"]] == ["user", "assistant", "user", "assistant"]


async def test_a_tool_and_its_long_result(host: Served) -> None:
    (answer,) = await client(host, "tooled", {"say": "search"})
    assert answer["messages"][-2]["toolCalls"][0]["function"]["name"] == "search"
    assert text(answer) == LONG


async def test_a_tool_of_the_client(host: Served) -> None:
    tool = {"name": "pick_colour", "description": "", "parameters": {"type": "object"}}
    asked, answered = await client(
        host, "tooled", {"say": "colour", "tools": [tool]}, {"result": "blue", "tools": [tool]}
    )
    assert asked["messages"][-1]["toolCalls"][0]["function"]["name"] == "pick_colour"
    assert text(answered) == "thanks"


async def test_a_question_and_its_answer(host: Served) -> None:
    resume = [{"interruptId": "q1", "status": "resolved", "payload": {"ok": True}}]
    asked, answered = await client(host, "asker", {"say": "go"}, {"resume": resume})
    assert asked["outcome"]["interrupts"][0]["message"] == "go on?"
    assert text(answered) == "resolved {'ok': True}"


async def test_an_error_is_told_and_the_thread_goes_on(host: Served) -> None:
    failed, after = await client(host, "failing", {"say": "go"}, {"say": "go on"})
    for answer in (failed, after):
        assert answer["events"][-1] == "RUN_ERROR"
        assert answer["error"]["code"] == "agent_error"


async def test_a_refusal_reaches_the_application(host: Served) -> None:
    await post_run(host.http, run="taken")
    (answer,) = await client(host, "parrot", {"say": "x", "runId": "taken"})
    assert "409" in json.dumps(answer)


async def test_the_client_leaves_and_everything_still_runs(host: Served) -> None:
    gated = Gated(10)
    host.cast.register(gated, name="gated")
    gated.open(2)
    (left,) = await client(host, "gated", {"say": "count", "runId": "r1", "leaveAfter": 3})
    assert len(left["events"]) < 10
    gated.open()
    await over(host.cast)
    rest = (await host.http.get("/threads/t1/events", params={"after": len(left["events"])})).json()
    assert rest["events"][-1]["event"]["type"] == "RUN_FINISHED"
    assert (await host.http.get("/threads/t1/snapshot")).json()["status"] == "completed"
    assert gated.ran == 1


@pytest.mark.parametrize("agent", ["parrot", "asker", "tooled", "failing"])
async def test_our_streams_pass_the_second_judge(host: Served, agent: str) -> None:
    told = await post_run(host.http, agent)
    report = validate_agui([each.event for each in told])
    assert [each for each in report.diagnostics if each.severity == "error"] == []
