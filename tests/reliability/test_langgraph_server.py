"""Messages while a run is active, beside LangGraph's own development server: equal where it is right, better where it is not.

The server runs in an environment of its own: `RUNCAST_LANGGRAPH_SERVER` names one, else a virtual environment is made with pip.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol
from uuid import uuid4

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError

from runcast.adapters.langgraph import LangGraphAdapter
from runcast.app import Busy, Cast
from tests.app.nodes.stage import until
from tests.reliability import busy_graphs
from tests.servers import free_port

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
PINS = ("langgraph-cli[inmem]==0.4.40", "langgraph-api==0.16.7", "langgraph==1.2.22", "langchain-core==1.7.2")
AT_ONCE = "interrupt before the first step"
Strategy = Literal["refuse", "queue", "interrupt", "rollback"]


class Host(Protocol):
    """Something that runs the graphs of `busy_graphs`."""

    async def say(self, graph: str, thread: str, text: str, how: Strategy = "refuse") -> str | None:
        """Send a message; the run's id, or None when it was refused."""
        ...

    async def rest(self, thread: str) -> None:
        """Wait until nothing of the thread is active or begins by itself."""
        ...

    async def messages(self, graph: str, thread: str) -> list[tuple[str, str]]:
        """The graph's conversation: types and texts."""
        ...

    async def runs(self, thread: str) -> list[str]:
        """How the runs of the thread ended, the first one first."""
        ...


class Server:
    """LangGraph's development server, by its SDK."""

    STRATEGIES: ClassVar = {
        "refuse": "reject",
        "queue": "enqueue",
        "interrupt": "interrupt",
        "rollback": "rollback",
    }

    def __init__(self, url: str) -> None:
        self.client = get_client(url=url)

    async def say(self, graph: str, thread: str, text: str, how: Strategy = "refuse") -> str | None:
        await self.client.threads.create(thread_id=thread, if_exists="do_nothing")
        given = {"messages": [{"role": "user", "content": text, "id": f"{thread}-{text}"}]}
        strategy: Any = self.STRATEGIES[how]
        try:
            run = await self.client.runs.create(thread, graph, input=given, multitask_strategy=strategy)
        except ConflictError:
            return None
        return str(run["run_id"])

    async def rest(self, thread: str) -> None:
        async def over() -> bool:
            runs = await self.client.runs.list(thread)
            return all(run["status"] not in ("pending", "running") for run in runs)

        await until(over)

    async def messages(self, graph: str, thread: str) -> list[tuple[str, str]]:
        values: Any = (await self.client.threads.get_state(thread))["values"]
        return [(each["type"], each["content"]) for each in (values or {}).get("messages", [])]

    async def runs(self, thread: str) -> list[str]:
        found = await self.client.runs.list(thread)
        return [str(run["status"]) for run in sorted(found, key=lambda run: str(run["created_at"]))]


class Ours:
    """A cast of the same graphs."""

    def __init__(self, cast: Cast, savers: dict[str, Any]) -> None:
        self._cast = cast
        self._graphs = savers

    async def say(self, graph: str, thread: str, text: str, how: Strategy = "refuse") -> str | None:
        try:
            return (await self._cast.say(thread, text, agent=graph, on_busy=how)).run_id
        except Busy:
            return None

    async def rest(self, thread: str) -> None:
        async def over() -> bool:
            runs = await self._cast.log.runs(thread)
            asks = runs[-1].status == "interrupted"
            waits = await self._cast.queue.waiting(thread)
            return (asks or not waits) and runs[-1].status != "in_progress" and not self._cast.slots.has("")

        await until(over)

    async def messages(self, graph: str, thread: str) -> list[tuple[str, str]]:
        state = await self._graphs[graph].aget_state({"configurable": {"thread_id": thread}})
        return [(each.type, each.content) for each in state.values.get("messages", [])]

    async def runs(self, thread: str) -> list[str]:
        return [run.status for run in await self._cast.log.runs(thread)]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the server's `langgraph` and `python`."""
    given = os.environ.get("RUNCAST_LANGGRAPH_SERVER")
    if given:
        return Path(given) / "bin"
    place = tmp_path_factory.mktemp("langgraph-server")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run([place / "bin" / "pip", "install", "-q", *PINS], check=True)
    return place / "bin"


@asynccontextmanager
async def server(programs: Path, place: Path) -> AsyncIterator[Server]:
    """The development server, over the graphs of `busy_graphs`."""
    config = {
        "dependencies": ["."],
        "graphs": {name: f"./busy_graphs.py:{name}" for name in busy_graphs.NAMES},
    }
    await asyncio.to_thread((place / "langgraph.json").write_text, json.dumps(config))
    await asyncio.to_thread(shutil.copy, busy_graphs.__file__, place / "busy_graphs.py")
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        programs / "langgraph", "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port),
        "--n-jobs-per-worker", "10",
        cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "LANGSMITH_TRACING": "false", "PATH": f"{programs}:{os.environ['PATH']}"},
    )  # fmt: skip
    try:
        it = Server(f"http://127.0.0.1:{port}")
        async with asyncio.timeout(90):
            while True:
                with suppress(Exception):
                    await it.client.assistants.search()
                    break
                await asyncio.sleep(0.2)
        async with it.client:
            yield it
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def ours() -> AsyncIterator[Ours]:
    async with Cast.open("memory://", watch=False) as cast:
        graphs: dict[str, Any] = {}
        for name in busy_graphs.NAMES:
            graphs[name] = getattr(busy_graphs, name).copy(update={"checkpointer": InMemorySaver()})
            cast.register(LangGraphAdapter(graphs[name], name=name))
        yield Ours(cast, graphs)


async def scene(
    host: Host, graph: str, place: Path, *later: tuple[str, Strategy], at_once: bool = False
) -> dict[str, Any]:
    """One message, others when its run waits or `at_once`, and what is left when everything rests."""
    thread = str(uuid4())
    await host.say(graph, thread, "one")
    inside = place / thread

    async def entered() -> bool:
        return await asyncio.to_thread((inside / "in").exists)

    if not at_once:
        await until(entered)
    taken = [await host.say(graph, thread, text, how) is not None for text, how in later]
    await asyncio.to_thread(inside.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread((inside / "open").touch)
    await host.rest(thread)
    messages = await host.messages(graph, thread)
    return {
        "taken": taken,
        "people": [text for kind, text in messages if kind == "human"],
        "results": [text for kind, text in messages if kind == "tool"],
        "last": messages[-1][1] if messages else "",
        "runs": await host.runs(thread),
    }


async def test_ours_equals_the_server_where_it_is_right_and_is_better_where_it_is_not(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BUSY_DIR", str(tmp_path / "gates"))
    gates = tmp_path / "gates"
    gates.mkdir()
    scenes: dict[str, tuple[str, list[tuple[str, Strategy]]]] = {
        "queue": ("first", [("two", "queue"), ("three", "queue")]),
        "queue in a tool": ("react", [("two", "queue")]),
        "refuse": ("first", [("two", "refuse")]),
        "refuse behind the queue": ("first", [("two", "queue"), ("three", "refuse")]),
        "rollback": ("first", [("two", "rollback")]),
        "interrupt in the first step": ("first", [("two", "interrupt")]),
        AT_ONCE: ("first", [("two", "interrupt")]),
        "interrupt in a tool": ("react", [("two", "interrupt")]),
        "a question while messages wait": ("asks", [("two", "queue")]),
        "interrupt while messages wait": ("first", [("two", "queue"), ("three", "interrupt")]),
        "rollback of a stubborn node": ("stubborn", [("two", "rollback")]),
    }
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    async with server(programs, tmp_path) as theirs, ours() as mine:
        for name, (graph, later) in scenes.items():
            found[name] = (
                await scene(theirs, graph, gates, *later, at_once=name == AT_ONCE),
                await scene(mine, graph, gates, *later, at_once=name == AT_ONCE),
            )
    with capsys.disabled():
        for name, (server_says, we_say) in found.items():
            print(f"\n{name}\n  server {server_says}\n  ours   {we_say}")

    def same(name: str, *fields: str) -> None:
        server_says, we_say = found[name]
        assert [server_says[each] for each in fields] == [we_say[each] for each in fields], name

    for name in (
        "queue",
        "queue in a tool",
        "refuse",
        "refuse behind the queue",
        "rollback",
        "interrupt in the first step",
    ):
        same(name, "taken", "people", "last")
    same("queue in a tool", "results")
    better: dict[str, Callable[[dict[str, Any]], bool]] = {
        "interrupt in a tool": lambda it: (
            it["last"] == "saw one and two" and "quick done" in it["results"] and len(it["results"]) == 2
        ),
        "a question while messages wait": lambda it: it["runs"] == ["interrupted"],
        "interrupt while messages wait": lambda it: sorted(it["people"]) == ["one", "three", "two"],
        "rollback of a stubborn node": lambda it: it["people"] == ["two"] and it["last"] == "saw two",
    }
    assert {name: right(found[name][1]) for name, right in better.items()} == dict.fromkeys(better, True)
    assert {name: right(found[name][0]) for name, right in better.items()} == dict.fromkeys(better, False)
    assert found[AT_ONCE][1]["people"] == ["one", "two"]  # the server's depends on when its worker begins
