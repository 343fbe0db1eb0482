"""The command line as a person uses it: what it prints, and what its exit code says."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from runcast.adapters.frameworks import Hosting
from runcast.app import Cast
from runcast.app.cli.commands import app
from runcast.app.cli.serving import Served, adapters_of
from tests.app.agents import Gated, asker, parrot, tooled
from tests.app.serving import over, run_input
from tests.house.tree import ROOT

runner = CliRunner()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A log with two threads: one tool with a long result, one question."""
    where = f"sqlite:///{tmp_path}/runs.db"

    async def fill() -> None:
        async with Cast.open(where, agents=[parrot, asker, tooled]) as cast:
            await (await cast.say("t1", "hello you", agent="parrot")).result()
            await (await cast.say("t1", "search", agent="tooled")).result()
            await (await cast.say("t2", "ask", agent="asker")).result()
            await over(cast, "t2")

    asyncio.run(fill())
    return where


def ran(*words: str, code: int = 0) -> str:
    result = runner.invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def told(*words: str) -> Any:
    return json.loads(ran(*words, "--json"))


def test_threads_begin_anew(url: str) -> None:
    async def epochs() -> list[str]:
        async with Cast.open(url, agents=[parrot]) as cast:
            return [each.epoch for each in await cast.log.threads()]

    before = asyncio.run(epochs())
    assert told("anew", "t1", "--url", url) == {"threads": 1}
    middle = asyncio.run(epochs())
    assert [old == new for old, new in zip(before, middle, strict=True)] == [False, True]
    assert "threads 2" in ran("anew", "--all", "--url", url)
    assert not set(middle) & set(asyncio.run(epochs()))


def test_threads_are_listed(url: str) -> None:
    assert [(each["thread_id"], each["active"]) for each in told("ls", "--url", url)] == [
        ("t1", False),
        ("t2", False),
    ]
    assert "t2" in ran("ls", "--url", url)


def test_a_thread_is_shown(url: str) -> None:
    shown = told("show", "t1", "--url", url)
    assert [run["status"] for run in shown["runs"]] == ["completed", "completed"]
    assert shown["size"]["events"] == 14
    assert shown["snapshot"]["status"] == "completed"
    assert "completed" in ran("show", "t1", "--url", url)


def test_a_thread_is_told_again(url: str) -> None:
    lines = [
        json.loads(line) for line in ran("replay", "t1", "--url", url, "--speed", "0", "--json").splitlines()
    ]
    assert [line["seq"] for line in lines] == list(range(1, 15))
    assert "RUN_FINISHED" in ran("replay", "t1", "--url", url, "--speed", "1000")
    tail = ran("tail", "t1", "--url", url, "--after", "10", "--until-end", "--json").splitlines()
    assert json.loads(tail[-1])["event"]["type"] == "RUN_FINISHED"


def test_a_thread_is_carried_over(url: str, tmp_path: Path) -> None:
    file, other = tmp_path / "t1.jsonl.gz", f"sqlite:///{tmp_path}/other.db"
    ran("export", "t1", "--url", url, "-o", str(file))
    assert told("import", str(file), "--url", other) == {
        "thread_id": "t1",
        "threads": ["t1"],
        "left_out": {},
    }
    assert told("show", "t1", "--url", other)["size"]["events"] == 14
    assert "t1" in ran("import", str(file), "--url", other)


GRAPH = """
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
builder = StateGraph(MessagesState)
builder.add_node("count", lambda state: {"messages": [AIMessage(f"{len(state['messages'])} messages")]})
graph = builder.add_edge(START, "count").compile()
"""


def test_a_thread_takes_its_agents_checkpoints_along(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(GRAPH)
    agent, file = f"{tmp_path}/counting.py:graph", tmp_path / "t1.jsonl"
    here, there = (f"sqlite:///{tmp_path}/{name}.db" for name in ("here", "there"))

    async def say(url: str, text: str) -> str:
        async with AsyncExitStack() as stack:
            agents = await adapters_of(Served([agent], Hosting(url)), stack)
            cast = await stack.enter_async_context(Cast.open(url, agents=agents, watch=False))
            await (await cast.say("t1", text)).result()
            state = await cast.state("t1")
            assert state is not None
            return str(state.history[-1].content)

    assert asyncio.run(say(here, "one")) == "1 messages"
    ran("export", "t1", "--url", here, "--agent", agent, "-o", str(file))
    assert '"beside":"agent"' in file.read_text()
    assert "left out: what the framework of agent 'counting' keeps" in ran(
        "import", str(file), "--url", f"{there}-bare"
    )
    assert "left out" not in ran("import", str(file), "--url", there, "--agent", agent)
    assert asyncio.run(say(there, "two")) == "3 messages"
    ran("export", "t1", "--url", there, "--agent", agent, "-o", str(file))
    kept = [
        json.loads(each)["row"]
        for each in file.read_text().splitlines()
        if each.startswith('{"beside":"agent"')
    ]
    assert len([each for each in kept if "checkpoint" in each]) > 3, "both runs are in the checkpointer"


def test_a_thread_is_written_to_be_read(url: str) -> None:
    text = ran("export", "t1", "--url", url, "--markdown")
    assert text.startswith("# t1")
    assert "hello you" in text
    assert '`search({"query": "all"})`' in text


def test_a_run_is_written_as_evidence(url: str) -> None:
    first = told("show", "t1", "--url", url)["runs"][0]["run_id"]
    artifact = json.loads(ran("export", "t1", "--url", url, "--evidence", "--run", first))
    assert first in json.dumps(artifact)


def test_old_things_are_folded_and_let_go(url: str) -> None:
    assert told("compact", "--url", url)["threads"] == 2
    assert told("compact", "t1", "--url", url)["threads"] == 1
    gone = told("prune", "--url", url, "--keep-bytes", "0")
    assert gone["runs"] == 3
    assert gone["bytes"] > 30_000
    assert told("show", "t1", "--url", url)["runs"][0]["pruned"]
    assert told("prune", "--url", url, "--what", "threads", "--older-than", "1d") == {
        "runs": 0, "threads": 0, "events": 0, "bytes": 0
    }  # fmt: skip
    assert "runs 0" in ran("prune", "--url", url, "--older-than", "30d")


def test_what_a_host_would_remove_is_shown_and_stays(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNCAST_KEEP", "0s")
    assert told("prune", "--url", url)["threads"] == 2
    assert told("prune", "--url", url, "--what", "threads", "--older-than", "0s", "--dry-run")["threads"] == 2
    assert told("prune", "--url", url, "--keep-bytes", "0", "--dry-run")["runs"] == 3
    assert len(told("ls", "--url", url)) == 2
    monkeypatch.setenv("RUNCAST_KEEP", "tests.app.keeping.test_retention:keep")
    assert told("prune", "--url", url)["threads"] == 0


def test_a_thread_is_forgotten_and_its_id_given_free(url: str) -> None:
    assert told("rm", "t1", "--url", url) in (
        {"thread_id": "t1", "status": "forgotten"},
        {"thread_id": "t1", "status": "forgetting"},  # its agent is on no node
    )
    assert [each["thread_id"] for each in told("ls", "--url", url)] == ["t2"]
    assert "t1: " in ran("rm", "t1", "--url", url)
    assert told("rm", "t1", "--url", url, "--reuse")["status"] == "free"


def test_all_threads_are_one_archive(url: str, tmp_path: Path) -> None:
    archive, there = tmp_path / "all.jsonl.gz", f"sqlite:///{tmp_path}/there.db"
    ran("export", "--all", "--url", url, "--output", str(archive))
    assert told("import", str(archive), "--url", there, "--tenant", "acme")["threads"] == ["t1", "t2"]
    assert told("ls", "--url", there) == []
    here = ran("export", "--all", "--url", url)
    assert ran("export", "--all", "--url", there, "--tenant", "acme") == here


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["show", "ghost"], 3),
        (["rm", "ghost"], 3),
        (["rm", "t1", "--reuse"], 2),
        (["export"], 2),
        (["export", "t1", "--all"], 2),
        (["replay", "ghost"], 3),
        (["export", "ghost"], 3),
        (["compact", "ghost"], 3),
        (["prune"], 2),
        (["anew"], 2),
        (["anew", "t1", "--all"], 2),
        (["anew", "ghost"], 3),
        (["prune", "--older-than", "soon"], 2),
        (["prune", "--older-than", "1d", "--what", "everything"], 2),
        (["export", "t1", "--evidence", "--markdown"], 2),
        (["import", "no/such/file.jsonl"], 1),
        (["ls", "--url", "ghost://x"], 1),
        (["nonsense"], 2),
        (["serve", "ghost_module:graph"], 2),
        (["serve", "no-colon"], 2),
        (["serve", "json:no_such_name"], 2),
        (["serve", "no/such/file.py:graph"], 2),
        (["serve", "--preset", "loud"], 2),
    ],
)
def test_the_exit_code_says_what_was_wrong(url: str, words: list[str], code: int) -> None:
    given = words if "--url" in words or words[0] == "nonsense" else [*words, "--url", url]
    result = runner.invoke(app, given, env={"RUNCAST_PORT": "0"})
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.output.strip()


def test_the_doctor_looks_at_everything(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {each["what"]: each for each in told("doctor", "--url", url)}
    assert found["store"]["mark"] == found["clock"]["mark"] == found["python"]["mark"] == "ok"
    assert "ok" in ran("doctor", "--url", url)
    ran("doctor", "--url", f"sqlite:///{tmp_path}/no/such/folder/runs.db", code=1)
    ran("doctor", "--url", url, "--broadcast", "reverb://k:s@127.0.0.1:1/1", code=1)
    ran("doctor", "--url", url, "--broadcast", "ghost://x", code=1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent_here.py").write_text(AGENT)
    found = {each["what"]: each for each in told("doctor", "agent_here.py:graph", "--url", "memory://")}
    assert found["saver"]["mark"] == found["store"]["mark"] == "note"
    assert "starts over" in found["saver"]["told"]
    found = {each["what"]: each for each in told("doctor", "agent_here:saved", "--url", url)}
    assert "end with this process" in found["saver"]["told"]


AGENT = """
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph


def speak(state: MessagesState) -> dict:
    return {"messages": [AIMessage("as you say")]}


builder = StateGraph(MessagesState)
builder.add_node("speak", speak)
builder.add_edge(START, "speak")
builder.add_edge("speak", END)
graph = builder.compile(name="echo")


def saved():
    return builder.compile(checkpointer=InMemorySaver())
"""


@pytest.fixture
def attached(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`runcast attach` around a graph in a file, as a process of its own."""
    (tmp_path / "my_graph.py").write_text(AGENT)
    command = [sys.executable, "-m", "runcast.app", "attach", "my_graph.py:graph", "--port", "0"]
    settings = {**os.environ, "RUNCAST_URL": f"sqlite:///{tmp_path}/runs.db", "RUNCAST_GRACE": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("runcast is at "), process.stderr.read() if process.stderr else ""
        yield line.split()[-1], process
        process.kill()


def test_a_graph_is_attached_without_a_line_of_code(attached: tuple[str, subprocess.Popen[str]]) -> None:
    first, process = attached
    url, _, token = first.partition("?token=")
    with httpx.Client(base_url=url, timeout=60) as http:
        assert http.get("/").status_code == http.get("/agents").status_code == 403
        assert http.get("/agents", headers={"authorization": f"Bearer {token}"}).status_code == 200
        assert "runcast" in http.get("/", params={"token": token}, follow_redirects=True).text
        name = http.get("/agents").json()["agents"][0]["name"]
        answer = http.post(f"/agents/{name}", json=run_input())
        assert "as you say" in answer.text
        assert http.get("/threads/t1/snapshot").json()["status"] == "completed"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) in (0, -signal.SIGTERM)  # uvicorn hands the signal on when it is done


def test_python_m_is_the_same_command() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "runcast.app", "--help"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert "doctor" in said.stdout


def test_a_message_is_left_for_those_who_serve_the_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"

    async def meets(gated: Gated) -> list[str]:
        async with Cast.open(url, agents=[gated], watch=False) as cast:
            run = await cast.say("t1", "one")
            name = next(iter(cast.agents))
            out = [
                await asyncio.to_thread(
                    runner.invoke, app, ["say", "t1", text, "--url", url, "--agent", name, *how]
                )
                for text, how in (("two", []), ("three", ["--queue"]), ("four", ["--queue", "--steer"]))
            ]
            assert [each.exit_code for each in out] == [1, 0, 2], [each.output for each in out]
            assert out[1].output.startswith("queued: run ")
            assert [each.text for each in await cast.queue.waiting("t1")] == ["three"]
            gated.open()
            await run.result()
            return []

    asyncio.run(meets(Gated(1)))
