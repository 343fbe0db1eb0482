"""The first minute as README has it: an empty environment, the wheel with its extras, one command, and words in the page."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.e2e.browser import MISSING, browsing, program
from tests.house.test_wheel import UV, built, run, wheel
from tests.house.tree import ROOT

__all__ = ["built", "wheel"]

pytestmark = [pytest.mark.server, pytest.mark.slow]

PROGRAM = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

model = GenericFakeChatModel(messages=iter([AIMessage("Good morning from my own graph")]))
builder = StateGraph(MessagesState).add_node("talk", lambda state: {"messages": [model.invoke(state["messages"])]})
graph = builder.add_edge(START, "talk").compile()
"""


def first_commands() -> tuple[str, str]:
    """README's first install line and its first command."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    extras = re.search(r'^pip install "runcast(\[[\w,]+\])"', readme, re.MULTILINE)
    command = re.search(r"^runcast (attach my_program:graph)\b", readme, re.MULTILINE)
    assert extras is not None
    assert command is not None
    return extras[1], command[1]


@pytest.fixture(scope="module")
def newcomer(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel, with the extras of README's first line."""
    home = tmp_path_factory.mktemp("newcomer")
    run(*UV, "venv", "--quiet", "--python", sys.executable, str(home))
    package = f"{wheel}{first_commands()[0]}"
    run(
        *UV,
        "pip",
        "install",
        "--quiet",
        "--python",
        str(home / "bin" / "python"),
        "-c",
        "constraints.txt",
        package,
    )
    return home / "bin"


@pytest.fixture
def page(newcomer: Path, tmp_path: Path) -> Iterator[str]:
    """The page's address, as README's first command prints it in a folder with one program."""
    (tmp_path / "my_program.py").write_text(PROGRAM)
    command = [str(newcomer / "runcast"), *first_commands()[1].split(), "--port", "0", "--no-open"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RUNCAST_", "PYTHON"))}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            printed = next((line for line in lines if line.startswith("runcast is at ")), "")
            assert printed, "it ended without an address"
            yield printed.split()[-1]
        finally:
            process.kill()


ADK = 'from google.adk.agents import LlmAgent\n\nroot_agent = LlmAgent(name="greeter", model="gemini-flash-latest")\n'


def test_an_extra_that_is_missing_is_named_with_the_command_that_installs_it(
    newcomer: Path, tmp_path: Path
) -> None:
    (tmp_path / "greeter").mkdir()
    (tmp_path / "greeter" / "agent.py").write_text(ADK)
    store = ["attach", "my_program:graph", "--url", "postgresql://nobody@127.0.0.1:1/none"]
    for words, extra in (
        (["attach", "greeter"], "adk"),
        (store, "postgres"),
        (["demo", "--headless"], "demo"),
    ):
        done = subprocess.run(
            [str(newcomer / "runcast"), *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode in (1, 2), done.stdout
        assert re.search(rf"pip install [\"']runcast\[{extra}\]", done.stderr), done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


async def test_the_first_words_of_ones_own_graph_are_in_the_page(page: str) -> None:
    if program() is None:
        missing(MISSING)
    async with browsing() as browser, asyncio.timeout(180):
        tab = await browser.tab(page)
        await tab.until("document.querySelector('#ask')")
        await tab.type("#ask", "Hello")
        await tab.until("document.querySelector('#ask').value === 'Hello'")
        await tab.js("document.querySelector('#ask').closest('form').requestSubmit()")
        await tab.until("document.body.innerText.includes('Good morning from my own graph')")
        assert tab.errors == []
