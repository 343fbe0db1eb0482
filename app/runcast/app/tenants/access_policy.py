"""Users, permissions and tenants: one policy for HTTP, sockets and Echo alike. Closed by default.

Without `authorize` the host is local: a request needs its token, which is printed at start, carried in the first
address that a browser opens, and kept in a cookie from there on. A request must also come from a loopback address and
name one as its Host; that alone would prove little, because a proxy on this machine makes every request a local one.
Knows headers and addresses; does not know routes.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlsplit

from runcast.app.errors import NotAllowed
from runcast.broadcast import HubError
from runcast.broadcast.hub.signatures import same

logger = logging.getLogger("runcast.app")

Identify = Callable[[Mapping[str, str]], Any]  # request headers, lower case -> user or None, or to be awaited
# (user, thread id); "" for what belongs to no thread
Authorize = Callable[[Any, str], bool | Awaitable[bool]]
TenantOf = Callable[[Any], str | None]  # user -> tenant; None for a user without one

STRANGER = object()  # the user of a request to a local host without its token
COOKIE = "runcast-"  # and the port: browsers keep one jar for all ports of a host
_TOKEN = re.compile(r"[-.~\w]{16,200}", re.ASCII)


class AccessPolicy:
    """Asks `identify`, `authorize` and `tenant`; without `authorize`, the bearer of the token may do everything."""

    def __init__(self, *, token: str | None = None) -> None:
        given = token if token is not None else os.environ.get("RUNCAST_TOKEN")
        if given is not None and not _TOKEN.fullmatch(given):
            raise ValueError("a token (RUNCAST_TOKEN) has 16 to 200 letters, digits, or characters of -._~")
        self.token = given or token_urlsafe(24)  # of a local host
        self._authorize: Authorize | None = None
        self._identify: Identify | None = None
        self._tenant: TenantOf | None = None
        self._announced = False

    def use(
        self,
        *,
        authorize: Authorize | None = None,
        identify: Identify | None = None,
        tenant: TenantOf | None = None,
    ) -> None:
        """Use these functions from now on; None leaves one as it was."""
        self._authorize = authorize or self._authorize
        self._identify = identify or self._identify
        self._tenant = tenant or self._tenant

    @property
    def local(self) -> bool:
        """Whether there is no `authorize`, so that only this machine's own users are served, and need the token."""
        return self._authorize is None

    async def who(self, headers: Mapping[str, str]) -> Any:
        """The user behind a request; None without `identify`, or for an unknown one. `STRANGER` lacks the token."""
        if self.local and not self.holds_token(headers):
            return STRANGER
        if self._identify is None:
            return None
        try:
            user = self._identify(headers)
            return await user if inspect.isawaitable(user) else user
        except Exception as error:  # the owner's code
            logger.exception("identify failed")
            raise HubError("identify failed; see the host's log") from error

    async def allows(self, user: Any, thread_id: str) -> bool:
        """Whether this user may see and do everything in a thread. Without `authorize`, only a stranger may not."""
        if self._authorize is None:
            return user is not STRANGER
        try:
            answer = self._authorize(user, thread_id)
            return (await answer if isinstance(answer, Awaitable) else answer) is True
        except Exception as error:  # the owner's code
            logger.exception("authorize failed for thread %r", thread_id)
            raise HubError("authorize failed; see the host's log") from error

    def tenant(self, user: Any) -> str:
        """The user's tenant; "" where there are none."""
        if self._tenant is None:
            return ""
        try:
            name = self._tenant(user)
        except Exception as error:  # the owner's code
            logger.exception("tenant failed")
            raise HubError("tenant failed; see the host's log") from error
        if not name:
            raise NotAllowed("you belong to no tenant of this host")
        return name

    def holds_token(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the local host's token: as a bearer token, or in the cookie of a page."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same(bearer.strip(), self.token):
            return True
        pairs = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        return any(name.startswith(COOKIE) and same(value, self.token) for name, _, value in pairs)

    def first_url(self, address: str, path: str = "") -> str:
        """The address to open first, or of a path: with the token, if the host is local. The caller shows it to its user."""
        self._announced = True
        return f"{address}{path or '/'}?token={self.token}" if self.local else f"{address}{path}"

    def announce(self, path: str = "/") -> None:
        """Log once how to open a local host, unless its first URL was shown."""
        if self.local and not self._announced:
            self._announced = True
            logger.warning(
                "no `authorize` was given: only this machine's own users are served; open %s?token=%s",
                path,
                self.token,
            )

    def admit(self, address: str, headers: Mapping[str, str], path: str = "/") -> None:
        """Without `authorize`, refuse requests that do not come from this machine. `path` is that of the page.

        An application that mounts this host starts no part of it, so that its token is logged with the first request.
        """
        if not self.local:
            return
        self.announce(path)
        if not from_here(address, headers):
            raise NotAllowed(
                "this host serves its own machine only: open it as http://localhost, or start it with `authorize`"
            )


def from_here(address: str, headers: Mapping[str, str]) -> bool:
    """Whether a request was made on this machine and for this machine, as far as it shows."""
    return is_loopback(address) and is_loopback(host_name(headers.get("host", "")))


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this machine only."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        found = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets; "" when there is none.

    `urlsplit` drops tabs and line breaks, which would make a name of one that is none: `lo<tab>calhost`.
    """
    if not host.isprintable() or " " in host:
        return ""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def own_origin(headers: Mapping[str, str], allowed: tuple[str, ...]) -> bool:
    """Whether the request comes from no page, from our own, or from one with an allowed origin.

    Browsers let any page send a POST with its user's cookies, and to a developer's own machine even without.
    """
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    if origin in allowed or "*" in allowed:
        return True
    try:
        return urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False
