"""The demo's controls on its page: `GET /demo`, `POST /demo/kill` and `POST /demo/resume`, in front of the host's own app.

Whoever may use the page of a local host may kill its worker: the token is asked for as everywhere. Knows the desk; does
not know what the page draws.
"""

from __future__ import annotations

from typing import Any

from runcast.app.demo.desk import Desk
from runcast.app.errors import AppError, NotAllowed
from runcast.app.http.http_messages import Answer, headers_of
from runcast.app.http.page import PageOptions
from runcast.app.http.problems import problem
from runcast.app.tenants.access_policy import own_origin


class DemoSite:
    """The host's app, and the controls before it."""

    def __init__(self, desk: Desk, **options: Any) -> None:
        self._desk = desk
        self._app = desk.cast.asgi(page=PageOptions(demo=True), **options)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request or socket."""
        path = scope.get("path", "").rstrip("/")
        if scope["type"] != "http" or path not in ("/demo", "/demo/kill", "/demo/resume"):
            await self._app(scope, receive, send)
            return
        try:
            self._let_in(scope)
            answer = await self._answer(path.removeprefix("/demo").lstrip("/"), scope["method"])
        except (AppError, TimeoutError) as error:
            answer = problem(error)
        await answer(scope, receive, send)

    def _let_in(self, scope: Any) -> None:
        access, headers = self._desk.cast.access, headers_of(scope)
        access.admit(str((scope.get("client") or ("",))[0]), headers)
        if access.local and not access.holds_token(headers):
            raise NotAllowed("the demo needs its token: open the address that it printed at start")
        if scope["method"] == "POST" and not own_origin(headers, ()):
            raise NotAllowed("pages of other origins may not do this")

    async def _answer(self, order: str, method: str) -> Answer:
        if (method == "POST") != bool(order):
            return Answer({"title": "method not allowed"}, 405)
        if order == "kill":
            await self._desk.worker.kill()
        elif order == "resume":
            await self._desk.bring_back()
        return Answer({"worker": self._desk.worker.pid})
