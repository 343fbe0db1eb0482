"""Compaction of stored bytes, held to its definition: decode every line, compact the events, encode what is left."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runcast.slim.compaction.compactor import compact
from runcast.slim.compaction.stored_lines import compact_lines
from runcast.slim.errors import WireError
from runcast.slim.wire.codec import decode, encode
from tests import streams
from tests.conftest import share

STREAMS = share(300)  # of each kind


def defined(lines: list[bytes]) -> list[tuple[int, bytes]]:
    """What `compact_lines` is to give, by a model object for every line."""
    events = [decode(line, legacy=False) for line in lines]
    place = {id(event): number for number, event in enumerate(events)}
    at, found = 0, list[tuple[int, bytes]]()
    for event in compact(events):
        at = place.get(id(event), at)
        found.append((at, encode(event)))
        at += 1
    return found


@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
@pytest.mark.parametrize("draw", [streams.structured, streams.adversarial])
def test_every_stream_gives_the_bytes_of_its_definition(draw: Any, chunks: bool):
    for seed in range(STREAMS):
        rng = random.Random(seed)
        stream = draw(rng, chunks=chunks)
        for events in (stream, streams.mutated(rng, stream)):
            lines = [encode(event) for event in events]
            assert compact_lines(lines) == defined(lines)


# Few ids, so that streams meet; and text that looks like JSON from the inside or from the outside.
IDS = st.sampled_from(
    ["a", "b", '","delta":"', 'x"delta":"', "\\", "ä\u2028", "\ud83d", "\n", '"timestamp":1,']
)
TEXTS = st.one_of(
    st.sampled_from(["word ", '"}', '"}\n', '\\"}', "\\u00", "1f", "😀", '","x":"', "\0"]),
    st.text('a"\\{}:,ä\n\x1f\u2028\ud83d\ude00', max_size=4),
)
METADATA = st.dictionaries(st.sampled_from(["k", "l", "delta"]), st.sampled_from([1, "v", '"', None, {"delta": "x"}]), max_size=2)  # fmt: skip


@st.composite
def deltas(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One to five deltas of one stream; most hold only text, some of the others a little of everything."""
    kind, field = draw(st.sampled_from([
        ("TEXT_MESSAGE_CONTENT", "messageId"), ("REASONING_MESSAGE_CONTENT", "messageId"), ("TOOL_CALL_ARGS", "toolCallId"),
    ]))  # fmt: skip
    key, stamped = draw(IDS), draw(st.booleans())
    found: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 5))):
        event: dict[str, Any] = {"type": kind, field: key, "delta": draw(TEXTS)}
        if stamped:
            event["timestamp"] = draw(st.integers(0, 2**41))
        if draw(st.integers(0, 7)) == 0:
            more = {
                "metadata": METADATA,
                "rawEvent": METADATA,
                "subagentRunId": st.sampled_from(["s", "t"]),
                "unknown": TEXTS,
                "timestamp": st.integers(0, 9),
            }
            name = draw(st.sampled_from(sorted(more)))
            event[name] = draw(more[name])
        found.append(event)
    return found


@st.composite
def others(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An event that opens, bars or ends a stream, or does nothing to it."""
    key = draw(IDS)
    return [
        draw(
            st.sampled_from([
                {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
                {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
                *({"type": f"{kind}_START", "messageId": key, "role": role} for kind, role in (("TEXT_MESSAGE", "assistant"), ("REASONING_MESSAGE", "reasoning"))),
                *({"type": f"{kind}_END", "messageId": key} for kind in ("TEXT_MESSAGE", "REASONING_MESSAGE")),
                {"type": "TOOL_CALL_START", "toolCallId": key, "toolCallName": "f"},
                {"type": "TOOL_CALL_END", "toolCallId": key},
                {"type": "TOOL_CALL_RESULT", "toolCallId": key, "messageId": key, "content": "x"},
                {"type": "TEXT_MESSAGE_CHUNK", "messageId": key, "role": "assistant", "delta": "chunk"},
                {"type": "TOOL_CALL_CHUNK", "toolCallId": key, "toolCallName": "f", "delta": "{"},
                {"type": "CUSTOM", "name": "n", "value": {"type": "x", "delta": key}},
                {"type": "RAW", "event": {"delta": "x"}, "source": "s"},
                {"type": "STEP_STARTED", "stepName": key},
                {"type": "STATE_SNAPSHOT", "snapshot": {"delta": "x"}},
                {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/x", "value": 1}]},
                {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": key, "role": "user", "content": "x"}]},
                {"type": "ACTIVITY_SNAPSHOT", "messageId": key, "activityType": "A", "content": {}},
                {"type": "SOME_DAY", "delta": "x"},
            ])
        )
    ]  # fmt: skip


OPEN: list[dict[str, Any]] = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    *({"type": "TEXT_MESSAGE_START", "messageId": key, "role": "assistant"} for key in ("a", "b", "\ud83d", '","delta":"')),
    *({"type": "TOOL_CALL_START", "toolCallId": key, "toolCallName": "f"} for key in ("a", "\n", "\\")),
    {"type": "REASONING_MESSAGE_START", "messageId": "x", "role": "reasoning"},
]  # fmt: skip
WIRES = st.lists(st.one_of(deltas(), deltas(), deltas(), others()), max_size=12).map(
    lambda lists: [*OPEN, *(event for some in lists for event in some)]
)


@settings(deadline=None)
@given(WIRES)
def test_hostile_deltas_give_the_bytes_of_their_definition(wire: list[dict[str, Any]]):
    lines = [encode(decode(event, legacy=False)) for event in wire]
    assert compact_lines(lines) == defined(lines)


@settings(deadline=None)
@given(WIRES, st.randoms(use_true_random=False))
def test_any_spelling_gives_the_same_events(wire: list[dict[str, Any]], rng: random.Random):
    lines = [spelled(event, rng) for event in wire]
    small = compact_lines(lines)
    assert [(at, encode(decode(line, legacy=False))) for at, line in small] == defined(lines)
    assert not any(b"\n" in line for _, line in small)


def spelled(event: dict[str, Any], rng: random.Random) -> bytes:
    """The event as another encoder may write it."""
    if rng.random() < 0.5:
        return encode(decode(event, legacy=False))
    keys = list(event)
    rng.shuffle(keys)
    spaces: Any = rng.choice([(",", ":"), (", ", ": ")])
    text = json.dumps(
        {key: event[key] for key in keys}, separators=spaces, indent=rng.choice([None, None, 1])
    )
    return text.encode()


def test_a_damaged_delta_is_refused_and_not_joined():
    lines = [
        b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}',
        b'{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}',
        *(b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"%s"}' % text for text in (b"one", b"two\\u00", b"1f")),
    ]  # fmt: skip
    with pytest.raises(WireError):
        compact_lines(lines)
    cut = [*lines[:3], b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"', lines[2]]
    with pytest.raises(WireError):
        compact_lines(cut)


def test_deltas_of_streams_side_by_side_are_not_decoded(monkeypatch: pytest.MonkeyPatch):
    from runcast.slim.compaction import stored_lines

    asked: list[bytes] = []

    def counted(line: bytes, *, legacy: bool) -> Any:
        asked.append(line)
        return decode(line, legacy=legacy)

    monkeypatch.setattr(stored_lines, "decode", counted)
    wire: list[dict[str, Any]] = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        *({"type": "TEXT_MESSAGE_START", "messageId": key, "role": "assistant"} for key in "ab"),
        *(
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": key, "delta": f"{n} ", "timestamp": n}
            for n in range(500)
            for key in "ab"
        ),
        {"type": "CUSTOM", "name": "n", "value": 1},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    lines = [encode(decode(event, legacy=False)) for event in wire]
    assert compact_lines(lines) == defined(lines)
    assert (
        len(asked) <= 8
    )  # borders, the first of each stream, and the first again after the other's beginning
