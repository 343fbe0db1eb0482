"""`runcast attach` as a process: a template of three turns with a question, and the first minute's mistakes as sentences."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from runcast.app.cli.serving import agent_address
from tests.app.cli.test_targets import CONTEXT, GRAPH, ODD
from tests.app.serving import run_input

pytestmark = pytest.mark.slow

RUNCAST = [sys.executable, "-m", "runcast.app"]


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A folder like a public template: a manifest, a package below `src`, context with defaults from the environment."""
    package = tmp_path / "src" / "memory"
    package.mkdir(parents=True)
    for name, text in (("__init__", ""), ("context", CONTEXT), ("graph", GRAPH)):
        (package / f"{name}.py").write_text(text)
    settings = {
        "dependencies": ["."],
        "graphs": {"memory": "./src/memory/graph.py:graph"},
        "env": {"MODEL": "m"},
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(settings))
    (tmp_path / "odd.py").write_text(ODD)
    return tmp_path


def asked(run: str, text: str, **more: Any) -> dict[str, Any]:
    message = [{"id": f"u-{run}", "role": "user", "content": text}] if text else []
    return {"threadId": "t1", "runId": run, "messages": message, "tools": [], "context": [], **more}


def events(http: httpx.Client, given: dict[str, Any]) -> list[dict[str, Any]]:
    answer = http.post("/agents/memory", json=given)
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def text(found: list[dict[str, Any]]) -> str:
    return "".join(each.get("delta", "") for each in found if each["type"].startswith("TEXT_MESSAGE"))


@contextmanager
def attached(folder: Path, *words: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """`runcast attach` in this folder: a client with its token, and the process."""
    command = [*RUNCAST, "attach", *words, "--port", "0", "--no-open"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("runcast is at "), process.stderr.read() if process.stderr else ""
            url, _, token = line.split()[-1].partition("/?token=")
            with httpx.Client(base_url=url, timeout=60, headers={"authorization": f"Bearer {token}"}) as http:
                yield http, process
        finally:
            process.kill()


def test_a_template_holds_a_conversation_of_three_turns_with_a_question(template: Path) -> None:
    (template / "more.env").write_text("USER_ID=ann\n")
    with attached(template, ".", "--env-file", "more.env") as (http, process):
        assert text(events(http, asked("r1", "hi"))) == "m ann None 1"
        props = {"context": {"model": "big"}, "configurable": {"model_name": "gpt"}}
        assert text(events(http, asked("r2", "more", forwardedProps=props))) == "big ann gpt 2"
        question = events(http, asked("r3", "ask"))[-1]["outcome"]["interrupts"][0]["id"]
        answer = [{"interruptId": question, "status": "resolved", "payload": "yes"}]
        assert text(events(http, asked("r4", "", resume=answer))) == "m ann None yes"
        refused = events(http, asked("r5", "hi", forwardedProps={"context": {"modle": 1}}))[-1]
        assert refused["code"] == "invalid_input"
        assert "'modle'" in refused["message"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)


def failing(folder: Path, *words: str, code: int, **env: str) -> str:
    """What a command that fails prints: one line."""
    done = subprocess.run(
        [*RUNCAST, *words],
        cwd=folder,
        env={**os.environ, "RUNCAST_PORT": "0", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stderr.startswith("runcast: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_mistakes_of_the_first_minute_are_one_sentence_with_what_to_do(template: Path) -> None:
    agent = ["attach", "odd.py:answer", "--url", "memory://"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} is in use: stop the other program" in failing(
            template, "serve", "absent:graph", "--url", "memory://", "--port", port, code=1
        ), "before an agent is loaded, which may take long"
    assert "cannot listen at 203.0.113.1" in failing(template, *agent, "--host", "203.0.113.1", code=1)
    assert "set --port or RUNCAST_PORT" in failing(template, *agent, "--port", "99999", code=2)
    assert "set --lease or RUNCAST_LEASE" in failing(template, *agent, code=2, RUNCAST_LEASE="soon")
    assert "--context is a JSON object" in failing(template, *agent, "--context", "[1]", code=2)
    assert "--config is not JSON" in failing(template, *agent, "--config", "{", code=2)
    (template / "keys.py").write_text(KEYLESS)
    assert "set the key in the environment, or give --env-file .env" in failing(
        template, "attach", "keys.py:model", code=2
    )
    (template / "absent.py").write_text("import no_such_package\n")
    assert "install it in this environment" in failing(template, "attach", "absent.py:graph", code=2)
    two = {"graphs": {"a": "./odd.py:answer", "b": "./odd.py:answer"}}
    (template / "two.json").write_text(json.dumps(two))
    assert "--name names one agent" in failing(template, "attach", "two.json", "--name", "x", code=2)


def test_a_store_that_is_not_there_is_one_sentence_soon_and_nothing_is_made(template: Path) -> None:
    assert "there is no log at sqlite:///typo.db" in failing(
        template, "ls", "--url", "sqlite:///typo.db", code=3
    )
    assert not (template / "typo.db").exists()
    for words in (["ls"], ["attach", "odd.py:answer"]):
        url = "postgresql://nobody:s3cret@127.0.0.1:1/none"
        told = failing(template, *words, "--url", url, code=1)
        assert "the store at 127.0.0.1:1 does not answer: check --url" in told
    nowhere = "sqlite:///nowhere/runs.db"
    assert "does its folder exist" in failing(template, "attach", "odd.py:answer", "--url", nowhere, code=1)


def test_an_ag_ui_client_takes_the_address_that_is_printed(tmp_path: Path) -> None:
    (tmp_path / "agents.py").write_text(FIRST)
    with attached(tmp_path, "agents.py:first") as (http, process):
        assert process.stdout is not None
        line = process.stdout.readline().rstrip()
        assert line.startswith("its agent, for AG-UI clients, is at http"), line
        del http.headers["authorization"]
        for url in (line.split()[-1], f"{line.split()[-1]}/"):  # starters append a slash
            answer = http.post(url, json=run_input(thread=url))
            assert answer.status_code == 200, answer.text
    assert agent_address("http://h/agents/a?token=t", ["b", "c"]) == (
        "its agent, for AG-UI clients, is at http://h/agents/a?token=t; or b, c in the place of its name"
    )


FIRST = """
from ag_ui.core import TextMessageChunkEvent


async def first(input):
    yield TextMessageChunkEvent(message_id="m", role="assistant", delta="Hello")
"""


def test_a_host_without_an_agent_says_so_unless_it_is_there_to_be_watched(tmp_path: Path) -> None:
    told: dict[str, str] = {}
    for role in ("both", "web"):
        command = [*RUNCAST, "serve", "--url", "memory://", "--port", "0", "--role", role]
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("runcast is at ")
            process.send_signal(signal.SIGTERM)
            told[role] = process.communicate(timeout=60)[1]
    assert told["both"].startswith("runcast: no agent was named: "), told
    assert "no agent" not in told["web"]


KEYLESS = """
import os

os.environ.pop("OPENAI_API_KEY", None)
os.environ.pop("OPENAI_ADMIN_KEY", None)

from langchain_openai import ChatOpenAI

model = ChatOpenAI()
"""

LATE = """
from langgraph.graph import START, MessagesState, StateGraph


def search(state):
    raise RuntimeError("the index is empty: fill it with make index, key=sk-proj-abcdefghijklmnop")


graph = StateGraph(MessagesState).add_node("search", search).add_edge(START, "search").compile()
"""


def test_an_agent_that_fails_while_it_runs_is_one_sentence_in_the_page_and_a_trace_in_the_log(
    template: Path,
) -> None:
    (template / "late.py").write_text(LATE)
    with attached(template, "late.py:graph", "--url", "memory://") as (http, process):
        answer = http.post("/agents/late", json=asked("r1", "hi"))
        end = json.loads(answer.text.strip().splitlines()[-1].removeprefix("data: "))
        assert end["code"] == "agent_error"
        assert end["message"] == "RuntimeError: the index is empty: fill it with make index, key=[redacted]"
        assert http.get("/threads/t1/snapshot").json()["status"] == "failed"
        process.terminate()
        _, logged = process.communicate(timeout=60)
    assert "in search" in logged


def test_version_and_help_are_where_they_are_looked_for(template: Path) -> None:
    for words, shown in ((["--version"], "runcast "), (["-h"], "attach"), (["attach", "-h"], "--context")):
        done = subprocess.run([*RUNCAST, *words], cwd=template, capture_output=True, text=True, check=True)
        assert shown in done.stdout
