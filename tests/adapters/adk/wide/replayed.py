"""Runs that break behind what an agent said, where ADK alone loses it, asks again or fails."""

from __future__ import annotations

from typing import Any

from google.adk.tools import FunctionTool
from google.adk.workflow import node
from google.genai import types

from tests.adapters.adk.fakes import call, calls, steady, text, turn
from tests.adapters.adk.scenes import Sums, look, looking
from tests.adapters.adk.wide.agents import DONE, MORE, noted, wide
from tests.adapters.adk.wide.combos import YES, branches, confirmed, loop, many, sequence, transferring
from tests.adapters.adk.wide.resumed import BEGINS, A, B, flow, last

TORN = (
    "a node that asks before another agent",
    "an agent that carries out a task",
    "an agent of a single turn",
    "agents that a node runs",
    "code that the model executed between words",
    "branches with tools below a transfer",
    "branches with tools in a loop",
    "branches in a sequence below a transfer",
    "a long tool that begins in branches",
    "words around tools, kept in a loop",
    "words around a question, kept",
    "words around code, kept",
)

RAN = (
    types.Part(text="let me see "),
    types.Part(executable_code=types.ExecutableCode(code="print(1)", language=types.Language.PYTHON)),
    types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="1")),
    types.Part(text="it is 1"),
)


def conducts(*agents: Any) -> Any:
    """A node that runs agents which no graph names."""

    @node(rerun_on_resume=True)
    async def conductor(ctx: Any, node_input: Any) -> Any:
        said = "go"
        for agent in agents:
            said = str(await ctx.run_node(agent, node_input=said))
        return said

    return conductor


def led(helper: Any) -> Any:
    """An agent that gives its helper a task."""
    return steady("root", calls(call(helper.name, {"request": "x"})), DONE, MORE, sub_agents=[helper])


wide(
    "a node that asks before another agent",
    lambda: flow(confirmed("leaf"), many("z")),
    turns=("hi", "yes"),
)
wide(
    "an agent that carries out a task",
    lambda: led(
        steady("helper", calls(call("finish_task", {"result": "x"})), mode="task", description="helps")
    ),
)
wide(
    "an agent of a single turn",
    lambda: led(looking(text("he", "lped"), MORE, name="helper", mode="single_turn", description="helps")),
)
wide("agents that a node runs", lambda: flow(conducts(looking(DONE, MORE, name="one"), many("two")), last))
wide("code that the model executed between words", lambda: steady("root", turn(*RAN), MORE))
wide(
    "branches with tools below a transfer",
    lambda: transferring(branches(looking(DONE, MORE, name="a"), many("b"), name="team", description="t")),
    turns=("hi",),
    ordered=False,
)
wide(
    "branches with tools in a loop",
    lambda: loop(branches(looking(DONE, MORE, name="a"), many("b"), name="both")),
    turns=("hi",),
    ordered=False,
)
wide(
    "branches in a sequence below a transfer",
    lambda: transferring(
        sequence(branches(many("a"), many("b"), name="both"), many("z"), name="team", description="t")
    ),
    turns=("hi",),
    ordered=False,
)
wide(
    "a long tool that begins in branches",
    lambda: branches(steady("a", calls(B), text("wait"), DONE, MORE, text("on"), tools=[BEGINS]), many("b")),
    turns=YES,
    ordered=False,
)


def says(before: str, *called: Any) -> Any:
    return turn(types.Part(text=before), *called)


SUM = text("so:\n```python\nprint(2)\n```\n")

wide(
    "words around tools, kept in a loop",
    lambda: loop(
        steady(
            "w",
            *[says(f"look {number}, ", A) if number % 2 == 0 else text("do", "ne") for number in range(8)],
            tools=[noted],
            output_key="said",
        )
    ),
    turns=("hi",),
)
wide(
    "words around a question, kept",
    lambda: sequence(
        steady(
            "a",
            says("may I? ", call("look", {"q": "x"})),
            says("and ", A),
            DONE,
            tools=[FunctionTool(look, require_confirmation=True), noted],
            output_key="said",
        ),
        many("b"),
    ),
    turns=("hi", "yes"),
)
wide(
    "words around code, kept",
    lambda: steady("root", SUM, SUM, text("it is"), code_executor=Sums(), output_key="said"),
    turns=("hi",),
)
