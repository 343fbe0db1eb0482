"""Commands that serve: a host around agents, or around a log that others write.

Knows settings and signals; does not know routes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated, Any

try:
    import typer
except ImportError as error:
    raise ImportError("for the command line, install runcast[cli]") from error

from runcast.app.cast import Cast
from runcast.app.cli_common import guarded
from runcast.app.load import load, load_agent
from runcast.app.settings import Settings
from runcast.app.telemetry import RunIds
from runcast.broadcast import BroadcastConfig

Url = Annotated[str | None, typer.Option(help="The log's store, e.g. sqlite:///runs.db or postgresql://…")]
Host = Annotated[str | None, typer.Option(help="The address to listen at.")]
Port = Annotated[int | None, typer.Option(help="0 takes any that is free.")]
Target = Annotated[str | None, typer.Option(help="A publisher besides the hub: reverb://…, redis://…")]
Preset = Annotated[str | None, typer.Option(help="How much watchers are told: minimal, standard, debug.")]


@guarded
def serve(
    agents: Annotated[
        list[str] | None, typer.Argument(help="module:name of graphs, ADK agents, functions.")
    ] = None,
    url: Url = None,
    host: Host = None,
    port: Port = None,
    broadcast: Target = None,
    preset: Preset = None,
    authorize: Annotated[str | None, typer.Option(help="module:function(user, thread_id)")] = None,
    identify: Annotated[str | None, typer.Option(help="module:function(headers)")] = None,
    role: Annotated[str | None, typer.Option(help="worker runs agents, web shows them; both.")] = None,
    redis: Annotated[str | None, typer.Option(help="redis://…, joins the hubs of several nodes.")] = None,
) -> None:
    """Page, API, AG-UI endpoint and hub, for these agents and for all threads of the log."""
    given: dict[str, Any] = {
        "url": url,
        "host": host,
        "port": port,
        "broadcast": broadcast,
        "preset": preset,
        "authorize": authorize,
        "identify": identify,
        "role": role,
        "redis": redis,
    }
    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    asyncio.run(run(settings, [load_agent(each) for each in agents or ()]))


@guarded
def attach(
    agent: Annotated[str, typer.Argument(help="module:name of a graph, an ADK agent or a function.")],
    url: Url = None,
    port: Port = None,
    preset: Preset = "debug",
) -> None:
    """A page and a hub around your own compiled graph or ADK agent, without a line of code."""
    serve([agent], url=url, port=port, preset=preset)


async def run(settings: Settings, agents: list[Any]) -> None:
    """Serve until a signal; then let runs end, and tell everybody."""
    from runcast.app.serve import address, listen, server

    log_to_stderr(settings.log_level)
    cast = build(settings, agents)
    options: dict[str, Any] = {
        name: load(target)
        for name in ("authorize", "identify", "tenant")
        if (target := getattr(settings, name)) is not None
    }
    app = cast.asgi(
        cors=settings.cors,
        page=settings.page,
        max_body=settings.max_body,
        keepalive=settings.keepalive,
        **options,
    )
    listening = listen(settings.host, settings.port)
    await cast.opened()
    if settings.recover != "off":
        await cast.recover(settings.recover)
    print(f"runcast is at {address(listening)}", flush=True)
    try:
        await server(cast, app, grace=settings.grace).serve([listening])
    finally:
        await cast.aclose(grace=settings.grace)


def log_to_stderr(level: str) -> None:
    """Log lines say which thread and run they are of; agents' own lines do too."""
    handler = logging.StreamHandler()
    handler.addFilter(RunIds())
    told = "%(levelname)s %(name)s [%(thread_id)s %(run_id)s]: %(message)s"
    logging.basicConfig(level=level.upper(), format=told, handlers=[handler])


def build(settings: Settings, agents: list[Any]) -> Cast:
    """A cast as the settings want it."""
    config: BroadcastConfig = getattr(BroadcastConfig, settings.preset)()
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
    )
