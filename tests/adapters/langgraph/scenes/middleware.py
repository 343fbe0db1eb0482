"""langchain's own middleware: what models inside it say, what it rewrites, and what it keeps for itself."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents.middleware import (
    AgentMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
)
from langchain.agents.middleware.types import AgentState, OmitFromOutput, PrivateStateAttr
from langchain_core.messages import AIMessageChunk

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.fakes import FakeModel, StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, echo, scene
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
