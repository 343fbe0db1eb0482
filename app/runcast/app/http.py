"""Everything a host shows, as one ASGI app: the page, the HTTP API, the AG-UI endpoint, and the hub's sockets.

    app = cast.asgi(authorize=lambda user, thread_id: user is not None and owns(user, thread_id),
                    identify=lambda headers: user_of(headers.get("authorization")))

Mount it anywhere, or give it to an ASGI server by itself. Without `authorize` it serves this machine's own users
alone. `authorize` is asked with an empty thread id for what belongs to no thread: the agents, the numbers.
Knows ASGI and who may come in; `table.py` knows what is asked where.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from typing import Any

from runcast.app.auth import Authorize, Identify, TenantOf, own_origin
from runcast.app.cast import Cast
from runcast.app.errors import NotAllowed, NotFound, WrongMethod
from runcast.app.openapi import Route
from runcast.app.problems import problem
from runcast.app.routes import Here, Reply
from runcast.app.table import find
from runcast.app.tokens import watched
from runcast.app.web import Answer, Asked, Receive, Scope, Send, headers_of, path_of, query_of
from runcast.broadcast.hub.asgi import HubApp

PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "runcast.js": ("runcast.js", "text/javascript; charset=utf-8"),
    "runcast.d.ts": ("runcast.d.ts", "text/plain; charset=utf-8"),
    "reader.js": ("reader.js", "text/javascript; charset=utf-8"),
    "steady.js": ("steady.js", "text/javascript; charset=utf-8"),
}
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
ASKS_FOR = re.compile(r"[-\w]+(?:, ?[-\w]+){0,50}", re.ASCII)  # names of headers


class App:
    """A `Cast` over HTTP and WebSockets. It connects the store by itself, and closes what it has opened."""

    def __init__(
        self,
        cast: Cast,
        *,
        authorize: Authorize | None = None,
        identify: Identify | None = None,
        tenant: TenantOf | None = None,
        cors: Sequence[
            str
        ] = (),  # origins of other pages that may ask; "*" for all of them, without credentials
        page: bool = True,
        max_body: int = 8_388_608,
        keepalive: float = 15.0,  # seconds of silence after which a stream says that it is still there
    ) -> None:
        cast.door.use(authorize=authorize, identify=identify, tenant=tenant)
        self.cast = cast
        self._cors = tuple(cors)
        self._page = page
        self._max_body = max_body
        self._keepalive = keepalive
        self._hubs: dict[str, HubApp] = {}  # by tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket."""
        match scope["type"]:
            case "http":
                await self._http(scope, receive, self._allowing(scope, send))
            case "websocket":
                await self._websocket(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                pass

    # ------------------------------------------------------------------ life

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            try:
                if kind == "lifespan.startup":
                    await self.cast.opened()
                else:
                    await self.cast.aclose()
                await send({"type": f"{kind}.complete"})
            except Exception as error:  # noqa: BLE001  the server reports it in its own way
                await send({"type": f"{kind}.failed", "message": str(error)})
            if kind == "lifespan.shutdown":
                return

    # --------------------------------------------------------------- sockets

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = None
        try:
            headers, path = headers_of(scope), path_of(scope)
            self._admit(scope, headers)
            token = query_of(scope).get("token") if path == ("ws",) else None
            hub = self._hub(await self._for_socket(token, headers))
        except Exception as error:  # noqa: BLE001  a refused socket has no body to say it in
            problem(error)
            await receive()
            if token:  # a page is told why a socket was closed, but not why a handshake failed
                await send({"type": "websocket.accept"})
            await send({"type": "websocket.close", "code": 4009, "reason": "not allowed"})
            return
        await hub(_bare(scope, path), receive, send)

    async def _for_socket(self, token: str | None, headers: Mapping[str, str]) -> Cast:
        """Whose hub a socket is for: its token's, else that of whoever its headers tell of. The hub asks the rest."""
        if not token:
            return (await self._enter(headers))[1]
        await self.cast.opened()
        found = watched(self.cast, token)
        if found is None:
            raise NotAllowed("this token is not good, or not any more; ask for another")
        return found[0]

    def _hub(self, cast: Cast) -> HubApp:
        if cast.hub is None:
            raise NotFound("this host has no hub")
        if cast.tenant not in self._hubs:
            self._hubs[cast.tenant] = cast.hub.asgi()
        return self._hubs[cast.tenant]

    # ------------------------------------------------------------------ HTTP

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Asked(scope["method"], (), {}, {}, receive, self._max_body)
        try:
            headers, path = headers_of(scope), path_of(scope)
            root = str(scope.get("root_path", ""))
            asked = Asked(scope["method"], path, query_of(scope), headers, receive, self._max_body, root)
            self._admit(scope, headers)
            reply = self._shown(scope, asked)
            if reply is None:
                route, told = _route(asked)
                here = await self._here(route, asked, told)
                if route.handler is None:
                    await self._hub(here.cast)(_bare(scope, path), receive, send)
                    return
                reply = await route.handler(here, *told)
        except Exception as error:  # noqa: BLE001  one bad request must not end the server
            reply = problem(error)
        await reply.send(asked, send)

    def _admit(self, scope: Scope, headers: Mapping[str, str]) -> None:
        self.cast.door.admit(str((scope.get("client") or ("",))[0]), headers)

    def _shown(self, scope: Scope, asked: Asked) -> Reply | None:
        """What is told to whoever reaches this host, and is the same for all: the page, and how a path can be asked."""
        found, _ = find(asked.path)
        name = "/".join(asked.path)
        page = self._page and name in PAGE
        if asked.method == "OPTIONS" and (page or found):
            allowed = _methods([*found, *(("GET",) if page else ())])
            return Answer(b"", 204, headers={"allow": ", ".join(allowed), "access-control-max-age": "600"})
        if not page or asked.method not in ("GET", "HEAD"):
            return None
        if not asked.path and asked.root:  # its links are relative, and start behind a slash
            return Answer(b"", 307, headers={"location": f"{asked.root.rpartition('/')[2]}/"})
        return _file(name)

    async def _here(self, route: Route, asked: Asked, told: Sequence[str]) -> Here:
        """The request, as one that may be answered. Raises when it may not."""
        if asked.method == "POST" and route.handler and not own_origin(asked.headers, self._cors):
            raise NotAllowed("pages of other origins may not do this; name them in `cors`")
        token = asked.query.get("token") if route.by_token else None
        if token is not None:
            await self.cast.opened()
            found = watched(self.cast, token)
            if found is None:
                raise NotAllowed("this token is not good, or not any more; ask for another")
            return Here(asked, found[0], None, self._keepalive, watched=found[1])
        if route.who == "anybody":
            await self.cast.opened()
            return Here(asked, self.cast, None, self._keepalive)
        user, cast = await self._enter(asked.headers)
        return Here(asked, cast, user, self._keepalive)

    async def _enter(self, headers: Mapping[str, str]) -> tuple[Any, Cast]:
        """Who asks, and the host as they see it. Raises when they belong to none of its tenants."""
        user = await self.cast.door.who(headers)
        await self.cast.opened()
        return user, self.cast.for_tenant(self.cast.door.tenant(user))

    def _allowing(self, scope: Scope, send: Send) -> Send:
        """`send`, with what a browser wants to hear before it lets another origin's page read the answer."""
        origin = headers_of(scope).get("origin", "")
        if not origin or not (origin in self._cors or "*" in self._cors):
            return send
        named = origin in self._cors
        wanted = headers_of(scope).get("access-control-request-headers", "")
        said = {
            "access-control-allow-origin": origin if named else "*",
            "access-control-allow-methods": "GET, HEAD, POST",
            "access-control-allow-headers": wanted
            if ASKS_FOR.fullmatch(wanted)
            else "authorization, content-type",
            "vary": "origin, access-control-request-headers",
            **({"access-control-allow-credentials": "true"} if named else {}),
        }
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in said.items()]

        async def allowing(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *pairs]}
            await send(message)

        return allowing


def _route(asked: Asked) -> tuple[Route, list[str]]:
    """The row of the table that is asked for, and the segments that its handler is told."""
    found, told = find(asked.path)
    if not found:
        raise NotFound("nothing is here")
    route = found.get("GET" if asked.method == "HEAD" else asked.method)
    if route is None:
        raise WrongMethod(f"ask with {' or '.join(found)}", allow=_methods(found))
    return route, told


def _methods(known: Collection[str]) -> list[str]:
    return sorted({*known, "OPTIONS", *(("HEAD",) if "GET" in known else ())})


def _bare(scope: Scope, path: Sequence[str]) -> Scope:
    """The request as the hub sees it, which is mounted nowhere."""
    return {**scope, "path": f"/{'/'.join(path)}", "root_path": ""}


def _file(name: str) -> Answer:
    """A file of the page, read from the wheel."""
    file, kind = PAGE[name]
    headers = {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    return Answer(files("runcast.app").joinpath("page", file).read_bytes(), kind=kind, headers=headers)
