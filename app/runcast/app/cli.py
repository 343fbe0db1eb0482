"""The command line: `runcast demo`, `serve`, `attach`, and what one does with threads.

Exit codes: 0 done, 1 it failed, 2 it was asked wrongly, 3 there is no such thing, 130 interrupted by Ctrl-C, 143 ended
by SIGTERM. `--json` prints one JSON value (or one a line) and nothing else. Knows words and tables; the work is done by
its neighbours.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
except ImportError as error:
    raise ImportError("for the command line, install runcast[cli]") from error

from runcast.app import cli_run, cli_threads
from runcast.app.cli_common import finish, guarded
from runcast.app.doctor import examine
from runcast.app.load import load_agent
from runcast.app.settings import Settings

app = typer.Typer(
    name="runcast",
    help="Casts agent runs to the people who watch them.",
    epilog="Exit codes: 0 done, 1 it failed, 2 asked wrongly, 3 no such thing, 130 Ctrl-C, 143 SIGTERM. "
    "RUNCAST_URL and its kin set what is not said; --json is for programs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
RUNS, THREADS, CARE = "Run and watch", "Read threads", "Look after the log"

MARKS = {"ok": "[green]ok[/green]  ", "note": "[yellow]note[/yellow]", "bad": "[red]bad[/red] "}


@app.command(rich_help_panel=RUNS)
@guarded
def demo(
    adk: Annotated[bool, typer.Option(help="Google ADK instead of LangGraph.")] = False,
    headless: Annotated[bool, typer.Option(help="All by itself: kill, resume, check, figures.")] = False,
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Where the worker is killed.")] = None,
    pace: Annotated[float | None, typer.Option(help="Seconds between two words.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Figures as JSON.")] = False,
) -> None:
    """An agent with a scripted model, a worker you can kill, and a page that stays. No key, no network."""
    try:
        from runcast.app.demo import terminal
    except ImportError as error:
        raise ImportError("for the demo, install runcast[demo]") from error
    kind = "adk" if adk else "langgraph"
    if headless or not sys.stdin.isatty():
        terminal.by_itself(kind, seed=seed, pace=pace or 0.01, as_json=json)
    else:
        terminal.with_keys(kind, port=port, pace=pace or 0.04)


app.command(rich_help_panel=RUNS)(cli_run.attach)
app.command(rich_help_panel=RUNS)(cli_run.serve)
for command in (cli_threads.ls, cli_threads.show, cli_threads.replay, cli_threads.tail):
    app.command(rich_help_panel=THREADS)(command)
app.command(rich_help_panel=CARE)(cli_threads.export)
app.command("import", rich_help_panel=CARE)(cli_threads.import_)
app.command(rich_help_panel=CARE)(cli_threads.compact)
app.command(rich_help_panel=CARE)(cli_threads.prune)


@app.command(rich_help_panel=CARE)
@guarded
def doctor(
    agent: Annotated[str | None, typer.Argument(help="module:name of a graph or an ADK agent.")] = None,
    url: Annotated[str | None, typer.Option(help="The log's store.")] = None,
    broadcast: Annotated[str | None, typer.Option(help="A publisher's URL.")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Look at versions, store, saver, targets and clock. Exits 1 when something is bad."""
    settings = Settings()
    loaded: Any = None if agent is None else load_agent(agent)
    target = broadcast or settings.broadcast
    redis, role = settings.redis, settings.role
    found = asyncio.run(examine(url or settings.url, broadcast=target, agent=loaded, redis=redis, role=role))
    if json:
        finish([{"what": each.what, "mark": each.mark, "told": each.told} for each in found])
    else:
        screen = Console(highlight=False, soft_wrap=True)
        for each in found:
            screen.print(f"{MARKS[each.mark]}  {each.what:<28}", end="")
            screen.print(each.told, markup=False)
    if any(each.mark == "bad" for each in found):
        raise typer.Exit(1)


def main() -> None:
    """The entry point."""
    app()
