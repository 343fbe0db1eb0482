"""Compression of derived data, with a digest that detects damage.

Knows the codecs and the digest over their output; does not know the content. `xz` is the default: it comes with
Python, costs as much as gzip at its fast setting, and finds a repetition a megabyte back, where gzip looks 32 KB
back. Agents repeat themselves at such distances: a tool result returns in the next snapshot. `gzip` serves a Python
built without `lzma`; `zstd` is the fastest by far where it is installed (3.14, or `zstandard`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from typing import Any, Literal, NamedTuple

from runcast.slim.errors import StoreError
from runcast.slim.stores.records import Blob, BlobInfo, BlobKind

Codec = Literal["auto", "xz", "gzip", "zstd", "none"]
GZIP_LEVEL = 6  # beyond it, time grows and size does not shrink
WINDOW = 32_768  # bytes that gzip looks back
XZ_PRESET = 1  # a window of one megabyte; higher ones are several times slower for a few per cent
FRAMED = 16  # with gzip's own frame, so that any tool can open a body that was copied out


class _Squeeze(NamedTuple):
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


def _zstd() -> _Squeeze | None:
    for name in ("compression.zstd", "zstandard"):
        try:
            found: Any = import_module(name)
        except ImportError:
            continue
        return _Squeeze(found.compress, found.decompress)
    return None


def _gzip(body: bytes) -> bytes:
    # As wide a window as the body: clearing tables for a wider one costs more than a small body's compression.
    window = min(zlib.MAX_WBITS, max(9, len(body).bit_length()))
    squeeze = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, window | FRAMED, window - 7)
    return squeeze.compress(body) + squeeze.flush()


def _gunzip(body: bytes) -> bytes:
    return zlib.decompress(body, zlib.MAX_WBITS | FRAMED)


def _xz() -> _Squeeze | None:
    try:
        lzma: Any = import_module("lzma")
    except ImportError:
        return None
    # No checksum of its own: the digest covers it.
    return _Squeeze(partial(lzma.compress, check=lzma.CHECK_NONE, preset=XZ_PRESET), lzma.decompress)


@cache
def _squeeze(codec: str) -> _Squeeze | None:
    match codec:
        case "none":
            return _Squeeze(bytes, bytes)
        case "gzip":
            return _Squeeze(_gzip, _gunzip)
        case "xz":
            return _xz()
        case "zstd":
            return _zstd()
        case _:
            return None


def chosen(codec: Codec) -> Codec:
    """The codec; for `auto`, the best that comes with this Python. Refused when it is not installed."""
    if codec == "auto":
        return "xz" if _squeeze("xz") else "gzip"
    if _squeeze(codec) is None:
        raise StoreError(f"no codec {codec!r} here: use auto or gzip, or pip install zstandard for zstd")
    return codec


def pack(kind: BlobKind, body: bytes, *, codec: Codec, run: int, seq: int, at: int, events: int) -> Blob:
    """A compressed blob with its digest."""
    codec = chosen(codec)
    if codec == "xz" and len(body) <= WINDOW:
        codec = "gzip"
    squeeze = _squeeze(codec)
    packed = body if squeeze is None else squeeze.pack(body)
    return Blob(BlobInfo(kind, run, seq, at, codec, events, sha256(packed).digest(), len(packed)), packed)


def unpack(blob: Blob) -> bytes | None:
    """The packed body; None when it is damaged or its codec is not installed, so that it has to be derived again."""
    squeeze = _squeeze(blob.info.codec)
    if squeeze is None or sha256(blob.body).digest() != blob.info.sha256:
        return None
    return squeeze.unpack(blob.body)
