"""How runs end: error codes, exceptions, usage, stops (cases 47 to 53)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from ag_ui.core import Message, RunAgentInput, Tool, UserMessage
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import Workflow
from google.genai import types
from pydantic import TypeAdapter

from runcast.adapters import UnknownRun
from runcast.adapters.adk import AdkAdapter, AdkOptions
from tests.adapters.adk.fakes import agent, blocked, call, calls, chunk, model_of, text, tokens, turn
from tests.adapters.adk.stage import Stage, brief, kinds, strict, texts, wire
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
MODES = pytest.mark.parametrize("options", [AdkOptions(), AdkOptions(streaming="none")], ids=["sse", "none"])
MESSAGES = TypeAdapter(list[Message])
LONG = [f"{n} " for n in range(200)]


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


@MODES
async def test_case_47_a_blocked_turn_without_content_is_an_error(oracle: Oracle, options: AdkOptions):
    stage = Stage(agent("root", [blocked("SAFETY", "no key=sk-1234567890abcdef please")]), options=options)
    run = await stage.say("hi")
    last = run[-1]
    assert (last.type.value, last.code) == ("RUN_ERROR", "SAFETY")  # type: ignore[union-attr]
    assert last.message == "no key=[redacted] please"  # type: ignore[union-attr]
    assert last.usage[0].input_tokens == 5  # type: ignore[union-attr,index]
    await stage.check(oracle)


async def test_case_47_a_turn_blocked_after_it_began_is_no_success(oracle: Oracle):
    stage = Stage(
        agent(
            "root", [*text("I will")[:-1], chunk(types.Part(text="I will ")), blocked("PROHIBITED_CONTENT")]
        )
    )
    run = await stage.say("hi")
    assert run[-1].code == "PROHIBITED_CONTENT"  # type: ignore[union-attr]
    assert run[-1].message == "The model ended its turn with PROHIBITED_CONTENT."  # type: ignore[union-attr]
    await stage.check(oracle)


async def test_case_47_a_malformed_call_is_an_error(oracle: Oracle):
    stage = Stage(agent("root", [blocked("MALFORMED_FUNCTION_CALL")]))
    run = await stage.say("hi")
    assert run[-1].code == "MALFORMED_FUNCTION_CALL"  # type: ignore[union-attr]


async def test_case_48_an_answer_cut_by_its_length_stands(oracle: Oracle):
    cut = [chunk(types.Part(text="Once ")), chunk(types.Part(text="upon")), blocked("MAX_TOKENS")]
    stage = Stage(agent("root", cut))
    run = await stage.say("hi")
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    client = await stage.check(oracle)
    assert texts(client)[1] == ("assistant", "Once upon")
    assert client["messages"][1]["metadata"]["runcast"]["finish_reason"] == "max_tokens"


@pytest.mark.filterwarnings("ignore:TOOL_CALLS is not a valid")  # the SDK's word on it
async def test_case_48_a_model_of_another_maker_may_name_its_calls_as_the_end(oracle: Oracle):
    asking = calls(call("pick"))
    asking[-1].candidates[0].finish_reason = types.FinishReason("TOOL_CALLS")  # type: ignore[index]  # no word of Gemini's
    stage = Stage(agent("root", asking))
    run = await stage.say("hi", tools=[Tool(name="pick", description="Let the user pick", parameters={})])
    assert run[-1].type == "RUN_FINISHED"


async def test_case_48_nothing_but_the_cut_is_an_error(oracle: Oracle):
    stage = Stage(agent("root", [blocked("MAX_TOKENS")]))
    run = await stage.say("hi")
    assert run[-1].code == "MAX_TOKENS"  # type: ignore[union-attr]


async def test_case_49_an_agent_that_failed_and_one_that_succeeds(oracle: Oracle):
    stage = Stage(
        SequentialAgent(name="seq", sub_agents=[agent("a", [blocked("SAFETY")]), agent("b", text("fine"))])
    )
    run = await stage.say("hi")
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    failed = [wire(it) for it in run if it.type.value == "SUBAGENT_ERROR"]
    assert [it["code"] for it in failed] == ["SAFETY"]
    assert texts(await stage.check(oracle))[1:] == [("assistant", "fine")]


async def test_case_50_an_exception_before_the_first_word(oracle: Oracle):
    stage = Stage(agent("root", [ValueError("bad token=abcdefgh123 here")]))
    run = await stage.say("hi")
    assert brief(run) == ["RUN_ERROR"]
    assert (run[-1].code, run[-1].message) == ("agent_error", "ValueError: bad token=[redacted] here")  # type: ignore[union-attr]
    await stage.check(oracle)
    stage.root.model.script[0] = text("back")
    await stage.say("again")
    assert (await stage.messages())[-1].content == "back"


async def test_case_50_an_exception_in_mid_text_keeps_the_usage_so_far(oracle: Oracle):
    broken = [chunk(types.Part(text="half ")), TimeoutError("slow")]
    stage = Stage(agent("root", calls(call("look")), broken, tools=[look]))
    run = await stage.say("hi")
    assert brief(run)[-4:] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_ERROR"]
    assert run[-1].code == "timeout"  # type: ignore[union-attr]
    assert run[-1].usage[0].total_tokens == 8  # type: ignore[union-attr,index]
    await stage.check(oracle, stored=False)


async def test_case_50_too_many_model_calls_have_a_code(oracle: Oracle):
    root = agent("root", calls(call("look")), tools=[look])
    adapter = AdkAdapter(root, run_config=RunConfig(max_llm_calls=3))
    run = [event async for event in adapter.run(said("t", "r"))]
    assert run[-1].code == "recursion_limit"  # type: ignore[union-attr]
    strict(run)


async def test_case_51_usage_is_counted_from_finals_by_model(oracle: Oracle):
    def priced(model: str, **counts: int) -> list[Any]:
        last = chunk(types.Part(text="x"), finish="STOP", model=model)
        last.usage_metadata = tokens(**counts)
        early = chunk(types.Part(text="y"), model=model)
        early.usage_metadata = tokens(**counts)
        return [early, last]

    thinking = {"thoughts_token_count": 4, "total_token_count": 12, "cached_content_token_count": 2}
    agents = [
        agent("a", priced("m1", **thinking)),
        agent("b", priced("m2", tool_use_prompt_token_count=3, total_token_count=11)),
        agent("c", priced("m1")),
    ]
    stage = Stage(SequentialAgent(name="seq", sub_agents=list(agents)))
    run = await stage.say("hi")
    rows = {row.model: wire(row) for row in run[-1].usage}  # type: ignore[union-attr]
    assert rows["m1"] == {
        "model": "m1",
        "inputTokens": 10,
        "outputTokens": 10,
        "totalTokens": 20,
        "reasoningTokens": 4,
        "cachedInputTokens": 2,
    }
    assert rows["m2"] == {"model": "m2", "inputTokens": 8, "outputTokens": 3, "totalTokens": 11}
    await stage.check(oracle)


def said(thread: str, run: str, words: str = "hi", **given: Any) -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread, run_id=run, messages=[UserMessage(id=f"u-{run}", content=words)], **given
    )


async def test_case_52_a_soft_stop_stops_the_model_and_seals_the_history(oracle: Oracle):
    root = agent("root", text(*LONG), text("fresh"), pace=0.01)
    stage = Stage(root)
    events = []
    async for event in stage.adapter.run(said("t1", "r1")):
        events.append(event)
        if kinds(events)[2:] == ["TEXT_MESSAGE_START", *["TEXT_MESSAGE_CONTENT"] * 3]:
            await stage.adapter.stop("r1")
    assert events[-1].outcome.type == "cancelled"  # type: ignore[union-attr]
    strict(events)
    assert oracle.pipeline(events)["ok"]
    sent = len(model_of(root).sent)
    assert sent < 20
    await asyncio.sleep(0.05)
    assert len(model_of(root).sent) == sent
    session = await stage.session()
    assert session is not None
    assert session.events[-1].error_code == "INVOCATION_ABORTED"
    assert stage.adapter.active == []


async def test_case_52_a_stop_while_a_tool_runs_answers_its_call(oracle: Oracle):
    going = asyncio.Event()

    async def slow() -> str:
        """Take long."""
        going.set()
        await asyncio.sleep(60)
        return "never"

    stage = Stage(agent("root", calls(call("slow")), text("never"), tools=[slow]))

    async def stop() -> None:
        await going.wait()
        await stage.adapter.stop("r1")

    stopping = asyncio.create_task(stop())
    run = await stage.say("hi")
    await stopping
    assert run[-1].outcome.type == "cancelled"  # type: ignore[union-attr]
    client = await stage.check(oracle)
    assert [role for role, _ in texts(client)] == ["user", "assistant", "tool"]
    await stage.say("again")
    assert (await stage.messages())[-1].content == "never"


@pytest.mark.parametrize("reads", [True, False], ids=["read", "full"])
async def test_case_52_a_hard_stop_ends_the_stream_whole(oracle: Oracle, reads: bool):
    root = agent("root", text(*LONG), pace=0.002)
    adapter = AdkAdapter(root, options=AdkOptions(buffer=4))
    stream = adapter.run(said("t", "r"))
    events = [await anext(stream), await anext(stream)]  # type: ignore[arg-type]
    if not reads:
        await asyncio.sleep(0.2)
    await adapter.stop("r", hard=True)
    events += [event async for event in stream]
    assert events[-1].outcome.type == "cancelled"  # type: ignore[union-attr]
    strict(events)
    assert oracle.pipeline(events)["ok"]
    sent = len(model_of(root).sent)
    await asyncio.sleep(0.05)
    assert len(model_of(root).sent) == sent < 200


def stubborn_root(going: asyncio.Event) -> LlmAgent:
    """An agent whose tool answers a cancellation with another error."""

    async def stubborn() -> str:
        """Take long."""
        going.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RuntimeError("lost") from None
        return "never"

    return agent("root", calls(call("stubborn")), text("never"), tools=[stubborn])


def stubborn_inside(going: asyncio.Event) -> LlmAgent:
    inner = stubborn_root(going)
    inner.name = "inner"
    return agent("root", calls(call("inner", {"request": "x"})), text("never"), tools=[AgentTool(inner)])


def stubborn_node(going: asyncio.Event) -> Workflow:
    return Workflow(name="flow", edges=[("START", stubborn_root(going))])


STUBBORN = pytest.mark.parametrize("make", [stubborn_root, stubborn_inside, stubborn_node])


@STUBBORN
async def test_a_hard_stop_ends_a_tool_that_raises_another_error(oracle: Oracle, make: Any):
    going = asyncio.Event()
    stage = Stage(make(going))
    reading = asyncio.create_task(stage.say("hi"))
    await going.wait()
    await stage.adapter.stop("r1", hard=True)
    async with asyncio.timeout(60):
        run = await reading
    assert run[-1].outcome.type == "cancelled"  # type: ignore[union-attr]
    assert reading.cancelling() == 0
    strict(run)
    assert oracle.pipeline(run)["ok"]
    assert stage.adapter.active == []


@STUBBORN
async def test_a_reader_that_leaves_does_not_wait_for_such_a_tool(make: Any):
    going = asyncio.Event()
    adapter = AdkAdapter(make(going))

    async def read() -> None:
        async for _ in adapter.run(said("t", "r")):
            pass

    reading = asyncio.create_task(read())
    await going.wait()
    reading.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait({reading})
    assert adapter.active == []


async def test_what_adk_answers_for_a_stopped_tool_stands_behind_its_call(oracle: Oracle):
    """ADK stores an error for the call once the run has ended: the next run shows it, before its own message."""
    stage = Stage(agent("root", calls(call("look")), text("done"), tools=[look]))
    input = RunAgentInput(thread_id="t1", run_id="r1", messages=[UserMessage(id="u1", content="hi")])
    events = []
    async for event in stage.adapter.run(input):
        events.append(event)
        if event.type.value == "TOOL_CALL_END":
            await stage.adapter.stop("r1", hard=True)
    stage.took(input, events)
    shown = MESSAGES.validate_python(stage.client(oracle)["messages"])
    assert [it.role for it in shown] == ["user", "assistant"]
    await stage.send([*shown, UserMessage(id="u2", content="and now?")])
    client = await stage.check(oracle)
    assert [it["role"] for it in client["messages"]] == ["user", "assistant", "tool", "user", "assistant"]


async def test_a_run_that_is_not_there_cannot_be_stopped():
    with pytest.raises(UnknownRun, match="no run 'r9' is active here"):
        await AdkAdapter(agent("root", text("x"))).stop("r9")


async def test_case_53_a_reader_that_leaves_stops_the_model():
    root = agent("root", text(*LONG), pace=0.002)
    adapter = AdkAdapter(root)
    async with aclosing(adapter.run(said("t", "r"))) as stream:  # type: ignore[type-var]
        async for event in stream:
            if event.type.value == "TEXT_MESSAGE_CONTENT":
                break
    sent = len(model_of(root).sent)
    await asyncio.sleep(0.05)
    assert len(model_of(root).sent) == sent < 20
    assert adapter.active == []


async def test_closing_the_adapter_stops_all_runs():
    root = agent("root", text(*LONG), pace=0.005)
    adapter = AdkAdapter(root)
    streams = [adapter.run(said(f"t{n}", f"r{n}")) for n in range(3)]
    for stream in streams:
        await anext(stream)  # type: ignore[arg-type]
    assert sorted(adapter.active) == ["r0", "r1", "r2"]
    assert adapter.stats()["active"] == 3
    assert set(adapter.stats()["boxes"]) == {"r0", "r1", "r2"}
    await adapter.close()
    for stream in streams:
        rest = [event async for event in stream]
        assert rest[-1].outcome.type == "cancelled"  # type: ignore[union-attr]
    assert adapter.active == []


async def test_one_branch_of_two_that_is_blocked(oracle: Oracle):
    both = [agent("a", [blocked("SAFETY")]), agent("b", turn(types.Part(text="fine")))]
    stage = Stage(ParallelAgent(name="par", sub_agents=list(both)))
    run = await stage.say("hi")
    assert kinds(run)[-1] in ("RUN_FINISHED", "RUN_ERROR")
    await stage.check(oracle)
