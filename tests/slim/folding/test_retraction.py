"""A view that is read at every event, and messages that are taken back, against the official client."""

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
    TextMessageChunkEvent,
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

from runcast.slim.folding.conversation import Conversation, fold
from runcast.slim.folding.retraction import TAKEN_BACK, is_partial, reorder, retract
from tests.e2e.oracle import Oracle
from tests.slim.views import MESSAGES

pytestmark = pytest.mark.oracle

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


def read_often(history: list[Message], events: list[Event]) -> Conversation:
    """The view after the events; reading it at every event changes nothing."""
    read = Conversation(history)
    for count, event in enumerate(events, 1):
        read.feed(event)
        assert plain(read.messages) == plain(fold(events[:count], Conversation(history)).messages), event
    return read


def same(oracle: Oracle, history: list[Message], events: list[Event]) -> None:
    """The view is what the client's rules make of the events."""
    read = read_often(history, events)
    held = [message.model_dump(by_alias=True) for message in history]
    theirs = MESSAGES.validate_python(oracle.apply(events, messages=held)["messages"])
    assert plain(read.messages) == plain(theirs)


def plain(messages: list[Message]) -> list[dict[str, Any]]:
    """Messages without absent fields; an empty list of calls is none."""
    return [
        {key: value for key, value in each.model_dump(exclude_none=True).items() if value not in ("", [])}
        for each in messages
    ]


@pytest.mark.parametrize("events", [SAID, OF_THE_PAST, OF_NOBODY], ids=["said", "of the past", "of nobody"])
def test_a_view_that_is_read_at_every_event_is_the_clients(oracle: Oracle, events: list[Event]):
    same(oracle, [ASKED, PLAN, OLD, THOUGHT], events)


@pytest.mark.parametrize(
    "stays",
    [
        [ASKED, OLD],
        [ASKED, PLAN, OLD, THOUGHT],
        [OLD, AssistantMessage(id="new", content="new"), ASKED],
    ],
    ids=["no thoughts", "thoughts and activities", "something new"],
)
def test_a_snapshot_is_taken_as_the_client_takes_it(oracle: Oracle, stays: list[Message]):
    same(
        oracle,
        [ASKED, PLAN, OLD, THOUGHT],
        [*SAID, MessagesSnapshotEvent(messages=stays), *SAID, *OF_THE_PAST],
    )


def corrected(
    oracle: Oracle, history: list[Message], events: list[Event], gone: list[str], *instead: Message
) -> Conversation:
    """A view after a retraction; the client shows the same."""
    shown = fold(events, Conversation(history))
    retraction = retract(shown, gone, instead)
    fold(retraction, shown)
    held = [message.model_dump(by_alias=True) for message in history]
    theirs = MESSAGES.validate_python(oracle.apply([*events, *retraction], messages=held)["messages"])
    assert plain(shown.messages) == plain(theirs)
    return shown


def test_what_is_taken_back_is_gone_with_its_calls(oracle: Oracle):
    """A call whose arguments are incomplete is answered, so that the client does not wait for a result."""
    events: list[Event] = [
        ToolCallStartEvent(tool_call_id="c1", tool_call_name="add", parent_message_id="m1"),
        ToolCallArgsEvent(tool_call_id="c1", delta='{"a":'),
    ]
    answer, restated = retract(fold(events, Conversation([ASKED])), ["m1", "never there"])
    assert isinstance(answer, ToolCallResultEvent)
    assert (answer.tool_call_id, answer.content) == ("c1", TAKEN_BACK)
    assert isinstance(restated, MessagesSnapshotEvent)
    assert [message.id for message in restated.messages] == ["u1"]
    client = corrected(oracle, [ASKED], events, ["m1"])
    assert client.pending_tool_call_ids == []


def test_a_retraction_that_broke_off_is_finished(oracle: Oracle):
    """The process dies between the answers and the snapshot: the next retraction answers the others, and all go."""
    function = FunctionCall(name="add", arguments="{}")
    two = AssistantMessage(id="m1", tool_calls=[ToolCall(id=key, function=function) for key in ("c1", "c2")])
    first, *_ = retract(Conversation([ASKED, two]), ["m1"])
    second, restated = retract(fold([first], Conversation([ASKED, two])), ["m1"])
    assert isinstance(second, ToolCallResultEvent)
    assert second.tool_call_id == "c2"
    assert isinstance(restated, MessagesSnapshotEvent)
    assert [message.id for message in restated.messages] == ["u1"]
    client = corrected(oracle, [ASKED, two], [first], ["m1"])
    assert [message.id for message in client.messages] == ["u1"]


def test_a_result_is_taken_back_with_its_call(oracle: Oracle):
    events = [*SAID, *OF_THE_PAST]
    client = corrected(oracle, [ASKED, OLD], events, ["old", "r0"])
    assert not {"old", "r0"}.intersection(message.id for message in client.messages)


def test_the_last_reasoning_is_emptied(oracle: Oracle):
    client = corrected(oracle, [ASKED, THOUGHT], [], ["t0"])
    assert [(message.id, message.content) for message in client.messages] == [("u1", "hi"), ("t0", "")]
    client = corrected(oracle, [ASKED, THOUGHT], SAID[:2], ["t0"])
    assert [message.id for message in client.messages] == ["u1", "t1"]


def test_an_activity_outlives_what_is_taken_back(oracle: Oracle):
    client = corrected(oracle, [ASKED, PLAN, OLD], [], ["old"])
    assert [message.id for message in client.messages] == ["u1", "a1"]


def test_a_partial_message_is_replaced_in_its_place(oracle: Oracle):
    whole = AssistantMessage(id="m2", content="next, and on, to the end")
    client = corrected(oracle, [ASKED], SAID, [], whole)
    assert [message.content for message in client.messages if message.id == "m2"] == [whole.content]


def test_new_messages_go_to_the_end_and_a_new_result_behind_its_call():
    answer = ToolMessage(id="r9", tool_call_id="c0", content="2")
    new = AssistantMessage(id="m9", content="done")
    [restated] = retract(Conversation([ASKED, OLD, THOUGHT]), [], [new, answer])
    assert isinstance(restated, MessagesSnapshotEvent)
    assert [message.id for message in restated.messages] == ["u1", "old", "r9", "t0", "m9"]


def test_text_grows_on_while_a_chunked_message_is_open():
    events: list[Event] = [
        TextMessageStartEvent(message_id="m1"),
        TextMessageChunkEvent(message_id="m2", delta="b"),
        TextMessageContentEvent(message_id="m1", delta="a"),
        TextMessageContentEvent(message_id="m1", delta="a", metadata={"x": 1}),
        TextMessageChunkEvent(message_id="m2", delta="b"),
        TextMessageContentEvent(message_id="m1", delta="a"),
    ]
    client = read_often([ASKED], events)
    assert [message.content for message in client.messages] == ["hi", "aaa", "bb"]
    assert client.messages[1].metadata == {"x": 1}


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
def test_what_is_partial(shown: Message, truth: Message, half: bool):
    assert is_partial(shown, truth) is half


def ordered(oracle: Oracle, history: list[Message], events: list[Event], order: list[str]) -> list[str]:
    """The ids a client shows after the messages were put into this order; it shows what the view does."""
    view = fold(events, Conversation(history))
    moved = reorder(view, order)
    fold(moved, view)
    held = [message.model_dump(by_alias=True) for message in history]
    theirs = MESSAGES.validate_python(oracle.apply([*events, *moved], messages=held)["messages"])
    assert plain(view.messages) == plain(theirs)
    assert reorder(view, order) == []
    return [message.id for message in view.messages]


def test_messages_are_put_into_the_order_of_the_graph(oracle: Oracle):
    assert ordered(oracle, [ASKED, OLD], SAID, ["m2", "m1"]) == [
        "u1",
        "old",
        "m2",
        "t1",
        "m1",
        "r1",
        "c2",
        "r2",
    ]


def test_reasoning_moves_with_its_message(oracle: Oracle):
    thoughts = [THOUGHT, AssistantMessage(id="a", content="a"), AssistantMessage(id="b", content="b")]
    assert ordered(oracle, [ASKED, *thoughts], [], ["b", "a"]) == ["u1", "b", "t0", "a"]
    earlier = ReasoningMessage(id="t9", content="hm")
    assert ordered(oracle, [ASKED, earlier, OLD, *thoughts], [], ["b", "a"]) == [
        "u1",
        "t9",
        "old",
        "b",
        "t0",
        "a",
    ]
    assert ordered(oracle, [ASKED, *thoughts[1:], THOUGHT], [], ["b", "a"]) == ["u1", "b", "a", "t0"]


def test_an_order_that_is_shown_or_unknown_needs_no_event():
    view = Conversation([ASKED, PLAN, OLD])
    assert reorder(view, ["u1", "old", "never there"]) == []
    assert reorder(view, ["never there"]) == []


def test_a_message_that_an_order_names_twice_has_its_first_place(oracle: Oracle):
    said = [AssistantMessage(id="a", content="a"), AssistantMessage(id="b", content="b")]
    assert ordered(oracle, [ASKED, *said], [], ["b", "b", "a", "b"]) == ["u1", "b", "a"]
