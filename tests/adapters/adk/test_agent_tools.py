"""Agents that run as tools (`AgentTool`): subagents of the run, by the adapter and by the plugin."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from ag_ui.core import Message, RunAgentInput, UserMessage
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App, ResumabilityConfig
from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import TypeAdapter

from runcast.adapters.adk import AdkOptions, AdkPlugin, AdkTranslator
from runcast.adapters.adk.stream.parts import InnerPart, InnerRun
from runcast.adapters.run_frame import RunIds
from tests.adapters.adk.fakes import agent, call, calls, model_of, text, turn
from tests.adapters.adk.stage import Stage, kinds, strict, texts
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


def look(tool_context: ToolContext, q: str = "") -> dict[str, Any]:
    """Look something up."""
    tool_context.state["found"] = q
    return {"found": q}


def helper(name: str, *script: Any, **given: Any) -> LlmAgent:
    return agent(name, *script, description=f"{name} helps", **given)


def one() -> LlmAgent:
    inner = helper(
        "inner",
        turn(types.Part(text="well"), call("look", {"q": "x"})),
        text("inner ", "words"),
        tools=[look],
    )
    return agent("root", calls(call("inner", {"request": "do"})), text("done"), tools=[AgentTool(inner)])


def two_at_once() -> LlmAgent:
    tools = [AgentTool(helper("a", text("of a"))), AgentTool(helper("b", text("of b")))]
    both = calls(call("a", {"request": "1"}), call("b", {"request": "2"}), call("a", {"request": "3"}))
    return agent("root", both, text("done"), tools=tools)


def with_a_transfer_inside() -> LlmAgent:
    passed = calls(call("transfer_to_agent", {"agent_name": "last"}))
    inner = helper("inner", passed, sub_agents=[helper("last", text("last words"))])
    return agent("root", calls(call("inner", {"request": "do"})), text("done"), tools=[AgentTool(inner)])


def nested() -> LlmAgent:
    deep = helper("deep", text("deep words"))
    inner = helper(
        "inner", calls(call("deep", {"request": "x"})), text("inner words"), tools=[AgentTool(deep)]
    )
    return agent("root", calls(call("inner", {"request": "do"})), text("done"), tools=[AgentTool(inner)])


def team() -> LlmAgent:
    inner = SequentialAgent(
        name="team",
        description="A team.",
        sub_agents=[agent("x", text("x words")), agent("y", text("y words"))],
    )
    return agent("root", calls(call("team", {"request": "do"})), text("done"), tools=[AgentTool(inner)])


def failing() -> LlmAgent:
    inner = helper("inner", [ValueError("no luck")])
    return agent("root", calls(call("inner", {"request": "do"})), text("never"), tools=[AgentTool(inner)])


SHAPES = {"one": one, "two at once": two_at_once, "nested": nested, "team": team}


async def checked(oracle: Oracle, stage: Stage) -> list[Any]:
    """The client's messages of inner runs; the others equal the session's."""
    client = await stage.check(oracle)
    return [it for it in client["messages"] if it.get("subagentRunId") in stage.inner_runs()]


@pytest.mark.parametrize("shape", SHAPES)
async def test_case_70_an_agent_that_runs_as_a_tool_is_a_subagent(oracle: Oracle, shape: str):
    stage = Stage(SHAPES[shape]())
    run = await stage.say("go")
    inner = await checked(oracle, stage)
    stage.keep()
    started = [it for it in run if it.type.value == "SUBAGENT_STARTED"]
    made = [it.tool_call_id for it in run if it.type.value == "TOOL_CALL_START"]  # type: ignore[union-attr]
    assert {it.parent_tool_call_id for it in started} - {None} <= set(made)  # type: ignore[union-attr]
    words = [text for _, text in texts({"messages": inner}) if text]
    assert words == {
        "one": ["well", '{"found":"x"}', "inner words"],
        "two at once": ["of a", "of b", "of a"],
        "nested": ["deep words", "deep words", "inner words"],
        "team": ["x words", "y words"],
    }[shape] or sorted(words) == ["of a", "of a", "of b"]
    if shape == "nested":
        outer, deep = started
        assert deep.parent_subagent_run_id == outer.subagent_run_id  # type: ignore[union-attr]
    await stage.say("again")
    await checked(oracle, stage)


async def test_its_result_is_a_tool_result(oracle: Oracle):
    inner = AgentTool(agent=agent("helper", text("inner")))
    stage = Stage(agent("root", calls(call("helper", {"request": "q"})), text("done"), tools=[inner]))
    await stage.say("hi")
    await checked(oracle, stage)
    own = [(it.role, it.content) for it in await stage.messages()]
    assert own[2:] == [("tool", "inner"), ("assistant", "done")]


async def test_an_inner_run_is_shown_while_it_runs(oracle: Oracle):
    root = agent("root", calls(call("inner", {"request": "do"})), text("done"), tools=[AgentTool(one_slow())])
    stage = Stage(root)
    await stage.say("go")
    order = kinds(stage.runs[0])
    assert order.index("SUBAGENT_FINISHED") < order.index("TOOL_CALL_RESULT")
    assert order.index("SUBAGENT_STARTED") > order.index("TOOL_CALL_END")


def one_slow() -> LlmAgent:
    return helper("inner", text("slow ", "words"), pace=0.01)


async def test_an_inner_run_that_fails_ends_as_a_failed_subagent(oracle: Oracle):
    stage = Stage(failing())
    run = await stage.say("go")
    await checked(oracle, stage)
    assert "SUBAGENT_ERROR" in kinds(run)
    assert "ValueError: no luck" in run[-1].message  # type: ignore[union-attr]


async def test_a_snapshot_at_the_end_keeps_what_inner_runs_showed(oracle: Oracle):
    stage = Stage(one(), options=AdkOptions(messages_snapshot="end"))
    run = await stage.say("go")
    inner = await checked(oracle, stage)
    assert [it["content"] for it in inner if it["role"] == "assistant"] == ["well", "inner words"]
    assert kinds(run)[-2] == "MESSAGES_SNAPSHOT"


async def observed(root: LlmAgent, turns: int = 1) -> list[Any]:
    """The events of the plugin."""
    events: list[Any] = []
    plugin = AdkPlugin(events.append)
    service = InMemorySessionService()
    app = App(
        name="app",
        root_agent=root,
        plugins=[plugin],
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    runner = Runner(app=app, session_service=service)
    await service.create_session(app_name="app", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    for _ in range(turns):
        try:
            async for _event in runner.run_async(
                user_id="u", session_id="s", new_message=message, run_config=config
            ):
                pass
        except ValueError:
            pass
    await plugin.aflush(5)
    return events


@pytest.mark.parametrize("shape", [*SHAPES, "failing"])
async def test_the_plugin_shows_the_same_subagents(oracle: Oracle, shape: str):
    events = await observed(SHAPES.get(shape, failing)(), turns=2)
    assert kinds(events).count("RUN_STARTED") == 2
    assert {it.thread_id for it in events if it.type.value == "RUN_STARTED"} == {"s"}
    strict(events)
    at = [n for n, kind in enumerate(kinds(events)) if kind == "RUN_STARTED"] + [len(events)]
    for begin, end in pairwise(at):
        assert oracle.pipeline(events[begin:end])["ok"]
    assert "SUBAGENT_STARTED" in kinds(events)
    assert kinds(events).count("SUBAGENT_STARTED") == sum(
        kind in ("SUBAGENT_FINISHED", "SUBAGENT_ERROR") for kind in kinds(events)
    )


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_inner_run_is_valid_wherever_it_is_torn(
    oracle: Oracle, shape: str, monkeypatch: pytest.MonkeyPatch
):
    parts: list[Any] = []
    feed = AdkTranslator.feed

    def recorded(self: AdkTranslator, part: Any) -> Any:
        parts.append(part)
        return feed(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(AdkTranslator, "feed", recorded)
        await Stage(SHAPES[shape]()).say("go")
    assert any(isinstance(part, InnerPart) for part in parts)
    streams: list[Any] = []
    for end in range(len(parts) + 1):
        for how in ("fail", "cancel", "finish"):
            translator = AdkTranslator(RunIds("t1", "r1"), root="root")
            events = translator.start()
            for part in parts[:end]:
                events += translator.feed(part)
            events += translator.fail(RuntimeError("torn")) if how == "fail" else getattr(translator, how)()
            strict(events)
            streams.append(events)
    answers = oracle.batch([{"op": "pipeline", "events": stream} for stream in streams])
    assert [it["error"] for it in answers if not it["ok"]] == []


async def test_a_step_names_its_tools_and_messages(oracle: Oracle):
    stage = Stage(agent("root", calls(call("look")), text("done"), tools=[look]))
    run = await stage.say("go")
    steps = [it.metadata["runcast"] for it in run if it.type.value == "STEP_STARTED"]  # type: ignore[index]
    assert [(it.get("available_tools"), it.get("message_count")) for it in steps] == [
        (["look"], 1),
        (None, None),
        (["look"], 3),
    ]
    events = await observed(agent("root", calls(call("look")), text("done"), tools=[look]))
    steps = [it.metadata["runcast"] for it in events if it.type.value == "STEP_STARTED"]
    assert [it.get("available_tools") for it in steps] == [["look"], None, ["look"]]


async def test_a_reader_that_leaves_while_the_run_is_ahead_ends_it():
    root = agent("root", text(*["word "] * 300), tools=[AgentTool(helper("inner", text("x")))])
    stage = Stage(root)
    asked = RunAgentInput(thread_id="t1", run_id="r", messages=[UserMessage(id="u", content="go")])
    async with asyncio.timeout(60):
        stream = stage.adapter.run(asked)
        for _ in range(3):
            await anext(stream)
        await asyncio.sleep(0.03)  # the runner fills the box meanwhile
        await stream.aclose()  # type: ignore[attr-defined]
    assert stage.adapter.active == []


def spoken(event_id: str, words: str | None, **given: Any) -> Event:
    content = None if words is None else types.Content(role="model", parts=[types.Part(text=words)])
    return Event(id=event_id, author="inner", content=content, **given)


def test_an_inner_run_that_nobody_called_stands_alone():
    run = InnerRun("e-1", "c-unknown", "inner")
    options = AdkOptions(messages_snapshot="end")
    translator = AdkTranslator(RunIds("t", "r"), root="root", session=list, options=options)
    events = translator.start() + translator.feed(InnerPart(run, ended=True))
    events += translator.feed(InnerPart(run)) + translator.feed(InnerPart(run))
    events += translator.feed(InnerPart(run, spoken("i1", "h", partial=True)))
    events += translator.feed(InnerPart(run, spoken("i1", "hi"))) + translator.feed(
        InnerPart(run, ended=True)
    )
    events += translator.finish()
    strict(events)
    assert kinds(events).count("SUBAGENT_STARTED") == 1
    assert next(it for it in events if it.type.value == "MESSAGES_SNAPSHOT").messages == []  # type: ignore[union-attr]


def test_an_inner_run_whose_model_refuses_is_a_failed_subagent():
    run = InnerRun("e-1", "c1", "inner")
    translator = AdkTranslator(RunIds("t", "r"), root="root")
    events = translator.start() + translator.feed(InnerPart(run))
    events += translator.feed(InnerPart(run, spoken("i1", None, error_code="SAFETY")))
    events += translator.feed(InnerPart(run, ended=True)) + translator.finish()
    strict(events)
    [failed] = [it for it in events if it.type.value == "SUBAGENT_ERROR"]
    assert failed.code == "SAFETY"  # type: ignore[union-attr]
    assert events[-1].type.value == "RUN_FINISHED"


@pytest.mark.parametrize("make", [one, two_at_once, nested, with_a_transfer_inside])
async def test_what_was_said_inside_stays_when_the_client_goes_on(oracle: Oracle, make: Any):
    """A client sends all that it shows, and no session has what is inside."""
    stage = Stage(make())
    await stage.say("hi")
    before = stage.client(oracle)["messages"]
    assert any(it.get("subagentRunId") for it in before)
    shown = TypeAdapter(list[Message]).validate_python(before)
    run = await stage.send([*shown, UserMessage(id="u2", content="more")])
    assert "MESSAGES_SNAPSHOT" not in kinds(run)
    assert stage.client(oracle)["messages"][: len(before)] == before


async def test_what_was_said_inside_stays_before_a_message_that_is_asked_again(oracle: Oracle):
    stage = Stage(one())
    await stage.say("hi")
    before = stage.client(oracle)["messages"]
    shown = TypeAdapter(list[Message]).validate_python(before)
    asked = UserMessage(id="u2", content="more")
    await stage.send([*shown, asked])
    await stage.send([*shown, asked])
    client = stage.client(oracle)["messages"]
    assert client[: len(before)] == before
    assert [it["role"] for it in client[len(before) :]] == ["user", "assistant"]


@pytest.mark.parametrize("make", [one, two_at_once, nested, with_a_transfer_inside])
async def test_a_snapshot_at_the_end_keeps_what_was_said_inside_in_earlier_runs(oracle: Oracle, make: Any):
    stage = Stage(make(), options=AdkOptions(messages_snapshot="end"))
    await stage.say("hi")
    for turn_id in ("u2", "u3"):
        before = stage.client(oracle)["messages"]
        assert any(it.get("subagentRunId") for it in before)
        shown = TypeAdapter(list[Message]).validate_python(before)
        run = await stage.send([*shown, UserMessage(id=turn_id, content="more")])
        assert kinds(run)[-2] == "MESSAGES_SNAPSHOT"
        assert stage.client(oracle)["messages"][: len(before)] == before


async def test_a_message_that_is_replaced_takes_nothing_along_that_was_said_inside(oracle: Oracle):
    """With code that the model runs, ADK stores an answer under another id than it streamed: a snapshot corrects it."""
    root = one()
    root.code_executor = BuiltInCodeExecutor()
    model_of(root).model = "gemini-2.5-flash"
    stage = Stage(root)
    for said in ("hi", "more"):
        view = [] if not stage.runs else stage.client(oracle)["messages"]
        shown = TypeAdapter(list[Message]).validate_python(view)
        run = await stage.send([*shown, UserMessage(id=said, content=said)])
        assert "MESSAGES_SNAPSHOT" in kinds(run)
        inner = [it.get("content") for it in await checked(oracle, stage)]
        assert inner == ["well", '{"found":"x"}', "inner words"]
