"""Agents of other servers, cast by URL and in process: each example holds a conversation of three turns."""

from __future__ import annotations

import asyncio
import os
import re
import runpy
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import ToolCallResultEvent

from runcast.adapters.remote import RemoteAdapter
from runcast.app import Cast
from runcast.slim import fold, verify
from tests.app.serving import serving
from tests.conftest import LONG
from tests.house.tree import ROOT

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning"
)  # of those servers

REMOTE = {
    "remote_pydantic_ai": ["Hello from Pydantic AI."] * 3,
    "remote_langgraph": ["You said: one", "You said: two", "You said: three"],
    "remote_adk": ["Hello from ADK."] * 3,
    "remote_agno": ["Hello from Agno."] * 3,
    "remote_runcast": ["You said: one", "You said: two", "You said: three"],
}
# Their packages need other versions than ours, or are large: each in an environment of its own, as its head says.
APART = {
    "remote_llama_index": "Hello from LlamaIndex.",
    "remote_agent_framework": "Hello from Agent Framework.",
}
if LONG:  # a gigabyte of packages
    APART["remote_crewai"] = "Hello from CrewAI."


def path_in_head(example: Path) -> str:
    """The path of the URL that an example's head gives to `runcast attach`."""
    found = re.search(
        r'^    runcast attach "?http://localhost:9000([/\w]+)', example.read_text(), re.MULTILINE
    )
    assert found, example.name
    return found[1]


@asynccontextmanager
async def apart(name: str, folder: Path) -> AsyncIterator[str]:
    """The example's server in an environment that uv makes for it; yields its URL."""
    example = ROOT / "examples" / f"{name}.py"
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--python", sys.executable),
        *("--script", str(example), "0"),
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stderr
    seen = ""
    try:
        while not (found := re.search(r"Uvicorn running on (http://\S+)", seen)):
            line = await server.stderr.readline()
            assert line, f"{name} did not start:\n{seen}"
            seen += line.decode()
        yield f"{found[1]}{path_in_head(example)}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        await server.communicate()


@asynccontextmanager
async def remote(name: str) -> AsyncIterator[str]:
    """The example's server; yields the URL that its head gives to `runcast attach`."""
    path = ROOT / "examples" / f"{name}.py"
    made = runpy.run_path(str(path))
    app = made["app"]() if "--factory" in path.read_text() else made["app"]
    async with serving(made.get("cast"), app=app) as host:
        token = f"?token={host.cast.access.token}" if "cast" in made else ""
        yield f"{host.url}{path_in_head(path)}{token}"


async def talked(cast: Cast, *texts: str) -> list[Any]:
    """One run for each text; the answers."""
    for text in texts:
        result = await (await cast.say("t1", text)).result()
        assert result.status == "completed", result
    events = await cast.log.restore("t1", compacted=False)
    assert verify(events) == []
    return [each.content for each in fold(events).messages if each.role == "assistant" and each.content]


@pytest.mark.parametrize(("name", "answers"), REMOTE.items(), ids=list(REMOTE))
async def test_a_server_of_another_framework_is_cast_by_its_url(name: str, answers: list[str]) -> None:
    async with remote(name) as url, Cast.open("memory://", agents=[url]) as cast:
        assert await talked(cast, "one", "two", "three") == answers


@pytest.mark.slow
@pytest.mark.parametrize(("name", "answer"), APART.items(), ids=list(APART))
async def test_a_server_in_an_environment_of_its_own_is_cast_by_its_url(
    name: str, answer: str, tmp_path: Path
) -> None:
    async with apart(name, tmp_path) as url, Cast.open("memory://", agents=[url]) as cast:
        assert await talked(cast, "one", "two", "three") == [answer] * 3


async def test_a_question_of_the_official_server_is_answered_through_the_host() -> None:
    async with remote("remote_langgraph") as url, Cast.open("memory://", agents=[url]) as cast:
        asked = await (await cast.say("t1", "ask")).result()
        assert asked.status == "interrupted"
        state = await cast.state("t1")
        assert state is not None
        [question] = state.interrupts
        done = await (await cast.resume("t1", {question.id: "yes"})).result()
        assert done.status == "completed", done
        assert (await talked(cast, "then"))[-2:] == ["You said: yes", "You said: then"]


async def test_another_runcast_describes_its_agent() -> None:
    async with remote("remote_runcast") as url:
        agent = RemoteAdapter(url)
        await agent.ask()
        await agent.aclose()
    assert (agent.name, agent.capabilities().identity.name) == ("parrot", "parrot")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "results"), [("app_pydantic_ai", ["sunny in a"]), ("app_openai_agents", ["sunny in Paris"] * 3)]
)
async def test_an_sdks_own_events_are_an_agent(
    name: str, results: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    async with made["cast"] as cast:
        assert await talked(cast, "one", "two", "three") == ["It is sunny in Paris."] * 3
        events = await cast.log.restore("t1", compacted=False)
    # Pydantic AI finds the first turn's in the history, and calls no more.
    assert [each.content for each in events if isinstance(each, ToolCallResultEvent)] == results
