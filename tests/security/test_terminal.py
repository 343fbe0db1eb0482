"""A terminal is steered by nobody whose words it shows: not by a user, an agent, a model or an archive."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import logging
import shlex
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    RunAgentInput,
    RunErrorEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
)
from click import Command, Context
from typer.testing import CliRunner

from runcast.app import Cast
from runcast.app.cli.commands import app
from runcast.app.cli.common import thread_ids
from runcast.app.cli.printing import PlainLines, plain
from tests.app.agents import said
from tests.house.tree import ROOT

TITLE, COPIED, CLEARED, COLOUR, TURNED = "\x1b]0;x\x07", "\x1b]52;c;eA==\x07", "\x1b[2J", "\x9b31m", "\u202e"
HOSTILE = f"a{TITLE}{COPIED}{CLEARED}{COLOUR}{TURNED}\x7f[red]b[/red][/nope] :boom:"
THREAD = f"t{TURNED}[/nope]; touch $(x)"  # what an id may be
CALM = set(map(chr, (*range(32), *range(127, 160), 0x202E))) - set("\n\t")


async def hostile(input: RunAgentInput) -> AsyncIterator[Event]:
    """Says what would steer a terminal, wherever an agent can."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    yield StepStartedEvent(step_name=HOSTILE)
    for event in said(input.run_id, HOSTILE):
        yield event
    yield CustomEvent(name=HOSTILE, value={HOSTILE: HOSTILE})
    yield StepFinishedEvent(step_name=HOSTILE)
    yield RunErrorEvent(message=HOSTILE, code="x")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log with a hostile thread."""
    where = f"sqlite:///{tmp_path_factory.mktemp('log')}/runs.db"

    async def fill() -> None:
        async with Cast.open(where, agents=[hostile]) as cast:
            await (await cast.say(THREAD, HOSTILE)).result()
            await cast.log.archive.rename(THREAD, HOSTILE)

    asyncio.run(fill())
    return where


@pytest.mark.parametrize(
    "words",
    [
        "ls", "ls --json", "show {}", "show {} --json", "replay {} --speed 0", "replay {} --speed 0 --json",
        "tail {} --until-end", "export {}", "export --all", "export {} --markdown", "export {} --evidence", "anew {}",
        "compact {}", "doctor", "say {} hi --agent {}", "rm {} --reuse", "show {}x", "import {}",
    ],
)  # fmt: skip
def test_no_command_prints_what_steers_a_terminal(url: str, words: str) -> None:
    given = [each.replace("{}", THREAD) for each in words.split()]
    result = CliRunner().invoke(app, [*given, "--url", url])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.output
    assert not CALM & set(result.output)
    if "--json" in given:
        for each in result.stdout.splitlines() if "replay" in words else [result.stdout]:
            json.loads(each)


def test_json_that_was_made_harmless_is_the_same_value() -> None:
    for text in (HOSTILE, TURNED, "\u2028\u2069é\U0001f600"):
        found = plain(json.dumps({text: text}, ensure_ascii=False))
        assert json.loads(found) == {text: text}
        assert not CALM & set(found)
    assert plain("é\U0001f600\n\t") == "é\U0001f600\n\t"


def test_a_record_of_the_log_is_one_record_and_steers_nothing() -> None:
    written = io.StringIO()
    handler = PlainLines(written)
    handler.handle(logging.makeLogRecord({"msg": f"{HOSTILE}\nERROR runcast.app: forged\r\n"}))
    assert [each for each in written.getvalue().splitlines() if not each.startswith(" ")] == [plain(HOSTILE)]
    assert not CALM & set(written.getvalue())


def test_a_shell_completes_no_id_that_it_would_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fill() -> None:
        async with Cast.open(url, agents=[hostile]) as cast:
            await (await cast.say("t-1/2", "x")).result()

    asyncio.run(fill())
    monkeypatch.setenv("RUNCAST_URL", url)

    found = thread_ids(Context(Command("show")), "")
    assert found == ["t-1/2"] == [shlex.quote(each) for each in found]


def test_the_commands_print_in_one_place_only() -> None:
    for path in (ROOT / "app/runcast/app/cli").glob("*.py"):
        if path.name == "printing.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "id", None) if isinstance(node, ast.Name) else getattr(node, "attr", None)
            assert name not in {"stdout", "stderr"} or path.name == "common.py", f"{path.name}: {name}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"print", "StreamHandler"}, f"{path.name}:{node.lineno}"
            assert not (name == "Console" and path.name != "common.py"), path.name
