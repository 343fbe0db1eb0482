"""Channels: the names that exist, their meaning, and the table of the sockets in them.

A thread's channel is `private-agent.{thread id}` unless made public on purpose. The id is one segment: letters, digits
and `-_@` stand for themselves, every other byte of its UTF-8 is `=` and two hex digits. So plain ids are readable, two
threads never share a channel, Laravel's `agent.{threadId}` takes the segment whole (its pattern takes all but dots), and a
Livewire listener too (it splits at commas and colons).
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

LONGEST = 200
_NAME = re.compile(r"[-a-zA-Z0-9_=@,.;]{1,200}")
_USER = re.compile(r"#server-to-user-[-a-zA-Z0-9_=@,.;]{1,180}")
PRIVATE = "private-agent."
_THREADS = ("private-cache-agent.", "private-agent.", "cache-agent.", "presence-agent.", "agent.")
_PLAIN = re.compile(r"[-a-zA-Z0-9_@]+")
_BYTES = [chr(byte) if _PLAIN.match(chr(byte)) else f"={byte:02X}" for byte in range(256)]
_ESCAPED = re.compile(r"(?:[-a-zA-Z0-9_@]|=[0-9A-F]{2})+")
_DIGEST = "=h"  # before the digest of an id that is too long: the hub remembers whose it is
# Older names: ids with `.` and `=` as they are, others as base64url or as a digest.
_OLD_BASE64, _OLD_DIGEST = "=b.", "=h."


def valid_name(name: Any) -> bool:
    """Whether the protocol allows this name for a channel."""
    return isinstance(name, str) and (_NAME.fullmatch(name) or _USER.fullmatch(name)) is not None


def channel_for(session_id: str, *, prefix: str = PRIVATE) -> str:
    """The channel of a thread. Different threads have different channels, whatever their ids contain."""
    if _PLAIN.fullmatch(session_id) and len(prefix) + len(session_id) <= LONGEST:
        return prefix + session_id
    raw = session_id.encode("utf-8", "surrogatepass")
    name = prefix + "".join(_BYTES[byte] for byte in raw)
    if raw and len(name) <= LONGEST:
        return name
    return prefix + _DIGEST + hashlib.sha256(raw).hexdigest()


def session_of(channel: str, *, prefix: str = PRIVATE) -> str | None:
    """The thread of a channel, by its current or an older name; None for a digest, and for what is no thread's."""
    found = _thread_prefix(channel, prefix)
    coded = channel[len(found) :]
    if not found or not coded or coded.startswith(_DIGEST):
        return None
    if _ESCAPED.fullmatch(coded):
        session_id = _decoded(unquote_to_bytes(coded.replace("=", "%")))
        if session_id is not None and channel_for(session_id, prefix=found) == channel:
            return session_id
    return _older_session(coded, found)


def canonical(channel: str, *, prefix: str = PRIVATE) -> str:
    """The channel that a name stands for: for an older name of a thread, the current one."""
    found = _thread_prefix(channel, prefix)
    if found and channel.startswith(found + _OLD_DIGEST):
        return found + _DIGEST + channel[len(found + _OLD_DIGEST) :]
    session_id = session_of(channel, prefix=prefix) if found else None
    return channel if session_id is None else channel_for(session_id, prefix=found)


def _thread_prefix(channel: str, prefix: str) -> str:
    return next((each for each in (prefix, *_THREADS) if channel.startswith(each)), "")


def _older_session(coded: str, prefix: str) -> str | None:
    if not coded.startswith(_OLD_BASE64):
        return coded
    text = coded[len(_OLD_BASE64) :]
    try:
        session_id = _decoded(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return None
    # Base64 has many spellings of one text, and plain ids were never encoded.
    if session_id is None or _OLD_BASE64 + _base64(session_id) != coded:
        return None
    plain = _NAME.fullmatch(prefix + session_id) and not session_id.startswith((_OLD_BASE64, _OLD_DIGEST))
    return None if plain else session_id


def _base64(text: str) -> str:
    return urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).rstrip(b"=").decode()


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Kind:
    """The meaning of a channel's name."""

    private: bool  # entry needs a signature
    presence: bool  # members see each other
    cache: bool  # the last event is kept for later subscribers


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
    """Sockets by channel and channels by socket; empty channels leave no trace."""

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
        """Take a socket out; returns the member of a presence channel that has no socket left."""
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
        """Record a user's socket on a presence channel; True when it is the user's first."""
        self._users[channel, socket_id] = user_id
        members = self._members.setdefault(channel, {})
        member = members.get(user_id)
        if member is None:
            members[user_id] = Member(user_id, info, {socket_id})
            return True
        member.sockets.add(socket_id)
        return False

    def member_of(self, channel: str, socket_id: str) -> str | None:
        """The user of a socket on a presence channel."""
        return self._users.get((channel, socket_id))

    def sockets_of(self, user_id: str) -> set[str]:
        """The sockets of a user on any presence channel."""
        return {socket_id for (_, socket_id), user in self._users.items() if user == user_id}

    def members(self, channel: str) -> dict[str, Any]:
        """User ids and their `user_info`."""
        return {user_id: member.info for user_id, member in self._members.get(channel, {}).items()}

    def sockets(self, channel: str) -> list[str]:
        """The sockets in a channel."""
        return list(self._sockets.get(channel, ()))

    def count(self, channel: str) -> int:
        """The number of sockets in a channel."""
        return len(self._sockets.get(channel, ()))

    def channels_of(self, socket_id: str) -> set[str]:
        """The channels a socket is in."""
        return set(self._channels.get(socket_id, ()))

    def channels(self) -> list[str]:
        """The channels that have sockets."""
        return list(self._sockets)
