"""What a redactor remembers of harmless texts saves time and changes no result, and few harmless events are searched twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from ag_ui.core import (
    Event,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim import DEFAULT_KEYS, Redactor
from runcast.slim.redaction import redactor as remembering
from runcast.slim.redaction.event_parts import (
    BORDER,
    CHUNK,
    CHUNKS,
    DELTA,
    MINTS,
    OTHER,
    PARTS,
    PLAIN,
    RESTATES,
)
from runcast.slim.redaction.outline import LONGEST
from runcast.slim.redaction.scanner import SHORT
from runcast.slim.wire.codec import AnyEvent, decode, encode

RECORDINGS = Path(__file__).resolve().parents[2] / "adapters" / "langgraph" / "recordings"
WARM = Redactor()  # remembers what all examples before have shown it
PIECES = (
    *(
        "pass",
        "word",
        "password",
        ": ",
        "=",
        " is ",
        "Bear",
        "er ",
        "lo",
        "A",
        "a",
        '{"',
        '"',
        "token",
        '": "',
        "}",
    ),
    *(
        "x9Kf2Lm7Qx1Zr8T",
        "Tr0ub4dor3",
        "gh",
        "p_",
        "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
        " words",
        "\n",
        "\ud83d",
    ),
)
deltas = st.lists(st.sampled_from(PIECES), max_size=8)


@st.composite
def runs(draw: st.DrawFn) -> Sequence[Event]:
    """Messages and calls whose pieces repeat, and events with values around them."""
    events: list[Event] = [RunStartedEvent(thread_id="t", run_id="r")]
    for number, kind in enumerate(draw(st.lists(st.sampled_from("tcs"), max_size=5))):
        key, metadata = f"m{number}", draw(st.sampled_from([None, {"n": 1}, {"token": "x1"}]))
        if kind == "s":
            events.append(StateSnapshotEvent(snapshot={each: [each] for each in draw(deltas)}))
        elif kind == "t":
            events += [
                TextMessageStartEvent(message_id=key, metadata=metadata),
                *(TextMessageContentEvent(message_id=key, delta=each) for each in draw(deltas)),
                *([TextMessageEndEvent(message_id=key, metadata=metadata)] if draw(st.booleans()) else []),
            ]
        else:
            events += [
                ToolCallStartEvent(tool_call_id=key, tool_call_name="f"),
                *(
                    ToolCallArgsEvent(tool_call_id=key, delta=each, metadata=metadata)
                    for each in draw(deltas)
                ),
                ToolCallEndEvent(tool_call_id=key, metadata=metadata),
            ]
    return [*events, RunFinishedEvent(thread_id="t", run_id="r", result="".join(draw(deltas)))]


def fed(redactor: Redactor, events: Sequence[AnyEvent], *, encoded: bool) -> list[AnyEvent]:
    stream = redactor.stream()
    kept = [one for each in events for one in stream.feed(each, encode(each) if encoded else None)]
    return [*kept, *stream.close()]


@given(runs(), st.booleans())
def test_what_was_remembered_changes_no_stream(events: Sequence[Event], encoded: bool) -> None:
    fresh = Redactor()
    first = fed(fresh, events, encoded=encoded)
    assert fed(fresh, events, encoded=encoded) == fed(WARM, events, encoded=encoded) == first


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_what_was_remembered_changes_no_text_and_no_beginning(text: str) -> None:
    fresh = Redactor()
    assert WARM.text(text) == WARM.text(text) == fresh.text(text)
    for unsure in (64, 2):
        found, wait, again = WARM.scanner.growing(text, 0, unsure)
        longer = WARM.scanner.growing(" " * SHORT + text, SHORT, unsure)  # is not cached
        assert WARM.scanner.growing(text, 0, unsure) == (found, wait, again)
        assert longer[1] == wait + SHORT
        assert [each.start - SHORT for each in longer[0]] == [each.start for each in found]


def test_what_begins_a_message_harmlessly_is_read_again_behind_a_name() -> None:
    redactor, rest = Redactor(), '":12345,'
    opening = TextMessageContentEvent(message_id="o", delta=rest)
    redactor.stream().feed(opening, encode(opening))
    assert rest in redactor.openers
    names = [name.replace(" ", "_") for name in DEFAULT_KEYS]
    for name in names:
        for cut in range(len(name)):
            pieces = ('{"', name[:cut], name[cut:], rest, ' "b": 1}')
            events = [TextMessageContentEvent(message_id="m", delta=each) for each in pieces]
            texts = [getattr(one, "delta", "") for one in fed(redactor, events, encoded=True)]
            assert "".join(texts) == redactor.text("".join(pieces)), pieces


def test_a_text_that_was_harmless_is_given_back_itself_and_a_secret_is_found_again() -> None:
    redactor = Redactor()
    text, secret = "the same few names", "password=Tr0ub4dor3"
    assert [redactor.text(text) is text for _ in range(3)] == [True] * 3
    assert {redactor.text(secret) for _ in range(3)} == {"password=[redacted]"}
    long = "word " * remembering.SHORT
    assert redactor.text(long) is redactor.text(long) is long


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "REMEMBERED", 2)
    redactor = Redactor()
    for text in ("one", "two", "three", "password=Tr0ub4dor3"):
        assert redactor.text(text) == Redactor().text(text)


def test_the_end_of_a_run_is_redacted_whatever_its_length() -> None:
    redactor, stream = Redactor(), WARM.stream()
    for length in (1, LONGEST, 4 * LONGEST):
        for result in ("word " * length, "word " * length + "password=Tr0ub4dor3"):
            for _ in range(4):  # the outline becomes familiar
                event = RunFinishedEvent(thread_id="t", run_id="r", result=result)
                assert [*stream.feed(event, encode(event))] == [redactor.model(event)]


def test_every_type_has_the_part_that_its_fields_allow() -> None:
    assert PARTS.get(StateSnapshotEvent, OTHER)[0] == PLAIN
    for event, (part, _, name, content) in PARTS.items():
        fields = event.model_fields
        assert (part < BORDER and part != CHUNK) or name in fields
        assert part != BORDER or content in fields
        assert (part == CHUNK) == (event in CHUNKS)
        assert part not in (DELTA, CHUNK) or "delta" in fields
        assert not (part == DELTA and issubclass(event, (*MINTS, *RESTATES)))


def test_few_harmless_events_are_searched_a_second_time() -> None:
    """The first search is one pass, whatever the number of rules. A rule whose marks are usual words costs each event."""
    lines = [line for path in sorted(RECORDINGS.glob("*.events")) for line in path.read_bytes().splitlines()]
    twice = [line for line in lines if WARM.glimpse(encode(decode(line)))]
    assert len(lines) > 2_000
    assert len(twice) <= len(lines) // 100, twice[:5]
