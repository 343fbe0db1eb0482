"""What people build on ADK, as scenes: an agent, the rest of its App, and the turns of a conversation.

Its models answer by what they read, so that a run that broke and goes on can be compared with one that did not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult
from google.adk.models.llm_response import LlmResponse
from google.adk.planners import PlanReActPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.tools import FunctionTool, LongRunningFunctionTool, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from google.genai import types
from pydantic import BaseModel

from tests.adapters.adk.fakes import call, calls, steady, text, thinks, turn
from tests.adapters.adk.stage import Act

SECRET = "the-private-note"


@dataclass(frozen=True)
class Scene:
    """One conversation. `ordered` is off where agents race: the session orders them by their ends."""

    make: Callable[[], Any]
    app: Callable[[], Mapping[str, Any]] = dict
    turns: tuple[str, ...] = ("hi", "again")
    ordered: bool = True
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def look(tool_context: ToolContext, q: str = "") -> dict[str, Any]:
    """Look something up."""
    tool_context.state["found"] = q
    tool_context.state["_private"] = SECRET
    tool_context.state["temp:scratch"] = SECRET
    return {"found": q}


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def luck(tool_context: ToolContext) -> dict[str, Any]:
    """Try one's luck; the second time it holds."""
    tried = tool_context.state.get("tried", 0)
    tool_context.state["tried"] = tried + 1
    return {"ok": tried}


def words(content: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=content)])


class Out(BaseModel):
    x: int


class Sums(BaseCodeExecutor):
    """Executes nothing: every program prints 2."""

    def execute_code(
        self, invocation_context: Any, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        return CodeExecutionResult(stdout="2\n")


class Shouts(BasePlugin):
    """Rewrites what agents say, before it is stored."""

    async def on_event_callback(self, *, event: Any, **given: Any) -> Any:
        if event.partial or not event.content or not event.content.parts or not event.content.parts[0].text:
            return None
        said = words(event.content.parts[0].text.upper())
        return event.model_copy(update={"content": said}) if len(event.content.parts) == 1 else None


class Counts(BasePlugin):
    """Keeps a number in the session's state."""

    async def before_model_callback(self, *, callback_context: Any, **given: Any) -> None:
        callback_context.state["models"] = callback_context.state.get("models", 0) + 1


class Adds(BasePlugin):
    """A last word after each agent."""

    async def after_agent_callback(self, **given: Any) -> types.Content:
        return words("and goodbye")


def replaced(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
    return None if llm_response.partial else LlmResponse(content=words("as it should be"))


def instead(callback_context: Any) -> types.Content:
    return words("not today")


def looking(*script: Any, name: str = "root", **given: Any) -> Any:
    return steady(name, calls(call("look", {"q": "x"})), *script, tools=[look], **given)


def helper(name: str, *script: Any, **given: Any) -> Any:
    return steady(name, *script, description=f"{name} helps", **given)


def with_agent_tool() -> Any:
    inner = helper(
        "inner", turn(types.Part(text="well"), call("look", {"q": "x"})), text("in", "ner"), tools=[look]
    )
    return steady(
        "root", calls(call("inner", {"request": "do"})), text("done"), text("more"), tools=[AgentTool(inner)]
    )


def with_nested_tools() -> Any:
    deep = helper("deep", text("deep words"))
    inner = helper(
        "inner", calls(call("deep", {"request": "x"})), text("inner words"), tools=[AgentTool(deep)]
    )
    return steady(
        "root", calls(call("inner", {"request": "do"})), text("done"), text("more"), tools=[AgentTool(inner)]
    )


def with_a_team() -> Any:
    team = SequentialAgent(
        name="team",
        description="A team.",
        sub_agents=[steady("x", text("x words")), steady("y", text("y words"))],
    )
    return steady(
        "root", calls(call("team", {"request": "do"})), text("done"), text("more"), tools=[AgentTool(team)]
    )


def transferring() -> Any:
    billing = helper("billing", text("pa", "id"), text("still billing"))
    return steady("root", calls(call("transfer_to_agent", {"agent_name": "billing"})), sub_agents=[billing])


def a_sequence() -> Any:
    return SequentialAgent(
        name="root",
        sub_agents=[
            looking(text("a", "b"), text("a2"), name="one"),
            steady("two", thinks(("h",), "c"), text("c2")),
        ],
    )


def a_loop() -> Any:
    writer = steady("writer", text("dra", "ft"), text("better"), text("third"), text("fourth"), text("fifth"))
    critic = steady(
        "critic",
        text("no"),
        calls(call("exit_loop")),
        text("no again"),
        calls(call("exit_loop")),
        tools=[exit_loop],
    )
    return LoopAgent(name="root", max_iterations=4, sub_agents=[writer, critic])


def in_parallel() -> Any:
    return ParallelAgent(
        name="root",
        sub_agents=[
            looking(text("a", "b"), text("a2"), name="one"),
            steady("two", text("c", "d"), text("d2")),
        ],
    )


def all_of_them() -> Any:
    """Parallel agents, then a loop, then a transfer."""
    both = ParallelAgent(
        name="both", sub_agents=[steady("p", text("p1"), text("p2")), steady("q", text("q1"), text("q2"))]
    )
    loop = LoopAgent(
        name="loop",
        max_iterations=2,
        sub_agents=[steady("again", text("l1"), text("l2"), text("l3"), text("l4"))],
    )
    last = helper("last", text("the end"), text("the end again"))
    first = steady(
        "first",
        calls(call("transfer_to_agent", {"agent_name": "last"})),
        calls(call("transfer_to_agent", {"agent_name": "last"})),
        sub_agents=[last],
    )
    return SequentialAgent(name="root", sub_agents=[both, loop, first])


def a_workflow() -> Any:
    def route(node_input: Any) -> str:
        return "there"

    return Workflow(name="root", edges=[(START, route, steady("leaf", text("an", "swer"), text("more")))])


def asking(tool: Any) -> Any:
    return steady("root", calls(call(tool.name, {"q": "x"})), text("do", "ne"), text("more"), tools=[tool])


def asking_leave() -> Any:
    return asking(FunctionTool(look, require_confirmation=True))


def asking_for_long() -> Any:
    return asking(LongRunningFunctionTool(ask))


SCENES: dict[str, Scene] = {
    "text": Scene(lambda: steady("root", text("Hel", "lo"), text("more"))),
    "thoughts and a tool": Scene(
        lambda: steady(
            "root",
            turn(types.Part(text="hm", thought=True), types.Part(text="well"), call("look", {"q": "x"})),
            text("do", "ne"),
            text("more"),
            tools=[look],
        )
    ),
    "two tools at once": Scene(
        lambda: steady(
            "root",
            calls(call("look", {"q": "x"}), call("luck")),
            text("done"),
            text("more"),
            tools=[look, luck],
        )
    ),
    "an agent as a tool": Scene(with_agent_tool),
    "an agent as a tool of one": Scene(with_nested_tools),
    "a team as a tool": Scene(with_a_team),
    "a transfer": Scene(transferring),
    "a sequence": Scene(a_sequence),
    "a loop that exits": Scene(a_loop),
    "agents in parallel": Scene(in_parallel, ordered=False),
    "parallel, loop and transfer": Scene(all_of_them, ordered=False),
    "a workflow": Scene(a_workflow),
    "a planner": Scene(
        lambda: looking(
            text("/*PLANNING*/ look. ", "/*FINAL_ANSWER*/ done"), text("more"), planner=PlanReActPlanner()
        )
    ),
    "executed code": Scene(
        lambda: steady(
            "root",
            text("see:\n```python\nprint(1 + 1)\n```\n"),
            text("it is 2"),
            text("more"),
            code_executor=Sums(),
        ),
    ),
    "a schema for the answer": Scene(
        lambda: steady("root", text('{"x":', " 1}"), text('{"x": 2}'), output_schema=Out, output_key="out")
    ),
    "a callback instead of the answer": Scene(
        lambda: looking(text("se", "cret"), text("more"), after_model_callback=replaced), turns=("hi",)
    ),
    "a callback instead of the agent": Scene(
        lambda: steady("root", text("never"), before_agent_callback=instead)
    ),
    "plugins that count and add": Scene(
        lambda: looking(text("x", "y"), text("more")),
        lambda: {"plugins": [Counts("c"), Adds("a")]},
    ),
    "plugins that rewrite and count": Scene(
        lambda: looking(text("x", "y"), text("more")), lambda: {"plugins": [Shouts("s"), Counts("c")]}
    ),
    "a retrying plugin": Scene(
        lambda: looking(text("ok"), text("more")),
        lambda: {"plugins": [ReflectAndRetryToolPlugin(max_retries=2)]},
    ),
    "an approval": Scene(asking_leave, turns=("hi", "yes", "again")),
    "an approval cancelled": Scene(asking_leave, turns=("hi", Act.CANCEL, "again")),
    "an approval let go": Scene(asking_leave, turns=("hi", Act.INSTEAD, "again")),
    "an approval cancelled for a message": Scene(asking_leave, turns=("hi", Act.CANCEL_AND_SAY, "again")),
    "a long tool": Scene(asking_for_long, turns=("hi", "yes", "again")),
    "a long tool cancelled": Scene(asking_for_long, turns=("hi", Act.CANCEL, "again")),
    "a long tool let go": Scene(asking_for_long, turns=("hi", Act.INSTEAD, "again")),
    "a long tool cancelled for a message": Scene(asking_for_long, turns=("hi", Act.CANCEL_AND_SAY, "again")),
    "an edited message": Scene(
        lambda: looking(text("do", "ne"), text("more")), turns=("hi", "again", Act.EDIT, "on")
    ),
    "an edited first message": Scene(
        lambda: looking(text("do", "ne"), text("more")), turns=("hi", Act.EDIT, "on")
    ),
    "an answer asked for again": Scene(
        lambda: looking(text("do", "ne"), text("more")), turns=("hi", "again", Act.AGAIN, "on")
    ),
    "a first answer asked for again": Scene(
        lambda: looking(text("do", "ne"), text("more")), turns=("hi", Act.AGAIN, "on")
    ),
    "an edit behind a question": Scene(asking_leave, turns=("hi", Act.EDIT, "yes", "again")),
    "a long tool beside another": Scene(
        lambda: steady(
            "root",
            calls(call("ask", {"q": "x"}), call("look", {"q": "y"})),
            text("do", "ne"),
            text("more"),
            tools=[LongRunningFunctionTool(ask), look],
        ),
        turns=("hi", "yes", "again"),
    ),
    "an approval in a sequence": Scene(
        lambda: SequentialAgent(
            name="root",
            sub_agents=[
                steady(
                    "one",
                    calls(call("look", {"q": "x"})),
                    text("ok"),
                    tools=[FunctionTool(look, require_confirmation=True)],
                ),
                steady("two", text("then ", "this")),
            ],
        ),
        turns=("hi", "yes"),
    ),
    "arguments as they stream": Scene(
        lambda: looking(text("do", "ne"), text("more")), options={"stream_args": True}
    ),
    "without streaming": Scene(
        lambda: looking(text("do", "ne"), text("more")), options={"streaming": "none"}
    ),
}
