"""What folding means, case by case; that it means the same as the client's reducer is `test_fold_parity`."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    ReasoningMessage,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolMessage,
    UserMessage,
)

from runcast.slim.folding.conversation import Conversation, fold
from runcast.slim.wire.codec import UnknownEvent, decode
from tests.slim.scripts import (
    FINISHED,
    STARTED,
    activity,
    call,
    folded,
    ids,
    reasons,
    result,
    snapshot,
    text,
    user,
)
from tests.slim.views import events


def test_messages_are_the_protocols_models():
    conversation = folded(
        STARTED,
        *text("m1", "Hello ", "world", name="Ada"),
        *call("c1", "{", "}", parentMessageId="m1"),
        result("t1", "c1", [{"type": "text", "text": "ok"}]),
        {"type": "REASONING_MESSAGE_START", "messageId": "g1"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "g1", "delta": "hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "g1"},
        activity("x1"),
    )
    answer, told, thought, plan = conversation.messages
    assert isinstance(answer, AssistantMessage)
    assert (answer.content, answer.name) == ("Hello world", "Ada")
    assert answer.tool_calls is not None
    assert [each.function.arguments for each in answer.tool_calls] == ["{}"]
    assert isinstance(told, ToolMessage)
    assert isinstance(thought, ReasoningMessage)
    assert isinstance(plan, ActivityMessage)
    assert conversation.problems == []


def test_messages_can_be_looked_at_while_they_grow():
    conversation = Conversation()
    seen: list[Any] = []
    for event in events(*text("m1", "a", "b"), *call("c1", "1", "2", parentMessageId="m1")):
        conversation.feed(event)
        seen.append(conversation.messages[0].model_dump(by_alias=True))
    assert [each.get("content") for each in seen[:4]] == ["", "a", "ab", "ab"]
    assert [each["toolCalls"][0]["function"]["arguments"] for each in seen[4:]] == ["", "1", "12", "12"]
    assert conversation.messages[0] is conversation.messages[0]


def test_a_conversation_can_start_from_what_a_client_holds():
    held = [UserMessage(id="u1", content="hi")]
    conversation = folded(*text("m1", "x"), into=Conversation(held, {"n": 1}))
    assert ids(conversation) == ["u1", "m1"]
    assert conversation.messages[0] is held[0]
    assert conversation.state == {"n": 1}


def test_the_history_can_be_read_from_either_end():
    conversation = folded(STARTED, *call("c1"), *text("m2", "x"), result("t1", "c1"), result("t2", "c1"))
    history = conversation.history
    assert [message.id for message in history] == ids(conversation) == ["c1", "t1", "t2", "m2"]
    assert [message.id for message in reversed(history)] == ["m2", "t2", "t1", "c1"]
    assert [history[at].id for at in (0, 1, 3, -1, -4)] == ["c1", "t1", "m2", "m2", "c1"]
    assert [message.id for message in history[1:3]] == ["t1", "t2"]
    assert history[0] is conversation.messages[0]
    folded(*text("m3", "y"), into=conversation)
    assert (len(history), history[-1].id) == (5, "m3")
    with pytest.raises(IndexError, match="there are 5 messages"):
        history[5]


def test_a_result_stands_behind_its_call_and_earlier_results():
    conversation = folded(
        STARTED,
        *call("c1", parentMessageId="m1"),
        *call("c2", parentMessageId="m1"),
        *text("m2", "later"),
        result("t1", "c1"),
        result("t2", "c2"),
        result("t3", "nobody"),
        result("t4", "c1"),
    )
    assert ids(conversation) == ["m1", "t1", "t2", "t4", "m2", "t3"]
    assert ids(folded(*call("c1"), result("t1", "nobody"), result("t2", "c1"))) == ["c1", "t1", "t2"]


def test_a_row_of_results_that_an_activity_breaks_ends_there():
    conversation = folded(
        STARTED,
        *call("c1"),
        result("t1", "c1"),
        result("t2", "c1"),
        activity("t1"),
        result("t3", "c1"),
        result("t0", "c1"),
    )
    assert ids(conversation) == ["c1", "t3", "t0", "t1", "t2"]
    assert [message.role for message in conversation.messages] == [
        "assistant",
        "tool",
        "tool",
        "activity",
        "tool",
    ]


def test_of_two_messages_with_one_id_the_first_is_meant():
    conversation = folded(
        STARTED,
        *call("c1"),
        *text("m1", "between"),
        result("t1", "nobody", "first"),
        result("t1", "c1", "before it"),
        *text("t1", "!"),
    )
    assert [message.content for message in conversation.messages][1:] == ["before it!", "between", "first"]
    assert conversation.role_of("t1") == "tool"
    assert conversation.role_of("nobody") is None


def test_a_doubled_id_that_a_snapshot_restates_is_one_message_in_two_places():
    conversation = folded(
        STARTED, result("t1", "x", "a"), result("t1", "x", "b"), snapshot(user("t1")), *text("t1", "!")
    )
    assert [message.content for message in conversation.messages] == ["hi!", "hi!"]


def test_an_activity_in_the_place_of_a_message_takes_its_calls_along():
    doubled = {
        "id": "m2",
        "role": "assistant",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "g", "arguments": ""}}],
    }
    conversation = folded(
        STARTED, snapshot({**doubled, "id": "m1"}, doubled), activity("m1"), *call("c1", "{}")
    )
    assert conversation.tool_call("c1") is not None
    assert conversation.messages[1].model_dump()["tool_calls"][0]["function"]["arguments"] == "{}"
    alone = folded(
        STARTED, *call("c1"), activity("c1"), {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{"}
    )
    assert alone.tool_call("c1") is None
    assert not alone.holds_call("c1")
    assert reasons(alone) == ["there is no tool call 'c1'; start it first"]


def test_a_call_whose_parent_is_no_assistant_stands_on_its_own():
    conversation = folded(
        STARTED, snapshot(user("u1")), *call("c1", parentMessageId="u1", subagentRunId="s1")
    )
    assert ids(conversation) == ["u1", "c1"]
    assert conversation.messages[1].subagent_run_id == "s1"
    assert reasons(conversation) == ["parent 'u1' is no assistant message; the call stands on its own"]


def test_a_call_joins_an_assistant_message_that_has_calls_already():
    held = {"id": "m1", "role": "assistant", "toolCalls": [], "content": "x"}
    conversation = folded(
        STARTED,
        snapshot(held),
        *call("c1", "{", parentMessageId="m1"),
        *call("c2", "[", parentMessageId="m1"),
    )
    assert [each["function"]["arguments"] for each in conversation.wire_messages()[0]["toolCalls"]] == [
        "{",
        "[",
    ]


def test_a_call_that_starts_again_is_renamed_and_keeps_its_arguments():
    again = {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "g", "metadata": {"k": None}}
    conversation = folded(STARTED, *call("c1", "{}"), again)
    (kept,) = conversation.pending_tool_calls
    assert (kept.function.name, kept.function.arguments, kept.metadata) == ("g", "{}", {"k": None})


@pytest.mark.parametrize(
    "event",
    [
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "x", "delta": "a"},
        {"type": "TEXT_MESSAGE_END", "messageId": "x"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "x", "delta": "a"},
        {"type": "REASONING_MESSAGE_END", "messageId": "x"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "x", "delta": "a"},
        {"type": "TOOL_CALL_END", "toolCallId": "x"},
        {"type": "ACTIVITY_DELTA", "messageId": "x", "activityType": "PLAN", "patch": []},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "x", "encryptedValue": "e"},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "x", "encryptedValue": "e"},
    ],
    ids=lambda event: event["type"],
)
def test_case_18_what_continues_nothing_changes_nothing_and_is_reported(event: dict[str, Any]):
    conversation = folded(STARTED, event)
    assert conversation.messages == []
    (problem,) = conversation.problems
    assert (problem.index, problem.type) == (1, event["type"])
    assert "'x'" in problem.reason


@pytest.mark.parametrize("opener", ["TEXT_MESSAGE_START", "REASONING_MESSAGE_START"])
def test_text_does_not_overwrite_an_activity(opener: str):
    conversation = folded(STARTED, activity("x1"), {"type": opener, "messageId": "x1", "metadata": {"a": 1}})
    assert conversation.wire_messages()[0]["content"] == {"a": 1}
    assert reasons(conversation) == ["message 'x1' is an activity; ids must be unique across roles"]


def test_encrypted_values_reach_messages_and_calls_but_no_activity():
    def value(subtype: str, id: str) -> dict[str, Any]:
        return {
            "type": "REASONING_ENCRYPTED_VALUE",
            "subtype": subtype,
            "entityId": id,
            "encryptedValue": "e",
        }

    conversation = folded(
        STARTED,
        *call("c1"),
        activity("x1"),
        value("message", "c1"),
        value("tool-call", "c1"),
        value("message", "x1"),
    )
    message, plan = conversation.wire_messages()
    assert message["encryptedValue"] == message["toolCalls"][0]["encryptedValue"] == "e"
    assert "encryptedValue" not in plan
    assert len(conversation.problems) == 1


def test_case_23_a_patch_that_fails_changes_nothing_and_is_reported():
    conversation = folded(
        STARTED,
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/count", "value": 1}]},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/count", "value": 2}]},
        {
            "type": "STATE_DELTA",
            "delta": [{"op": "replace", "path": "/count", "value": 3}, {"op": "remove", "path": "/absent"}],
        },
    )
    assert conversation.state == {"count": 2}
    assert reasons(conversation)[0].startswith("the patch does not apply to the state: ")


@pytest.mark.parametrize("value", [None, 0, [], "s", False, {"keep": None}])
def test_case_24_state_may_be_any_json(value: Any):
    assert folded(STARTED, {"type": "STATE_SNAPSHOT", "snapshot": value}).state == value


def test_case_26_metadata_of_an_activity_patch_counts_even_if_the_patch_does_not():
    conversation = folded(
        STARTED,
        activity("x1", metadata={"a": 1}),
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "x1",
            "activityType": "DONE",
            "patch": [{"op": "remove", "path": "/absent"}],
            "metadata": {"b": None},
        },
        activity("x1", replace=False, content={"other": 1}, metadata={"c": 1}),
    )
    (plan,) = conversation.wire_messages()
    assert plan["metadata"] == {"a": 1, "b": None, "c": 1}
    assert (plan["activityType"], plan["content"]) == ("PLAN", {"a": 1})
    assert reasons(conversation)[0].startswith("the patch does not apply to activity 'x1'")


def test_an_activity_that_a_patch_made_unsayable_is_still_told():
    conversation = folded(
        STARTED,
        activity("x1"),
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "x1",
            "activityType": "PLAN",
            "patch": [{"op": "replace", "path": "", "value": 5}],
        },
    )
    assert conversation.wire_messages()[0]["content"] == 5
    assert conversation.messages[0].content == 5


def test_case_27_metadata_is_last_write_wins_and_null_is_a_value():
    conversation = folded(
        STARTED,
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "metadata": {"a": 1, "b": {"x": 1}}},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "t", "metadata": {"b": {"y": 1}}},
        {"type": "TEXT_MESSAGE_END", "messageId": "m1", "metadata": {"a": None}},
    )
    assert conversation.messages[0].metadata == {"a": None, "b": {"y": 1}}


SCOPES: list[tuple[Any, list[str]]] = [
    (None, ["x1", "x2"]),  # no declaration, and no activity in the snapshot: it does not know of activities
    ({"@ag-ui/client": {"authoritativeActivityTypes": None}}, []),
    ({"@ag-ui/client": {"authoritativeActivityTypes": ["PLAN"]}}, ["x2"]),
    ({"@ag-ui/client": {"authoritativeActivityTypes": ["PLAN", 1]}}, ["x1", "x2"]),
    ({"@ag-ui/client": {"authoritativeActivityTypes": "PLAN"}}, ["x1", "x2"]),
    ({"@ag-ui/client": {}}, ["x1", "x2"]),
    ({"@ag-ui/client": "odd"}, ["x1", "x2"]),
]


@pytest.mark.parametrize(("metadata", "left"), SCOPES)
def test_a_snapshot_says_which_activities_it_may_delete(metadata: Any, left: list[str]):
    restated = snapshot(user("u1"), **({} if metadata is None else {"metadata": metadata}))
    conversation = folded(STARTED, activity("x1"), activity("x2", activityType="SEARCH"), restated)
    assert ids(conversation) == [*left, "u1"]


def test_a_snapshot_with_any_activity_owns_them_all():
    restated = {"id": "x2", "role": "activity", "activityType": "SEARCH", "content": {}}
    assert ids(folded(STARTED, activity("x1"), activity("x2"), snapshot(restated))) == ["x2"]


def test_case_28_a_snapshot_cannot_reorder_so_both_count():
    assert ids(folded(STARTED, snapshot(user("a"), user("b")), snapshot(user("b"), user("a")))) == ["a", "b"]


def test_the_input_adds_only_messages_that_are_missing():
    echoed = {"threadId": "t", "runId": "r", "messages": [user("a", "edited"), user("b")]}
    conversation = folded(STARTED, snapshot(user("a")), FINISHED, {**STARTED, "input": echoed})
    assert [message.content for message in conversation.messages] == ["hi", "hi"]


def test_case_31_a_character_cut_in_two_is_whole_again():
    conversation = folded(STARTED, *text("m1", "\ud83d", "\ude00"), *call("c1", "\ud83d", "\ude00"))
    assert conversation.messages[0].content == "😀"
    assert conversation.pending_tool_calls[0].function.arguments == "😀"


def test_half_a_surrogate_pair_in_a_key_of_a_message_stays():
    odd = {**user("a"), "\ud83d": {"\ud83d": 1}}
    conversation = fold([decode(STARTED), decode(snapshot(odd))])
    assert conversation.wire_messages() == [odd]


def test_events_for_the_application_are_kept_in_order_when_asked():
    stream = events(
        STARTED,
        {"type": "STEP_STARTED", "stepName": "a"},
        {"type": "CUSTOM", "name": "n", "value": None},
        {"type": "RAW", "event": 1},
    )
    unknown = UnknownEvent.model_validate({"type": "NEW_THING", "x": 1})
    conversation = fold([*stream, unknown], Conversation(keep_passed=True))
    assert conversation.passed == [*stream[1:], unknown]
    assert reasons(conversation) == ["AG-UI 1.0 has no event of this type"]
    assert fold(stream).passed == []


def test_a_subclass_of_an_event_is_that_event():
    class Greeting(TextMessageStartEvent):
        pass

    conversation = fold([Greeting(message_id="m1"), TextMessageContentEvent(message_id="m1", delta="x")])
    assert conversation.messages[0].content == "x"


def test_problems_are_counted_beyond_what_is_kept():
    conversation = Conversation(max_problems=2)
    fold(events(*({"type": "TOOL_CALL_END", "toolCallId": "x"} for _ in range(5))), conversation)
    assert (len(conversation.problems), conversation.problem_count) == (2, 5)


def test_a_chunk_that_continues_nothing_is_reported():
    conversation = folded(STARTED, {"type": "TEXT_MESSAGE_CHUNK", "delta": "x"})
    assert conversation.messages == []
    assert reasons(conversation) == ["the first TEXT_MESSAGE_CHUNK of a stream must carry its id"]


def test_a_patch_that_doubles_the_state_is_a_problem_and_costs_nothing():
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    conversation = folded(
        STARTED,
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": [1]}},
        {"type": "STATE_DELTA", "delta": doubling},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "x", "activityType": "P", "content": {"a": [1]}},
        {"type": "ACTIVITY_DELTA", "messageId": "x", "activityType": "P", "patch": doubling},
        FINISHED,
    )
    assert conversation.state == {"a": [1]}
    assert conversation.messages[0].content == {"a": [1]}
    state, activity = reasons(conversation)
    assert state.startswith("the patch does not apply to the state: the patch would ")
    assert activity.startswith("the patch does not apply to activity 'x': the patch would ")
