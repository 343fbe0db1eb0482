"""langchain's own middleware: what models inside it say, what it rewrites, and what it keeps for itself."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
)
from langchain.agents.middleware.types import AgentState, OmitFromOutput, PrivateStateAttr
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.fakes import FakeModel, StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, echo, scene
from tests.adapters.langgraph.scenes.interrupts import waiting
from tests.adapters.langgraph.stage import Stage

ADDING = calls(piece("add", '{"a":1,"b":2}', "c1"))
SECRET = "the prompt of AGENTS.md"


class Keeper(AgentMiddleware[Any, Any, Any]):
    """Keeps something for itself, and something for the graph alone."""

    class State(AgentState[Any]):
        memory: Annotated[str, PrivateStateAttr]
        cost: Annotated[str, OmitFromOutput]
        stage: str

    state_schema = State

    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"memory": SECRET, "cost": SECRET, "stage": "thinking"}


@scene("64_private_state")
async def private_state(stage: Stage) -> None:
    stage.play(agent(say("do", "ne"), tools=[add], middleware=[Keeper()]))
    events = await stage.send("hi")
    noted = [event.metadata["runcast"] for event in events if event.type == "STEP_STARTED"]
    assert [(each["node"], each["available_tools"], each["message_count"]) for each in noted] == [
        ("model", ["add"], 1)
    ]
    assert SECRET not in str([event.model_dump() for event in events])
    if stage.oracle:
        assert stage.view["state"] == {"stage": "thinking"}
    await stage.holds()


def breaking(*said: str) -> list[Any]:
    return [*say(*said), RuntimeError("model down")]


def texts(stage: Stage) -> list[str]:
    return [each.get("content") or "" for each in stage.view["messages"] if each["role"] == "assistant"]


@scene("65_fallback_after_half_an_answer")
async def fallback(stage: Stage) -> None:
    second = StreamingModel(turns=[say("whole ", "answer")])
    stage.play(agent(breaking("half ", "an"), say("next"), middleware=[ModelFallbackMiddleware(second)]))
    events = await stage.send("hi")
    assert {event.name for event in events if event.type == "TEXT_MESSAGE_START"} == {"boss"}
    if stage.oracle:
        assert texts(stage) == ["whole answer"]
    await stage.holds()
    await stage.send("again")
    await stage.holds()


@scene("65_fallback_to_a_model_that_does_not_stream")
async def fallback_whole(stage: Stage) -> None:
    second = FakeModel(turns=[say("whole ", "answer")])
    stage.play(agent(breaking("half ", "an"), middleware=[ModelFallbackMiddleware(second)]))
    await stage.send("hi")
    if stage.oracle:
        assert texts(stage) == ["whole answer"]
    await stage.holds()


@scene("65_model_retry_in_a_call")
async def retry_in_a_call(stage: Stage) -> None:
    half = [calls(piece("add", '{"a":1', "c1"), content="let me"), RuntimeError("model down")]
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    stage.play(agent(half, [ADDING], say("done"), tools=[add], middleware=[retry]))
    await stage.send("hi")
    if stage.oracle:
        assert texts(stage) == ["", "done"]
    await stage.holds()


@scene("65_model_retry_that_gives_up")
async def retry_gives_up(stage: Stage) -> None:
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    stage.play(agent(breaking("half"), breaking("another half"), middleware=[retry]))
    await stage.send("hi")
    if stage.oracle:
        assert len(texts(stage)) == 1
        assert "half" not in texts(stage)[0]
    await stage.holds()


@scene("66_a_summariser_is_no_speaker")
async def summariser(stage: Stage) -> None:
    inner = StreamingModel(turns=[say("a summary ", "of it all")])
    middleware = SummarizationMiddleware(inner, trigger=("messages", 4), keep=("messages", 2))
    stage.play(agent(say("one"), say("two"), say("three"), middleware=[middleware]))
    for text in ("first", "second", "third"):
        events = await stage.send(text)
        deltas = [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"]
        assert "a summary " not in deltas
    await stage.holds()


@scene("66_a_tool_selector_is_no_speaker")
async def selector(stage: Stage) -> None:
    chosen = [AIMessageChunk(content='{"tools": ["add"]}')]

    class Selecting(StreamingModel):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            return self | (lambda message: {"tools": ["add"]})

    middleware = LLMToolSelectorMiddleware(model=Selecting(turns=[chosen]), max_tools=1)
    stage.play(agent(say("do", "ne"), tools=[add, echo], middleware=[middleware]))
    await stage.send("hi")
    if stage.oracle:
        assert texts(stage) == ["done"]
    await stage.holds()


@scene("66_todos_and_limits")
async def todos(stage: Stage) -> None:
    plan = '{"todos":[{"content":"add","status":"in_progress"}]}'
    limit = ModelCallLimitMiddleware(run_limit=2, exit_behavior="end")
    stage.play(
        agent(
            [calls(piece("write_todos", plan, "c0"))], [ADDING], say("done"), tools=[add],
            middleware=[TodoListMiddleware(), limit],
        )
    )  # fmt: skip
    await stage.send("hi")
    await stage.holds()


@scene("68_no_raw_address_streams")
async def redacted_output(stage: Stage) -> None:
    asking = calls(piece("add", '{"a":1,"b":2}', "c1"), content="mail x@y.com")
    turns = (say("write to ", "a@b.com ", "please"), [asking], say("do", "ne"))
    pii = PIIMiddleware("email", apply_to_output=True)
    stage.play(agent(*turns, tools=[add], middleware=[pii]))
    for text in ("hi", "again"):
        events = await stage.send(text)
        assert "@" not in str([event.model_dump() for event in events])
        await stage.holds()
    if stage.oracle:
        assert texts(stage) == ["write to [REDACTED_EMAIL] please", "mail [REDACTED_EMAIL]", "done"]


@scene("68_input_redaction_streams_on")
async def redacted_input(stage: Stage) -> None:
    stage.play(agent(say("do", "ne"), middleware=[PIIMiddleware("email")]))
    events = await stage.send("I am a@b.com")
    assert [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"] == ["do", "ne"]
    await stage.holds()


@scene("68_whole_answers_are_redacted_too")
async def redacted_whole(stage: Stage) -> None:
    pii = PIIMiddleware("email", apply_to_output=True)
    stage.play(agent(say("write to a@b.com"), streams=False, middleware=[pii]))
    events = await stage.send("hi")
    assert "@" not in str([event.model_dump() for event in events])
    await stage.holds()


MAILING = calls(piece("add", '{"a":1,"b":2}', "c1"), content="mail x@y.com")


def redacting(*more: AgentMiddleware[Any, Any, Any]) -> Any:
    return [PIIMiddleware("email", apply_to_output=True), *more]


def without_addresses(stage: Stage) -> None:
    assert "@" not in str([event.model_dump() for run in stage.runs for event in run])


@scene("68_a_question_before_the_redaction")
async def question_first(stage: Stage) -> None:
    """Hooks behind the model run from the last to the first: the question comes while the state holds the address."""
    for answer in ({"type": "approve"}, {"type": "reject", "message": "no"}):
        approval = HumanInTheLoopMiddleware(interrupt_on={"add": True})
        stage.thread += answer["type"]
        stage.view = {"messages": [], "state": {}}
        graph = agent([MAILING], say("do", "ne"), tools=[add], middleware=redacting(approval))
        stage.play(graph)
        await stage.send("hi")
        [question] = waiting(stage)
        await stage.answer((question.id, {"decisions": [answer]}))
        without_addresses(stage)
        await stage.holds()


@scene("68_a_question_let_go_before_the_redaction")
async def question_let_go(stage: Stage) -> None:
    """What was never redacted is never shown, though the state keeps it."""
    approval = HumanInTheLoopMiddleware(interrupt_on={"add": True})
    stage.play(agent([MAILING], say("do", "ne"), tools=[add], middleware=redacting(approval)))
    await stage.send("hi")
    await stage.send("never mind")
    without_addresses(stage)
    if stage.oracle:
        assert texts(stage) == ["done"]


@scene("68_a_refused_call_waits_with_its_message")
async def limited_call(stage: Stage) -> None:
    limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="continue")
    two = calls(piece("add", "{}", "c2", 0), piece("add", '{"a":1,"b":2}', "c3", 1), content="and x@y.com")
    stage.play(agent([MAILING], [two], say("done"), tools=[add], middleware=redacting(limit)))
    await stage.send("hi")
    without_addresses(stage)
    await stage.holds()


@scene("68_an_agent_inside_redacts")
async def inner_redaction(stage: Stage) -> None:
    inner = agent(
        [MAILING],
        say("write to a@b.com"),
        name="inner",
        tools=[add],
        middleware=redacting(),
        checkpointer=None,
    )
    builder = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    without_addresses(stage)
    await stage.holds()


@scene("68_an_agent_in_a_tool_redacts")
async def tool_redaction(stage: Stage) -> None:
    """And the agent around it streams on."""
    inner = agent(say("write to a@b.com"), name="inner", middleware=redacting(), checkpointer=None)

    @tool
    async def ask() -> str:
        """Ask another."""
        return str((await inner.ainvoke({"messages": [("user", "hi")]}))["messages"][-1].text)

    stage.play(agent([calls(piece("ask", "{}", "c1"))], say("do", "ne"), tools=[ask]))
    events = await stage.send("hi")
    without_addresses(stage)
    deltas = [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"]
    assert deltas == ["write to [REDACTED_EMAIL]", "do", "ne"]
    await stage.holds()


@scene("66_a_summariser_that_does_not_stream")
async def whole_summariser(stage: Stage) -> None:
    inner = FakeModel(turns=[say("a summary of it all")])
    middleware = SummarizationMiddleware(inner, trigger=("messages", 4), keep=("messages", 2))
    options = LangGraphOptions(internal_calls="activity")
    stage.play(agent(say("one"), say("two"), say("three"), middleware=[middleware]), options=options)
    for text in ("first", "second", "third"):
        events = await stage.send(text)
    shown = [event.content for event in events if event.type == "ACTIVITY_SNAPSHOT"]
    assert shown == [{"text": "a summary of it all"}]
    await stage.holds()
