"""Text that is cut where JavaScript cuts it: half a surrogate pair is never lost, replaced or made whole by accident."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import TextMessageContentEvent, ToolCallArgsEvent, UserMessage
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.errors import WireError
from runcast.slim.values.surrogates import join_text
from runcast.slim.wire.codec import UnknownEvent, decode, decode_input, encode, encode_input

HALVES = "\ud83d\ude00"  # of one character, which they are once they meet
ANY_TEXT = st.text(st.sampled_from(f"aé😀\x00~/d3\ue000{HALVES}"), max_size=8) | st.text(max_size=4)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def as_javascript_sees(value: Any) -> Any:
    """A Python string may hold two halves side by side; in JSON they are one character."""
    return json.loads(json.dumps(value))


def test_a_pair_split_over_two_deltas_survives_the_log_and_joins():
    head = '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":'
    wire = [head + '"hi \\ud83d"}', head + '"\\ude00!"}']
    events = [decode(line) for line in wire]
    logged = [encode(event) for event in events]
    assert logged == [line.encode() for line in wire]
    deltas = [event.delta for event in map(decode, logged) if isinstance(event, TextMessageContentEvent)]
    assert deltas == ["hi \ud83d", "\ude00!"]
    assert join_text(deltas) == "hi 😀!"


@pytest.mark.parametrize("cut", range(1, 7))
def test_arguments_cut_at_any_code_unit_join_again(cut: int):
    whole = '{"a":"😀"}'
    units = whole.encode("utf-16-le")
    at = (4 + cut) * 2
    parts = [part.decode("utf-16-le", "surrogatepass") for part in (units[:at], units[at:])]
    lines = [json.dumps({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": part}) for part in parts]
    events = [decode(encode(decode(line.encode()))) for line in lines]
    assert join_text(event.delta for event in events if isinstance(event, ToolCallArgsEvent)) == whole


def test_joiners_and_combining_marks_may_be_cut_from_their_base():
    for first, second in (("👩\u200d", "💻"), ("e", "\u0301"), ("🇩", "🇪")):
        events = [TextMessageContentEvent(message_id="m", delta=part) for part in (first, second)]
        deltas = [
            event.delta
            for event in map(decode, map(encode, events))
            if isinstance(event, TextMessageContentEvent)
        ]
        assert join_text(deltas) == first + second


@given(ANY_TEXT, ANY_TEXT, ANY_JSON)
def test_any_text_survives_wherever_it_stands(id: str, delta: str, free: Any):
    event = {
        "type": "TEXT_MESSAGE_CONTENT",
        "messageId": id,
        "delta": delta,
        "metadata": {id: free},
        "rawEvent": [free],
    }
    for variant in (event, {**event, "unknown": free, f"x{id}": 1}, {**event, "type": f"NO {id}"}):
        read = decode(json.dumps(variant))
        assert json.loads(encode(read)) == as_javascript_sees(variant)
        assert decode(encode(read)) == read


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_survives_in_messages_and_patches(text: str, key: str):
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    for event in (
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "add", "path": pointer, "value": text, f"x-{key}": 1},
                {"op": "remove", "path": ""},
            ],
        },
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [
                {"id": key, "role": "user", "content": [{"type": "text", "text": text}]},
                {"id": text, "role": "activity", "activityType": key, "content": {key: text}},
            ],
        },
    ):
        assert json.loads(encode(decode(json.dumps(event)))) == as_javascript_sees(event)


@given(ANY_TEXT)
def test_text_given_as_text_reads_like_its_bytes(text: str):
    spelled = json.dumps({"type": "X", "a": text}, ensure_ascii=False)
    assert decode(spelled) == UnknownEvent(type="X", a=text)  # type: ignore[call-arg]


def test_half_a_pair_in_an_input_survives():
    read = decode_input(
        '{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"\\ud83d"}]}'
    )
    message = read.messages[0]
    assert isinstance(message, UserMessage)
    assert message.content == "\ud83d"
    assert b'"\\ud83d"' in encode_input(read)


def test_the_character_that_stands_in_for_halves_is_itself_too():
    text = "\ue000\ud83d\ue000d83d\ue000\ue000\udc00"
    event = decode(json.dumps({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text, text: text}))
    assert isinstance(event, TextMessageContentEvent)
    assert event.delta == text
    assert decode(encode(event)) == event


def test_half_a_pair_where_only_some_words_fit_is_refused_like_any_other_word():
    with pytest.raises(WireError, match="`role` is a string in TEXT_MESSAGE_START"):
        decode('{"type":"TEXT_MESSAGE_START","messageId":"m","role":"\\ud83d"}')
