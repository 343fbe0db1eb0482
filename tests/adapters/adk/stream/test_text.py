"""Text: one message a model call, whatever was streamed of it (cases 1 to 9)."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LoopAgent, SequentialAgent
from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, chunk, text
from tests.adapters.adk.stage import Stage, brief, kinds, texts
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
WHOLE = AdkOptions(streaming="none")


class Saying(BaseAgent):
    """A custom agent that yields these events."""

    said: list[Event] = []  # noqa: RUF012  # pydantic copies it

    async def _run_async_impl(self, ctx: Any) -> Any:
        for event in self.said:
            yield event.model_copy(update={"invocation_id": ctx.invocation_id, "branch": ctx.branch})


def says(author: str, words: str, **given: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=words)])
    return Event(author=author, content=content, **given)


async def test_case_01_three_partials_and_a_final_are_one_message(oracle: Oracle):
    stage = Stage(agent("root", text("Hel", "lo ", "world")))
    run = await stage.say("hi")
    assert brief(run) == ["TEXT_MESSAGE_START", *["TEXT_MESSAGE_CONTENT"] * 3, "TEXT_MESSAGE_END"]
    client = await stage.check(oracle)
    assert texts(client) == [("user", "hi"), ("assistant", "Hello world")]
    final = [event for event in stage.native[0] if event.content and not event.partial]
    assert client["messages"][1]["id"] == final[0].id


async def test_case_02_a_whole_answer_is_one_message(oracle: Oracle):
    stage = Stage(agent("root", text("Hel", "lo")), options=WHOLE)
    run = await stage.say("hi")
    assert brief(run) == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert texts(await stage.check(oracle)) == [("user", "hi"), ("assistant", "Hello")]


@pytest.mark.parametrize("options", [AdkOptions(), WHOLE], ids=["sse", "none"])
async def test_case_03_equal_answers_of_a_sequence_stay_apart(oracle: Oracle, options: AdkOptions):
    said = ["approved", "approved", "ok approved", "approved"]
    agents = [agent(name, text(words)) for name, words in zip("abcd", said, strict=True)]
    stage = Stage(SequentialAgent(name="seq", sub_agents=list(agents)), options=options)
    await stage.say("go")
    assert [words for _, words in texts(await stage.check(oracle))[1:]] == said


@pytest.mark.parametrize("options", [AdkOptions(), WHOLE], ids=["sse", "none"])
@pytest.mark.parametrize("resumable", [True, False], ids=["resumable", "plain"])
async def test_case_04_a_loop_that_repeats_itself_repeats_its_messages(
    oracle: Oracle, options: AdkOptions, resumable: bool
):
    loop = LoopAgent(name="loop", max_iterations=3, sub_agents=[agent("a", text("sa", "me"))])
    stage = Stage(loop, options=options, resumable=resumable)
    await stage.say("go")
    client = await stage.check(oracle)
    assert texts(client)[1:] == [("assistant", "same")] * 3
    assert len({it["id"] for it in client["messages"]}) == 4


async def test_case_05_a_final_that_is_longer_adds_the_rest(oracle: Oracle):
    def longer(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        if llm_response.partial:
            return None
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello, friend")]))

    stage = Stage(agent("root", text("Hel", "lo"), after_model_callback=longer))
    run = await stage.say("hi")
    deltas = [event.delta for event in run if event.type.value == "TEXT_MESSAGE_CONTENT"]  # type: ignore[union-attr]
    assert deltas == ["Hel", "lo", ", friend"]
    assert "MESSAGES_SNAPSHOT" not in kinds(run)
    assert texts(await stage.check(oracle))[1] == ("assistant", "Hello, friend")


def redacts(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
    if llm_response.partial:
        return None
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="[REDACTED]")]))


async def test_case_06_a_rewritten_final_is_repaired(oracle: Oracle):
    stage = Stage(agent("root", text("my ssn ", "123"), after_model_callback=redacts))
    run = await stage.say("hi")
    assert kinds(run)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    client = await stage.check(oracle)
    assert texts(client) == [("user", "hi"), ("assistant", "[REDACTED]")]


async def test_case_06_held_text_never_shows_what_was_rewritten(oracle: Oracle):
    options = AdkOptions(hold_text_of={"root"})
    stage = Stage(agent("root", text("my ssn ", "123"), after_model_callback=redacts), options=options)
    run = await stage.say("hi")
    assert "ssn" not in str(run)
    assert "MESSAGES_SNAPSHOT" not in kinds(run)
    assert texts(await stage.check(oracle))[1] == ("assistant", "[REDACTED]")


async def test_case_06_a_rewrite_to_nothing_is_repaired(oracle: Oracle):
    def silences(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        return None if llm_response.partial else LlmResponse(error_code="BLOCKED", error_message="no")

    stage = Stage(agent("root", text("se", "cret"), after_model_callback=silences))
    run = await stage.say("hi")
    assert kinds(run)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_ERROR"]
    assert texts(await stage.check(oracle)) == [("user", "hi")]


async def test_case_07_partials_without_a_final_are_closed_at_the_end(oracle: Oracle):
    said = [says("custom", "one ", id="p1", partial=True), says("custom", "two", id="p2", partial=True)]
    stage = Stage(Saying(name="custom", said=said))
    run = await stage.say("hi")
    assert brief(run) == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"] * 2
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    assert texts(await stage.check(oracle, stored=False))[1:] == [("assistant", "one "), ("assistant", "two")]


async def test_case_07_a_stream_that_comes_back_goes_on(oracle: Oracle):
    said = [
        says("custom", "one ", id="p1", partial=True),
        says("custom", "two", id="p2", partial=True),
        says("custom", "more", id="p1", partial=True),
        says("custom", "one more", id="p1"),
        says("custom", "two", id="p2"),
    ]
    stage = Stage(Saying(name="custom", said=said))
    await stage.say("hi")
    assert texts(await stage.check(oracle))[1:] == [("assistant", "one more"), ("assistant", "two")]


async def test_case_08_an_empty_turn_streamed_is_a_success(oracle: Oracle):
    stage = Stage(agent("root", [chunk(finish="STOP", usage=True)]))
    run = await stage.say("hi")
    assert kinds(run) == ["RUN_STARTED", "RUN_FINISHED"]
    await stage.check(oracle)


async def test_case_08_an_empty_turn_whole_is_an_error(oracle: Oracle):
    stage = Stage(agent("root", [chunk(finish="STOP", usage=True)]), options=WHOLE)
    run = await stage.say("hi")
    assert run[-1].type.value == "RUN_ERROR"
    assert run[-1].code == "MODEL_RETURNED_NO_CONTENT"  # type: ignore[union-attr]
    await stage.check(oracle)


async def test_case_09_every_character_arrives(oracle: Oracle):
    said = ("né ", "  ", "\n", "\u2028", "👩‍👩‍👧", "\u0000\t", "e\u0301")
    stage = Stage(agent("root", text(*said)))
    await stage.say("hi\u2028")
    assert texts(await stage.check(oracle)) == [("user", "hi\u2028"), ("assistant", "".join(said))]
