"""Who asks, whether they may, and as whose tenant: one door for HTTP, sockets and Echo alike. Closed by default.

Until `authorize` is given, only this machine's own users come in: the connection must come from a loopback address,
the Host header must name one (a name that an attacker's DNS points here does not), and no proxy may stand between.
Knows headers and addresses; does not know routes.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from runcast.app.errors import NotAllowed
from runcast.broadcast import HubError

logger = logging.getLogger("runcast.app")

Identify = Callable[[Mapping[str, str]], Any]  # request headers, lower case -> user or None, or to be awaited
Authorize = Callable[
    [Any, str], bool | Awaitable[bool]
]  # (user, thread id); "" for what belongs to no thread
TenantOf = Callable[[Any], str | None]  # user -> tenant; None for somebody who belongs to none

_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


class Door:
    """Asks `identify`, `authorize` and `tenant`, or lets this machine's own users in while nobody decides."""

    def __init__(self) -> None:
        self._authorize: Authorize | None = None
        self._identify: Identify | None = None
        self._tenant: TenantOf | None = None
        self._warned = False

    def use(
        self,
        *,
        authorize: Authorize | None = None,
        identify: Identify | None = None,
        tenant: TenantOf | None = None,
    ) -> None:
        """Let these decide from now on; what is None stays as it was."""
        self._authorize = authorize or self._authorize
        self._identify = identify or self._identify
        self._tenant = tenant or self._tenant

    @property
    def local(self) -> bool:
        """Whether nobody decides, so that only this machine's own users come in."""
        return self._authorize is None

    async def who(self, headers: Mapping[str, str]) -> Any:
        """The user behind a request; None when nobody knows."""
        if self._identify is None:
            return None
        try:
            user = self._identify(headers)
            return await user if inspect.isawaitable(user) else user
        except Exception as error:  # the owner's code
            logger.exception("identify failed")
            raise HubError("identify failed; the log says why") from error

    async def allows(self, user: Any, thread_id: str) -> bool:
        """Whether this user may see and do everything in a thread. Without `authorize` whoever came in may."""
        if self._authorize is None:
            return True
        try:
            answer = self._authorize(user, thread_id)
            return (await answer if isinstance(answer, Awaitable) else answer) is True
        except Exception as error:  # the owner's code
            logger.exception("authorize failed for thread %r", thread_id)
            raise HubError("authorize failed; the log says why") from error

    def tenant(self, user: Any) -> str:
        """The tenant this user belongs to; "" where there are none."""
        if self._tenant is None:
            return ""
        try:
            name = self._tenant(user)
        except Exception as error:  # the owner's code
            logger.exception("tenant failed")
            raise HubError("tenant failed; the log says why") from error
        if not name:
            raise NotAllowed("you belong to no tenant of this host")
        return name

    def admit(self, address: str, headers: Mapping[str, str]) -> None:
        """Refuse strangers while nobody decides who may come in."""
        if not self.local:
            return
        if not self._warned:
            self._warned = True
            logger.warning("no `authorize` was given: only this machine's own users are served")
        if not from_here(address, headers):
            raise NotAllowed(
                "this host serves its own machine only: open it by http://localhost, or start it with `authorize`"
            )


def from_here(address: str, headers: Mapping[str, str]) -> bool:
    """Whether a request was made on this machine, for this machine, by no detour."""
    if any(name in headers for name in _PROXIES):
        return False
    return is_loopback(address) and is_loopback(host_name(headers.get("host", "")))


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this machine alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        found = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets; "" when there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def own_origin(headers: Mapping[str, str], allowed: tuple[str, ...]) -> bool:
    """Whether the page that made this request, if one did, is ours or one that was named.

    A browser lets any page send a POST along with its user's cookies, and on a developer's own machine without any.
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
