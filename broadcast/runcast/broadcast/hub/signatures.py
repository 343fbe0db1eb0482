"""The signatures of the Pusher protocol, and tokens for plain sockets.

Pure: keys, times and messages come in, an answer goes out. Comparisons take constant time. Knows proofs; does not know
permissions (`authorize` does).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson

from runcast.slim.entry import LONGEST_BOUND, bound, unbound
from runcast.slim.values.type_guards import as_object

WINDOW = 600  # seconds a signed request may be off our clock
TWIN = (
    2  # seconds in which an equal request is another event and not a copy: Laravel may send two in one second
)


def sign(secret: str, text: str) -> str:
    """Hex HMAC-SHA256, the protocol's only primitive. Any text has one, also what a stranger sent."""
    return hmac.new(secret.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def sign_channel(
    socket_id: str, channel: str, *, key: str, secret: str, channel_data: str | None = None
) -> str:
    """`key:signature` that lets one socket into one channel; `channel_data` is signed byte for byte."""
    text = f"{socket_id}:{channel}" if channel_data is None else f"{socket_id}:{channel}:{channel_data}"
    return f"{key}:{sign(secret, text)}"


def sign_user(socket_id: str, user_data: str, *, key: str, secret: str) -> str:
    """`key:signature` for `pusher:signin`."""
    return f"{key}:{sign(secret, f'{socket_id}::user::{user_data}')}"


def same(given: Any, expected: str) -> bool:
    """Whether an untrusted proof is the expected one, in constant time; anything but text is not."""
    if not isinstance(given, str):
        return False
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


# ------------------------------------------------------------------ HTTP API


def sign_request(method: str, path: str, body: bytes, *, key: str, secret: str, now: int) -> str:
    """The query string of a signed HTTP API request."""
    query = {"auth_key": key, "auth_timestamp": str(now), "auth_version": "1.0"}
    if body:
        query["body_md5"] = hashlib.md5(body, usedforsecurity=False).hexdigest()
    query["auth_signature"] = sign(secret, _canonical(method, path, query))
    return urlencode(sorted(query.items()))


def _canonical(method: str, path: str, query: Mapping[str, str]) -> str:
    pairs = "&".join(f"{name}={query[name]}" for name in sorted(query) if name != "auth_signature")
    return f"{method}\n{path}\n{pairs}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a request is not served."""

    status: int
    sentence: str
    served: bool = False  # it is valid, and was served before


class RequestGuard:
    """Checks signed requests. An equal one that comes more than `TWIN` seconds after the first is a captured copy."""

    def __init__(self, key: str, secret: str, *, window: int = WINDOW, remember: int = 100_000) -> None:
        self._key = key
        self._secret = secret
        self._window = window
        self._remember = remember  # signatures kept
        self._seen: dict[
            int, dict[str, int]
        ] = {}  # by the second they were made in; signature -> when it came
        self._count = 0
        self._floor = -1  # requests made up to this second cannot be distinguished from copies any more

    def check(
        self, method: str, path: str, query: Sequence[tuple[str, str]], body: bytes, *, now: int
    ) -> Refusal | None:
        """None when the request may be served."""
        given = dict(query)
        if len(given) != len(query):
            return Refusal(400, "a query parameter is given twice; give each once")
        if not same(given.get("auth_key"), self._key):
            return Refusal(401, "auth_key is not this app's key")
        stamp = given.get("auth_timestamp", "")
        if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
            return Refusal(401, "auth_timestamp must be seconds since the Unix epoch")
        if abs(now - int(stamp)) > self._window:
            return Refusal(401, f"auth_timestamp is more than {self._window} s off; set the clock")
        if not _body_matches(given, body):
            return Refusal(401, "body_md5 is not the body's digest")
        expected = sign(self._secret, _canonical(method, path, given))
        if not same(given.get("auth_signature"), expected):
            return Refusal(401, "auth_signature does not match")
        # Reading twice is harmless, and clients poll: only requests that change something are checked.
        if method != "GET" and not self._is_new(expected, int(stamp), now):
            return Refusal(401, "this request was served before; sign a new one", served=True)
        return None

    def _is_new(self, signature: str, stamp: int, now: int) -> bool:
        if stamp <= self._floor:
            return False
        came = self._seen.get(stamp, {}).get(signature)
        if came is not None:
            return now - came <= TWIN
        for old in [made for made in self._seen if made < now - self._window]:
            self._count -= len(self._seen.pop(old))
        self._seen.setdefault(stamp, {})[signature] = now
        self._count += 1
        while self._count > self._remember and len(self._seen) > 1:
            # Full: the oldest second goes, and requests made in it are refused from now on.
            self._floor = min(self._seen)
            self._count -= len(self._seen.pop(self._floor))
        return True


def _body_matches(given: Mapping[str, str], body: bytes) -> bool:
    digest = given.get("body_md5")
    if digest is None:
        return not body
    return same(digest, hashlib.md5(body, usedforsecurity=False).hexdigest())


# ------------------------------------------------------------ plain sockets


def issue_token(secret: str, session_id: str, *, expires: int, realm: str = "") -> str:
    """A token that lets a plain socket watch one thread until `expires` (seconds since the Unix epoch).

    `realm` names the hub that signed it, for a host that has several.
    """
    claim: list[str | int] = [session_id, expires, *([realm] if realm else ())]
    coded = urlsafe_b64encode(json.dumps(claim).encode()).rstrip(b"=").decode()
    return f"{coded}.{sign(secret, f'token:{coded}')}"


def read_token(secret: str, token: Any, *, now: int) -> str | None:
    """The thread that a token lets its bearer watch now; None when it is not valid."""
    if not isinstance(token, str) or not token.isascii() or token.count(".") != 1:
        return None
    coded, proof = token.split(".")
    if not same(proof, sign(secret, f"token:{coded}")):
        return None
    session_id, expires, *_ = _claim(coded)
    return session_id if now < expires else None


def check_token(secret: str, token: Any, session_id: str, *, now: int) -> bool:
    """Whether a token lets its bearer watch this thread now."""
    return read_token(secret, token, now=now) == session_id


def realm_of(token: str) -> str:
    """The realm that a token claims; the claim is not verified."""
    try:
        claim: Any = _claim(token.partition(".")[0])
    except (ValueError, RecursionError):  # not base64, not JSON
        return ""
    match claim:
        case [_, _, str(realm)]:
            return realm
        case _:
            return ""


def _claim(coded: str) -> Any:
    return json.loads(urlsafe_b64decode(coded + "=" * (-len(coded) % 4)))


# ----------------------------------------------------------------- recovery


@dataclass(frozen=True, slots=True)
class Position:
    """A reader's position: the seq it last applied, and the incarnation of the log.

    An empty epoch matches any incarnation, for a reader that received none or did not keep it. The mark binds the
    position to a history; without one it fits every history that is long enough.
    """

    epoch: str
    offset: int
    mark: str = ""

    def __post_init__(self) -> None:
        """Take the mark out of a bound epoch, as a `Reader` has it."""
        epoch, mark = unbound(self.epoch)
        if mark and not self.mark:
            object.__setattr__(self, "epoch", epoch)
            object.__setattr__(self, "mark", mark if self.offset else "")

    @classmethod
    def of(cls, history: str, offset: int) -> Position:
        """The position in the form in which a reader brings it: the epoch, perhaps bound."""
        return cls(history, offset)

    @property
    def history(self) -> str:
        """The epoch, bound if there is a mark."""
        return bound(self.epoch, self.mark)


def position_data(position: Position) -> str:
    """The `channel_data` that carries a position through a stock pusher-js client, to be signed with the channel."""
    return orjson.dumps({"recover": {"epoch": position.history, "offset": position.offset}}).decode()


def read_position(channel_data: Any) -> Position | None:
    """The position in a `channel_data`, or None where there is no valid one."""
    if not isinstance(channel_data, str):
        return None
    try:
        data: Any = orjson.loads(channel_data)
    except orjson.JSONDecodeError:
        return None
    return position_of(as_object(data).get("recover"))


def position_of(value: Any) -> Position | None:
    """A position from untrusted JSON: a short epoch and a count that a log can hold."""
    given = as_object(value)
    epoch, offset = given.get("epoch"), given.get("offset")
    if not isinstance(epoch, str) or len(epoch) > LONGEST_BOUND or len(unbound(epoch)[0]) > 64:
        return None
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < 2**53:
        return None
    return Position.of(epoch, offset)
