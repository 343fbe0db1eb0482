"""Parts that cannot be translated: a logged error and one CUSTOM event; the run continues and stays valid."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools import ToolContext
from google.genai import types
from pydantic import BaseModel, model_serializer

from runcast.adapters.adk import AdkTranslator
from runcast.adapters.run_frame import RunIds
from tests.adapters.adk.fakes import agent, call, calls, text
from tests.adapters.adk.stage import Stage, kinds, strict
from tests.e2e.oracle import Oracle


class Unprintable(BaseModel):
    """A value of a program that JSON cannot hold and `repr` cannot show."""

    @model_serializer
    def refuse(self) -> Any:
        raise KeyError("topic")

    def __repr__(self) -> str:
        raise KeyError("topic")


def poison(tool_context: ToolContext) -> str:
    """Put something odd into the state."""
    tool_context.state["odd"] = Unprintable()
    return "done"


@pytest.mark.oracle
async def test_state_that_cannot_be_sent_does_not_end_the_run(
    oracle: Oracle, caplog: pytest.LogCaptureFixture
):
    stage = Stage(agent("root", calls(call("poison")), text("all ", "fine"), tools=[poison]))
    run = await stage.say("hi")
    strict(run)
    assert oracle.pipeline(run)["ok"]
    assert kinds(run)[-1] == "RUN_FINISHED"
    [odd] = [it for it in run if it.type.value == "CUSTOM"]
    assert odd.name == "runcast.untranslated"  # type: ignore[union-attr]
    assert odd.value == {"part": "Event", "error": "KeyError: 'topic'"}  # type: ignore[union-attr]
    assert [it.content for it in run if it.type.value == "TOOL_CALL_RESULT"] == ["done"]  # type: ignore[union-attr]
    assert "".join(it.delta for it in run if it.type.value == "TEXT_MESSAGE_CONTENT") == "all fine"  # type: ignore[union-attr]
    [record] = [it for it in caplog.records if it.name.startswith("runcast")]
    assert record.exc_info is not None


def broken(**given: Any) -> Event:
    """A complete event of which one field raises."""
    part = types.Part(text="hi")
    return Event(author="root", content=types.Content(role="model", parts=[part]), **given)


@pytest.mark.parametrize("partial", [True, False], ids=["partial", "complete"])
def test_content_that_cannot_be_read_leaves_a_valid_stream(partial: bool):
    translator = AdkTranslator(RunIds("t", "r"), root="root")
    odd = broken(id="e1", partial=partial)
    odd.content.parts[0].__dict__["text"] = 7  # type: ignore[union-attr,index]
    events = translator.start() + translator.feed(odd)
    events += translator.feed(broken(id="e2")) + translator.finish()
    assert not [it for it in events if it.type.value == "RUN_ERROR"]
    assert "CUSTOM" in kinds(events)
    strict(events)


def test_the_rest_of_an_event_is_translated():
    translator = AdkTranslator(RunIds("t", "r"), root="root")
    odd = broken(id="e1", actions=EventActions(state_delta={"a": 1, "b": Unprintable()}))
    events = translator.start() + translator.feed(odd) + translator.finish()
    assert [it.delta for it in events if it.type.value == "TEXT_MESSAGE_CONTENT"] == ["hi"]
    assert kinds(events).count("CUSTOM") == 1
    strict(events)


def test_a_fault_in_mid_stream_keeps_the_message_open():
    translator = AdkTranslator(RunIds("t", "r"), root="root")
    odd = broken(id="e1", partial=True)
    odd.content.parts[0].__dict__["text"] = 7  # type: ignore[union-attr,index]
    events = translator.start() + translator.feed(broken(id="e1", partial=True)) + translator.feed(odd)
    events += translator.feed(broken(id="e1")) + translator.finish()
    strict(events)
    assert kinds(events).count("TEXT_MESSAGE_START") == 1
    assert kinds(events).count("CUSTOM") == 1


def test_a_question_about_no_call_does_not_end_the_run():
    asked = call("adk_request_confirmation", {"originalFunctionCall": {"id": ["odd"]}}, id="q1")
    content = types.Content(role="model", parts=[types.Part(text="hi"), asked])
    translator = AdkTranslator(RunIds("t", "r"), root="root")
    events = translator.start() + translator.feed(Event(author="root", content=content)) + translator.finish()
    strict(events)
    assert {it.name for it in events if it.type.value == "CUSTOM"} == {"runcast.untranslated"}  # type: ignore[union-attr]
    assert "".join(it.delta for it in events if it.type.value == "TEXT_MESSAGE_CONTENT") == "hi"  # type: ignore[union-attr]
