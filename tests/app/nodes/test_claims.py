"""What an agent that runs is handed of the messages that wait: each once, however often and at whatever time it asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from ag_ui.core import (
    AgentCapabilities,
    Event,
    ImageInputContent,
    InputContentUrlSource,
    RunAgentInput,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    UserMessage,
)

from runcast.adapters.adapter import STEER, Take
from runcast.app import Cast
from runcast.app.host.event_function import EventFunction
from runcast.app.nodes.handover import input_for
from runcast.app.nodes.waiting import Waiting, before
from runcast.slim import MemoryStore, RunLog
from tests.app.nodes.stage import until
from tests.app.nodes.test_queue import idle, run_info, waiting, whole, words
from tests.slim.logs import Gate


class Asking(EventFunction):
    """An agent that takes messages when the test has it ask, and emits them when it goes on."""

    def __init__(self) -> None:
        super().__init__(self._speak, name="asking")
        self.take: Take | None = None
        self.handed: list[UserMessage] = []
        self.goes_on = asyncio.Event()

    def capabilities(self) -> AgentCapabilities:
        return super().capabilities().model_copy(update={"custom": STEER})

    async def steer(self, run_id: str, take: Take) -> None:
        self.take = take

    async def has_take(self) -> bool:
        return self.take is not None

    async def ask(self) -> Sequence[UserMessage]:
        assert self.take is not None
        given = await self.take()
        self.handed += given
        return given

    async def _speak(self, input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        await self.goes_on.wait()
        for each in self.handed:
            yield TextMessageStartEvent(message_id=each.id, role="user")
            yield TextMessageContentEvent(message_id=each.id, delta=str(each.content))
            yield TextMessageEndEvent(message_id=each.id)


@asynccontextmanager
async def steered(url: str) -> AsyncIterator[Asking]:
    """An agent that runs, with one message for it; behind, both are in the thread, once, in one run."""
    agent = Asking()
    async with Cast.open(url, agents=[agent], watch=False) as cast:
        try:
            first = await cast.say("t1", "one")
            second = await cast.say("t1", "two", on_busy="steer")
            await until(agent.has_take)
            yield agent
        finally:
            agent.goes_on.set()
        assert [(await whole(each)).run_id for each in (first, second)] == [first.run_id] * 2
        await idle(cast)
        assert await words(cast) == ["one", "two"]


async def test_what_an_agent_was_handed_it_is_not_handed_again() -> None:
    async with steered("memory://") as agent:
        assert [each.content for each in await agent.ask()] == ["two"]
        assert await agent.ask() == []  # it has not emitted the message yet


async def test_two_that_ask_at_once_are_handed_a_message_once(tmp_path: Path) -> None:
    async with steered(f"sqlite:///{tmp_path}/log.db") as agent:
        handed = await asyncio.gather(*(agent.ask() for _ in range(4)))
        assert [each.content for given in handed for each in given] == ["two"]


async def test_messages_of_one_moment_wait_in_the_order_they_came() -> None:
    agent, said = Asking(), [f"{n}" for n in range(8)]
    async with Cast(RunLog(MemoryStore(), clock=lambda: 1_000), agents=[agent]) as cast:
        try:
            await cast.say("t1", "one")
            for each in said:
                await cast.say("t1", each, on_busy="queue")
            assert [each.text for each in await cast.queue.waiting("t1")] == said
        finally:
            agent.goes_on.set()


def test_a_message_is_handed_to_a_run_of_its_own_agent_alone() -> None:
    message = waiting("r2", "steer")
    assert [each.content for each in message.for_run(message.request.agent, [])] == [message.text]
    assert message.for_run("another", []) == []
    assert waiting("r2", "queue").for_run(message.request.agent, []) == []


def test_a_rollback_of_an_answered_run_keeps_the_question() -> None:
    runs = [
        run_info("a", None, "continue", "completed"),
        run_info("b", "a", "continue", "interrupted"),
        run_info("c", "b", "resume", "cancelled"),
    ]
    assert before(runs[2], runs) == "b"


def test_a_message_with_a_file_is_not_handed_without_it() -> None:
    picture = ImageInputContent(source=InputContentUrlSource(value="https://example.com/a.png"))
    shown = UserMessage(id="shown", content=[picture])
    asked = replace(
        waiting("r2", "steer").request,
        input=input_for("t", "r2", [shown, UserMessage(id="u", content="what is it?")]),
    )
    held = waiting("r2").note
    assert Waiting(held, asked).for_run(asked.agent, []) == []
    assert [each.id for each in Waiting(held, asked).for_run(asked.agent, [shown])] == ["u"]


async def test_a_message_for_another_agent_than_the_one_that_runs_is_not_handed_over() -> None:
    runs, other = Asking(), Asking()
    other.name = "other"
    async with Cast.open("memory://", agents=[runs, other], watch=False) as cast:
        first = await cast.say("t1", "one", agent="asking")
        second = await cast.say("t1", "two", agent="other", on_busy="steer")
        third = await cast.say("t1", "three", agent="asking", on_busy="steer")
        assert (second.accepted, third.accepted) == ("queued", "steering")
        for each in (runs, other):
            each.goes_on.set()
        for run in (first, second, third):
            await whole(run)


class Breaking(Asking):
    """It ends within the message that it was handed."""

    async def _speak(self, input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        await self.goes_on.wait()
        for each in self.handed:
            yield TextMessageStartEvent(message_id=each.id, role="user")


async def test_a_run_that_ends_within_a_message_that_it_was_handed_has_an_end_all_the_same() -> None:
    agent = Breaking()
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")
        second = await cast.say("t1", "two", on_busy="steer")
        await until(agent.has_take)
        assert [each.content for each in await agent.ask()] == ["two"]
        agent.goes_on.set()
        assert (await whole(first)).status == "completed"
        types = [each.event.type for each in await cast.log.entries("t1") if each.run_id == first.run_id]
        assert types[-1] == "RUN_FINISHED"
        assert "TEXT_MESSAGE_START" not in types
        await whole(second)  # the note waits on, and the message has a run of its own
        assert second.run_id in [each.run_id for each in await cast.log.runs("t1")]


async def test_the_note_of_a_message_that_was_handed_over_stays_until_the_message_is_stored() -> None:
    """A process that died before would have lost it: the run holds it in memory alone."""
    store, writes, agent = MemoryStore(), Gate(), Asking()
    writes.guard(store)
    async with Cast(RunLog(store), agents=[agent], recover="off") as cast:
        first = await cast.say("t1", "one")
        second = await cast.say("t1", "two", on_busy="steer")
        await until(agent.has_take)
        await agent.ask()
        await cast.log.flush()
        with writes.closed():
            agent.goes_on.set()
            await writes.reached()
            looking = asyncio.create_task(cast.queue.begin_next("t1"))
            for _ in range(100):
                await asyncio.sleep(0)
            assert [each.run_id for each in await cast.queue.waiting("t1")] == [second.run_id]
        await looking
        assert [(await whole(each)).run_id for each in (first, second)] == [first.run_id] * 2
        await idle(cast)
