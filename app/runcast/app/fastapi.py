"""Five lines for FastAPI and Starlette: an agent, its page and its hub under a path of an application that is there.

Knows how frameworks mount and end; does not know routes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from runcast.app.cast import Cast
from runcast.app.http import App


class Mounts(Protocol):
    """What is needed of a FastAPI or Starlette application."""

    router: Any

    def mount(self, path: str, app: Any, name: str | None = None) -> None:
        """Serve an ASGI app under a path."""
        ...


def add_agent(
    app: Mounts,
    agent: Any,
    path: str = "/agent",
    *,
    cast: Cast | None = None,
    url: str = "sqlite:///runcast.db",
    **options: Any,
) -> Cast:
    """Serve an agent under a path: AG-UI endpoint at `path`, page at `path/`, sockets below. Answers its `Cast`.

    With `cast` the agent joins one that is there, and whoever made it closes it; else one is opened over `url` and
    closed when the application ends. Other options are those of `App`; without `authorize` only this machine's own
    users are served.
    """
    ours = cast is None
    host = Cast.open(url) if cast is None else cast
    host.register(agent)
    app.mount(path, App(host, **options))
    if ours:
        _close_with(app, host)
    return host


def _close_with(app: Mounts, cast: Cast) -> None:
    """A mounted app is not told when its application ends: the cast is closed in the application's own lifespan."""
    before = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(given: Any) -> AsyncGenerator[Any]:
        async with before(given) as state:
            try:
                yield state
            finally:
                await cast.aclose()

    app.router.lifespan_context = lifespan
