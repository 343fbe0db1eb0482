"""What an attempt that broke off had said goes when the thread goes on: the session holds what is complete."""

from __future__ import annotations

import pytest
from ag_ui.core import (
    AssistantMessage,
    MessagesSnapshotEvent,
    ReasoningMessage,
    RunAgentInput,
    ToolCallResultEvent,
    ToolMessage,
    UserMessage,
)
from google.genai import types

from runcast.adapters.adk.intake.corrections import corrections
from runcast.adapters.adk.options import AdkOptions
from runcast.slim import AgentState
from tests.adapters.adk.fakes import agent, call, text, turn
from tests.adapters.adk.scenes import look
from tests.adapters.adk.stage import Stage
from tests.e2e.oracle import Oracle

ASKED = UserMessage(id="u1", content="hi")


def input(*messages: object) -> RunAgentInput:
    return RunAgentInput(thread_id="t", run_id="r2", messages=[*messages])  # type: ignore[list-item]  # any message


async def test_half_an_answer_goes_and_the_whole_one_comes():
    """The session has the answer; of the client's picture the log kept the beginning and an attempt before it."""
    stage = Stage(agent("root", text("the ", "answer")))
    await stage.say("hi")
    session = await stage.session()
    assert session is not None
    asked, answer = await stage.messages()
    half = AssistantMessage(id=answer.id, content="the ")
    torn = AssistantMessage(id="torn", content="tor")
    thought = ReasoningMessage(id="torn-reasoning", content="hm")
    [restated] = corrections(input(asked, thought, torn, half), None, session.events, "root", AdkOptions())
    told = [(message.role, message.content) for message in restated.messages]
    assert told == [("user", "hi"), ("assistant", "the answer"), ("reasoning", "")]
    named = restated.metadata["runcast"]["corrects"]
    assert named == {"messages": ["torn", answer.id], "reasoning": ["torn-reasoning"]}
    [unseen] = corrections(input(asked), None, session.events, "root", AdkOptions())
    assert [message.id for message in unseen.messages] == [asked.id, answer.id]


async def test_what_the_session_holds_is_not_restated():
    stage = Stage(agent("root", text("the ", "answer")))
    await stage.say("hi")
    session = await stage.session()
    assert session is not None
    asked, answer = await stage.messages()
    news = UserMessage(id="u2", content="more")
    result = ToolMessage(id="t1", tool_call_id="c1", content="news")
    for shown in ([asked, answer], [asked, answer, news], [asked, answer, result], [news], []):
        assert corrections(input(*shown), None, session.events, "root", AdkOptions()) == []
    assert corrections(input(ASKED), None, [], "root", AdkOptions()) == []


async def test_a_result_follows_the_call_that_the_client_lacks():
    """The run was stopped between the words and the call; ADK sealed the call with a result."""
    stage = Stage(agent("root", turn(types.Part(text="see "), call("look")), text("done"), tools=[look]))
    await stage.say("hi")
    session = await stage.session()
    assert session is not None
    asked, called, result, done = await stage.messages()
    half = AssistantMessage(id=called.id, content="se")
    news = UserMessage(id="u2", content="more")
    shown = input(asked, half, news)
    snapshot, late = corrections(shown, None, session.events[:3], "root", AdkOptions())
    assert isinstance(snapshot, MessagesSnapshotEvent)
    assert [it.id for it in snapshot.messages] == [asked.id, called.id, news.id]
    assert isinstance(late, ToolCallResultEvent)
    assert late.message_id == result.id
    behind = input(asked, called, news, result, done)  # a client that shows it there keeps it
    assert corrections(behind, None, session.events, "root", AdkOptions()) == []


@pytest.mark.oracle
async def test_a_new_message_stays_where_what_broke_is_taken_back(oracle: Oracle):
    """The host brings a broken thread's point with the next message: the log does not have the message yet."""
    stage = Stage(agent("root", text("half ", "of it"), text("whole")))
    stage.until = 4
    await stage.say("hi")
    stage.open()
    point = AgentState.from_events(stage.runs[0])
    news = UserMessage(id="u2", content="go on")
    run = await stage.send([*await stage.messages(), news], point=point)
    snapshot = next(event for event in run if isinstance(event, MessagesSnapshotEvent))
    assert [message.id for message in snapshot.messages][-1] == "u2"
    await stage.check(oracle)
