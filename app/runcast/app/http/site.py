"""What happens to a request or a socket: it is let in, routed, answered; an error becomes a problem document.

Starlette routes, over the rows of `route_table.py`. Knows who may come in; does not know what a route does.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from runcast.app.errors import BadRequest, NotAllowed, NotFound, WrongMethod
from runcast.app.host.cast import Cast
from runcast.app.http.http_messages import (
    Answer,
    ApiRequest,
    EventStream,
    HttpOptions,
    headers_of,
    path_of,
    query_of,
)
from runcast.app.http.openapi import ApiRoute
from runcast.app.http.page import NOT_COMPILED, PageFile, find_file
from runcast.app.http.problems import problem
from runcast.app.http.route_table import ROUTES, SOCKETS
from runcast.app.tenants.access_policy import COOKIE, STRANGER, own_origin
from runcast.app.tenants.tokens import watched
from runcast.broadcast.hub.skins.asgi import HubApp

try:
    from starlette.middleware.cors import CORSMiddleware
    from starlette.routing import Route, Router, WebSocketRoute
    from starlette.types import Receive, Scope, Send
    from starlette.websockets import WebSocket
except ImportError as error:
    raise ImportError("to serve over HTTP, install runcast[server]") from error

logger = logging.getLogger("runcast.app")
SEGMENTS = "runcast.segments"  # in a scope: the decoded path below the mount point
BY_URL = "runcast.by_url"  # in a scope: whether the local host's token came in the query
NEEDS_TOKEN = "this host needs its token: open the address with `?token=` in its log, or send `Authorization: Bearer <token>`"
REPORTED = 20  # origins that are refused and named in the log
REFUSED = 4009  # the Pusher protocol's code for a connection that is not authorized


class Site:
    """The ASGI app behind `App`."""

    def __init__(self, cast: Cast, options: HttpOptions) -> None:
        self.cast = cast
        self.options = options
        if options.page and not find_file(""):
            logger.warning(NOT_COMPILED)
        self._hubs: dict[str, HubApp] = {}  # by tenant
        self._refused: set[str] = set()  # origins that were reported
        self.router = Router(
            [
                *(Route(path, Resource(self, rows)) for path, rows in _by_path().items()),
                *(WebSocketRoute(path, Socket(self)) for path in SOCKETS),
            ],
            redirect_slashes=False,
            default=self._elsewhere,
            lifespan=self._lifespan,
        )
        methods = ("GET", "HEAD", "POST", "DELETE")
        self._named = frozenset(options.cors) - {"*"}
        self._for_named = CORSMiddleware(self._http, self._named, methods, ("*",), allow_credentials=True)
        self._for_all = CORSMiddleware(self._http, ("*",), methods, ("*",))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket."""
        match scope["type"]:
            case "http":
                headers = headers_of(scope)
                origin = headers.get("origin")
                if origin and not own_origin(headers, self.options.cors):
                    self._report_refused(origin)
                for_all = self._for_all if origin and "*" in self.options.cors else self._http
                await (self._for_named if origin in self._named else for_all)(scope, receive, send)
            case "websocket":
                await self._routed(scope, receive, send)
            case "lifespan":
                await self.router(scope, receive, send)
            case _:
                pass

    def _report_refused(self, origin: str) -> None:
        """Log a refused origin, once: its browser only reports that the answer cannot be read."""
        if origin in self._refused or len(self._refused) >= REPORTED:
            return
        self._refused.add(origin)
        logger.warning(
            "a page of %r was refused; if it is yours, allow it: `cors=` of asgi(), or RUNCAST_CORS",
            origin[:200],
        )

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self.admit(scope)
        except NotAllowed as error:
            await problem(error)(scope, receive, send)
        else:
            await self._routed(scope, receive, send)

    async def _routed(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            segments = path_of(scope)
        except BadRequest as error:
            await _refuse(error, scope, receive, send)
            return
        path = scope.get("root_path", "") + routable(segments)
        inner: Scope = {**scope, "path": path, "path_params": {}, SEGMENTS: segments}
        await self.router(self._with_bearer(inner), receive, send)

    def _with_bearer(self, scope: Scope) -> Scope:
        """The request with a local host's token as a header, if it came in the query: the hub reads headers too.

        Programs that append a slash to the URL they are given append it to the token.
        """
        access = self.cast.access
        query = scope.get("query_string", b"").decode("latin-1").split("&")
        marks = (f"token={access.token}", f"token={access.token}/")
        others = [each for each in query if each not in marks]
        if not access.local or others == query:
            return scope
        rest = "&".join(others).encode("latin-1")
        headers = [*scope["headers"], (b"authorization", f"Bearer {access.token}".encode())]
        return {**scope, "query_string": rest, "headers": headers, BY_URL: True}

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await Resource(self, {})(scope, receive, send)  # perhaps a file of the page
        else:
            await _refuse(NotFound("nothing is here"), scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncGenerator[None]:
        await self.cast.opened()
        self.cast.access.announce()
        try:
            yield
        finally:
            await self.cast.aclose()

    def admit(self, scope: Scope) -> None:
        """Refuse requests that the access policy does not admit."""
        page = f"{scope.get('root_path', '')}/"
        self.cast.access.admit(str((scope.get("client") or ("",))[0]), headers_of(scope), page)

    async def enter(self, headers: Mapping[str, str]) -> tuple[Any, Cast]:
        """The user, and the host as they see it. Raises when they belong to none of its tenants."""
        user = await self.cast.access.who(headers)
        if user is STRANGER:
            raise NotAllowed(NEEDS_TOKEN)
        await self.cast.opened()
        return user, self.cast.for_tenant(self.cast.access.tenant(user))

    async def bearer(self, token: str) -> tuple[Cast, str]:
        """The host and the one thread that a watcher's token opens."""
        await self.cast.opened()
        found = watched(self.cast, token)
        if found is None:
            raise NotAllowed("this token is invalid or has expired; ask for another")
        return found

    def hub(self, cast: Cast) -> HubApp:
        """The sockets of a host or tenant."""
        if cast.hub is None:
            raise NotFound("this host has no hub")
        if cast.tenant not in self._hubs:
            self._hubs[cast.tenant] = cast.hub.asgi()
        return self._hubs[cast.tenant]


@dataclass(frozen=True)
class Resource:
    """An ASGI app for all methods of one path."""

    site: Site
    rows: Mapping[str, ApiRoute]  # by method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            answer = await self._answer(scope, receive)
            if isinstance(answer, HubApp):
                await answer(_unmounted(scope), receive, send)
                return
        except Exception as error:  # noqa: BLE001  one bad request must not end the server
            answer = problem(error)
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer | EventStream | HubApp:
        path, paged = "/".join(scope[SEGMENTS]), bool(self.site.options.page)
        page = find_file(path) if paged else None
        if paged and not page and not path and scope["method"] in ("GET", "HEAD"):
            raise NotFound(NOT_COMPILED)
        known = sorted({*self.rows, *(("GET",) if page else ())})
        if not known:
            raise NotFound("nothing is here")
        allow = sorted({*known, "OPTIONS", *(("HEAD",) if "GET" in known else ())})
        if scope["method"] == "OPTIONS":
            return Answer(b"", 204, headers={"allow": ", ".join(allow), "access-control-max-age": "600"})
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if page and method == "GET":
            return self._page(page, scope)
        row = self.rows.get(method)
        if row is None:
            raise WrongMethod(f"use {' or '.join(known)}", allow=allow)
        request = await self._let_in(row, scope, receive)
        if row.handler is None:
            return self.site.hub(request.cast)
        answer: Answer | EventStream = await row.handler(
            request, *(unquote(each) for each in scope["path_params"].values())
        )
        return answer

    def _page(self, page: PageFile, scope: Scope) -> Answer:
        root, access = scope.get("root_path", ""), self.site.cast.access
        if access.local and not access.holds_token(headers_of(scope)):
            raise NotAllowed(NEEDS_TOKEN)
        query = scope.get("query_string", b"").decode("latin-1")
        if root and not scope[SEGMENTS]:  # the page's links are relative to a path with a last slash
            location = f"{root.rpartition('/')[2]}/"
        elif scope.get(BY_URL):  # neither the address bar nor the history keeps the token
            location = "./"
        else:
            return Answer(page.read(), kind=page.kind, headers=page.headers)
        answer = Answer(b"", 307, headers={"location": f"{location}?{query}" if query else location})
        if scope.get(BY_URL):
            port = headers_of(scope).get("host", "").rpartition(":")[2]
            name = COOKIE + (port if port.isascii() and port.isdigit() else "80")
            secure = scope.get("scheme") == "https"
            answer.set_cookie(name, access.token, path=root or "/", httponly=True, secure=secure)
        return answer

    async def _let_in(self, row: ApiRoute, scope: Scope, receive: Receive) -> ApiRequest:
        """The request, once it is known that it may be answered. Raises when it may not."""
        site, headers = self.site, headers_of(scope)
        changes = row.method in ("POST", "DELETE") and row.who != "signed"
        if changes and not own_origin(headers, site.options.cors):
            raise NotAllowed("pages of other origins may not do this; name them in `cors`")
        token = query_of(scope).get("token") if row.by_token else None
        if token is not None:
            cast, thread = await site.bearer(token)
            return ApiRequest(scope, receive, cast, site.options, thread=thread)
        if row.who == "anybody":
            await site.cast.opened()
            return ApiRequest(scope, receive, site.cast, site.options)
        user, cast = await site.enter(headers)
        return ApiRequest(scope, receive, cast, site.options, user=user)


@dataclass(frozen=True)
class Socket:
    """An ASGI app for WebSockets: it finds the tenant's hub, and the hub asks for each thread."""

    site: Site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the socket to its hub, or close it."""
        token = None
        try:
            self.site.admit(scope)
            token = query_of(scope).get("token") if scope[SEGMENTS] == ("ws",) else None
            if token:
                cast, _ = await self.site.bearer(token)
            else:
                _, cast = await self.site.enter(headers_of(scope))
            hub = self.site.hub(cast)
        except Exception as error:  # noqa: BLE001  one bad handshake must not end the server
            # A page sees why an open socket was closed, but not why a handshake failed.
            await _refuse(error, scope, receive, send, accept=bool(token))
            return
        await hub(_unmounted(scope), receive, send)


def routable(segments: Sequence[str]) -> str:
    """The path for Starlette's router: encoded, so that an id may hold a slash; a last slash makes no difference."""
    known = segments[:-1] if segments and segments[-1] == "" else segments
    return "/" + "/".join(quote(each, safe="", errors="replace") for each in known)


def _by_path() -> dict[str, dict[str, ApiRoute]]:
    rows: dict[str, dict[str, ApiRoute]] = {}
    for row in ROUTES:
        rows.setdefault(row.path, {})[row.method] = row
    return rows


async def _refuse(
    error: Exception, scope: Scope, receive: Receive, send: Send, *, accept: bool = False
) -> None:
    answer = problem(error)  # which also logs what is the host's own fault
    if scope["type"] == "http":
        await answer(scope, receive, send)
        return
    socket = WebSocket(scope, receive, send)
    if accept:
        await socket.accept()
    await socket.close(REFUSED, "not allowed")


def _unmounted(scope: Scope) -> Scope:
    """The request as the hub reads it: decoded, and mounted nowhere."""
    return {**scope, "path": "/" + "/".join(scope[SEGMENTS]), "root_path": ""}
