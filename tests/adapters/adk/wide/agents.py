"""What else people build on ADK: trees of agents, tools of every kind, questions, schemas, executed code."""

from __future__ import annotations

from typing import Any

from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.adk.planners import BuiltInPlanner, PlanReActPlanner
from google.adk.tools import FunctionTool, LongRunningFunctionTool, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from google.genai import types
from pydantic import BaseModel

from tests.adapters.adk.fakes import call, calls, steady, text, thinks, turn
from tests.adapters.adk.scenes import Out, Scene, Sums, ask, helper, look, looking, luck, words
from tests.adapters.adk.stage import Act

MORE = text("mo", "re")
DONE = text("do", "ne")
WIDE: dict[str, Scene] = {}


def wide(name: str, make: Any, **given: Any) -> None:
    """Write a scene down."""
    assert name not in WIDE
    WIDE[name] = Scene(make, **given)


def broken(q: str = "") -> dict[str, Any]:
    """Break."""
    return {"status": "error", "error_message": "no such thing"}


def noted(tool_context: ToolContext, q: str = "") -> dict[str, Any]:
    """Note something for the user."""
    tool_context.state["user:name"] = q
    tool_context.state["app:seen"] = 1
    tool_context.state["temp:x"] = "gone"
    tool_context.state["list"] = [*tool_context.state.get("list", []), q]
    return {"ok": True}


async def saved(tool_context: ToolContext, q: str = "") -> dict[str, Any]:
    """Save a file."""
    version = await tool_context.save_artifact("note.txt", types.Part(text=q))
    return {"version": version}


def quiet(tool_context: ToolContext, q: str = "") -> dict[str, Any]:
    """Answer for the agent."""
    tool_context.actions.skip_summarization = True
    return {"answer": q}


def escalating(tool_context: ToolContext, q: str = "") -> dict[str, Any]:
    """Give up."""
    tool_context.actions.escalate = True
    return {"given": "up"}


def confirming(tool_context: ToolContext, q: str = "") -> dict[str, Any]:
    """Ask by itself."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="really?", payload={"q": q})
        return {"waits": True}
    return {"confirmed": tool_context.tool_confirmation.confirmed}


def with_tool(tool: Any, *script: Any, **given: Any) -> Any:
    name = getattr(tool, "name", None) or tool.__name__
    return steady("root", calls(call(name, {"q": "x"})), *(script or (DONE, MORE)), tools=[tool], **given)


def without_args(tool: Any) -> Any:
    return steady("root", calls(call(tool.__name__)), DONE, MORE, tools=[tool])


for tool in (broken, noted, saved, quiet):
    wide(f"a tool: {tool.__name__}", lambda tool=tool: with_tool(tool))
wide("a tool: luck", lambda: without_args(luck))
wide(
    "two calls of one tool",
    lambda: steady(
        "root", calls(call("look", {"q": "a"}), call("look", {"q": "b"})), DONE, MORE, tools=[look]
    ),
)
wide(
    "words before and between tools",
    lambda: steady(
        "root",
        turn(types.Part(text="first "), call("look", {"q": "a"})),
        turn(types.Part(text="then "), call("noted", {"q": "b"})),
        DONE,
        MORE,
        tools=[look, noted],
    ),
)
wide(
    "thoughts around tools",
    lambda: steady(
        "root",
        turn(types.Part(text="hm", thought=True), call("look", {"q": "a"})),
        thinks(("so ", "then"), "do", "ne"),
        thinks(("again",), "mo", "re"),
        tools=[look],
        planner=BuiltInPlanner(thinking_config=types.ThinkingConfig(include_thoughts=True)),
    ),
)
wide(
    "a plan that is replanned",
    lambda: looking(
        text("/*PLANNING*/ look. ", "/*REPLANNING*/ look again. ", "/*FINAL_ANSWER*/ done"),
        MORE,
        planner=PlanReActPlanner(),
    ),
)
wide("a confirmation that a tool asks for", lambda: with_tool(confirming), turns=("hi", "yes", "again"))
wide("that confirmation cancelled", lambda: with_tool(confirming), turns=("hi", Act.CANCEL, "again"))
wide(
    "two confirmations at once",
    lambda: steady(
        "root",
        calls(call("look", {"q": "x"}), call("noted", {"q": "y"})),
        DONE,
        MORE,
        tools=[FunctionTool(look, require_confirmation=True), FunctionTool(noted, require_confirmation=True)],
    ),
    turns=("hi", "yes", "again"),
)
wide(
    "a confirmation beside a plain tool",
    lambda: steady(
        "root",
        calls(call("look", {"q": "x"}), call("noted", {"q": "y"})),
        DONE,
        MORE,
        tools=[FunctionTool(look, require_confirmation=True), noted],
    ),
    turns=("hi", "yes", "again"),
)
wide(
    "two long tools",
    lambda: steady(
        "root",
        calls(call("ask", {"q": "x"}), call("ask", {"q": "y"})),
        DONE,
        MORE,
        tools=[LongRunningFunctionTool(ask)],
    ),
    turns=("hi", "yes", "again"),
)
wide(
    "a long tool in a sequence",
    lambda: SequentialAgent(
        name="root",
        sub_agents=[
            steady("one", calls(call("ask", {"q": "x"})), DONE, tools=[LongRunningFunctionTool(ask)]),
            steady("two", text("then ", "this")),
        ],
    ),
    turns=("hi", "yes"),
)
wide(
    "a confirmation below a transfer",
    lambda: steady(
        "root",
        calls(call("transfer_to_agent", {"agent_name": "desk"})),
        sub_agents=[
            helper(
                "desk",
                text("x"),
                calls(call("look", {"q": "x"})),
                DONE,
                MORE,
                tools=[FunctionTool(look, require_confirmation=True)],
            )
        ],
    ),
    turns=("hi", "yes", "again"),
)


def there_and_back() -> Any:
    desk = helper(
        "desk",
        text("x"),
        calls(call("transfer_to_agent", {"agent_name": "root"})),
        calls(call("transfer_to_agent", {"agent_name": "root"})),
    )
    back = calls(call("transfer_to_agent", {"agent_name": "desk"}))
    return steady("root", back, text("x"), DONE, MORE, sub_agents=[desk])


def siblings() -> Any:
    two = helper("two", text("x"), text("x"), text("two ", "here"), MORE)
    one = helper("one", text("x"), calls(call("transfer_to_agent", {"agent_name": "two"})))
    return steady("root", calls(call("transfer_to_agent", {"agent_name": "one"})), sub_agents=[one, two])


wide("a transfer there and back", there_and_back)
wide("a transfer between siblings", siblings)
wide(
    "a sequence in a sequence",
    lambda: SequentialAgent(
        name="root",
        sub_agents=[
            steady("one", text("a", "b"), text("a2")),
            SequentialAgent(
                name="inner",
                sub_agents=[steady("two", text("c"), text("c2")), steady("three", text("d"), text("d2"))],
            ),
        ],
    ),
)
wide(
    "branches in a sequence",
    lambda: SequentialAgent(
        name="root",
        sub_agents=[
            ParallelAgent(
                name="both",
                sub_agents=[steady("p", text("p1"), text("p2")), steady("q", text("q1"), text("q2"))],
            ),
            steady("sum", text("su", "m"), text("again")),
        ],
    ),
    ordered=False,
)
wide(
    "branches with tools",
    lambda: ParallelAgent(
        name="root", sub_agents=[looking(DONE, MORE, name="one"), looking(text("x", "y"), MORE, name="two")]
    ),
    ordered=False,
)
wide(
    "a loop that runs out",
    lambda: LoopAgent(
        name="root", max_iterations=2, sub_agents=[steady("writer", *(text(f"w{n}") for n in range(6)))]
    ),
)
wide(
    "a loop that a tool ends",
    lambda: LoopAgent(
        name="root",
        max_iterations=3,
        sub_agents=[
            steady("writer", text("dr", "aft"), MORE),
            steady(
                "critic",
                text("x"),
                calls(call("escalating", {"q": "x"})),
                text("I give up"),
                tools=[escalating],
            ),
        ],
    ),
)
wide(
    "a loop with exit beside words",
    lambda: LoopAgent(
        name="root",
        max_iterations=3,
        sub_agents=[
            steady("critic", turn(types.Part(text="good"), call("exit_loop")), text("x"), tools=[exit_loop])
        ],
    ),
)
wide(
    "two agents as tools at once",
    lambda: steady(
        "root",
        calls(call("one", {"request": "a"}), call("two", {"request": "b"})),
        DONE,
        MORE,
        tools=[AgentTool(helper("one", text("o", "ne"))), AgentTool(helper("two", text("t", "wo")))],
    ),
)
wide(
    "an agent as a tool twice",
    lambda: steady(
        "root",
        calls(call("one", {"request": "a"}), call("one", {"request": "b"})),
        DONE,
        MORE,
        tools=[AgentTool(helper("one", text("o", "ne")))],
    ),
)
wide(
    "an agent as a tool without summary",
    lambda: steady(
        "root",
        calls(call("one", {"request": "a"})),
        MORE,
        tools=[AgentTool(helper("one", text("o", "ne")), skip_summarization=True)],
    ),
)
wide(
    "an agent as a tool that writes state",
    lambda: steady(
        "root",
        calls(call("one", {"request": "a"})),
        DONE,
        MORE,
        tools=[AgentTool(helper("one", text("o", "ne"), output_key="one"))],
    ),
)
wide(
    "an agent as a tool of a team",
    lambda: SequentialAgent(
        name="root",
        sub_agents=[
            steady(
                "first",
                calls(call("one", {"request": "a"})),
                DONE,
                MORE,
                tools=[AgentTool(helper("one", text("o", "ne")))],
            ),
            steady("last", text("la", "st")),
        ],
    ),
)
wide("an output key", lambda: looking(DONE, MORE, output_key="said"))
wide(
    "a schema behind a tool",
    lambda: steady(
        "root",
        calls(call("look", {"q": "x"})),
        calls(call("set_model_response", {"x": 1})),
        calls(call("set_model_response", {"x": 2})),
        tools=[look],
        output_schema=Out,
    ),
)
wide(
    "schemas in a sequence",
    lambda: SequentialAgent(
        name="root",
        sub_agents=[
            steady("one", text('{"x":', "1}"), output_schema=Out, output_key="one"),
            steady("two", text("it is {one}"), instruction="say {one?}"),
        ],
    ),
)
wide(
    "code twice",
    lambda: steady(
        "root",
        text("see:\n```python\nprint(1)\n```\n"),
        text("and:\n```python\nprint(2)\n```\n"),
        text("so"),
        MORE,
        code_executor=Sums(),
    ),
)


class Greets(BaseAgent):
    """An agent without a model."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        for said in ("hello", "and bye"):
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=words(said))


wide("an agent without a model", lambda: Greets(name="root"))
wide(
    "an agent without a model in a sequence",
    lambda: SequentialAgent(name="root", sub_agents=[Greets(name="greets"), steady("one", DONE, MORE)]),
)


def fan_out() -> Any:
    def split(node_input: Any) -> str:
        return "there"

    def join(node_input: Any) -> str:
        return "joined"

    one, two = steady("one", text("o", "ne"), MORE), steady("two", text("t", "wo"), MORE)
    return Workflow(name="root", edges=[(START, split, one), (split, two), (one, join), (two, join)])


def typed() -> Any:
    def route(node_input: Any) -> dict[str, int]:
        return {"x": 1}

    def last(node_input: Any) -> str:
        return "it is over"

    return Workflow(name="root", edges=[(START, route, last)])


class Weather(BaseModel):
    degrees: int


wide("a workflow that fans out", fan_out, ordered=False)
wide("a workflow of functions", typed)
wide(
    "edited with tools of a team",
    lambda: SequentialAgent(
        name="root", sub_agents=[looking(DONE, MORE, name="one"), steady("two", text("c"), text("d"))]
    ),
    turns=("hi", "again", Act.EDIT, "on"),
)
wide("edited behind a transfer", siblings, turns=("hi", "again", Act.EDIT, "on"))
wide(
    "asked again with an agent as a tool",
    lambda: steady(
        "root",
        calls(call("one", {"request": "a"})),
        DONE,
        MORE,
        tools=[AgentTool(helper("one", text("o", "ne")))],
    ),
    turns=("hi", Act.AGAIN, "on"),
)
wide(
    "streamed arguments of two calls",
    lambda: steady(
        "root", calls(call("look", {"q": "a"}), call("noted", {"q": "b"})), DONE, MORE, tools=[look, noted]
    ),
    options={"stream_args": True},
)
