"""What is shown, is what the client holds: event by event, and after something was taken back."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    Event,
    FunctionCall,
    Message,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)

from runcast.adapters.shown import TAKEN_BACK, Shown, half_of
from runcast.slim.fold import Conversation

ASKED = UserMessage(id="u1", content="hi")
PLAN = ActivityMessage(id="a1", activity_type="plan", content={"to": "do"})
OLD = AssistantMessage(
    id="old",
    content="Let me ",
    tool_calls=[ToolCall(id="c0", function=FunctionCall(name="add", arguments='{"a":'))],
)
THOUGHT = ReasoningMessage(id="t0", content="hm")

SAID: list[Event] = [
    ReasoningMessageStartEvent(message_id="t1", role="reasoning", metadata={"where": "n:1"}),
    ReasoningMessageContentEvent(message_id="t1", delta="because"),
    ReasoningEncryptedValueEvent(subtype="message", entity_id="t1", encrypted_value="sealed"),
    ToolCallStartEvent(
        tool_call_id="c1", tool_call_name="add", parent_message_id="m1", metadata={"where": "n:1"}
    ),
    ToolCallArgsEvent(tool_call_id="c1", delta='{"a":'),
    ToolCallArgsEvent(tool_call_id="c1", delta="1}"),
    ToolCallEndEvent(tool_call_id="c1", metadata={"discarded": "error"}),
    ReasoningEncryptedValueEvent(subtype="tool-call", entity_id="c1", encrypted_value="sealed too"),
    TextMessageStartEvent(message_id="m1"),
    TextMessageContentEvent(message_id="m1", delta="said after its call"),
    TextMessageEndEvent(message_id="m1", metadata={"model": "fake"}),
    TextMessageStartEvent(message_id="m2", name="Ada"),
    TextMessageContentEvent(message_id="m2", delta="next"),
    TextMessageEndEvent(message_id="m2"),
    ToolCallResultEvent(message_id="r1", tool_call_id="c1", content="1", metadata={"where": "n:2"}),
    TextMessageStartEvent(message_id="m2"),
    TextMessageContentEvent(message_id="m2", delta=", and"),
    TextMessageContentEvent(message_id="m2", delta=" on"),
    ToolCallStartEvent(tool_call_id="c2", tool_call_name="look"),
    ToolCallStartEvent(tool_call_id="c3", tool_call_name="look", parent_message_id="m2"),
    ToolCallResultEvent(message_id="r2", tool_call_id="gone", content="nobody asked"),
]
OF_THE_PAST: list[Event] = [  # what the client was shown before the run goes on
    TextMessageContentEvent(message_id="old", delta="see"),
    ToolCallStartEvent(tool_call_id="c0", tool_call_name="add"),
    ToolCallArgsEvent(tool_call_id="c0", delta="1}"),
    ToolCallResultEvent(message_id="r0", tool_call_id="c0", content="1"),
    TextMessageContentEvent(message_id="t0", delta=", well"),
]
OF_NOBODY: list[Event] = [
    TextMessageContentEvent(message_id="nobody", delta="x"),
    TextMessageEndEvent(message_id="nobody", metadata={"x": 1}),
    ReasoningEncryptedValueEvent(subtype="message", entity_id="nobody", encrypted_value="x"),
    ToolCallArgsEvent(tool_call_id="nobody", delta="x"),
    ToolCallEndEvent(tool_call_id="nobody", metadata={"x": 1}),
]


def same(history: list[Message], events: list[Event]) -> None:
    """Whether what is shown is, at every event, what the client's rules make of it."""
    shown, client = Shown(history), Conversation(history)
    for event in events:
        shown.feed([event])
        client.feed(event)
        assert plain(shown.messages) == plain(client.messages), event
    together = Shown(history)
    together.feed(events)
    assert plain(together.messages) == plain(shown.messages)


def plain(messages: list[Message]) -> list[dict[str, Any]]:
    """What they say. Activities are left to the client; so is an empty list where nothing is the same."""
    return [
        {key: value for key, value in each.model_dump(exclude_none=True).items() if value != ""}
        for each in messages
        if each.role != "activity"
    ]


@pytest.mark.parametrize("events", [SAID, OF_THE_PAST, OF_NOBODY], ids=["said", "of the past", "of nobody"])
def test_what_is_shown_is_what_the_client_holds(events: list[Event]):
    same([ASKED, PLAN, OLD, THOUGHT], events)


@pytest.mark.parametrize(
    "stays",
    [
        [ASKED, OLD],
        [ASKED, PLAN, OLD, THOUGHT],
        [OLD, AssistantMessage(id="new", content="new"), ASKED],
    ],
    ids=["no thoughts", "thoughts and activities", "something new"],
)
def test_a_snapshot_is_taken_as_the_client_takes_it(stays: list[Message]):
    same([ASKED, PLAN, OLD, THOUGHT], [*SAID, MessagesSnapshotEvent(messages=stays), *SAID, *OF_THE_PAST])


def corrected(
    history: list[Message], events: list[Event], gone: list[str], *instead: Message
) -> Conversation:
    """A client that is told, and then told otherwise; it ends with what is shown."""
    shown, client = Shown(history), Conversation(history)
    for event in events:
        shown.feed([event])
        client.feed(event)
    told = shown.restate(gone, instead)
    for event in told:
        client.feed(event)
        shown.feed([event])
    assert plain(shown.messages) == plain(client.messages)
    return client


def test_what_is_taken_back_is_gone_with_its_calls():
    """A call that was half streamed when it went is answered, so that nobody waits for it."""
    events: list[Event] = [
        ToolCallStartEvent(tool_call_id="c1", tool_call_name="add", parent_message_id="m1"),
        ToolCallArgsEvent(tool_call_id="c1", delta='{"a":'),
    ]
    shown = Shown([ASKED])
    for event in events:
        shown.feed([event])
    answer, restated = shown.restate(["m1", "never there"])
    assert isinstance(answer, ToolCallResultEvent)
    assert (answer.tool_call_id, answer.content) == ("c1", TAKEN_BACK)
    assert isinstance(restated, MessagesSnapshotEvent)
    assert [message.id for message in restated.messages] == ["u1"]
    client = corrected([ASKED], events, ["m1"])
    assert client.pending_tool_call_ids == []


def test_a_result_is_taken_back_with_its_call():
    events = [*SAID, *OF_THE_PAST]
    client = corrected([ASKED, OLD], events, ["old", "r0"])
    assert not {"old", "r0"}.intersection(message.id for message in client.messages)


def test_the_last_thought_is_left_without_words():
    client = corrected([ASKED, THOUGHT], [], ["t0"])
    assert [(message.id, message.content) for message in client.messages] == [("u1", "hi"), ("t0", "")]
    client = corrected([ASKED, THOUGHT], SAID[:2], ["t0"])
    assert [message.id for message in client.messages] == ["u1", "t1"]


def test_an_activity_outlives_what_is_taken_back():
    client = corrected([ASKED, PLAN, OLD], [], ["old"])
    assert [message.id for message in client.messages] == ["u1", "a1"]


def test_what_was_half_said_is_said_whole_in_its_place():
    whole = AssistantMessage(id="m2", content="next, and on, to the end")
    client = corrected([ASKED], SAID, [], whole)
    assert [message.content for message in client.messages if message.id == "m2"] == [whole.content]


def calling(content: str, *arguments: str) -> AssistantMessage:
    """A message with calls."""
    asked = [
        ToolCall(id=f"c{number}", function=FunctionCall(name="add", arguments=given))
        for number, given in enumerate(arguments)
    ]
    return AssistantMessage(id="m1", content=content, tool_calls=asked or None)


@pytest.mark.parametrize(
    ("shown", "truth", "half"),
    [
        (calling("the "), calling("the whole"), True),
        (calling("the whole"), calling("the whole"), False),
        (calling("another"), calling("the whole"), False),
        (calling("", '{"a":'), calling("", '{"a":1}'), True),
        (calling("", '{"a": 1}'), calling("", '{"a":1}'), False),
        (calling("", "{}"), calling("", "{}", "{}"), True),
        (ToolMessage(id="m1", tool_call_id="c", content="4"), calling("42"), True),
        (UserMessage(id="m1", content=[]), calling("42"), True),
        (UserMessage(id="m1", content=[{"type": "text", "text": "4"}]), calling("42"), False),  # type: ignore[list-item]  # validated
    ],
)
def test_what_is_half_said(shown: Message, truth: Message, half: bool):
    assert half_of(shown, truth) is half
