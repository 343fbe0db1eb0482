"""Compressed bodies: what any tool can open, which codec is chosen, and what is damaged."""

from __future__ import annotations

import gzip
import lzma
from dataclasses import replace
from hashlib import sha256

import pytest

from runcast.slim.errors import StoreError
from runcast.slim.stores.blob_codec import WINDOW, Codec, chosen, pack, unpack
from runcast.slim.stores.records import Blob, BlobInfo
from tests.slim.logs import make_log

CODECS: list[Codec] = ["auto", "xz", "gzip", "zstd", "none"]
BODIES = [b"", b"x", b"three hundred bytes" * 16, bytes(range(256)) * 100, b"far away " * 40_000]


def packed(body: bytes, codec: Codec = "auto") -> Blob:
    return pack("segment", body, codec=codec, run=1, seq=2, at=3, events=4)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("body", BODIES, ids=len)
def test_a_codec_gives_back_what_it_got_and_says_what_it_holds(body: bytes, codec: Codec) -> None:
    blob = packed(body, codec)
    assert unpack(blob) == body
    used = blob.info.codec
    assert blob.info == BlobInfo("segment", 1, 2, 3, used, 4, sha256(blob.body).digest(), len(blob.body))
    assert codec in ("auto", "xz", used)
    if len(body) > 1_000 and codec != "none":
        assert len(blob.body) < len(body) / 10


@pytest.mark.parametrize("codec", CODECS[:2])
def test_only_a_body_beyond_the_window_of_gzip_is_worth_more(codec: Codec) -> None:
    for size, used in ((WINDOW, "gzip"), (WINDOW + 1, "xz")):
        assert packed(b"x" * size, codec).info.codec == used
        assert packed(b"x" * size, "none").info.codec == "none"


@pytest.mark.parametrize("body", BODIES, ids=len)
def test_any_tool_opens_a_body_that_was_copied_out(body: bytes) -> None:
    assert gzip.decompress(packed(body, "gzip").body) == body
    blob = packed(body + bytes(WINDOW + 1), "xz")
    assert lzma.decompress(blob.body) == body + bytes(WINDOW + 1)
    opened = lzma.LZMADecompressor()
    opened.decompress(blob.body)
    assert opened.check == lzma.CHECK_NONE, "the digest covers it"


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_body_is_none(codec: Codec) -> None:
    blob = packed(b"a body " * 20, codec)
    for body in (blob.body[:-1], bytes([blob.body[0] ^ 1]) + blob.body[1:], b""):
        assert unpack(replace(blob, body=body)) is None


@pytest.mark.usefixtures("bare_python")
def test_where_there_is_no_better_codec_gzip_does() -> None:
    assert chosen("auto") == "gzip"
    assert [chosen(each) for each in CODECS[2:] if each != "zstd"] == ["gzip", "none"]
    body = b"the same again " * 10_000
    assert unpack(packed(body)) == body
    with pytest.raises(StoreError, match="use auto or gzip, or pip install zstandard"):
        make_log("memory://", codec="zstd")


def test_a_body_of_a_codec_that_is_not_here_is_derived_again(request: pytest.FixtureRequest) -> None:
    blob = packed(b"a body " * 20, "zstd")
    request.getfixturevalue("bare_python")
    assert unpack(blob) is None


def test_the_best_codec_that_comes_with_python_is_chosen() -> None:
    assert [chosen(each) for each in CODECS] == ["xz", "xz", "gzip", "zstd", "none"]
