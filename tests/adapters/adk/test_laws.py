"""Random agents, random turns: what the client shows is what the session holds, whatever was played."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import Turn, agent, blocked, call, chunk
from tests.adapters.adk.stage import Stage
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
WORDS = ("a", "b ", "é", "\n", "👩‍👩‍👧", '"', "{", " ")


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def write(q: str, tool_context: ToolContext) -> str:
    """Write state."""
    tool_context.state[q] = {"n": [q]}
    return "written"


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def danger(q: str = "") -> dict[str, Any]:
    """Do something dangerous."""
    return {"did": q}


TOOLS = [look, write, LongRunningFunctionTool(ask), FunctionTool(danger, require_confirmation=True)]
NAMES = ("look", "look", "write", "ask", "danger", "nope")


def words(rng: random.Random) -> str:
    return "".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4)))


def part(rng: random.Random, called: bool) -> types.Part:
    kind = rng.random()
    signature = b"sig" if rng.random() < 0.2 else None
    if kind < 0.3:
        return types.Part(text=words(rng), thought=True, thought_signature=signature)
    if kind < 0.7 or not called:
        return types.Part(text=words(rng), thought_signature=signature)
    args = {"q": rng.choice("xyz/~")} if rng.random() < 0.9 else None
    return call(rng.choice(NAMES), args or {"q": ""}, thought_signature=signature)


def a_turn(rng: random.Random, called: bool) -> Turn:
    if rng.random() < 0.06:
        return [chunk(types.Part(text=words(rng))), blocked(rng.choice(["SAFETY", "MAX_TOKENS"]))]
    count = rng.randint(1, 5)
    chunks: Turn = []
    for number in range(count):
        parts = [part(rng, called) for _ in range(1 if rng.random() < 0.8 else 2)]
        last = number == count - 1
        chunks.append(chunk(*parts, finish="STOP" if last else None, usage=last))
    return chunks


def leaf(rng: random.Random, name: str) -> LlmAgent:
    turns = [a_turn(rng, called=number < 2) for number in range(3)]
    key = {"output_key": f"out_{name}"} if rng.random() < 0.3 else {}
    return agent(name, *turns, tools=list(TOOLS), **key)


def tree(rng: random.Random) -> tuple[Any, bool]:
    """An agent, and whether its branches may overtake each other."""
    kind = rng.random()
    if kind < 0.5:
        return leaf(rng, "root"), False
    leaves = [leaf(rng, name) for name in "ab"]
    if kind < 0.7:
        return SequentialAgent(name="root", sub_agents=list(leaves)), False
    if kind < 0.85:
        return LoopAgent(name="root", max_iterations=2, sub_agents=list(leaves)), False
    return ParallelAgent(name="root", sub_agents=list(leaves)), True


@pytest.mark.parametrize("seed", range(80))
async def test_the_client_shows_what_the_session_holds(oracle: Oracle, seed: int):
    rng = random.Random(seed)
    root, overtaking = tree(rng)
    options = AdkOptions(
        streaming=rng.choice(["sse", "none"]),
        messages_snapshot=rng.choice([None, "end"]),
        stream_args=rng.random() < 0.5,
        max_result_length=rng.choice([None, 10]),
    )
    stage = Stage(root, options=options)
    asked: list[str] = []  # what the client thinks is open: a broken run does not change it
    for _ in range(4):
        broke = bool(stage.runs) and stage.runs[-1][-1].type.value == "RUN_ERROR"
        if asked and not broke:
            await stage.answer({it: rng.choice([True, False, {"x": 1}]) for it in asked})
        else:
            await stage.say(words(rng), resume=[{"interruptId": it, "status": "cancelled"} for it in asked])
        if stage.runs[-1][-1].type.value == "RUN_FINISHED":
            asked = [it.id for it in stage.interrupts]
    await stage.check(oracle, ordered=not overtaking)
