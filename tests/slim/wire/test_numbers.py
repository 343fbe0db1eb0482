"""Numbers at whatever place of an event of whatever size: read exactly, or refused when no double can hold them."""

from __future__ import annotations

import json
from math import isinf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.errors import WireError
from runcast.slim.wire.codec import decode, encode

DIGITS = st.text("0123456789", min_size=1, max_size=4)
WHOLES = st.one_of(
    st.integers(-(10**25), 10**25).map(str),
    st.integers(280, 330).map(lambda count: "7" * count),
)
EXPONENTS = st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), DIGITS).map("".join)
FRACTIONS = st.one_of(st.just(""), DIGITS.map(".{}".format))
NUMBERS = st.tuples(WHOLES, FRACTIONS, st.one_of(st.just(""), EXPONENTS)).map("".join)
EVENTS = st.sampled_from(
    [
        '{"type":"STATE_SNAPSHOT","snapshot":%s}',
        '{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":%s}',
        '{"type":"STEP_STARTED","stepName":"s","metadata":{"a":%s}}',
        '{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":%s}]}',
        '{"type":"TEXT_MESSAGE_END","messageId":"m","extra":%s}',
        '{"type":"RAW","event":%s}',
    ]
)
PLACES = st.sampled_from(["%s", "[%s]", '{"a":null,"b":[1.5,{"c": %s }]}', '[[],"1e999",\t%s\n,true]'])
SIZES = st.sampled_from([0, 40, 100, 160, 240, 330, 700, 1_500, 2_100])


@given(EVENTS, PLACES, NUMBERS, SIZES, st.booleans())
def test_a_number_is_read_exactly_or_refused(event: str, place: str, number: str, size: int, first: bool):
    filler = '"%s"' % ("1e9 " * (size // 4))
    data = (event % (f"[{filler},{place}]" if first else f"[{place},{filler}]") % number).encode()
    if not set(number).isdisjoint(".eE") and isinf(float(number)):
        with pytest.raises(WireError, match="number that cannot be held"):
            decode(data)
    else:
        found = decode(data)
        assert json.loads(encode(found)) == json.loads(data)


@pytest.mark.parametrize("size", [0, 200, 260, 400, 2_200])
@pytest.mark.parametrize(
    "event", ['{"type":"RAW","event":%s}', '{"type":"STEP_STARTED","stepName":"s","x":%s}']
)
def test_bytes_that_are_no_text_hide_no_number(event: str, size: int):
    data = (event % ('[1e999,"%s\\"~"]' % ("a" * size))).encode().replace(b"~", b"\xff")
    with pytest.raises(WireError):
        decode(data)


@pytest.mark.parametrize("digits", [1, 210, 211, 212, 299, 300, 301, 308, 309, 310])
@pytest.mark.parametrize(
    "exponent", ["", ".0", "e8", "e9", "E9", "e+9", "e98", "E98", "e+98", "e307", "e+00308"]
)
@pytest.mark.parametrize(
    "event", [b'{"type":"RAW","event":%s}', b'{"type":"TEXT_MESSAGE_END","messageId":"m","x":%s}']
)
def test_the_longest_numbers_at_every_place(event: bytes, digits: int, exponent: str):
    number = "9" * digits + exponent
    overflows = bool(exponent) and isinf(float(number))
    for before in range(0, 640, 7):
        data = event % (b'["%s",%s]' % (b"a" * before, number.encode()))
        if overflows:
            with pytest.raises(WireError, match="number that cannot be held"):
                decode(data)
        else:
            assert json.loads(encode(decode(data))) == json.loads(data)


@pytest.mark.parametrize("size", [1, 240, 400, 2_200])
def test_half_a_pair_in_a_text_of_any_size_stays_what_it_is(size: int):
    event = decode('{"type":"RAW","event":"%s\ud800"}' % ("a" * size))
    assert vars(event)["event"] == "a" * size + "\ud800"
