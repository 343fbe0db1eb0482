"""Access control: `identify` names the user of a request, `authorize` lets a user watch a thread. Closed by default.

Knows users and threads; does not know sockets or channels.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runcast.broadcast.errors import HubError
from runcast.broadcast.hub.gate import Gate
from runcast.broadcast.hub.signatures import check_token

log = logging.getLogger("runcast.hub")

Authorize = Callable[[Any, str], bool | Awaitable[bool]]  # (user, session id)
Identify = Callable[[Mapping[str, str]], Any]  # request headers, lower case -> user or None, or to be awaited


class Access:
    """Calls `identify` and `authorize`; checks tokens."""

    def __init__(
        self, secret: str, gate: Gate, *, authorize: Authorize | None, identify: Identify | None
    ) -> None:
        self._secret = secret
        self._gate = gate
        self._authorize = authorize
        self._identify = identify

    async def who(self, headers: Mapping[str, str]) -> Any:
        """The user of a request by `identify`; None when it is unknown."""
        if self._identify is None:
            return None
        try:
            user: Any = self._identify(headers)
            if inspect.isawaitable(user):
                user = await user
            return user
        except Exception as error:  # the application's code
            log.exception("identify failed")
            raise HubError("identify failed; its traceback is in the log") from error

    async def allows(self, user: Any, session_id: str) -> bool:
        """Whether `authorize` returns True; without one, no user may watch. Raises `HubError` when it fails."""
        if self._authorize is None:
            return False
        try:
            answer = self._authorize(user, session_id)
            return (await answer if isinstance(answer, Awaitable) else answer) is True
        except Exception as error:  # the application's code
            log.exception("authorize failed for thread %r", session_id)
            raise HubError("authorize failed; its traceback is in the log") from error

    async def admits(
        self, session_id: str, *, token: str | None, headers: Mapping[str, str], now: int
    ) -> bool:
        """Whether a plain socket may watch a thread: by its token, or because `authorize` allows its user."""
        if token is not None:
            return check_token(self._secret, token, session_id, now=now)
        if not self._gate.own_page(headers):
            return False
        return await self.allows(await self.who(headers), session_id)
