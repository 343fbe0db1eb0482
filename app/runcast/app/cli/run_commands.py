"""Commands that serve: a host around agents, or around a log that other processes write.

Knows arguments, the environment and restarts; `serving` does the rest.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any

import typer

from runcast.app.cli.common import guarded
from runcast.app.errors import BadRequest

TARGET = (
    "module:name or path.py:name, a folder with langgraph.json or ADK agents, or the URL of an AG-UI agent."
)

Url = Annotated[
    str | None,
    typer.Option(help="The log's store, e.g. postgresql://…; by default sqlite:///runcast.db, here."),
]
Host = Annotated[str | None, typer.Option(help="The address to listen at; by default 127.0.0.1.")]
Port = Annotated[int | None, typer.Option(help="By default 8000; 0 takes any free port.")]
Broadcast = Annotated[str | None, typer.Option(help="A publisher besides the hub: reverb://…, redis://…")]
Preset = Annotated[str | None, typer.Option(help="How much is broadcast: minimal, standard, debug.")]
Name = Annotated[str | None, typer.Option(help="The agent's name; by default its own, or its file's.")]
Context = Annotated[
    str | None, typer.Option(help="JSON for the graph's context_schema; clients may override it.")
]
Config = Annotated[str | None, typer.Option(help='JSON for the graph\'s config, e.g. {"configurable": {…}}.')]
EnvFile = Annotated[
    Path | None, typer.Option(help="A file of variables, as .env.", exists=True, dir_okay=False)
]
Reload = Annotated[bool, typer.Option("--reload", help="Start again when a file changes.")]
Browser = Annotated[
    bool | None, typer.Option("--open/--no-open", help="Open the page; by default on a terminal.")
]


@guarded
def serve(
    agents: Annotated[list[str] | None, typer.Argument(help=TARGET)] = None,
    url: Url = None,
    host: Host = None,
    port: Port = None,
    broadcast: Broadcast = None,
    preset: Preset = None,
    authorize: Annotated[str | None, typer.Option(help="module:function(user, thread_id)")] = None,
    identify: Annotated[str | None, typer.Option(help="module:function(headers)")] = None,
    role: Annotated[str | None, typer.Option(help="worker runs agents, web serves watchers; both.")] = None,
    redis: Annotated[str | None, typer.Option(help="redis://…, joins the hubs of several nodes.")] = None,
    context: Context = None,
    config: Config = None,
    env_file: EnvFile = None,
    reload: Reload = False,
    browser: Browser = None,
) -> None:
    """Serve the page, the API, the AG-UI endpoint and the hub, for these agents and all threads of the log."""
    given = {
        "url": url, "host": host, "port": port, "broadcast": broadcast, "preset": preset, "authorize": authorize,
        "identify": identify, "role": role, "redis": redis, "browser": browser,
    }  # fmt: skip
    _start(agents or [], given, env_file, reload, context=context, config=config)


@guarded
def attach(
    agent: Annotated[str, typer.Argument(help=TARGET)],
    url: Url = None,
    host: Host = None,
    port: Port = None,
    preset: Preset = "debug",
    name: Name = None,
    context: Context = None,
    config: Config = None,
    env_file: EnvFile = None,
    reload: Reload = False,
    browser: Browser = None,
) -> None:
    """Serve a page and a hub around the program you have, without a line of code."""
    given = {"url": url, "host": host, "port": port, "preset": preset, "browser": browser}
    _start([agent], given, env_file, reload, name=name, context=context, config=config)


def _start(
    targets: list[str],
    given: dict[str, Any],
    env_file: Path | None,
    reload: bool,
    *,
    name: str | None = None,
    context: str | None = None,
    config: str | None = None,
) -> None:
    if reload:
        _reloading()
        return
    if env_file is not None:
        _load_environment(env_file)
    from runcast.adapters.frameworks import Hosting
    from runcast.app.cli.serving import Served, run
    from runcast.app.cli.settings import Settings
    from runcast.app.serve import runner

    settings = Settings(**{key: value for key, value in given.items() if value is not None})
    hosting = Hosting(
        settings.url, name, context=_object("--context", context), config=_object("--config", config)
    )
    with runner() as loop:
        loop.run(run(settings, Served(targets, hosting)))


def _reloading() -> None:
    """Run the same command without --reload, again after every change of a file here."""
    try:
        from watchfiles import PythonFilter, run_process
    except ImportError as error:
        raise ImportError("for --reload, install watchfiles") from error
    words = [each for each in sys.argv[1:] if each != "--reload"]
    command = shlex.join([sys.executable, "-m", "runcast.app", *words])
    # not the log, which changes with every run
    sources = PythonFilter(extra_extensions=(".json", ".yaml", ".env"))
    os.environ.setdefault("RUNCAST_TOKEN", token_urlsafe(24))  # an open page stays signed in
    restarted = {"RUNCAST_BROWSER": "false"}  # one tab is enough
    run_process(
        ".",
        target=command,
        target_type="command",
        watch_filter=sources,
        callback=lambda changes: os.environ.update(restarted),
    )


def _load_environment(file: Path) -> None:
    from dotenv import dotenv_values

    for name, value in dotenv_values(file).items():
        if value is not None:
            os.environ.setdefault(name, value)


def _object(option: str, text: str | None) -> dict[str, Any]:
    try:
        found: Any = json.loads(text or "{}")
    except ValueError as error:
        raise BadRequest(f"{option} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadRequest(f'{option} is a JSON object, e.g. \'{{"model": "…"}}\'')
    return found  # pyright: ignore[reportUnknownVariableType]  # JSON
