"""An app in front of its users: uvicorn, told how this host ends. Knows signals and ports; does not know routes.

On SIGTERM no run is started any more, runs get their grace, sockets are closed with a code that brings their clients
back, and streams end; then the server stops.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from runcast.app.cast import Cast

try:
    import uvicorn
except ImportError as error:
    raise ImportError("to serve over HTTP, install runcast[server]") from error


class Server(uvicorn.Server):
    """uvicorn, but the cast is closed first, while its clients can still be told."""

    def __init__(self, config: uvicorn.Config, cast: Cast, grace: float) -> None:
        super().__init__(config)
        self._cast = cast
        self._grace = grace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the cast, then the connections, also when the store takes nothing more."""
        try:
            await self._cast.aclose(grace=self._grace)
        finally:
            await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def server(cast: Cast, app: Any, *, grace: float = 10.0, log_level: str = "warning") -> Server:
    """A server for an app of this cast."""
    config = uvicorn.Config(
        app, log_level=log_level, access_log=False, timeout_graceful_shutdown=2, ws_ping_interval=None
    )
    return Server(config, cast, grace)


def address(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listening.getsockname()[:2]
    shown = "localhost" if host in ("127.0.0.1", "::1", "0.0.0.0", "::") else host
    return f"http://{shown}:{port}"


@asynccontextmanager
async def serving(cast: Cast, app: Any, *, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[str]:
    """Serve beside whatever else runs in this process; gives the URL. Signals stay the caller's."""
    listening = listen(host, port)
    it = server(cast, app, grace=1.0, log_level="critical")
    serve = it._serve  # pyright: ignore[reportPrivateUsage]  # its public way takes the signals
    task = asyncio.create_task(serve([listening]))
    while not it.started and not task.done():  # noqa: ASYNC110  uvicorn has a flag, no event
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        it.should_exit = True
        await task
