"""The adapter: threads, readers, sessions of every kind (cases 54 to 56), and what it wraps."""

from __future__ import annotations

import asyncio
import itertools
import logging
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    DeveloperMessage,
    FunctionCall,
    ReasoningMessage,
    RunAgentInput,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import LongRunningFunctionTool
from google.adk.workflow import START, Workflow

from runcast.adapters import Adapter
from runcast.adapters.adk import AdkAdapter, AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, model_of, text, turn
from tests.adapters.adk.stage import WHERE, Stage, kinds, strict, texts
from tests.e2e.oracle import Oracle

LONG = [f"{n} " for n in range(100)]


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def said(thread: str, run: str, words: str = "hi", **given: Any) -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread, run_id=run, messages=[UserMessage(id=f"u-{run}", content=words)], **given
    )


async def collect(adapter: AdkAdapter, it: RunAgentInput, **given: Any) -> list[Any]:
    return [event async for event in adapter.run(it, **given)]


async def test_case_54_a_second_run_on_a_thread_is_refused():
    adapter = AdkAdapter(agent("root", text(*LONG), pace=0.001))
    first = asyncio.create_task(collect(adapter, said("t", "r1")))
    await asyncio.sleep(0.02)
    second = await collect(adapter, said("t", "r2"))
    assert kinds(second) == ["RUN_STARTED", "RUN_ERROR"]
    assert (second[-1].code, second[-1].message) == (
        "thread_busy",
        "run 'r1' of this thread is active: wait for it, or stop it",
    )
    same = await collect(adapter, said("other", "r1"))
    assert same[-1].message == "run 'r1' is active already: give every run an id of its own"
    assert (await first)[-1].outcome.type == "success"
    assert (await collect(adapter, said("t", "r3")))[-1].outcome.type == "success"


async def test_case_54_who_leaves_at_the_terminal_event_leaves_a_free_thread():
    adapter = AdkAdapter(agent("root", text("x")))
    left = []
    for number in range(3):
        stream = adapter.run(said("t", f"r{number}"))
        left.append(stream)  # not closed, and not collected
        async for event in stream:
            assert event.type.value != "RUN_ERROR"
            if event.type.value == "RUN_FINISHED":
                break
    assert adapter.active == []


async def test_many_threads_run_at_once():
    root = agent("root", text(*LONG[:20]), pace=0.002)
    adapter = AdkAdapter(root)
    runs = await asyncio.gather(*(collect(adapter, said(f"t{n}", f"r{n}")) for n in range(25)))
    for run in runs:
        strict(run)
        assert "".join(it.delta for it in run if it.type.value == "TEXT_MESSAGE_CONTENT") == "".join(
            LONG[:20]
        )


async def test_case_55_a_slow_reader_finds_a_bounded_queue_and_every_word(oracle: Oracle):
    stage = Stage(agent("root", text(*LONG)), options=AdkOptions(buffer=8))
    events = []
    async for event in stage.adapter.run(said("t1", "r1")):
        events.append(event)
        await asyncio.sleep(0.003)
    strict(events)
    assert oracle.pipeline(events)["ok"]
    assert "".join(it.delta for it in events if it.type.value == "TEXT_MESSAGE_CONTENT") == "".join(LONG)
    assert kinds(events).count("TEXT_MESSAGE_CONTENT") < 100  # deltas were merged while they waited


class Counting:
    """Counts what is asked of a session service."""

    def __init__(self, service: BaseSessionService) -> None:
        self.reads = 0
        self.deletes = 0
        read, delete = service.get_session, service.delete_session

        async def get_session(**given: Any) -> Any:
            self.reads += 1
            return await read(**given)

        async def delete_session(**given: Any) -> Any:
            self.deletes += 1
            return await delete(**given)

        service.get_session = get_session  # type: ignore[method-assign]
        service.delete_session = delete_session  # type: ignore[method-assign]


KINDS = ("memory", "sqlite", "database")


def sessions(kind: str, path: Path) -> BaseSessionService:
    if kind == "memory":
        return InMemorySessionService()
    if kind == "sqlite":
        return SqliteSessionService(str(path / "sessions.db"))
    return DatabaseSessionService(f"sqlite+aiosqlite:///{path / 'database.db'}")


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("snapshot", [None, "end"], ids=["live", "snapshot"])
async def test_case_56_seven_turns_with_a_restart_before_each(
    oracle: Oracle, tmp_path: Path, kind: str, snapshot: Any
):
    script = [
        text("Hel", "lo"),
        turn(*calls(call("look", {"q": "a"}))[0].candidates[0].content.parts),
        text("found"),
        calls(call("ask", {"q": "b"})),
        text("thanks"),
        text("more"),
        calls(call("look", {"q": "c"})),
        text("bye"),
    ]
    root = agent("root", *script, tools=[look, LongRunningFunctionTool(ask)])
    service = sessions(kind, tmp_path)
    counted = Counting(service)
    stage = Stage(root, service=service, options=AdkOptions(messages_snapshot=snapshot))
    ids: list[list[str]] = []

    async def played() -> None:
        ids.append([message["id"] for message in (await stage.check(oracle))["messages"]])
        stage.open()
        if kind == "sqlite":
            stage.service = sessions(kind, tmp_path)
            stage.open()

    for words in ("one", "two", "three"):
        await stage.say(words)
        await played()
    await stage.answer({stage.interrupts[0].id: {"said": "yes"}})
    await played()
    for words in ("four", "five"):
        await stage.say(words)
        await played()
    for before, after in itertools.pairwise(ids):
        assert after[: len(before)] == before
    assert len(model_of(root).calls) == len(script)
    assert counted.deletes == 0
    session = await stage.session()
    assert session is not None
    assert session.state == {}
    if isinstance(service, DatabaseSessionService):
        await service.close()


async def test_a_turn_reads_its_session_once():
    service = InMemorySessionService()
    counted = Counting(service)
    root = agent(
        "root",
        calls(call("look")),
        text("x"),
        calls(call("ask")),
        text("done"),
        tools=[look, LongRunningFunctionTool(ask)],
    )
    adapter = AdkAdapter(root, session_service=service, options=AdkOptions(messages_snapshot="end"))
    for number in (1, 2):
        await collect(adapter, said("t", f"r{number}"))
        assert counted.reads == number


async def test_an_app_that_is_not_resumable_is_warned_about(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, logger="runcast"):
        AdkAdapter(App(name="plain", root_agent=agent("root", text("x"))))
    assert "app 'plain' is not resumable" in caplog.text
    caplog.clear()
    AdkAdapter(agent("root", text("x")))
    assert "resumable" not in caplog.text


async def test_whatever_can_run_can_be_wrapped():
    service = InMemorySessionService()
    runner = Runner(app_name="mine", agent=agent("root", text("x")), session_service=InMemorySessionService())
    made = [
        AdkAdapter(agent("root", text("x")), app_name="mine", session_service=service),
        AdkAdapter(
            App(name="app", root_agent=agent("root", text("x"))), app_name="mine", session_service=service
        ),
        AdkAdapter(runner, session_service=service),
        AdkAdapter(
            Workflow(name="root", edges=[(START, agent("leaf", text("x")))]),
            app_name="mine",
            session_service=service,
        ),
    ]
    for number, adapter in enumerate(made):
        assert isinstance(adapter, Adapter)
        assert adapter.name == "root"
        run = await collect(adapter, said(f"t{number}", "r"))
        assert run[-1].metadata["runcast"]["framework"]["app_name"] == "mine"
        assert await service.get_session(app_name="mine", user_id="user", session_id=f"t{number}")
    assert runner.session_service is not service


async def test_users_do_not_meet():
    service = InMemorySessionService()
    adapter = AdkAdapter(
        agent("root", text("x")), session_service=service, user_id=lambda it: it.forwarded_props["user"]
    )
    for user in ("ada", "eve"):
        await collect(adapter, said("t", f"r-{user}", forwarded_props={"user": user}))
    for user in ("ada", "eve"):
        session = await service.get_session(app_name="root", user_id=user, session_id="t")
        assert session is not None
        assert len(session.events) == 3
    run = await collect(adapter, said("t", "r-nobody", forwarded_props={}))
    assert run[-1].type.value == "RUN_ERROR"


async def test_capabilities_are_read_from_the_agent_tree():
    billing = agent("billing", text("x"), description="Bills people")
    told = AdkAdapter(agent("root", text("x"), sub_agents=[billing], description="Front desk")).capabilities()
    assert told.identity is not None
    assert (told.identity.name, told.identity.description) == ("root", "Front desk")
    assert told.multi_agent is not None
    assert told.multi_agent.subagents is not None
    assert [(it.name, it.description) for it in told.multi_agent.subagents] == [("billing", "Bills people")]
    plain = AdkAdapter(agent("root", text("x")), options=AdkOptions(streaming="none")).capabilities()
    assert plain.transport is not None
    assert plain.transport.streaming is False


class Point:
    """What a snapshot remembers."""

    def __init__(self, messages: Any = (), state: Any = None, **framework: Any) -> None:
        self.messages = messages
        self.history = None
        self.state = state
        self.interrupts = ()
        self.framework = framework


HISTORY = [
    UserMessage(id="h1", content="question"),
    ReasoningMessage(id="h2-reasoning", content="hm", encrypted_value="c2ln"),
    AssistantMessage(
        id="h2",
        content="let me see",
        tool_calls=[ToolCall(id="c1", function=FunctionCall(name="look", arguments='{"q":"x"}'))],
    ),
    ToolMessage(id="h3", tool_call_id="c1", content='{"found":"x"}'),
    AssistantMessage(id="h4", content="here"),
]


@pytest.mark.oracle
@pytest.mark.parametrize("point", [True, False], ids=["snapshot", "client"])
async def test_a_thread_whose_session_is_lost_goes_on_with_its_history(oracle: Oracle, point: bool):
    stage = Stage(agent("root", text("welcome back"), tools=[look]))
    resume = Point(HISTORY, {"k": 1, "temp:x": 2}) if point else None
    new = UserMessage(id="n1", content="and now?")
    run = await stage.send([*HISTORY, new], point=resume)
    assert [it.id for it in await stage.messages()][:-1] == [it.id for it in [*HISTORY, new]]
    if point:
        assert run[0].metadata["runcast"]["resumed_from"] == "snapshot"  # type: ignore[index]
        assert (await stage.session()).state == {"k": 1}  # type: ignore[union-attr]
    (asked,) = model_of(stage.root).calls
    assert [it.role for it in asked.contents] == ["user", "model", "user", "model", "user"]
    assert "welcome back" in str(await stage.messages())


async def test_a_resume_point_of_another_thread_is_refused():
    stage = Stage(agent("root", text("x")))
    for framework in ({"session_id": "t9"}, {"app_name": "other"}, {"user_id": "eve"}):
        run = await stage.send([UserMessage(id="u", content="hi")], point=Point(**framework))
        assert run[-1].code == "invalid_input"  # type: ignore[union-attr]
        assert "the resume point belongs to another thread" in run[-1].message  # type: ignore[union-attr]
    assert await stage.session() is None


async def test_a_run_that_a_dead_worker_left_goes_on():
    stage = Stage(
        agent("root", calls(call("look")), [ConnectionResetError("gone")], text("done"), tools=[look])
    )
    run = await stage.say("hi")
    assert run[-1].type.value == "RUN_ERROR"
    left = run[-1].metadata["runcast"]["framework"]  # type: ignore[index]
    stage.open()
    again = await stage.send(await stage.messages(), point=Point(**left))
    assert again[-1].outcome.type == "success"  # type: ignore[union-attr]
    assert again[0].metadata["runcast"]["resumed_from"] == "session"  # type: ignore[index]
    assert [it.content for it in await stage.messages()] == ["hi", None, '{"found":""}', "done"]


@pytest.mark.oracle
async def test_a_client_that_sends_nothing_new_is_shown_what_there_is(oracle: Oracle):
    stage = Stage(agent("root", text("one")))
    await stage.say("hi")
    run = await stage.send([])
    assert kinds(run) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    client = oracle.run(run)
    assert texts(client) == [("user", "hi"), ("assistant", "one")]
    empty = Stage(agent("root", text("one")))
    run = await empty.send([])
    assert run[-1].message == "there is nothing to run: send a message, a tool result or `resume`"  # type: ignore[union-attr]
    assert await empty.session() is None


async def test_instructions_of_the_client_reach_the_model_only_when_allowed():
    messages = [
        SystemMessage(id="s", content="Speak like a pirate"),
        DeveloperMessage(id="d", content="Be brief"),
        UserMessage(id="u", content="hi"),
    ]
    for allowed in (False, True):
        stage = Stage(
            agent("root", text("arr"), instruction="Help"), options=AdkOptions(client_instructions=allowed)
        )
        await stage.send(messages)
        told = str(model_of(stage.root).calls[0].config.system_instruction)
        assert ("pirate" in told) is allowed
        assert "Help" in told
        assert (await stage.messages())[0].id == "u"


async def test_two_new_messages_stay_two():
    stage = Stage(agent("root", text("both")))
    await stage.say("one", "two")
    assert [(it.id, it.content) for it in (await stage.messages())[:2]] == [("u1-1", "one"), ("u1-2", "two")]


async def test_a_message_without_content_is_refused():
    stage = Stage(agent("root", text("x")))
    run = await stage.send([UserMessage(id="u", content=[])])
    assert run[-1].message == "message 'u' has no content: send text or a file"  # type: ignore[union-attr]
    assert await stage.session() is None


async def test_a_message_with_an_unknown_role_is_refused():
    stage = Stage(agent("root", text("x")))
    strange = UserMessage.model_construct(id="m", role="wizard", content="hi")
    it = RunAgentInput.model_construct(thread_id="t1", run_id="r1", messages=[strange])
    run = await collect(stage.adapter, it)
    assert run[-1].message == "unknown message role 'wizard': send a role of the protocol"
    assert await stage.service.get_session(**WHERE) is None  # type: ignore[arg-type]


async def test_case_59_the_parent_run_is_echoed():
    stage = Stage(agent("root", text("x")))
    run = await stage.say("hi", parent_run_id="r0", forwarded_props={"secret": 1}, state={"s": 1})
    started = run[0].model_dump(by_alias=True)
    assert started["parentRunId"] == "r0"
    assert started["input"]["parentRunId"] == "r0"
    assert [it["id"] for it in started["input"]["messages"]] == ["u1-1"]
    assert started["input"].get("forwardedProps") is None
