"""Runs that break where ADK alone would stop or ask again: nodes with tools, custom teams, tools that take long."""

from __future__ import annotations

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.base_agent import BaseAgent
from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.workflow import START, Workflow

from tests.adapters.adk.fakes import Steady, call, calls, steady, text
from tests.adapters.adk.scenes import Out, look, looking
from tests.adapters.adk.wide.agents import DONE, MORE, broken, noted, saved, wide
from tests.adapters.adk.wide.combos import (
    LONG_TOOL,
    YES,
    Team,
    branches,
    confirmed,
    many,
    sequence,
    transferring,
)
from tests.adapters.adk.wide.hooks import plugged

TORN = (
    "nodes with tools",
    "a node with a schema",
    "a custom team that looks at state",
    "a long tool that begins",
    "a sequence below two transfers",
    "a transfer in a sequence below a transfer",
    "a question in a custom team",
    "a question in a custom team below a transfer",
    "a callback's state before a question in a sequence",
    "a file saved in a workflow",
    "two confirmations in branches",
)


class Chooses(BaseAgent):
    """Runs its second agent by what the first one's tool found."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        async for event in self.sub_agents[0].run_async(ctx):
            yield event
        if ctx.session.state.get("found") == "x":
            async for event in self.sub_agents[1].run_async(ctx):
                yield event


class Notes(BasePlugin):
    """Notes in the state that an agent begins."""

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        callback_context.state[f"began {agent.name}"] = True


def begins(q: str = "") -> dict[str, Any]:
    """Begin something that takes long."""
    return {"status": "pending", "ticket": q}


def last(node_input: Any) -> str:
    return "over"


def flow(*nodes: Any) -> Workflow:
    return Workflow(name="root", edges=[(START, *nodes)])


BEGINS = LongRunningFunctionTool(begins)
LEAVE = FunctionTool(look, require_confirmation=True)
A, B, X = call("noted", {"q": "a"}), call("begins", {"q": "b"}), call("look", {"q": "x"})

wide(
    "nodes with tools",
    lambda: flow(looking(DONE, MORE, name="one"), looking(text("x", "y"), MORE, name="two")),
)
wide(
    "a node with a schema",
    lambda: flow(
        steady(
            "leaf",
            calls(X),
            *[calls(call("set_model_response", {"x": number})) for number in (1, 2)],
            tools=[look],
            output_schema=Out,
            output_key="out",
        ),
        last,
    ),
)
wide("a node that asks for leave", lambda: flow(confirmed("leaf"), last), turns=("hi", "yes"))
wide(
    "a workflow in a workflow",
    lambda: flow(Workflow(name="inner", edges=[(START, looking(DONE, MORE, name="leaf"))]), many("z")),
)
wide(
    "a custom team that looks at state",
    lambda: Chooses(name="root", sub_agents=[looking(DONE, MORE, name="a"), many("b")]),
)
wide(
    "a long tool that begins",
    lambda: steady("root", calls(B), text("wait"), DONE, MORE, tools=[BEGINS]),
    turns=YES,
)


def handing(name: str, *teams: Any) -> Any:
    """An agent that hands each second turn over to a team."""
    handed = [calls(call("transfer_to_agent", {"agent_name": teams[0].name}))] if teams else []
    return steady(name, text("you"), *handed, DONE, MORE, text("x"), description="helps", sub_agents=[*teams])


def seeking(name: str) -> Any:
    return sequence(looking(DONE, MORE, name="a"), many("b"), name=name, description="a team")


wide("a sequence below two transfers", lambda: transferring(handing("desk", seeking("team"))))
wide(
    "a transfer in a sequence below a transfer",
    lambda: transferring(
        sequence(handing("desk", seeking("inner")), many("z"), name="team", description="a team")
    ),
)
wide(
    "a question in a custom team",
    lambda: Team(name="root", sub_agents=[confirmed("a"), many("b")]),
    turns=YES,
)
wide(
    "a question in a custom team below a transfer",
    lambda: transferring(
        Team(name="team", description="a team", sub_agents=[looking(DONE, MORE, name="x"), confirmed("a")])
    ),
    turns=YES,
)
wide(
    "a callback's state before a question in a sequence",
    lambda: sequence(confirmed("a"), many("b")),
    turns=YES,
    app=plugged(Notes("n")),
)
wide(
    "two confirmations in branches",
    lambda: branches(confirmed("a"), confirmed("b")),
    turns=YES,
    ordered=False,
)
wide(
    "a file saved in a workflow",
    lambda: flow(steady("one", calls(call("saved", {"q": "x"})), DONE, MORE, tools=[saved]), last),
)
wide(
    "a long tool before plain ones",
    lambda: steady(
        "root", calls(call("ask", {"q": "x"}), A, B), DONE, MORE, tools=[LONG_TOOL, noted, BEGINS]
    ),
    turns=YES,
)
wide(
    "a confirmation between plain ones",
    lambda: steady("root", calls(A, X, call("broken", {"q": "c"})), DONE, MORE, tools=[LEAVE, noted, broken]),
    turns=YES,
)
wide(
    "a confirmation beside one that begins",
    lambda: steady("root", calls(X, B), DONE, MORE, tools=[LEAVE, BEGINS]),
    turns=YES,
)
wide(
    "code that the model runs by itself",  # ADK gives the answer that streamed another id
    lambda: LlmAgent(
        name="root",
        model=Steady(model="gemini-2.5-flash", script=[text("do", "ne"), MORE]),
        code_executor=BuiltInCodeExecutor(),
    ),
)
