"""Commands that serve: a host around agents, or around a log that other processes write.

Knows settings and signals; does not know routes.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any

try:
    import typer
except ImportError as error:
    raise ImportError("for the command line, install runcast[cli]") from error

from runcast.adapters import Adapter
from runcast.adapters.frameworks import Hosting
from runcast.app.cli.common import guarded, opened
from runcast.app.cli.settings import Settings
from runcast.app.cli.targets import enter, find, load
from runcast.app.errors import BadRequest
from runcast.app.host.cast import Cast
from runcast.app.http.page import PageOptions
from runcast.app.telemetry import JsonLines, RunIds
from runcast.app.webhooks.answer_links import AnswerLinks
from runcast.broadcast import BroadcastConfig

log = logging.getLogger("runcast.app")

TARGET = (
    "module:name or path.py:name, a folder with langgraph.json or ADK agents, or the URL of an AG-UI agent."
)

Url = Annotated[str | None, typer.Option(help="The log's store, e.g. sqlite:///runs.db or postgresql://…")]
Host = Annotated[str | None, typer.Option(help="The address to listen at.")]
Port = Annotated[int | None, typer.Option(help="0 takes any free port.")]
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


@dataclass(frozen=True, slots=True)
class Served:
    """What to serve, as the command line has it."""

    targets: Sequence[str] = ()
    hosting: Hosting = field(default_factory=lambda: Hosting(""))


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
    settings = Settings(**{key: value for key, value in given.items() if value is not None})
    hosting = Hosting(
        settings.url, name, context=_object("--context", context), config=_object("--config", config)
    )
    from runcast.app.serve import runner

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
    sources = PythonFilter(
        extra_extensions=(".json", ".yaml", ".env")
    )  # not the log, which changes with every run
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


async def run(settings: Settings, served: Served) -> None:
    """Serve until a signal, then let runs end."""
    from runcast.app.serve import address, freeze, listen, open_browser, server

    log_to_stderr(settings.log_level, settings.log_format)
    access: dict[str, Any] = {
        name: load(target)
        for name in ("authorize", "identify", "tenant")
        if (target := getattr(settings, name)) is not None
    }
    async with opened(settings.url, new=True):
        pass  # a store that does not answer is one error here
    async with AsyncExitStack() as stack:
        cast = build(settings, await adapters_of(served, stack))
        app = cast.asgi(
            cors=settings.cors,
            page=settings.page and PageOptions(settings.prices, settings.currency),
            max_body=settings.max_body,
            keepalive=settings.keepalive,
            **access,
        )
        listening = listen(settings.host, settings.port)
        await cast.opened()
        if settings.recover != "off":
            await cast.recover(settings.recover)
        log.info("garbage collections leave out the %s objects of the start", f"{freeze():,}")
        first = cast.access.first_url(address(listening))
        print(f"runcast is at {first}", flush=True)
        if settings.browser and settings.page:
            open_browser(first)
        try:
            await server(cast, app, grace=settings.grace).serve([listening])
        finally:
            await cast.aclose(grace=settings.grace)


async def adapters_of(served: Served, stack: AsyncExitStack) -> list[Adapter]:
    """The adapters of all targets, each under a name of its own."""
    targets = [target for text in served.targets for target in find(text)]
    if served.hosting.name is not None and len(targets) != 1:
        raise BadRequest(f"--name names one agent, and {', '.join(served.targets)} has {len(targets)}")
    adapters = [await enter(target, served.hosting, stack) for target in targets]
    names = Counter(each.name for each in adapters)
    for target, adapter in zip(targets, adapters, strict=True):
        if names[adapter.name] > 1:  # as in ADK's samples, which are all called root_agent
            adapter.name = target.fallback
    return adapters


def log_to_stderr(level: str, form: str = "text") -> None:
    """Log lines carry their thread and run, those of agents too."""
    handler = logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonLines())
    handler.addFilter(RunIds())
    layout = "%(levelname)s %(name)s [%(thread_id)s %(run_id)s]: %(message)s"
    logging.basicConfig(level=level.upper(), format=layout, handlers=[handler])


def build(settings: Settings, agents: list[Adapter]) -> Cast:
    """A cast with these settings."""
    config = BroadcastConfig.from_env(os.environ, preset=settings.preset)
    return Cast.open(
        settings.url,
        broadcast=settings.broadcast,
        redact=settings.redact,
        config=config,
        agents=agents,
        max_runs=settings.max_runs,
        secret=settings.secret,
        redis=settings.redis,
        work=settings.role != "web",
        watch=settings.role != "worker",
        lease_ms=round(settings.lease * 1_000),
        recover=settings.recover,
        recover_every=settings.recover_every,
        webhooks=() if settings.webhooks is None else load(settings.webhooks),
        answer_links=_links(settings),
        **ages(settings),
    )


def _links(settings: Settings) -> AnswerLinks | None:
    if settings.public_url is None:
        return None
    if settings.secret is None:
        raise BadRequest("links that answer are signed: set RUNCAST_SECRET, the same on all nodes")
    return AnswerLinks(settings.public_url, settings.secret)


def ages(settings: Settings) -> dict[str, Any]:
    """`keep` and `keep_raw`: ages as they are, functions loaded."""
    given = {"keep": settings.keep, "keep_raw": settings.keep_raw}
    return {name: load(each) if each is not None and ":" in each else each for name, each in given.items()}
