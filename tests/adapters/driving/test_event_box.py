"""The box between a fast writer and a slow reader: bounded, in order, and no reader can tell that deltas were merged."""

from __future__ import annotations

import pytest
from ag_ui.core import (
    Event,
    ReasoningMessageContentEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)
from hypothesis import given
from hypothesis import strategies as st

from runcast.adapters.driving.event_box import EventBox


def text(message: str, delta: str) -> Event:
    return TextMessageContentEvent(message_id=message, delta=delta)


def thought(message: str, delta: str) -> Event:
    return ReasoningMessageContentEvent(message_id=message, delta=delta)


def args(call: str, delta: str) -> Event:
    return ToolCallArgsEvent(tool_call_id=call, delta=delta)


def step(name: str) -> Event:
    return StepStartedEvent(step_name=name)


def drained(box: EventBox) -> list[Event]:
    found = []
    while (event := box.take()) is not None:
        found.append(event)
    return found


def test_with_room_nothing_is_merged():
    box = EventBox(10)
    sent = [text("m", "a"), text("m", "b"), step("s")]
    assert all(box.put(event) for event in sent)
    assert len(box) == 3
    assert drained(box) == sent
    assert box.stats() == {"waiting": 0, "highest": 3, "merged": 0, "refused": 0}


def test_without_room_a_delta_joins_its_own():
    box = EventBox(3)
    for event in (text("m", "a"), thought("m", "h"), args("m", "{")):
        assert box.put(event)
    for event in (text("m", "b"), thought("m", "m"), args("m", "}"), text("m", "c")):
        assert box.put(event)
    assert drained(box) == [text("m", "abc"), thought("m", "hm"), args("m", "{}")]
    assert box.merged == 4


def test_without_room_all_else_is_refused():
    box = EventBox(1)
    assert box.put(text("m", "a"))
    assert not box.put(text("n", "b"))
    assert not box.put(step("s"))
    assert box.refused == 2


def test_nothing_jumps_over_an_event_that_is_no_delta():
    box = EventBox(2)
    assert box.put(text("m", "a"))
    assert box.put(step("s"))
    assert not box.put(text("m", "b"))


def test_what_was_taken_is_joined_no_more():
    box = EventBox(2)
    box.put(text("m", "a"))
    box.put(text("n", "x"))
    assert box.take() == text("m", "a")
    assert box.put(step("s"))
    assert not box.put(text("m", "b"))


def test_metadata_of_merged_deltas_is_merged_as_a_client_merges_it():
    box = EventBox(1)
    for key, delta in (("k", "a"), ("k", "b"), ("l", "c")):
        assert box.put(TextMessageContentEvent(message_id="m", delta=delta, metadata={key: delta}))
    assert box.put(text("m", "d"))
    assert drained(box) == [
        TextMessageContentEvent(message_id="m", delta="abcd", metadata={"k": "b", "l": "c"})
    ]


def test_a_delta_that_carries_a_native_part_stays_by_itself():
    box = EventBox(1)
    box.put(TextMessageContentEvent(message_id="m", delta="a", raw_event={"k": 1}))
    assert not box.put(text("m", "b"))


def test_a_box_without_room_is_no_box():
    with pytest.raises(ValueError, match="at least 1"):
        EventBox(0)


kinds = st.sampled_from((text, thought, args))
events = st.lists(
    st.builds(
        lambda kind, to, delta: kind(to, delta),
        kinds,
        st.sampled_from("ab"),
        st.text("xyz", min_size=1, max_size=2),
    )
    | st.builds(step, st.sampled_from("st")),
    max_size=40,
)


def told(stream: list[Event]) -> list[object]:
    """What a reader makes of a stream: per stretch between other events, the text each message got."""
    found: list[object] = []
    stretch: dict[object, str] = {}
    for event in stream:
        if isinstance(event, StepStartedEvent):
            found += [stretch, event.step_name]
            stretch = {}
        else:
            key = (type(event), getattr(event, "message_id", None) or event.tool_call_id)
            stretch[key] = stretch.get(key, "") + event.delta
    return [*found, stretch]


@given(events, st.integers(1, 6), st.lists(st.booleans(), min_size=1, max_size=9))
def test_a_reader_cannot_tell(sent: list[Event], limit: int, takes: list[bool]):
    box = EventBox(limit)
    got: list[Event] = []
    for at, event in enumerate(sent):
        while not box.put(event):
            taken = box.take()
            assert taken is not None
            got.append(taken)
        assert len(box) <= limit
        if takes[at % len(takes)] and (taken := box.take()) is not None:
            got.append(taken)
    assert told(got + drained(box)) == told(sent)
