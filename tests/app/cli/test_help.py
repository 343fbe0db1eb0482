"""Help is quick: asking for it loads the command line's own signatures, and nothing that a command works with."""

from __future__ import annotations

import json
import subprocess
import sys

from typer.main import get_command

from runcast.app.cli.commands import app

# What typer itself loads is its own affair; each command is asked in one process, so that the last one tells of all.
ASKED = """
import json, sys
from typer.testing import CliRunner
from runcast.app.cli.commands import app

for words in json.loads(sys.argv[1]):
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert shown.exit_code == 0 and "Usage" in shown.output, shown.output
    print(json.dumps([words, sorted(sys.modules)]))
"""
SIGNATURES = {
    *("archive_commands", "commands", "common", "keeping_commands", "printing", "run_commands", "say_command"),
    "thread_commands",
}  # fmt: skip
WORK = {
    *("ag_ui", "aiosqlite", "google", "jsonpatch", "langchain_core", "langgraph", "orjson", "psycopg", "pydantic_settings"),
    *("redis", "sqlite3", "starlette", "uvicorn", "websockets"),
}  # fmt: skip


def test_help_loads_signatures_alone():
    commands = getattr(get_command(app), "commands")  # noqa: B009  of a group; typer's types do not say so
    asked = [[], *([name] for name in commands)]
    done = subprocess.run(
        [sys.executable, "-c", ASKED, json.dumps(asked)], capture_output=True, check=True, text=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [words for words, _ in answers] == asked
    for words, loaded in answers:
        assert not [name for name in loaded if name.partition(".")[0] in WORK], words
        ours = {name for name in loaded if name.startswith("runcast.")}
        assert not [name for name in ours if not allowed(name)], words


def allowed(name: str) -> bool:
    """A house, its errors, what loads names on demand, or a signature."""
    _, house, *rest = name.split(".")
    return rest in ([], ["errors"], ["cli"]) or name == "runcast.slim.on_demand" or (
        house == "app" and rest[0] == "cli" and rest[1] in SIGNATURES
    )  # fmt: skip
