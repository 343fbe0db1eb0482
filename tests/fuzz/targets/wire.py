"""One event from hostile bytes: read exactly or refused with a WireError, the same by every way in.

The references are slower or simpler ways to the same answer: the same bytes as text, behind blanks (which makes a
small event a large one, read by another parser), cut in two in a stream; and Python's own JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from runcast.slim import AnyEvent, UnknownEvent, WireError, decode, decode_array, decode_lines, encode
from runcast.slim.wire.codec import encode_sse

TOKENS = (
    *(
        b'"type":',
        b'"STATE_SNAPSHOT"',
        b'"TEXT_MESSAGE_START"',
        b'"TEXT_MESSAGE_CONTENT"',
        b'"TOOL_CALL_ARGS"',
    ),
    *(
        b'"MESSAGES_SNAPSHOT"',
        b'"STATE_DELTA"',
        b'"RUN_STARTED"',
        b'"RUN_FINISHED"',
        b'"RUN_ERROR"',
        b'"CUSTOM"',
    ),
    *(
        b'"messageId":',
        b'"toolCallId":',
        b'"metadata":',
        b'"rawEvent":',
        b'"snapshot":',
        b'"delta":',
        b'"id":',
    ),
    *(
        b'"threadId":"t"',
        b'"runId":"r"',
        b'"outcome":',
        b'"result":',
        b'"usage":',
        b'"timestamp":',
        b'"role":',
    ),
    *(b'"assistant"', b'"input":', b"null", b"true", b"NaN", b"-Infinity", b"1e400", b"1e-400", b"-0.0"),
    *(
        b"9007199254740993",
        b"18446744073709551616",
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b"\\u0000",
        b"\xef\xbb\xbf",
    ),
    *(b"[[[[[[[[", b"]]]]]]]]", b'{"a":', b"}", b",", b'"__proto__":', b'"op":"add","path":"/a","value":'),
)


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    event = _read(data)
    _agrees(event, data)
    if isinstance(event, WireError):
        assert event.position is None or 0 <= event.position <= len(data), f"stands outside: {event}"
    else:
        _survives(event, data)
    _in_streams(data)


def _read(data: bytes | str) -> AnyEvent | WireError:
    try:
        return decode(data, legacy=False)
    except WireError as error:
        return error


def _agrees(event: AnyEvent | WireError, data: bytes) -> None:
    """The other ways in say the same."""
    # Only a leading byte order mark is one.
    others: list[bytes | str] = [b" " * 300 + data.removeprefix(b"\xef\xbb\xbf"), data + b"\n" * 300]
    try:
        others.append(data.decode())
    except UnicodeDecodeError:
        assert isinstance(event, WireError), "what is no UTF-8 was read"
    for other in others:
        found = _read(other)
        assert isinstance(found, WireError) == isinstance(event, WireError), f"{event!r}, and {found!r}"
        if not isinstance(found, WireError) and not isinstance(event, WireError):
            assert encode(found) == encode(event)


def _survives(event: AnyEvent, data: bytes) -> None:
    """What was read is what stands there, and is written so that it is read again."""
    written = encode(event)
    again = decode(written, legacy=False)
    assert type(again) is type(event)
    assert encode(again) == written
    assert b"\n" not in written
    assert b"\r" not in written
    stated, kept = json.loads(data.decode().removeprefix("\ufeff")), json.loads(written)
    if isinstance(event, UnknownEvent):
        assert kept == stated, "an unknown event is kept as it is"
    for name, value in stated.items():
        if value is not None:
            assert name in kept, f"{name} was lost"
    assert kept["type"] == stated["type"]
    told = encode_sse(event, "e:1")
    assert told.count(b"\n\n") == 1, "one event, and one alone"
    assert told == b"id: e:1\ndata: %s\n\n" % written


def _in_streams(data: bytes) -> None:
    """A stream is the same wherever it is cut."""
    middle = len(data) // 3
    for reader in (decode_lines, decode_array):
        whole = _all(reader, [data])
        assert _all(reader, [data[:middle], data[middle:]]) == whole
        assert _all(reader, (data[at : at + 1] for at in range(len(data)))) == whole


def _all(reader: Callable[..., Iterable[AnyEvent]], chunks: Iterable[bytes]) -> tuple[list[bytes], Any]:
    """The events up to the first that is none, and what was said of that."""
    found: list[bytes] = []
    try:
        found.extend(encode(event) for event in reader(chunks, legacy=False))
    except WireError as error:
        return found, (error.problem, error.position, error.record)
    return found, None
