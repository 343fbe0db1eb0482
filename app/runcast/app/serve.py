"""A uvicorn server that closes its host in order. Knows signals, ports and the event loop; does not know routes.

On SIGTERM no run starts any more, active runs get their grace time, sockets close with a code on which clients
reconnect, and streams end; then the server stops.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import sys
import webbrowser
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from time import monotonic
from typing import Any

from runcast.app.host.cast import Cast
from runcast.broadcast import HubLimits

try:
    import uvicorn
except ImportError as error:
    raise ImportError("to serve over HTTP, install runcast[server]") from error


HEADER_TIMEOUT = 10.0  # seconds
CHARACTER = 4  # bytes, at most


class Server(uvicorn.Server):
    """uvicorn with two rules more: a request's headers have a deadline, and the cast is closed before connections."""

    def __init__(
        self, config: uvicorn.Config, cast: Cast, grace: float, header_timeout: float = HEADER_TIMEOUT
    ) -> None:
        super().__init__(config)
        self._cast = cast
        self._grace = grace
        self._header_timeout = header_timeout
        # connection -> its last request, and since when it is over
        self._waiting: dict[Any, tuple[Any, float]] = {}

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: once in a while, drop connections that are late."""
        if counter % 5 == 0:
            self._drop_late()
        return await super().on_tick(counter)

    def _drop_late(self) -> None:
        """Close connections that have sent no whole headers since they opened, or since their last answer."""
        now = monotonic()
        waiting: dict[Any, tuple[Any, float]] = {}
        connections: set[Any] = set(self.server_state.connections)
        for connection in connections:
            cycle: Any = getattr(connection, "cycle", self)
            if cycle is self or (cycle is not None and not cycle.response_complete):
                continue  # a WebSocket, which the hub closes when it is silent; or a request that is being answered
            before, since = self._waiting.get(connection, (cycle, now))
            waiting[connection] = cycle, since if before is cycle else now
            if now - waiting[connection][1] > self._header_timeout:
                connection.transport.abort()
        self._waiting = waiting

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the cast, then the connections, even if the store fails."""
        try:
            await self._cast.aclose(grace=self._grace)
        finally:
            await super().shutdown(sockets)


def runner() -> asyncio.Runner:
    """Runs a server on uvloop where it is installed, else on Python's own event loop."""
    try:
        uvloop: Any = import_module("uvloop")
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def freeze() -> int:
    """Leave what the start has made out of garbage collections; returns how many objects that is.

    Frameworks leave half a million objects. A full collection walks over all of them, and live runs wait for it.
    """
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            reason = (error.strerror or str(error)).partition(" (")[0]
            raise OSError(f"cannot listen at {host}: {reason}; take an address of this machine") from error
        raise OSError(
            f"port {port} is in use: stop the other program, or take any free one with port 0"
        ) from error


def server(cast: Cast, app: Any, *, grace: float = 10.0, log_level: str = "warning") -> Server:
    """A server for an app of this cast."""
    # uvicorn's own limit is 16 MB, of what a small frame unpacks to or of one without an end.
    frame = (HubLimits() if cast.hub is None else cast.hub.limits).frame
    config = uvicorn.Config(
        app,
        log_level=log_level,
        access_log=False,
        timeout_graceful_shutdown=2,
        ws_ping_interval=None,
        ws_max_size=CHARACTER * frame,
    )
    return Server(config, cast, grace)


def address(listening: socket.socket) -> str:
    """The URL for a browser."""
    host, port = listening.getsockname()[:2]
    name = "localhost" if host in ("127.0.0.1", "::1", "0.0.0.0", "::") else host
    return f"http://{name}:{port}"


def open_browser(url: str) -> None:
    """Open a URL in the user's browser, where there are a terminal and a screen."""
    screen = sys.platform in ("darwin", "win32") or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())
    if screen and sys.stdout.isatty():
        webbrowser.open(url)


@asynccontextmanager
async def serving(cast: Cast, app: Any, *, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[str]:
    """Serve beside other tasks of this process; yields the URL. Signals stay the caller's."""
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
