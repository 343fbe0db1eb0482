"""A client that edits a message, or asks again: the session forks, and the model sees what the client shows."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Message, ResumeEntry, UserMessage
from google.adk.tools import LongRunningFunctionTool, ToolContext

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, model_of, steady, text
from tests.adapters.adk.stage import WHERE, Stage, kinds, texts, wire
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def remember(tool_context: ToolContext, topic: str = "") -> str:
    """Remember the topic."""
    tool_context.state["topic"] = topic
    return topic


def heard(stage: Stage) -> list[str]:
    """The texts of the last model call."""
    contents = model_of(stage.root).calls[-1].contents
    return [part.text for content in contents for part in content.parts or () if part.text]


async def three_turns() -> Stage:
    stage = Stage(agent("root", *(text(f"answer {n}") for n in range(1, 9))))
    for one in ("one", "two", "three"):
        await stage.say(one)
    return stage


async def shown(oracle: Oracle, stage: Stage, sent: list[Message]) -> list[tuple[str, str]]:
    """The view of a client that cut its own history before the last run."""
    run, given = stage.runs[-1], stage.inputs[-1]
    client = oracle.run({"events": run, "runId": given.run_id}, messages=[wire(it) for it in sent])
    assert client["ok"], client["errors"]
    assert client["messages"] == [wire(it) for it in await stage.messages()]
    return texts(client)


@pytest.mark.parametrize("turn", [1, 2, 3])
async def test_case_61_the_same_message_is_answered_again(oracle: Oracle, turn: int):
    stage = await three_turns()
    sent = (await stage.messages())[: 2 * turn - 1]
    run = await stage.send(sent)
    assert run[0].metadata["runcast"]["resumed_from"] == "fork"  # type: ignore[index]
    words = ["one", "answer 1", "two", "answer 2", "three"][: 2 * turn - 1]
    assert heard(stage) == words
    assert [it for _, it in await shown(oracle, stage, sent)] == [*words, "answer 4"]
    await stage.check(oracle)
    await stage.say("and on")
    assert heard(stage) == [*words, "answer 4", "and on"]
    await stage.check(oracle)


@pytest.mark.parametrize("new_id", [True, False])
@pytest.mark.parametrize("turn", [2, 3])
async def test_case_62_an_edited_message_is_answered(oracle: Oracle, turn: int, new_id: bool):
    stage = await three_turns()
    held = await stage.messages()
    edited = UserMessage(id="edited" if new_id else held[2 * turn - 2].id, content="edited")
    sent = [*held[: 2 * turn - 2], edited]
    run = await stage.send(sent)
    assert run[0].metadata["runcast"]["resumed_from"] == "fork"  # type: ignore[index]
    words = [*["one", "answer 1", "two", "answer 2"][: 2 * turn - 2], "edited"]
    assert heard(stage) == words
    assert [it for _, it in await shown(oracle, stage, sent)] == [*words, "answer 4"]
    await stage.check(oracle)


async def test_case_63_a_message_without_an_answer_is_asked_again(oracle: Oracle):
    stage = Stage(agent("root", [ValueError("gone")], text("here")))
    assert kinds(await stage.say("hi"))[-1] == "RUN_ERROR"
    await stage.send(await stage.messages())
    assert texts(await stage.check(oracle)) == [("user", "hi"), ("assistant", "here")]


async def test_case_63_only_the_new_message_is_no_fork(oracle: Oracle):
    stage = await three_turns()
    await stage.send([UserMessage(id="u9", content="four")])
    assert heard(stage)[-2:] == ["answer 3", "four"]
    await stage.check(oracle)


async def test_case_63_two_messages_of_one_turn_stay_together(oracle: Oracle):
    stage = Stage(agent("root", text("first"), text("second")))
    await stage.say("one", "two")
    sent = [*(await stage.messages())[:1], UserMessage(id="edited", content="zwei")]
    await stage.send(sent)
    assert heard(stage) == ["one", "zwei"]
    await stage.check(oracle)


async def test_case_63_state_goes_back_too(oracle: Oracle):
    root = agent(
        "root", text("hello"), calls(call("remember", {"topic": "tea"})), text("noted"), text("again"),
        tools=[remember],
    )  # fmt: skip
    stage = Stage(root)
    await stage.say("hi", state={"lang": "en"})
    await stage.say("tea please", state={"lang": "en"})
    session = await stage.session()
    assert session is not None
    assert session.state == {"lang": "en", "topic": "tea"}
    sent = [*(await stage.messages())[:2], UserMessage(id="edited", content="never mind")]
    await stage.send(sent, state={"lang": "en", "topic": "tea"})
    session = await stage.session()
    assert session is not None
    assert {key: value for key, value in session.state.items() if value is not None} == {"lang": "en"}
    await stage.check(oracle)


async def test_case_63_a_fork_drops_the_question_behind_it(oracle: Oracle):
    options = AdkOptions(on_new_message="refuse")
    root = agent("root", calls(call("ask", {"q": "1"})), text("thanks"), tools=[LongRunningFunctionTool(ask)])
    stage = Stage(root, options=options)
    await stage.say("hi")
    assert stage.interrupts
    edited = UserMessage(id=(await stage.messages())[0].id, content="hello")
    entry = ResumeEntry(interrupt_id=stage.interrupts[0].id, status="cancelled")  # the client insists on one
    run: list[Any] = await stage.send([edited], resume=[entry])
    assert run[-1].outcome.type == "success"
    assert texts(await stage.check(oracle)) == [("user", "hello"), ("assistant", "thanks")]


@pytest.mark.parametrize("until", [1, 2, 3])
async def test_case_63_a_fork_that_breaks_before_its_message_is_stored_goes_on(oracle: Oracle, until: int):
    stage = Stage(steady("root", text("first"), text("second")))
    await stage.service.create_session(**WHERE, state={"lang": "en"})
    await stage.say("one", "two")
    sent = [*(await stage.messages())[:1], UserMessage(id="edited", content="zwei")]
    stage.until = until
    await stage.send(sent)
    run = await stage.go_on()
    assert kinds(run)[-1] == "RUN_FINISHED"
    assert heard(stage) == ["one", "zwei"]
    client = await stage.check(oracle, state={"lang": "en"})
    assert texts(client) == [("user", "one"), ("user", "zwei"), ("assistant", "first")]
    assert client["state"] == {"lang": "en"}


async def test_a_result_that_a_client_shows_behind_what_followed_forks_nothing():
    tool = calls(call("remember", {"topic": "x"}))
    stage = Stage(agent("root", tool, text("done"), text("more"), text("on"), tools=[remember]))
    await stage.say("one")
    await stage.say("two")
    held = await stage.messages()
    behind = sorted(held, key=lambda message: message.role == "tool")
    run = await stage.send([*behind, UserMessage(id="u3", content="three")])
    assert "resumed_from" not in run[0].metadata["runcast"]  # type: ignore[index]
    assert heard(stage) == ["one", "done", "two", "more", "three"]
