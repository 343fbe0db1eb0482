"""What a hostile or broken producer can send: the right event or a WireError, never a crash, never another value."""

from __future__ import annotations

import contextlib
import json
import random
import sys
from types import MappingProxyType
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    MessagesSnapshotEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
)
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runcast.slim.errors import WireError
from runcast.slim.values.exact_json import MAX_DEPTH
from runcast.slim.values.protocol_shapes import MODELS
from runcast.slim.wire.codec import decode, encode
from runcast.slim.wire.decoders import read_event, read_input
from tests.slim import samples

PADDING = '"' + "p" * 3000 + '"'  # makes an event one of the large ones, which are read another way


def state(json_text: str, *, large: bool = False) -> bytes:
    inside = f"[{json_text},{PADDING}]" if large else json_text
    return b'{"type":"STATE_SNAPSHOT","snapshot":%s}' % inside.encode()


def elsewhere(json_text: str) -> list[bytes]:
    """The same JSON value in every place where the protocol lets any value stand."""
    return [
        state(json_text),
        state(json_text, large=True),
        b'{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"a":[%s]}}' % json_text.encode(),
        b'{"type":"TEXT_MESSAGE_END","messageId":"m","rawEvent":{"a":%s}}' % json_text.encode(),
        b'{"type":"TEXT_MESSAGE_END","messageId":"m","unknown":%s}' % json_text.encode(),
        b'{"type":"NO_SUCH_TYPE","value":%s}' % json_text.encode(),
        b'{"type":"CUSTOM","name":%s,"value":%s}' % (PADDING.encode(), json_text.encode()),
        b'{"value":%s,"name":%s,"type":"CUSTOM"}' % (json_text.encode(), PADDING.encode()),
        b'{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":%s}]}' % json_text.encode(),
        b'{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":%s,"x":1}' % json_text.encode(),
        b'{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"activity","activityType":"A","content":{"a":%s}}]}'
        % json_text.encode(),
    ]


WHOLE = [
    2**53 - 1,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63,
    2**64 - 1,
    2**64,
    2**64 + 1,
    -(2**63),
    -(2**63) - 1,
    10**400,
]


@pytest.mark.parametrize(
    "number", WHOLE, ids=lambda number: f"{number:.3e}" if abs(number) < 10**300 else "10^400"
)
def test_whole_numbers_keep_every_digit(number: int):
    for data in elsewhere(str(number)):
        assert json.loads(encode(decode(data))) == json.loads(data)
        assert str(number) in encode(decode(data)).decode()


@pytest.mark.parametrize(
    "number",
    ["1.5", "-0.0", "0.1", "1e-400", "1E+2", "5e-324", "1.7976931348623157e308", "0.018446744073709551"],
)
def test_fractions_are_the_doubles_they_name(number: str):
    for data in elsewhere(number):
        assert json.loads(encode(decode(data))) == json.loads(data)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400 + ".0", "1E+9999"])
def test_numbers_that_no_double_holds_are_refused_where_they_stand(number: str):
    for data in elsewhere(number):
        with pytest.raises(WireError, match="number that cannot be held") as caught:
            decode(data)
        assert data[caught.value.position :].startswith(number.encode())


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_words_that_are_no_json_are_refused_where_they_stand(word: str):
    for data in elsewhere(word):
        with pytest.raises(WireError, match="is no JSON value") as caught:
            decode(data)
        assert data[caught.value.position :].startswith(word.encode())


@pytest.mark.parametrize("text", ["NaNa", "[NaNu", "1e400.0", "[2E442E4", "-Infinityy", '{"a":1e999e'])
def test_what_hangs_on_to_a_refused_word_or_number_changes_nothing(text: str):
    with pytest.raises(WireError, match="not JSON"):
        decode(text)


def test_a_word_inside_a_string_is_not_what_was_refused():
    data = b'{"type":"NaN \\" Infinity 1e999","a":["-Infinity",true,12,1.5,NaN]}'
    with pytest.raises(WireError) as caught:
        decode(data)
    assert caught.value.position == data.index(b"NaN]")


def test_more_digits_than_python_reads_are_refused():
    data = state("1" * 6000)
    with pytest.raises(WireError, match="number that cannot be held") as caught:
        decode(data)
    assert caught.value.position == data.index(b"1")
    with pytest.raises(WireError, match="not JSON"):
        encode(StateSnapshotEvent(snapshot=10**5000))


def nested(depth: int, opening: str = "[", closing: str = "]", core: str = "") -> str:
    return opening * depth + core + closing * depth


@pytest.mark.parametrize(("opening", "closing", "core"), [("[", "]", ""), ('{"a":', "}", "1")])
@pytest.mark.parametrize("depth", [MAX_DEPTH, 300, 1000, 2000, 10_000, 100_000])
def test_deep_nesting_is_refused(depth: int, opening: str, closing: str, core: str):
    for data in elsewhere(nested(depth, opening, closing, core)):
        with pytest.raises(WireError, match="nested too deep"):
            decode(data)


@pytest.mark.parametrize("core", ["", '"\\ud83d"', "18446744073709551616"])
@pytest.mark.parametrize("depth", [100, 190, 199, 200, 210, 240, 250])
def test_what_can_be_written_can_be_read(depth: int, core: str):
    for data in elsewhere(nested(depth, core=core)):
        event = decode(data)
        assert decode(encode(event)) == event


def test_a_state_that_was_built_too_deep_cannot_be_written():
    for depth in (MAX_DEPTH, 10_000):
        built: list[Any] = []
        for _ in range(depth):
            built = [built]
        with pytest.raises(WireError, match="nested too deep in STATE_SNAPSHOT"):
            encode(StateSnapshotEvent(snapshot=built))


def test_a_mapping_that_is_too_deep_is_refused():
    inside: dict[str, Any] = {}
    for _ in range(10_000):
        inside = {"a": inside}
    with pytest.raises(WireError, match="nested too deep"):
        decode({"type": "STATE_SNAPSHOT", "snapshot": inside})


def test_a_state_that_contains_itself_cannot_be_written():
    state: dict[str, Any] = {}
    state["self"] = state
    with pytest.raises(WireError, match="nested too deep"):
        encode(StateSnapshotEvent(snapshot=state))
    with pytest.raises(WireError, match=r"nested too deep|not JSON"):
        decode({"type": "STATE_SNAPSHOT", "snapshot": state})


def at_the_end_of_the_stack(call: Any, left: int) -> Any:
    """Call with almost no stack left: what a handler deep inside a framework has."""

    def down(left: int) -> Any:
        return call() if left <= 0 else down(left - 1)

    frame, used = sys._getframe(), 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    return down(sys.getrecursionlimit() - used - left)


def test_a_short_stack_is_a_typed_error_too():
    data = b'{"type":"STATE_SNAPSHOT","snapshot":%s,"\\ud83d":1}' % nested(200).encode()
    event = decode(data)
    refused = 0
    for left in range(60, 500, 20):
        try:
            assert at_the_end_of_the_stack(lambda: decode(data), left) == event
            assert at_the_end_of_the_stack(lambda: encode(event), left) == data
        except WireError as error:
            assert error.problem.startswith("nested too deep")  # noqa: PT017  either answer is right, a crash is not
            refused += 1
    assert refused > 0


def test_fifty_megabytes_of_text_go_through_unchanged():
    text = "a é\x00\n" * 8_500_000
    event = TextMessageContentEvent(message_id="m", delta=text)
    data = encode(event)
    assert len(data) > 50_000_000
    assert decode(data) == event


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\x1f\x7f\x80", "\ufeff", "\uffff", "\U0010ffff"])
def test_odd_characters_are_characters(text: str):
    event = TextMessageContentEvent(message_id=text, delta=text, metadata={text: text})
    assert decode(encode(event)) == event
    assert decode(json.dumps({"type": "X", text: text}))
    assert json.loads(encode(decode(json.dumps({"type": "X", text: text})))) == {"type": "X", text: text}


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"TEXT_MESSAGE_END","messageId":"a","messageId":"b"}',
        b'{"type":"TEXT_MESSAGE_CONTENT","type":"TEXT_MESSAGE_END","messageId":"b"}',
        b'{"messageId":"b","type":"NOPE","type":"TEXT_MESSAGE_END"}',
        b'{"type":"TEXT_MESSAGE_END","messageId":"\\ud83d","messageId":"b"}',
        b'{"type":"TEXT_MESSAGE_END","messageId":"b","messageId":"b","timestamp":1,"timestamp":null}',
    ],
)
def test_of_doubled_keys_the_last_one_counts(data: bytes):
    assert decode(data) == TextMessageEndEvent(message_id="b")


def test_of_doubled_keys_in_free_values_the_last_one_counts():
    for data in elsewhere('{"a":1,"b":2,"a":3}'):
        assert json.loads(encode(decode(data))) == json.loads(data)


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"", 0),
        (b"   ", 3),
        (b"{", 1),
        (b"nonsense", 0),
        (b'{"type":"TEXT_MESSAGE_END" "messageId":"a"}', 27),
        (b'{"type":"TEXT_MESSAGE_END"} {}', 28),
        ('{"é":"é",tru}'.encode(), 11),
        (b'{"type":"TEXT_MESSAGE_END","messageId":"\xff"}', 40),
        (b'{"type":"TEXT_MESSAGE_END","messageId":"\xed\xa0\xbd"}', 40),
        (b'\xef\xbb\xbf{"type":"TEXT_MESSAGE_END","messageId":"\xff"}', 43),
        (b'\xef\xbb\xbf{"type":}', 11),
        ('{"type":"X"}'.encode("utf-16"), 0),
        (b'{"a":"\n"}', 6),
        (b'{"a":01}', 6),
        (b"{'a':1}", 1),
    ],
)
def test_what_is_no_json_is_refused_at_its_byte(data: bytes, position: int):
    with pytest.raises(WireError, match=r"not JSON|not UTF-8") as caught:
        decode(data)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("[]", "a list is not an event"),
        ("5", "a number is not an event"),
        ("1.5", "a number is not an event"),
        ('"TEXT_MESSAGE_END"', "a string is not an event"),
        ("null", "null is not an event"),
        ("true", "a boolean is not an event"),
        ("{}", "the event type is null"),
        ('{"type":5}', "the event type is a number"),
        ('{"type":["CUSTOM"]}', "the event type is a list"),
    ],
)
def test_json_that_is_no_event_is_refused_by_what_it_is(data: str, said: str):
    with pytest.raises(WireError, match=said):
        decode(data)


@pytest.mark.parametrize("data", [None, 5, ["type"], object()])
def test_what_holds_no_json_is_refused(data: Any):
    with pytest.raises(WireError, match="holds no JSON"):
        decode(data)


@pytest.mark.parametrize(
    "data",
    [
        {"type": "STATE_SNAPSHOT", "snapshot": float("nan")},
        {"type": "X", "a": object()},
        {"type": "X", ("a",): 1},
    ],
)
def test_a_mapping_of_something_else_than_json_is_refused(data: dict[Any, Any]):
    with pytest.raises(WireError, match="not JSON"):
        decode(data)


def test_a_mapping_is_read_and_shares_nothing_with_its_owner():
    inside = {"list": [1]}
    event = decode(MappingProxyType({"type": "CUSTOM", "name": "n", "value": inside}))
    inside["list"].append(2)
    assert event == CustomEvent(name="n", value={"list": [1]})


@pytest.mark.parametrize(
    ("timestamp", "value"),
    [("1700000000000", 1700000000000), ("1.0", 1), ("1e3", 1000), ("-5", -5), ("null", None)],
)
def test_timestamps_are_whole_however_they_are_spelled(timestamp: str, value: int | None):
    data = b'{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":%s}' % timestamp.encode()
    assert decode(data, legacy=False) == TextMessageEndEvent(message_id="m", timestamp=value)


@pytest.mark.parametrize("timestamp", ["1.5", '"12"', "true", "9007199254740993", "[]", "{}"])
def test_timestamps_that_are_none_are_refused_and_never_rounded(timestamp: str):
    data = b'{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":%s}' % timestamp.encode()
    with pytest.raises(WireError, match=r"`timestamp` is .* in TEXT_MESSAGE_END; expected"):
        decode(data)


@pytest.mark.parametrize("count", ["-1", "1.5", "true", '"3"', "9007199254740992"])
def test_token_counts_that_are_none_are_refused(count: str):
    data = b'{"type":"RUN_ERROR","message":"m","usage":[{"inputTokens":%s}]}' % count.encode()
    with pytest.raises(WireError, match=r"`usage\.0\.inputTokens`"):
        decode(data)
    good = b'{"type":"RUN_ERROR","message":"m","usage":[{"inputTokens":3.0}]}'
    assert json.loads(encode(decode(good)))["usage"] == [{"inputTokens": 3}]
    with pytest.raises(WireError, match=r"`usage\.0` is a number"):
        decode(b'{"type":"RUN_ERROR","message":"m","usage":[3.0]}')


REFUSED = {
    '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}': "no `delta` in TEXT_MESSAGE_CONTENT",
    '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":5}': "`delta` is a number .* a valid string",
    '{"type":"TEXT_MESSAGE_START","messageId":"m","role":"tool"}': "`role` is a string",
    '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"x"}}': "`outcome` is an object .*'success'",
    '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{}}': "`outcome` is an object .* with a 'type'",
    '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":[]}': "`outcome` is a list .* an object",
    '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[]}}': "`outcome.interrupts`",
    '{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a"}]}': "no `delta.0.value`",
    '{"type":"STATE_DELTA","delta":[{"op":"add","path":"a","value":1}]}': "`delta.0.path` is a string .* a string like",
    '{"type":"STATE_DELTA","delta":5}': "`delta` is a number",
    '{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":[{"type":"text"}]}]}': "no `messages.0.content.0.text`",
    '{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":null}]}': "`messages.0.content` is null",
    '{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"A","content":{},"replace":"yes"}': "`replace` is a string",
    '{"type":"CUSTOM","name":"n","value":1,"metadata":[]}': "`metadata` is a list .* an object",
}


@pytest.mark.parametrize("data", REFUSED)
def test_a_wrong_event_is_refused_by_path_and_kind(data: str):
    with pytest.raises(WireError, match=REFUSED[data]) as caught:
        decode(data)
    assert caught.value.type == json.loads(data)["type"]


def test_an_error_never_repeats_a_value():
    with pytest.raises(WireError) as caught:
        decode('{"type":"TEXT_MESSAGE_CONTENT","messageId":{"key":"sk-secret"},"delta":"x"}')
    assert "sk-secret" not in str(caught.value)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_a_wire_error(data: bytes):
    with contextlib.suppress(WireError):
        assert decode(encode(decode(data)))


def test_any_mutation_is_an_event_or_a_wire_error():
    rng = random.Random(11)
    for _ in range(4000):
        given = samples.event(rng)
        for _ in range(rng.randrange(1, 3)):
            given = samples.mutated(rng, given) if given else given
        for legacy in (True, False):
            try:
                event = decode(json.dumps(given), legacy=legacy)
            except WireError:
                continue
            assert decode(encode(event), legacy=False) == event


def test_a_long_thread_of_messages_reads_as_the_official_package_reads_it():
    messages = [{"id": str(at), "role": "user", "content": "hello " * 20} for at in range(200)]
    event = decode(json.dumps({"type": "MESSAGES_SNAPSHOT", "messages": messages}))
    assert event == MessagesSnapshotEvent.model_validate({"messages": messages})


def test_the_protocol_s_models_are_left_as_they_were():
    assert all(model.__pydantic_complete__ for model in MODELS)
    loose = TypeAdapter(StateSnapshotEvent).validate_json(b'{"snapshot":1e400,"timestamp":"12"}')
    assert loose.timestamp == 12


def test_of_many_wrong_items_one_error_is_made():
    with pytest.raises(ValidationError) as caught:
        read_input({"threadId": "t", "runId": "r", "tools": [], "context": [], "messages": [{}] * 1_000})
    assert caught.value.error_count() == 1
    with pytest.raises(ValidationError) as caught:
        read_event({"type": "MESSAGES_SNAPSHOT", "messages": [{}] * 1_000})
    assert caught.value.error_count() == 1
