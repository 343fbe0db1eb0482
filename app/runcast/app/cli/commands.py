"""The command line: `runcast demo`, `serve`, `attach`, and commands for threads.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 130 interrupted by Ctrl-C, 143 ended by SIGTERM. `--json` prints
one JSON value (or one a line) and nothing else. Knows texts and tables; its neighbours do the work.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import metadata
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.text import Text

from runcast.app.cli import archive_commands, keeping_commands, run_commands, say_command, thread_commands
from runcast.app.cli.common import guarded
from runcast.app.cli.printing import Screen, finish, say

app = typer.Typer(
    name="runcast",
    help="Casts agent runs to the people who watch them.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 130 Ctrl-C, 143 SIGTERM. "
    "RUNCAST_URL and other RUNCAST_ variables set the defaults of options; --json is for programs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
RUNS, THREADS, CARE = "Run and watch", "Read threads", "Maintain the log"


def _version(asked: bool) -> None:
    if asked:
        say(f"runcast {metadata.version('runcast')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Casts agent runs to the people who watch them."""


NEEDED = {"langgraph": ("langchain", "langgraph.checkpoint.sqlite"), "adk": ("google.adk",)}


def check_demo(kind: str) -> None:
    """Raise when what the demo's worker imports is not there: its traceback would say less."""
    for module in NEEDED[kind]:
        try:
            found = find_spec(module)
        except ModuleNotFoundError:  # the package above it
            found = None
        if found is None:
            extra = "adk" if kind == "adk" else "demo"
            raise ImportError(f'this demo needs an extra: pip install "runcast[{extra}]"')


MARKS = {"ok": "[green]ok[/green]  ", "note": "[yellow]note[/yellow]", "bad": "[red]bad[/red] "}


@app.command(rich_help_panel=RUNS)
@guarded
def demo(
    adk: Annotated[bool, typer.Option(help="Use Google ADK instead of LangGraph.")] = False,
    headless: Annotated[
        bool, typer.Option(help="Without a person: kill, resume, check, print figures.")
    ] = False,
    port: Annotated[int, typer.Option(help="0 takes any free port.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Fixes the point at which the worker is killed.")] = None,
    pace: Annotated[float | None, typer.Option(help="Seconds between two words.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Figures as JSON.")] = False,
) -> None:
    """Run an agent with a scripted model, a worker you can kill, and a page that stays. No key, no network."""
    try:
        from runcast.app.demo import terminal
    except ImportError as error:
        raise ImportError("for the demo, install runcast[demo]") from error
    kind = "adk" if adk else "langgraph"
    check_demo(kind)
    if headless or not sys.stdin.isatty():
        terminal.by_itself(kind, seed=seed, pace=pace or 0.01, as_json=json)
    else:
        terminal.with_keys(kind, port=port, pace=pace or 0.04)


app.command(rich_help_panel=RUNS)(run_commands.attach)
app.command(rich_help_panel=RUNS)(run_commands.serve)
app.command(rich_help_panel=RUNS)(say_command.say)
for command in (thread_commands.ls, thread_commands.show, thread_commands.replay, thread_commands.tail):
    app.command(rich_help_panel=THREADS)(command)
app.command(rich_help_panel=CARE)(archive_commands.export)
app.command("import", rich_help_panel=CARE)(archive_commands.import_)
app.command(rich_help_panel=CARE)(thread_commands.compact)
app.command(rich_help_panel=CARE)(keeping_commands.prune)
app.command(rich_help_panel=CARE)(keeping_commands.rm)
app.command(rich_help_panel=CARE)(thread_commands.anew)


@app.command(rich_help_panel=CARE)
@guarded
def doctor(
    agent: Annotated[str | None, typer.Argument(help=run_commands.TARGET)] = None,
    url: Annotated[str | None, typer.Option(help="The log's store.")] = None,
    broadcast: Annotated[str | None, typer.Option(help="A publisher's URL.")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Check versions, store, workers, saver, targets and clock. Exits 1 when something is bad."""
    from runcast.app.cli.doctor import examine
    from runcast.app.cli.settings import Settings
    from runcast.app.cli.targets import find

    settings = Settings()
    targets = [] if agent is None else find(agent)
    target = broadcast or settings.broadcast
    redis, role = settings.redis, settings.role
    found = asyncio.run(
        examine(url or settings.url, broadcast=target, targets=targets, redis=redis, role=role)
    )
    if json:
        finish([{"what": each.what, "mark": each.mark, "told": each.text} for each in found])
    else:
        screen = Screen(soft_wrap=True)
        for each in found:
            screen.print(Text.from_markup(MARKS[each.mark]), f" {each.what:<28}", end="")
            screen.print(each.text)
    if any(each.mark == "bad" for each in found):
        raise typer.Exit(1)


def main() -> None:
    """The entry point."""
    app()
