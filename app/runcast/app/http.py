"""Everything a host shows, as one ASGI app: the page, the HTTP API, the AG-UI endpoint, and the hub's sockets.

    app = cast.asgi(authorize=lambda user, thread_id: user is not None and owns(user, thread_id),
                    identify=lambda headers: user_of(headers.get("authorization")))

Mount it anywhere, or give it to an ASGI server by itself. Without `authorize` it serves this machine's own users
alone. `authorize` is asked with an empty thread id for what belongs to no thread: the agents, the numbers.
Knows ASGI and who may come in; the routes know the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from runcast.app.auth import Authorize, Identify, TenantOf, own_origin
from runcast.app.cast import Cast
from runcast.app.errors import NotAllowed, NotFound, WrongMethod
from runcast.app.problems import problem
from runcast.app.routes import Here, Reply, find
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
HUB_PATHS = ("app", "apps", "broadcasting", "ws", "up")


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
        headers = headers_of(scope)
        try:
            _, cast = await self._enter(scope, headers)
            hub = self._hub(cast)
        except Exception as error:  # noqa: BLE001  a refused socket has no body to say it in
            problem(error)
            await receive()
            await send({"type": "websocket.close", "code": 4009, "reason": "not allowed"})
            return
        await hub(scope, receive, send)

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
            headers = headers_of(scope)
            path = path_of(scope)
            asked = Asked(scope["method"], path, query_of(scope), headers, receive, self._max_body)
            user, cast = await self._enter(scope, headers)
            if path and path[0] in HUB_PATHS:
                await self._hub(cast)(scope, receive, send)
                return
            reply = await self._reply(Here(asked, cast, user, self._keepalive))
        except Exception as error:  # noqa: BLE001  one bad request must not end the server
            reply = problem(error)
        await reply.send(asked, send)

    async def _enter(self, scope: Scope, headers: Mapping[str, str]) -> tuple[Any, Cast]:
        """Who comes in, and the host as they see it. Raises when they may not."""
        door = self.cast.door
        door.admit(str((scope.get("client") or ("",))[0]), headers)
        user = await door.who(headers)
        await self.cast.opened()
        return user, self.cast.for_tenant(door.tenant(user))

    async def _reply(self, here: Here) -> Reply:
        asked = here.asked
        if asked.method == "OPTIONS":
            return Answer(b"", 204, headers={"access-control-max-age": "600"})
        if asked.method in ("GET", "HEAD") and self._page and len(asked.path) <= 1:
            shown = _page("".join(asked.path))
            if shown is not None:
                return shown
        found = find(asked.path)
        if not found:
            raise NotFound("nothing is here")
        handler = found.get("GET" if asked.method == "HEAD" else asked.method)
        if handler is None:
            raise WrongMethod(f"ask with {' or '.join(found)}")
        if asked.method == "POST" and not own_origin(asked.headers, self._cors):
            raise NotAllowed("pages of other origins may not do this; name them in `cors`")
        return await handler[0](here, *handler[1])

    def _allowing(self, scope: Scope, send: Send) -> Send:
        """`send`, with what a browser wants to hear before it lets another origin's page read the answer."""
        origin = headers_of(scope).get("origin", "")
        if not origin or not (origin in self._cors or "*" in self._cors):
            return send
        named = origin in self._cors
        said = {
            "access-control-allow-origin": origin if named else "*",
            "access-control-allow-methods": "GET, POST",
            "access-control-allow-headers": "authorization, content-type, last-event-id",
            "vary": "origin",
            **({"access-control-allow-credentials": "true"} if named else {}),
        }
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in said.items()]

        async def allowing(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *pairs]}
            await send(message)

        return allowing


def _page(name: str) -> Answer | None:
    """A file of the page, read from the wheel."""
    if name not in PAGE:
        return None
    file, kind = PAGE[name]
    headers = {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    return Answer(files("runcast.app").joinpath("page", file).read_bytes(), kind=kind, headers=headers)
