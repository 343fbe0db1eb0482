"""The examples as they are, served: a user's program, three lines, and its run at a watcher."""

from __future__ import annotations

import asyncio
import json
import runpy
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.app.serving import run_input, sent, serving
from tests.house.tree import ROOT

PLAIN = [
    "app_langgraph",
    "app_create_agent",
    "app_functional",
    "app_adk",
    "app_pydantic_ai",
    "app_openai_agents",
]


def example(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    monkeypatch.chdir(folder)  # its database is made where it is started
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


@pytest.mark.parametrize("name", PLAIN)
def test_three_lines_are_added(name: str) -> None:
    _, _, added = (ROOT / "examples" / f"{name}.py").read_text().partition("# The three lines.\n")
    lines, _, how = added.partition("\n\n\n")
    assert len([line for line in lines.splitlines() if line.strip()]) == 3
    assert f"uvicorn {name}:app" in how  # what `python FILE` prints


@pytest.mark.parametrize("name", PLAIN)
async def test_a_watcher_receives_the_run_of_a_program_with_three_lines_more(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = example(name, monkeypatch, tmp_path)
    async with serving(made["cast"], app=made["app"]) as host:
        address = host.url.replace("http", "ws")
        token = made["cast"].access.token
        async with connect(f"{address}/ws?channel=agent.t1&after=0&token={token}") as socket:
            await socket.recv()
            started = await host.http.post("/threads/t1/runs", json={"message": "hello"})
            assert started.status_code == 202
            envelopes = []
            while not envelopes or envelopes[-1]["payload"].get("status") != "completed":
                envelopes.append(json.loads(await asyncio.wait_for(socket.recv(), 60)))
        first, *_ = (datetime.fromisoformat(each["timestamp"]) for each in envelopes)
        assert abs(first.timestamp() - datetime.now().timestamp()) < 60
        text = "".join(each["payload"].get("chunk", "") for each in envelopes)
        assert text
        assert (await host.http.get("/threads/t1/snapshot")).json()["messages"][-1]["content"] in text


async def test_an_agent_of_an_example_answers_more_than_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = example("app_create_agent", monkeypatch, tmp_path)
    async with made["cast"] as cast:
        for n in range(1, 4):
            assert (await (await cast.say("t1", "And today?")).result()).status == "completed"
            messages = [each.content for each in (await cast.state("t1")).history]
            assert messages.count("It is sunny.") == n


async def test_the_fastapi_example_keeps_its_users_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = example("app_fastapi", monkeypatch, tmp_path)
    async with serving(made["cast"], app=made["app"]) as host:
        assert (await host.http.get("/")).json() == {"agent": "/agent/"}
        ann, bob = ({"authorization": f"Bearer {name}'s"} for name in ("ann", "bob"))
        async with host.http.stream("POST", "/agent/", json=run_input(thread="ann:1"), headers=ann) as told:
            assert [each async for each in sent(told)][-1].event["type"] == "RUN_FINISHED"
        assert (await host.http.get("/agent/threads/ann:1/runs", headers=bob)).status_code == 403
        assert (await host.http.get("/agent/threads/ann:1/runs")).status_code == 403
