"""Everything a host shows, as one ASGI app: the page, the HTTP API, the AG-UI endpoint, and the hub's sockets.

    app = cast.asgi(authorize=lambda user, thread_id: user is not None and owns(user, thread_id),
                    identify=lambda headers: user_of(headers.get("authorization")))

Mount it anywhere, or give it to an ASGI server by itself. Without `authorize` it serves this machine's own users
only. `authorize` is asked with an empty thread id for what belongs to no thread: the agents and the numbers.
Importing this module does not need Starlette; making an `App` does. `site.py` knows what happens to a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runcast.app.host.cast import Cast
from runcast.app.http.page import PageOptions
from runcast.app.tenants.access_policy import Authorize, Identify, TenantOf

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class App:
    """A `Cast` over HTTP and WebSockets. It connects the store by itself, and closes it when its server ends."""

    def __init__(
        self,
        cast: Cast,
        *,
        authorize: Authorize | None = None,
        identify: Identify | None = None,
        tenant: TenantOf | None = None,
        cors: Sequence[str] = (),  # origins of other pages that may ask; "*" for all, without credentials
        page: bool | PageOptions = True,
        max_body: int = 8_388_608,
        keepalive: float = 15.0,  # seconds of silence after which a stream carries a comment
    ) -> None:
        from runcast.app.http.http_messages import HttpOptions
        from runcast.app.http.site import Site

        cast.access.use(authorize=authorize, identify=identify, tenant=tenant)
        self.cast = cast
        self._site = Site(cast, HttpOptions(tuple(cors), page, max_body, keepalive))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket."""
        await self._site(scope, receive, send)
