"""Admission of connections: origins and limits, and the data of a user on a presence channel.

Pure. Knows limits and headers; does not know sockets or permissions (`access.py` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from runcast.broadcast.hub.limits import HubLimits
from runcast.broadcast.hub.protocol import MAY_NOT, OVER_CAPACITY, Close
from runcast.slim.values.type_guards import as_object


class Gate:
    """Admits connections and counts them by address."""

    def __init__(self, limits: HubLimits) -> None:
        self._limits = limits
        self._addresses: dict[str, int] = {}

    def refuses(self, *, origin: str | None, address: str, connections: int) -> Close | None:
        """The reason why a new connection is refused; None when it is admitted."""
        limits = self._limits
        if origin is not None and "*" not in limits.origins and origin not in limits.origins:
            return Close(MAY_NOT, "this origin may not connect")
        crowded = self._addresses.get(address, 0) >= limits.connections_per_address
        if crowded or connections >= limits.connections:
            return Close(OVER_CAPACITY, "the hub is full; come back in a moment")
        return None

    def enter(self, address: str) -> None:
        """One more from this address."""
        self._addresses[address] = self._addresses.get(address, 0) + 1

    def leave(self, address: str) -> None:
        """One less from this address; the last leaves no trace."""
        left = self._addresses[address] - 1
        if left:
            self._addresses[address] = left
        else:
            del self._addresses[address]

    def __len__(self) -> int:
        return len(self._addresses)

    def own_page(self, headers: Mapping[str, str]) -> bool:
        """Whether the page that opened this socket may act for its user: the hub's own, or a named origin.

        A browser sends a user's cookies with a WebSocket that any page opens. `"*"` lets every page connect; it does not
        let every page use the cookies.
        """
        origin = headers.get("origin")
        if origin is None or origin in self._limits.origins:
            return True
        try:
            return urlsplit(origin).netloc == headers.get("host")
        except ValueError:  # not a URL, such as `http://[`
            return False


def member_of(user: Any) -> dict[str, Any] | None:
    """The data of a user that others on a presence channel receive; None when the user is unknown.

    `identify` gives an id, or a mapping with `user_id` and perhaps `user_info`; any other user object must have
    an `id`.
    """
    given = as_object(user)
    user_id = user if isinstance(user, str | int) else given.get("user_id", getattr(user, "id", None))
    if isinstance(user_id, bool) or not isinstance(user_id, str | int) or user_id == "":
        return None
    member: dict[str, Any] = {"user_id": str(user_id)}
    if "user_info" in given:
        member["user_info"] = given["user_info"]
    return member
