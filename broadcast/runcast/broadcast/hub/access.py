"""Who asks, and whether they may watch: the two questions the hub has for its owner. Closed by default.

Knows users and threads; does not know sockets or channels.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runcast.broadcast.errors import HubError
from runcast.broadcast.hub.auth import check_token
from runcast.broadcast.hub.gate import Gate

log = logging.getLogger("runcast.hub")

Authorize = Callable[[Any, str], bool | Awaitable[bool]]  # (user, session id)
Identify = Callable[[Mapping[str, str]], Any]  # request headers, lower case -> user or None, or to be awaited


class Access:
    """Asks `identify` and `authorize`; checks tokens."""

    def __init__(
        self, secret: str, gate: Gate, *, authorize: Authorize | None, identify: Identify | None
    ) -> None:
        self._secret = secret
        self._gate = gate
        self._authorize = authorize
        self._identify = identify

    async def who(self, headers: Mapping[str, str]) -> Any:
        """The user behind a request, as `identify` tells; None when nobody knows."""
        if self._identify is None:
            return None
        try:
            user: Any = self._identify(headers)
            if inspect.isawaitable(user):
                user = await user
            return user
        except Exception as error:  # the owner's code
            log.exception("identify failed")
            raise HubError("identify failed; the log says why") from error

    async def allows(self, user: Any, session_id: str) -> bool:
        """Whether `authorize` says yes; without one, nobody may watch. Raises `HubError` when it cannot tell."""
        if self._authorize is None:
            return False
        try:
            answer = self._authorize(user, session_id)
            return (await answer if isinstance(answer, Awaitable) else answer) is True
        except Exception as error:  # the owner's code
            log.exception("authorize failed for thread %r", session_id)
            raise HubError("authorize failed; the log says why") from error

    async def admits(
        self, session_id: str, *, token: str | None, headers: Mapping[str, str], now: int
    ) -> bool:
        """Whether a plain socket may watch a thread: by its token, or because `authorize` knows its user."""
        if token is not None:
            return check_token(self._secret, token, session_id, now=now)
        if not self._gate.own_page(headers):
            return False
        return await self.allows(await self.who(headers), session_id)
