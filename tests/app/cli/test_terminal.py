"""The command line as shells, pipes and programs use it: shapes of JSON, exit codes, completion, bars on a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runcast.app import Cast
from tests.app.agents import parrot, tooled

RUNCAST = str(Path(sys.executable).parent / "runcast")
WORDS = 1_500  # more than a pipe holds, in several pages


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log with a long thread and a short one."""
    where = f"sqlite:///{tmp_path_factory.mktemp('log')}/runs.db"

    async def fill() -> None:
        async with Cast.open(where, agents=[parrot, tooled]) as cast:
            await (await cast.say("long", "word " * WORDS, agent="parrot")).result()
            await (await cast.say("short", "search", agent="tooled")).result()

    asyncio.run(fill())
    return where


def run(*words: str, url: str, code: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RUNCAST_URL": url, **more.pop("env", {})}
    done = subprocess.run(
        [RUNCAST, *words], env=environment, check=False, capture_output=True, text=True, timeout=60, **more
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


SHAPES: list[tuple[list[str], set[str]]] = [
    (["ls"], {"thread_id", "events", "active", "updated_at"}),
    (["show", "short"], {"thread_id", "runs", "size", "snapshot"}),
    (["replay", "short", "--speed", "0"], {"seq", "event"}),
    (["tail", "short", "--until-end"], {"seq", "event"}),
    (["export", "short", "-o", "short.jsonl"], {"thread_id", "file", "bytes"}),
    (["import", "short.jsonl"], {"thread_id", "threads", "left_out"}),
    (["compact"], {"threads", "runs", "raw_bytes", "segment_bytes"}),
    (["prune", "--older-than", "30d"], {"runs", "threads", "events", "bytes"}),
    (["doctor"], {"what", "mark", "told"}),
]


def test_json_has_the_same_shape_every_time_and_nothing_beside_it(url: str, tmp_path: Path) -> None:
    for words, keys in SHAPES:
        done = run(*words, "--json", url=url, cwd=tmp_path)
        assert done.stderr == "", words
        told: Any = [json.loads(line) for line in done.stdout.splitlines()] if words[0] in ("replay", "tail") else json.loads(done.stdout)  # fmt: skip
        each: dict[str, Any] = told[0] if words[0] in ("ls", "doctor", "replay", "tail") else told
        assert set(each) == keys, words


def test_whoever_reads_a_part_is_given_it_at_once_and_no_complaint(url: str) -> None:
    command = [RUNCAST, "replay", "long", "--speed", "0", "--json", "--url", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert json.loads(process.stdout.readline())["seq"] == 1
            process.stdout.close()
            assert process.wait(60) == 1
            assert process.stderr.read() == b""
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)], ids=["ctrl-c", "term"]
)
def test_a_signal_ends_it_with_the_code_that_shells_know(url: str, number: int, code: int) -> None:
    command = [RUNCAST, "tail", "short", "--json", "--url", url]
    # A test run in the background of a shell hands down a Ctrl-C that is ignored.
    heard = partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heard,  # noqa: PLW1509  it takes no lock
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.send_signal(number)
            assert process.wait(60) == code  # a shell says 128 more than the signal
            assert process.stderr.read() == ""
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("runcast pr", {"prune"}),
        ("runcast show ", {"long", "short"}),
        ("runcast replay lo", {"long"}),
        ("runcast compact sh", {"short"}),
        ("runcast export --mark", {"--markdown"}),
    ],
)
def test_a_shell_completes_commands_options_and_threads(url: str, line: str, found: set[str]) -> None:
    words = line.split(" ")
    asked = {
        "_RUNCAST_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    assert set(run(url=url, env=asked).stdout.split()) == found


def test_completing_makes_no_log_and_no_complaint(tmp_path: Path) -> None:
    asked = {"_RUNCAST_COMPLETE": "complete_bash", "COMP_WORDS": "runcast show ", "COMP_CWORD": "2"}
    for url in (f"sqlite:///{tmp_path}/none.db", "ghost://x"):
        done = run(url=url, env=asked)
        assert done.stdout.strip() == done.stderr == ""
    assert list(tmp_path.iterdir()) == []
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # there is no shell above every test
    assert "_RUNCAST_COMPLETE" in run("--show-completion", "bash", url="memory://", env=named).stdout


def test_long_work_has_a_bar_on_a_terminal_and_none_elsewhere(url: str, tmp_path: Path) -> None:
    for words, what in (
        (["compact"], "compacting"),
        (["export", "long", "-o", "long.jsonl.gz"], "writing long.jsonl.gz"),
        (["import", "long.jsonl.gz"], "reading long.jsonl.gz"),
        (["prune", "--older-than", "30d"], "pruning"),
    ):
        assert what in on_a_terminal(words, url, tmp_path), words
        assert run(*words, url=url, cwd=tmp_path).stderr == ""


def on_a_terminal(words: list[str], url: str, folder: Path) -> str:
    """What a command says on standard error, when that is a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "RUNCAST_URL": url, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        [RUNCAST, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:
            pass  # the other end is closed
        finally:
            os.close(ours)
        assert process.wait(60) == 0, shown
    return shown.decode(errors="replace")


def test_help_says_what_there_is_and_what_the_codes_mean(url: str) -> None:
    said = run("--help", url=url, env={"COLUMNS": "120", "TERM": "dumb"}).stdout
    assert said.index("demo") < said.index("attach") < said.index("replay") < said.index("doctor")
    assert "130 Ctrl-C" in said
