"""Sealed places in a list, for users who may not see what stands there: encrypted, so that a cursor names nothing,
and signed, so that only this host makes them.

Nodes with one secret read each other's cursors. Knows texts; does not know threads or users.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from hashlib import shake_256
from secrets import token_bytes, token_hex

from runcast.app.errors import BadRequest

PREFIX = "=c."
NONCE, PROOF = 16, 16  # bytes
BLOCK = 64  # bytes: texts are padded to it, because a cursor shows its length


def seal(secret: str | None, text: str) -> str:
    """A cursor for a text without NUL. Without a secret only this process reads it."""
    key = _key(secret)
    plain = text.encode()
    plain += bytes(-len(plain) % BLOCK)
    nonce = token_bytes(NONCE)
    sealed = nonce + _mixed(key, nonce, plain)
    return PREFIX + urlsafe_b64encode(sealed + _proof(key, sealed)).rstrip(b"=").decode()


def shown(secret: str | None, text: str) -> str:
    """A cursor that may show its text: the text itself, unless that looks like a sealed one."""
    return seal(secret, text) if text.startswith(PREFIX) else text


def unseal(secret: str | None, cursor: str) -> str:
    """The text of a cursor. What does not look like a cursor is itself a text."""
    if not cursor.startswith(PREFIX):
        return cursor
    key, coded = _key(secret), cursor.removeprefix(PREFIX)
    try:
        raw = urlsafe_b64decode(coded + "=" * (-len(coded) % 4))
    except ValueError:
        raw = b""
    sealed, proof = raw[:-PROOF], raw[-PROOF:]
    if not hmac.compare_digest(proof, _proof(key, sealed)):
        raise BadRequest("this `after` is no cursor of this host: list from the beginning")
    return _mixed(key, sealed[:NONCE], sealed[NONCE:]).rstrip(b"\0").decode()


def _mixed(key: bytes, nonce: bytes, text: bytes) -> bytes:
    """Encrypts and decrypts: the text, mixed with a stream that only the key gives."""
    stream = shake_256(key + nonce).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream, strict=True))


def _proof(key: bytes, sealed: bytes) -> bytes:
    return hmac.digest(key, sealed, "sha256")[:PROOF]


def _key(secret: str | None) -> bytes:
    return hmac.digest((secret or _own_secret()).encode(), b"cursors", "sha256")


@cache
def _own_secret() -> str:
    return token_hex(32)
