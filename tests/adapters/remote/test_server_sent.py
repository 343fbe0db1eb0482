"""The event-stream format of the HTML standard: the same data, wherever the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.adapters.remote.server_sent import ServerSentEvents, TooLarge

PLENTY = 1_000_000


def read(*chunks: bytes, max_bytes: int = PLENTY) -> list[bytes]:
    reader = ServerSentEvents(max_bytes)
    return [data for chunk in chunks for data in reader.feed(chunk)]


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\n\n", [b""]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b": a comment\n\nid: 7\nevent: x\nretry: 1\ndata: a\nother: b\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"event: x\n\n", []),
        (b"data: cut off", []),
        (b"data: cut off\n", []),
    ],
)
def test_the_standards_own_forms(stream: bytes, data: list[bytes]):
    assert read(stream) == data
    assert read(*(bytes([byte]) for byte in stream)) == data


LINES = st.sampled_from([b"data: a", b"data: \xc3\xa9", b"data", b"", b"", b": c", b"id: 1", b"data:b:c"])
ENDINGS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(st.lists(st.tuples(LINES, ENDINGS), max_size=12), st.sets(st.integers(0, 120), max_size=6))
def test_it_does_not_matter_where_chunks_are_cut(lines: list[tuple[bytes, bytes]], cuts: set[int]):
    stream = b"".join(line + ending for line, ending in lines)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert read(*pieces, b"") == read(stream)


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 100, b"data: xxxxxxxx\n" * 20, b"x" * 200])
def test_an_event_without_an_end_has_a_bound(stream: bytes):
    with pytest.raises(TooLarge, match="more than 64 bytes"):
        read(stream, max_bytes=64)
