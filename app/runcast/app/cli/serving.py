"""Serves as the command line has it: a cast with these settings around these agents, until a signal.

Knows settings and signals; does not know routes.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from runcast.adapters import Adapter
from runcast.adapters.frameworks import Hosting
from runcast.app.cli.common import opened
from runcast.app.cli.printing import PlainLines, complain, say
from runcast.app.cli.settings import Settings
from runcast.app.cli.targets import enter, find, load
from runcast.app.errors import BadRequest
from runcast.app.host.cast import Cast
from runcast.app.http.page import PageOptions
from runcast.app.serve import address, freeze, listen, open_browser, server
from runcast.app.telemetry import JsonLines, RunIds
from runcast.app.webhooks.answer_links import AnswerLinks
from runcast.broadcast import BroadcastConfig

log = logging.getLogger("runcast.app")

NO_AGENT = (
    "no agent was named: only what other processes write is shown, and no message can be sent; "
    "name one, e.g. runcast serve my_program:graph, or leave running to workers with --role web"
)


@dataclass(frozen=True, slots=True)
class Served:
    """What to serve, as the command line has it."""

    targets: Sequence[str] = ()
    hosting: Hosting = field(default_factory=lambda: Hosting(""))


async def run(settings: Settings, served: Served) -> None:
    """Serve until a signal, then let runs end."""
    log_to_stderr(settings.log_level, settings.log_format)
    access: dict[str, Any] = {
        name: load(target)
        for name in ("authorize", "identify", "tenant")
        if (target := getattr(settings, name)) is not None
    }
    async with AsyncExitStack() as stack:
        # first what is known at once: a port that is in use, and a store that does not answer
        listening = stack.enter_context(listen(settings.host, settings.port))
        async with opened(settings.url, new=True):
            pass
        cast = build(settings, await adapters_of(served, stack))
        app = cast.asgi(
            cors=settings.cors,
            page=settings.page and PageOptions(settings.prices, settings.currency),
            max_body=settings.max_body,
            keepalive=settings.keepalive,
            **access,
        )
        await cast.opened()
        if settings.recover != "off":
            await cast.recover(settings.recover)
        log.debug("garbage collections leave out the %s objects of the start", f"{freeze():,}")
        where = address(listening)
        first = cast.access.first_url(where)
        if not served.targets and settings.role != "web":
            complain(NO_AGENT)
        say(f"runcast is at {first}")
        if names := list(cast.agents):
            say(agent_address(cast.access.first_url(where, f"/agents/{quote(names[0])}"), names[1:]))
        if settings.browser and settings.page:
            open_browser(first)
        try:
            await server(cast, app, grace=settings.grace).serve([listening])
        finally:
            await cast.aclose(grace=settings.grace)


def agent_address(url: str, others: Sequence[str]) -> str:
    """What an AG-UI client is given: the URL of the first agent, and the names that stand in its place for the others."""
    more = f"; or {', '.join(others)} in the place of its name" if others else ""
    return f"its agent, for AG-UI clients, is at {url}{more}"


async def adapters_of(served: Served, stack: AsyncExitStack) -> list[Adapter]:
    """The adapters of all targets, each under a name of its own: the agent's, else its variable's, else its module's."""
    targets = [target for text in served.targets for target in find(text)]
    if served.hosting.name is not None and len(targets) != 1:
        raise BadRequest(f"--name names one agent, and {', '.join(served.targets)} has {len(targets)}")
    adapters = [await enter(target, served.hosting, stack) for target in targets]
    for other in ("fallback", "module"):  # as in ADK's samples, which are all called root_agent
        names = Counter(each.name for each in adapters)
        for target, adapter in zip(targets, adapters, strict=True):
            if names[adapter.name] > 1:
                adapter.name = getattr(target, other)
    return adapters


def log_to_stderr(level: str, form: str = "text") -> None:
    """Log lines carry their thread and run, those of agents too."""
    handler = PlainLines()
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
