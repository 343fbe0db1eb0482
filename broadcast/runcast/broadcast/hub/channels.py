"""Channels: which names exist, what they mean, and who is in them.

A thread's channel is `private-agent.{session_id}` unless made public on purpose. Names are limited to what the
protocol allows; any other thread id is carried encoded, so that two threads never share a channel.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

LONGEST = 200
_NAME = re.compile(r"[-a-zA-Z0-9_=@,.;]{1,200}")
_USER = re.compile(r"#server-to-user-[-a-zA-Z0-9_=@,.;]{1,180}")
PRIVATE = "private-agent."
_ENCODED = "=b."  # a session id that a name cannot hold, as base64url
_HASHED = "=h."  # one that is also too long, as a digest: the hub remembers whose it is


def valid_name(name: Any) -> bool:
    """Whether the protocol allows this name for a channel."""
    return isinstance(name, str) and (_NAME.fullmatch(name) or _USER.fullmatch(name)) is not None


def channel_for(session_id: str, *, prefix: str = PRIVATE) -> str:
    """The channel of a thread. Different threads have different channels, whatever their ids look like."""
    plain = prefix + session_id
    if _NAME.fullmatch(plain) and not session_id.startswith((_ENCODED, _HASHED)):
        return plain
    raw = session_id.encode("utf-8", "surrogatepass")
    encoded = prefix + _ENCODED + urlsafe_b64encode(raw).rstrip(b"=").decode()
    if len(encoded) <= LONGEST:
        return encoded
    return prefix + _HASHED + hashlib.sha256(raw).hexdigest()


def session_of(channel: str, *, prefix: str = PRIVATE) -> str | None:
    """The thread of a channel; None when it is not a thread's, or only its digest is known."""
    known = (prefix, "private-cache-agent.", "private-agent.", "cache-agent.", "presence-agent.", "agent.")
    found = next((each for each in known if channel.startswith(each)), None)
    coded = "" if found is None else channel[len(found) :]
    if found is None or not coded or coded.startswith(_HASHED):
        return None
    if not coded.startswith(_ENCODED):
        return coded
    text = coded[len(_ENCODED) :]
    try:
        session_id = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
    # Base64 has many spellings of one text; a thread has one channel.
    return session_id if channel_for(session_id, prefix=found) == channel else None


@dataclass(frozen=True, slots=True)
class Kind:
    """What a channel's name says about it."""

    private: bool  # entry needs a signature
    presence: bool  # members see each other
    cache: bool  # the last event is kept for whoever comes


def kind_of(channel: str) -> Kind:
    """Read a name's prefixes."""
    presence = channel.startswith("presence-")
    private = presence or channel.startswith(("private-", "#server-to-user-"))
    cache = channel.startswith(("cache-", "private-cache-", "presence-cache-"))
    return Kind(private, presence, cache)


@dataclass(slots=True)
class Member:
    """A user on a presence channel, on one or more sockets."""

    user_id: str
    info: Any
    sockets: set[str] = field(default_factory=set[str])


class ChannelTable:
    """Who is in which channel, both ways round; empty channels leave no trace."""

    def __init__(self) -> None:
        self._sockets: dict[str, dict[str, None]] = {}  # channel -> sockets, in order of arrival
        self._channels: dict[str, set[str]] = {}  # socket -> channels
        self._members: dict[str, dict[str, Member]] = {}  # presence channel -> user id -> member
        self._users: dict[tuple[str, str], str] = {}  # presence channel and socket -> user id

    def join(self, channel: str, socket_id: str) -> bool:
        """Put a socket into a channel; False when it was there."""
        sockets = self._sockets.setdefault(channel, {})
        if socket_id in sockets:
            return False
        sockets[socket_id] = None
        self._channels.setdefault(socket_id, set()).add(channel)
        return True

    def leave(self, channel: str, socket_id: str) -> Member | None:
        """Take a socket out; answers the member whose last socket this was, on a presence channel."""
        sockets = self._sockets.get(channel)
        if sockets is None or socket_id not in sockets:
            return None
        del sockets[socket_id]
        if not sockets:
            del self._sockets[channel]
        channels = self._channels[socket_id]
        channels.discard(channel)
        if not channels:
            del self._channels[socket_id]
        return self._leave_members(channel, socket_id)

    def _leave_members(self, channel: str, socket_id: str) -> Member | None:
        user_id = self._users.pop((channel, socket_id), None)
        if user_id is None:
            return None
        members = self._members[channel]
        member = members[user_id]
        member.sockets.discard(socket_id)
        if member.sockets:
            return None
        del members[user_id]
        if not members:
            del self._members[channel]
        return member

    def join_member(self, channel: str, socket_id: str, user_id: str, info: Any) -> bool:
        """Note a user's socket on a presence channel; True when the user was not there before."""
        self._users[channel, socket_id] = user_id
        members = self._members.setdefault(channel, {})
        member = members.get(user_id)
        if member is None:
            members[user_id] = Member(user_id, info, {socket_id})
            return True
        member.sockets.add(socket_id)
        return False

    def member_of(self, channel: str, socket_id: str) -> str | None:
        """Which user this socket is on a presence channel."""
        return self._users.get((channel, socket_id))

    def members(self, channel: str) -> dict[str, Any]:
        """User ids and what they told of themselves."""
        return {user_id: member.info for user_id, member in self._members.get(channel, {}).items()}

    def sockets(self, channel: str) -> list[str]:
        """The sockets in a channel."""
        return list(self._sockets.get(channel, ()))

    def count(self, channel: str) -> int:
        """How many sockets a channel has."""
        return len(self._sockets.get(channel, ()))

    def channels_of(self, socket_id: str) -> set[str]:
        """The channels a socket is in."""
        return set(self._channels.get(socket_id, ()))

    def channels(self) -> list[str]:
        """The channels that somebody is in."""
        return list(self._sockets)
