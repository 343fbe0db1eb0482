"""The events of a run, rewritten: every text, however it is cut, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    Event,
    FunctionCall,
    Interrupt,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StepStartedEvent,
    TextInputContent,
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

from runcast.adapters.langgraph.stream.event_redaction import EventRedaction, rewritten_json

ADDRESS = "joe@example.com"


def rewrite(text: str) -> str:
    return re.sub(r"[\w.]+@[\w.]+\w", "[address]", text)


def shown(*events: Event) -> list[Event]:
    return EventRedaction(rewrite).events(events)


def text(events: list[Event]) -> str:
    return "".join(each.delta for each in events if isinstance(each, TextMessageContentEvent))


@pytest.mark.parametrize("size", [1, 3, 7, 50, 1000])
def test_a_text_in_pieces_is_rewritten_as_a_whole(size: int):
    whole = f"{ADDRESS} first, " + "and some words " * 20 + f"then {ADDRESS}." + " more" * 40 + " x"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    redaction = EventRedaction(rewrite)
    live = redaction.events([TextMessageContentEvent(message_id="m", delta=piece) for piece in pieces])
    assert text(live) != ""  # it streams
    end = redaction.events([TextMessageEndEvent(message_id="m")])
    assert text([*live, *end]) == rewrite(whole)
    assert end[-1].type == "TEXT_MESSAGE_END"


def test_an_address_at_the_cut_waits():
    at_the_cut = "x " * 20 + ADDRESS + " y" * 61
    assert [each.type for each in shown(TextMessageContentEvent(message_id="m", delta=at_the_cut))] == []


def test_arguments_are_rewritten_inside_their_json():
    call = [
        ToolCallStartEvent(tool_call_id="c", tool_call_name="find"),
        *(
            ToolCallArgsEvent(tool_call_id="c", delta=piece)
            for piece in ('{"a": "joe@', 'example.com", "b": 1}')
        ),
        ToolCallEndEvent(tool_call_id="c"),
    ]
    assert [getattr(each, "delta", "") for each in shown(*call)] == ["", '{"a": "[address]", "b": 1}', ""]
    assert rewritten_json(rewrite, '{"a":1}') == '{"a":1}'
    assert rewritten_json(rewrite, f'{{"a": "{ADDRESS}') == '{"a": "[address]'
    assert [each.type for each in shown(ToolCallEndEvent(tool_call_id="none"))] == ["TOOL_CALL_END"]


def test_a_snapshot_amid_a_text_leaves_out_what_waits():
    redaction = EventRedaction(rewrite)
    begun = [
        TextMessageStartEvent(message_id="m", role="assistant"),
        TextMessageContentEvent(message_id="m", delta="write to joe@exam"),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="find", parent_message_id="n"),
        ToolCallArgsEvent(tool_call_id="c", delta='{"a":'),
    ]
    redaction.events(begun)
    call = ToolCall(id="c", function=FunctionCall(name="find", arguments='{"a":'))
    held = [
        AssistantMessage(id="m", content="write to joe@exam"),
        AssistantMessage(id="n", tool_calls=[call]),
        UserMessage(id="u", content=[TextInputContent(text=f"I am {ADDRESS}")]),
        ToolMessage(id="t", tool_call_id="d", content="none", error=f"no {ADDRESS}"),
    ]
    [snapshot] = redaction.events([MessagesSnapshotEvent(messages=held)])
    assert isinstance(snapshot, MessagesSnapshotEvent)
    texts: list[Any] = [each.content for each in snapshot.messages]
    assert (texts[0], texts[2][0].text, texts[3]) == ("", "I am [address]", "none")
    made, result = snapshot.messages[1], snapshot.messages[3]
    assert isinstance(made, AssistantMessage)
    assert made.tool_calls is not None
    assert made.tool_calls[0].function.arguments == ""
    assert isinstance(result, ToolMessage)
    assert result.error == "no [address]"
    rest = redaction.events(
        [TextMessageContentEvent(message_id="m", delta="ple.com"), TextMessageEndEvent(message_id="m")]
    )
    assert text(rest) == "write to [address]"


def test_what_events_hold_beside_texts_is_rewritten_and_their_ids_are_not():
    asked = Interrupt(
        id=ADDRESS, reason="r", message=f"Ask {ADDRESS}?", metadata={"value": [ADDRESS, 1, None]}
    )
    events: list[Event] = [
        RunStartedEvent(
            thread_id=ADDRESS,
            run_id="r",
            input=RunAgentInput(
                thread_id=ADDRESS,
                run_id="r",
                messages=[UserMessage(id="u", content=ADDRESS)],
                state={"a": ADDRESS},
            ),
        ),
        StepStartedEvent(step_name="find"),
        StateDeltaEvent(
            delta=[
                {"op": "add", "path": f"/{ADDRESS}", "value": {"to": ADDRESS}},  # type: ignore[list-item]  # as JSON has it
                {"op": "remove", "path": "/b"},  # type: ignore[list-item]
            ]
        ),
        ToolCallResultEvent(message_id="t", tool_call_id=ADDRESS, content=f"it is {ADDRESS}"),
        CustomEvent(name="found", value={"list": [ADDRESS, 2]}),
        RunFinishedEvent(
            thread_id=ADDRESS,
            run_id="r",
            outcome=RunFinishedInterruptOutcome(type="interrupt", interrupts=[asked]),
        ),
        RunErrorEvent(message=f"no {ADDRESS}"),
    ]
    started, step, delta, result, custom, finished, error = (
        each.model_dump(mode="json", by_alias=True) for each in shown(*events)
    )
    assert started["threadId"] == finished["threadId"] == ADDRESS
    assert started["input"]["messages"][0]["content"] == started["input"]["state"]["a"] == "[address]"
    assert step["stepName"] == "find"
    assert [each["path"] for each in delta["delta"]] == [f"/{ADDRESS}", "/b"]
    assert delta["delta"][0]["value"] == {"to": "[address]"}
    assert (result["toolCallId"], result["content"]) == (ADDRESS, "it is [address]")
    assert custom["value"] == {"list": ["[address]", 2]}
    [question] = finished["outcome"]["interrupts"]
    assert (question["id"], question["message"]) == (ADDRESS, "Ask [address]?")
    assert question["metadata"] == {"value": ["[address]", 1, None]}
    assert error["message"] == "no [address]"
