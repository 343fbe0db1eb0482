"""JSON Lines and JSON arrays: any events, cut into chunks anywhere, bounded, with the place of what is wrong."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from ag_ui.core import TextMessageContentEvent, TextMessageEndEvent, ToolCallArgsEvent
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.errors import WireError
from runcast.slim.wire.codec import AnyEvent, UnknownEvent, decode, encode
from runcast.slim.wire.streams import EventReader, decode_array, decode_lines, encode_array, encode_lines
from tests.slim import samples

Decode = Callable[..., EventReader]
both = pytest.mark.parametrize(
    ("encode_all", "decode_all"),
    [(encode_lines, decode_lines), (encode_array, decode_array)],
    ids=["lines", "array"],
)


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def some_events(seed: int, count: int) -> list[AnyEvent]:
    rng = random.Random(seed)
    return [decode(json.dumps(samples.event(rng))) for _ in range(count)]


@both
@pytest.mark.parametrize("size", [1, 2, 7, 64, 100_000])
def test_what_was_written_is_read_however_it_is_cut(encode_all: Any, decode_all: Decode, size: int):
    events = some_events(size, 30)
    data = b"".join(encode_all(events))
    reader = decode_all(chunked(data, size))
    assert list(reader) == events
    assert reader.records == 30
    assert reader.unknown == {}


@both
def test_a_file_opened_in_binary_is_read_piece_by_piece(encode_all: Any, decode_all: Decode):
    events: list[AnyEvent] = [TextMessageContentEvent(message_id="m", delta="d" * 50_000) for _ in range(5)]
    file = io.BytesIO()
    file.writelines(encode_all(events))
    file.seek(0)
    assert list(decode_all(file)) == events


@both
def test_no_events_are_a_stream_too(encode_all: Any, decode_all: Decode):
    assert list(decode_all([b"".join(encode_all([]))])) == []


def test_an_array_is_what_json_makes_of_it():
    events = some_events(3, 4)
    data = b"".join(encode_array(events))
    assert json.loads(data) == [json.loads(encode(event)) for event in events]


def test_lines_are_one_event_each():
    events = some_events(4, 4)
    assert b"".join(encode_lines(events)).splitlines() == [encode(event) for event in events]


@given(st.integers(0, 50), st.lists(st.integers(1, 40), min_size=1))
def test_cuts_never_matter(seed: int, sizes: list[int]):
    events = some_events(seed, 4)
    data = json.dumps([json.loads(encode(event)) for event in events], indent=1).encode()
    chunks, at = [], 0
    while at < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[at : at + size])
        at += size
    assert list(decode_array(chunks)) == events


def test_lines_may_be_blank_end_with_cr_and_open_with_a_mark():
    data = b'\xef\xbb\xbf{"type":"A"}\r\n\n  \t\r\n{"type":"B"}'
    assert [event.type for event in decode_lines([data])] == ["A", "B"]


@pytest.mark.parametrize("opening", [b"", b"\xef\xbb\xbf", b" \n", b"\xef\xbb\xbf \t"])
def test_arrays_may_have_space_around_everything(opening: bytes):
    data = opening + b'[ {"type":"A"} ,\n\t{"type":"B","s":"\\\\\\"],["}\r\n] \n'
    for size in (1, 3, 1000):
        assert [event.type for event in decode_array(chunked(data, size))] == ["A", "B"]


def test_types_that_the_protocol_lacks_are_counted_not_lost():
    lines = [
        b'{"type":"WARP"}\n',
        b'{"type":"RAW","event":1}\n',
        b'{"type":"WARP","x":1}\n',
        b'{"type":"WEFT"}',
    ]
    reader = decode_lines(lines)
    events = list(reader)
    assert [isinstance(event, UnknownEvent) for event in events] == [True, False, True, True]
    assert reader.unknown == {"WARP": 2, "WEFT": 1}
    assert reader.records == 4


def test_the_report_is_bounded():
    reader = decode_lines(b'{"type":"T%d"}\n' % at for at in range(250))
    assert len(list(reader)) == 250
    assert len(reader.unknown) == 101
    assert reader.unknown[""] == 150


@both
def test_a_wrong_record_is_named_by_number_and_byte(encode_all: Any, decode_all: Decode):
    good = encode(TextMessageEndEvent(message_id="m"))
    bad = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}'
    data = (
        b"\n".join([good, good, bad]) if encode_all is encode_lines else b"[%s, %s, %s]" % (good, good, bad)
    )
    seen = []
    with pytest.raises(WireError, match="no `delta` in TEXT_MESSAGE_CONTENT in record 2") as caught:
        seen.extend(decode_all([data]))
    reader = decode_all(chunked(data, 5))
    iterator = iter(reader)
    assert [next(iterator), next(iterator)] == [decode(good)] * 2
    assert caught.value.record == 2
    assert caught.value.position == data.index(bad)
    assert caught.value.type == "TEXT_MESSAGE_CONTENT"


def test_broken_json_in_a_record_is_named_by_its_byte_in_the_stream():
    data = b'{"type":"A"}\n\n{"type":"B" 5}\n'
    with pytest.raises(WireError) as caught:
        list(decode_lines([data]))
    assert (caught.value.record, caught.value.position) == (1, data.index(b"5"))


BROKEN: dict[bytes, tuple[str, int, int]] = {
    b"": ("does not end", 0, 0),
    b"  ": ("does not end", 0, 2),
    b"[": ("does not end", 0, 1),
    b'[{"type":"A"}': ("does not end", 0, 13),
    b'[{"type":"A"},': ("does not end", 1, 14),
    b'[{"type":"A': ("does not end", 0, 11),
    b'[{"type":"A"},]': ("no element", 1, 14),
    b"[,]": ("no element", 0, 1),
    b'[{"type":"A"},,{"type":"B"}]': ("no element", 1, 14),
    b'{"type":"A"}': ("no array", 0, 0),
    b"  x": ("no array", 0, 2),
    b"[}": ("was not opened", 0, 1),
    b'[{"type":"A"}] [': ("after the array", 1, 15),
    b"\xef\xbb": ("does not end", 0, 2),
    b"\xef\xbb[]": ("no array", 0, 0),
    b" \xef\xbb\xbf[]": ("no array", 0, 1),
    b'[{"type":"A"]}': ("was not opened", 0, 13),
    b'[{"type":"A"} {"type":"B"}]': ("not JSON", 0, 14),
    b"[1]": ("a number is not an event", 0, 1),
    b'["],["]': ("a string is not an event", 0, 1),
}


@pytest.mark.parametrize("data", BROKEN)
@pytest.mark.parametrize("size", [1, 1000])
def test_a_broken_array_is_refused_where_it_breaks(data: bytes, size: int):
    said, record, position = BROKEN[data]
    with pytest.raises(WireError, match=said) as caught:
        list(decode_array(chunked(data, size)))
    assert (caught.value.record, caught.value.position) == (record, position)


@both
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_record_beyond_the_bound_is_refused_before_it_is_held(
    encode_all: Any, decode_all: Decode, size: int
):
    small = TextMessageEndEvent(message_id="m")
    large = TextMessageContentEvent(message_id="m", delta="d" * 5000)
    data = b"".join(encode_all([small, large, small]))
    reader = decode_all(chunked(data, size), max_bytes=1000)
    with pytest.raises(WireError, match="more than 1000 bytes in record 1") as caught:
        list(reader)
    assert caught.value.position == data.index(encode(large))
    assert reader.records == 1


@both
def test_an_endless_record_is_not_read_to_its_end(encode_all: Any, decode_all: Decode):
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        yield b"[" if encode_all is encode_array else b""
        while True:
            taken += 1
            yield b'{"a":"' + b"x" * 994

    with pytest.raises(WireError, match="more than 10000 bytes"):
        list(decode_all(endless(), max_bytes=10_000))
    assert taken < 15


def test_endless_space_is_no_record_and_is_not_held():
    space = [b" " * 60_000] * 50
    assert list(decode_array([*space, b"[]", *space], max_bytes=100)) == []


def test_one_chunk_may_hold_many_records_beyond_the_bound_together():
    events: list[AnyEvent] = [TextMessageContentEvent(message_id="m", delta="d" * 500) for _ in range(20)]
    for encode_all, decode_all in ((encode_lines, decode_lines), (encode_array, decode_array)):
        assert list(decode_all([b"".join(encode_all(events))], max_bytes=1000)) == events


def test_a_stream_is_read_as_it_comes_and_no_further():
    def lines() -> Iterator[bytes]:
        yield b'{"type":"A"}\n{"type":"B"}\n'
        raise ConnectionError

    iterator = iter(decode_lines(lines()))
    assert [next(iterator).type, next(iterator).type] == ["A", "B"]
    with pytest.raises(ConnectionError):
        next(iterator)


def older(lines: Iterable[dict[str, Any]], **options: Any) -> list[AnyEvent]:
    return list(decode_lines([json.dumps(line).encode() + b"\n" for line in lines], **options))


def test_a_reader_remembers_what_older_events_lean_on():
    events = older(
        [
            {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
            {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "find"},
            {"type": "TEXT_MESSAGE_START", "messageId": "m"},
            {"type": "TEXT_MESSAGE_CONTENT", "delta": "x"},
            {"type": "TEXT_MESSAGE_END"},
            {"type": "TOOL_CALL_ARGS", "delta": "{}"},
            {"type": "TOOL_CALL_END"},
            {"type": "RUN_FINISHED", "runId": "r"},
        ]
    )
    assert events[3] == TextMessageContentEvent(message_id="m", delta="x")
    assert events[5] == ToolCallArgsEvent(tool_call_id="c", delta="{}")
    assert json.loads(encode(events[7])) == {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def test_a_reader_of_1_0_alone_upgrades_nothing():
    reader = decode_array([b'[{"type":"THINKING_START"}]'], legacy=False)
    assert list(reader) == [UnknownEvent(type="THINKING_START")]
    assert reader.unknown == {"THINKING_START": 1}
    with pytest.raises(WireError, match="no `threadId`"):
        older([{"type": "RUN_STARTED", "runId": "r"}], legacy=False, thread_id="t")
