"""Five lines for FastAPI and Starlette: an agent, its page and its hub under a path of an existing application.

Knows how applications mount others and end; does not know routes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from runcast.app.host.cast import Cast
from runcast.app.http.asgi_app import App


class Mounts(Protocol):
    """A FastAPI or Starlette application, as far as it is needed here."""

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
    """Serve an agent under a path: AG-UI endpoint at `path`, page at `path/`, sockets below. Returns its `Cast`.

    With `cast` the agent joins an existing one, which its maker closes; else one is opened over `url` and closed when
    the application ends. Other options are those of `App`; without `authorize` only this machine's own users are
    served, who open the path once with the token that is logged at start.
    """
    ours = cast is None
    host = Cast.open(url) if cast is None else cast
    host.register(agent)
    app.mount(path, App(host, **options))
    _live_with(app, host, path, close=ours)
    return host


def _live_with(app: Mounts, cast: Cast, path: str, *, close: bool) -> None:
    """A mounted app gets no lifespan messages, so the cast begins and ends in the application's own lifespan."""
    before = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(given: Any) -> AsyncGenerator[Any]:
        async with before(given) as state:
            cast.access.announce(f"{path.rstrip('/')}/")
            try:
                yield state
            finally:
                if close:
                    await cast.aclose()

    app.router.lifespan_context = lifespan
