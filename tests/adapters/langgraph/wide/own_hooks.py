"""Hooks as people write them, tools of every kind, and structured answers."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents.middleware import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelResponse,
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import InjectedToolCallId, ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from tests.adapters.langgraph.scenes.book import add, echo
from tests.adapters.langgraph.wide.book import SECRET, Act, agent, both, call, model, say, scene
from tests.adapters.langgraph.wide.hooks import (
    ADDING,
    APPROVE,
    DONE,
    MORE,
    QUESTION,
    asked,
    summing,
    talking,
    with_tools,
)


@scene("a dynamic prompt")
def prompted() -> Any:
    @dynamic_prompt
    def prompt(request: Any) -> str:
        return SECRET

    return with_tools(prompt)


@scene("a note before the model")
def noted() -> Any:
    @before_model
    def note(state: Any, runtime: Any) -> Any:
        return {"messages": [HumanMessage("a note")]} if len(state["messages"]) == 1 else None

    return talking(note)


@scene("a prompt before the agent")
def system_noted() -> Any:
    @before_agent
    def note(state: Any, runtime: Any) -> Any:
        return {"messages": [SystemMessage(SECRET)]}

    return talking(note)


@scene("an answer before the model")
def jumped() -> Any:
    @before_model(can_jump_to=["end"])
    def note(state: Any, runtime: Any) -> Any:
        return {"messages": [AIMessage("not today")], "jump_to": "end"}

    return talking(note)


@scene("asked again behind the model")
def jumped_back() -> Any:
    @after_model(can_jump_to=["model"])
    def note(state: Any, runtime: Any) -> Any:
        if sum(each.type == "human" for each in state["messages"]) >= 3:
            return None
        return {"messages": [HumanMessage("are you sure?")], "jump_to": "model"}

    return talking(note)


@scene("rewritten behind the model")
def rewritten() -> Any:
    @after_model
    def louder(state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        return {"messages": [AIMessage(content=str(last.content).upper(), id=last.id)]}

    return talking(louder)


@scene("replaced behind the model")
def replaced() -> Any:
    @after_model
    def other(state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        return {"messages": [RemoveMessage(id=last.id), AIMessage("something else")]}

    return talking(other)


@scene("all removed before the model")
def all_removed() -> Any:
    @before_model
    def only_last(state: Any, runtime: Any) -> Any:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), state["messages"][-1]]}

    return talking(only_last)


@scene("a word behind the agent")
def last_word() -> Any:
    @after_agent
    def bye(state: Any, runtime: Any) -> Any:
        return {"messages": [AIMessage("and goodbye")]}

    return with_tools(bye)


class Drafts(AgentMiddleware[Any, Any, Any]):
    """Asks the model twice, and keeps one of both or both."""

    def __init__(self, keep: str) -> None:
        super().__init__()
        self.keep = keep

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        first = await handler(request)
        longer = [*request.messages, AIMessage("draft"), HumanMessage("better, please")]
        second = await handler(request.override(messages=longer))
        match self.keep:
            case "first":
                return first
            case "second":
                return second
            case "joined":
                one, two = first.result[0], second.result[0]
                return ModelResponse(result=[AIMessage(f"{one.text} {two.text}")])
            case _:
                return ModelResponse(result=[*first.result, *second.result])


for keep in ("first", "second", "joined", "both"):

    @scene(f"two drafts, {keep} kept")
    def drafts(keep: str = keep) -> Any:
        return agent(
            say("draft ", "one"), say("draft ", "two"), say("draft ", "three"), middleware=[Drafts(keep)]
        )


@scene("a draft with a call, second kept")
def draft_call() -> Any:
    return agent(
        ADDING, call("echo", "c2", text="x"), DONE, MORE, tools=[add, echo], middleware=[Drafts("second")]
    )


@scene("no model at all")
def no_model() -> Any:
    @wrap_model_call
    async def canned(request: Any, handler: Any) -> Any:
        return AIMessage("canned")

    return talking(canned)


@scene("a model's answer dressed up")
def dressed() -> Any:
    @wrap_model_call
    async def dress(request: Any, handler: Any) -> Any:
        response = await handler(request)
        return ModelResponse(result=[AIMessage(f"dear user, {response.result[0].text}")])

    return talking(dress)


@scene("a model's answer dressed up under its id")
def dressed_same() -> Any:
    @wrap_model_call
    async def dress(request: Any, handler: Any) -> Any:
        response = await handler(request)
        said = response.result[0]
        return ModelResponse(result=[said.model_copy(update={"content": f"dear user, {said.text}"})])

    return talking(dress)


@scene("a model's answer and an update")
def extended() -> Any:
    class Counting(AgentMiddleware[Any, Any, Any]):
        class State(AgentState[Any]):
            asked: int
            memory: Annotated[str, PrivateStateAttr]

        state_schema = State

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            response = await handler(request)
            return ExtendedModelResponse(
                model_response=response,
                command=Command(update={"asked": request.state.get("asked", 0) + 1, "memory": SECRET}),
            )

    return agent(ADDING, DONE, MORE, tools=[add], middleware=[Counting()])


@scene("a guard that asks another model")
def guarded() -> Any:
    judge = model(say("safe: ", "yes"))

    @after_model
    async def guard(state: Any, runtime: Any) -> Any:
        verdict = await judge.ainvoke([HumanMessage("is it safe?")])
        return {"messages": [AIMessage("unsafe")]} if "no" in str(verdict.content) else None

    return talking(guard)


@scene("a tool's result replaced")
def tool_replaced() -> Any:
    @wrap_tool_call
    async def other(request: Any, handler: Any) -> Any:
        result = await handler(request)
        return ToolMessage(f"<{result.content}>", tool_call_id=request.tool_call["id"])

    return with_tools(other)


@scene("a tool that does not run")
def tool_skipped() -> Any:
    @wrap_tool_call
    async def other(request: Any, handler: Any) -> Any:
        return ToolMessage("cached", tool_call_id=request.tool_call["id"])

    return with_tools(other)


@scene("a tool that runs twice")
def tool_twice() -> Any:
    @wrap_tool_call
    async def twice(request: Any, handler: Any) -> Any:
        await handler(request)
        return await handler(request)

    return with_tools(twice)


@scene("a tool that asks", turns=QUESTION, decision="blue")
def tool_asks() -> Any:
    @tool
    async def ask(q: str = "") -> str:
        """Ask the user."""
        return f"it is {interrupt(q)}"

    return agent(call("ask", "c1", q="which?"), DONE, MORE, tools=[ask])


@scene("two tools that ask", turns=("hi", "yes", "again"), decision="blue")
def tools_ask() -> Any:
    @tool
    async def ask(q: str = "") -> str:
        """Ask the user."""
        return f"it is {interrupt(q)}"

    return agent(both(call("ask", "c1", q="a"), call("ask", "c2", q="b")), DONE, MORE, tools=[ask])


@scene("a tool with a command")
def tool_command() -> Any:
    class Colours(AgentMiddleware[Any, Any, Any]):
        class State(AgentState[Any]):
            colour: str

        state_schema = State

    @tool
    async def paint(colour: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Paint it."""
        said = ToolMessage("painted", tool_call_id=tool_call_id)
        return Command(update={"colour": colour, "messages": [said, HumanMessage("look at it")]})

    return agent(call("paint", "c1", colour="red"), DONE, MORE, tools=[paint], middleware=[Colours()])


@scene("a tool that returns directly")
def direct() -> Any:
    @tool(return_direct=True)
    async def final(q: str = "") -> str:
        """The answer itself."""
        return f"direct {q}"

    return agent(call("final", "c1", q="x"), MORE, tools=[final])


@scene("a tool with an artifact and progress")
def artifact() -> Any:
    @tool(response_format="content_and_artifact")
    async def draw(runtime: ToolRuntime, q: str = "") -> Any:
        """Draw."""
        get_stream_writer()({"progress": 1})
        return "drawn", {"bytes": SECRET}

    return agent(call("draw", "c1", q="x"), DONE, MORE, tools=[draw])


class Weather(BaseModel):
    """The weather."""

    degrees: int


@scene("a structured answer by a tool")
def structured() -> Any:
    return agent(
        ADDING, call("Weather", "c2", degrees=20), call("Weather", "c3", degrees=21), tools=[add],
        response_format=ToolStrategy(Weather),
    )  # fmt: skip


@scene("a structured answer that is wrong at first")
def structured_wrong() -> Any:
    return agent(
        call("Weather", "c1", degrees="warm"), call("Weather", "c2", degrees=20), call("Weather", "c3", degrees=21),
        response_format=ToolStrategy(Weather),
    )  # fmt: skip


@scene("an edited message with tools", turns=("hi", "again", Act.EDIT, "on"))
def edited() -> Any:
    return with_tools()


@scene("an answer asked for again", turns=("hi", Act.AGAIN, "on"))
def again() -> Any:
    return with_tools()


@scene(
    "an edit behind a question", turns=("hi", Act.EDIT, "yes", "on"), decision={"decisions": [APPROVE] * 2}
)
def edited_question() -> Any:
    return asked()


@scene("an edit of a summarised talk", turns=("1", "2", "3", Act.EDIT, "on"))
def edited_summary() -> Any:
    return talking(summing())


@scene("a hook that changes the answer itself")
def in_place() -> Any:
    @after_model
    def shout(state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        last.content = last.text.upper()
        return {"messages": [last]}

    return with_tools(shout)


@scene("a hook that changes the user's message itself")
def in_place_of_the_user() -> Any:
    @before_agent
    def cap(state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        last.content = last.text[:2]
        return {"messages": [last]}

    return with_tools(cap)
