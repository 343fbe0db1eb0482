"""Teams in teams, agents without a model, questions beside other calls, and words around agents, torn and gone on."""

from __future__ import annotations

from typing import Any

from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool, LongRunningFunctionTool, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from tests.adapters.adk.fakes import call, calls, steady, text, turn
from tests.adapters.adk.scenes import (
    Adds,
    Counts,
    Out,
    Shouts,
    Sums,
    ask,
    helper,
    instead,
    look,
    looking,
    words,
)
from tests.adapters.adk.stage import Act
from tests.adapters.adk.wide.agents import DONE, MORE, noted, wide
from tests.adapters.adk.wide.hooks import plugged

YES = ("hi", "yes", "again")
TORN = (
    *("parallel in a loop", "a custom team", "a custom agent below a transfer", "a transfer to a sequence"),
    *(
        "code in a sequence",
        "added words in a loop",
        "added words in branches",
        "a skipped model, then words",
    ),
    "a confirmation beside a long tool",
)  # found something


def many(name: str, **given: Any) -> Any:
    return steady(name, *[text(name, str(number)) for number in range(12)], **given)


def sequence(*agents: Any, name: str = "root", **given: Any) -> Any:
    return SequentialAgent(name=name, sub_agents=list(agents), **given)


def branches(*agents: Any, name: str = "root", **given: Any) -> Any:
    return ParallelAgent(name=name, sub_agents=list(agents), **given)


def loop(*agents: Any, name: str = "root", most: int = 2, **given: Any) -> Any:
    return LoopAgent(name=name, sub_agents=list(agents), max_iterations=most, **given)


class Says(BaseAgent):
    """Says three things, without a model."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        for said in ("one", "two", "three"):
            yield Event(
                author=self.name, invocation_id=ctx.invocation_id, branch=ctx.branch, content=words(said)
            )


class Team(BaseAgent):
    """Runs its agents one after the other, without ADK's notes."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        for agent in self.sub_agents:
            async for event in agent.run_async(ctx):
                yield event


def exits(name: str, times: int = 6) -> Any:
    return steady(name, *[calls(call("exit_loop"))] * times, tools=[exit_loop])


def transferring(target: Any, *more: Any) -> Any:
    passed = calls(call("transfer_to_agent", {"agent_name": target.name}))
    return steady("root", passed, *more, MORE, sub_agents=[target])


def coder(name: str) -> Any:
    code = [text(f"see:\n```python\nprint({number})\n```\n") for number in range(2)]
    return steady(
        name, code[0], text("it is"), code[1], text("x"), text("y"), text("z"), code_executor=Sums()
    )


def confirmed(name: str, *more: Any, tools: Any = ()) -> Any:
    asked = calls(call("look", {"q": "x"}), *more)
    given = [FunctionTool(look, require_confirmation=True), *tools]
    return steady(name, asked, DONE, MORE, text("third"), tools=given)


def inner(name: str, *script: Any, **given: Any) -> Any:
    return AgentTool(helper(name, *script, **given))


def bye(callback_context: Any) -> types.Content:
    return words("bye")


def cached(callback_context: Any, llm_request: Any) -> LlmResponse:
    return LlmResponse(content=words("cached"))


LONG_TOOL = LongRunningFunctionTool(ask)
Z = call("noted", {"q": "z"})

wide("parallel in a loop", lambda: loop(branches(many("p"), many("q"), name="both")), ordered=False)
wide("sequence in a loop", lambda: loop(sequence(many("a"), many("b"), name="inner")))
wide("loop in a loop", lambda: loop(loop(many("a"), name="inner"), many("b")))
wide("loop between agents", lambda: sequence(many("a"), loop(many("w"), name="inner"), many("z")))
wide(
    "branches of sequences",
    lambda: branches(sequence(many("a"), many("b"), name="s"), sequence(many("c"), many("d"), name="t")),
    ordered=False,
)
wide(
    "branches of loops",
    lambda: branches(loop(many("a"), name="l"), loop(many("b"), name="m")),
    ordered=False,
)
wide(
    "branches in branches",
    lambda: branches(branches(many("a"), many("b"), name="x"), many("c")),
    ordered=False,
)
wide("an exit in a sequence", lambda: sequence(loop(exits("c"), name="inner", most=5), many("z")))
wide("a custom agent in a loop", lambda: loop(Says(name="says"), many("w")))
wide("a custom agent in branches", lambda: branches(Says(name="says"), many("w")), ordered=False)
wide("a custom team", lambda: Team(name="root", sub_agents=[many("a"), looking(DONE, MORE, name="b")]))
wide("a custom agent below a transfer", lambda: transferring(Says(name="says", description="says")))
wide(
    "a transfer to a sequence",
    lambda: transferring(sequence(many("a"), many("b"), name="team", description="t")),
)
wide("a transfer to a loop", lambda: transferring(loop(many("a"), name="team", description="t")))
wide(
    "a transfer to branches",
    lambda: transferring(branches(many("a"), many("b"), name="team", description="t")),
    ordered=False,
)
wide("code in a sequence", lambda: sequence(coder("a"), many("b")))
wide("code in a loop", lambda: loop(coder("a")))
wide("code in branches", lambda: branches(coder("a"), many("b")), ordered=False)
wide(
    "a schema in a loop",
    lambda: loop(steady("w", *[text('{"x": 1}')] * 8, output_schema=Out, output_key="o")),
)
wide("added words in a loop", lambda: loop(many("w")), app=plugged(Adds("a")))
wide(
    "added words in a sequence",
    lambda: sequence(looking(DONE, MORE, name="a"), many("b")),
    app=plugged(Adds("a")),
)
wide("added words in branches", lambda: branches(many("a"), many("b")), ordered=False, app=plugged(Adds("a")))
wide("shouted words in a loop", lambda: loop(many("w")), app=plugged(Shouts("s")))
wide("a custom agent that is shouted", lambda: Says(name="root"), app=plugged(Shouts("s"), Counts("c")))
wide("words behind a loop", lambda: loop(many("a"), after_agent_callback=bye))
wide("words before a sequence", lambda: sequence(many("a"), before_agent_callback=instead))
wide(
    "words for one of three", lambda: sequence(many("a"), many("b", before_agent_callback=instead), many("c"))
)
wide(
    "a skipped model, then words",
    lambda: sequence(many("a", before_model_callback=cached, after_agent_callback=bye), many("b")),
)
wide(
    "a confirmation beside a long tool",
    lambda: confirmed("root", call("ask", {"q": "y"}), tools=[LONG_TOOL]),
    turns=YES,
)
wide(
    "a confirmation beside long and plain",
    lambda: confirmed("root", call("ask", {"q": "y"}), Z, tools=[LONG_TOOL, noted]),
    turns=YES,
)
for act in (Act.CANCEL, Act.INSTEAD):
    wide(
        f"a confirmation beside plain: {act}",
        lambda: confirmed("root", Z, tools=[noted]),
        turns=("hi", act, "again"),
    )
wide("a confirmation in a loop", lambda: loop(confirmed("a")), turns=("hi", "yes"))
wide(
    "a confirmation in branches",
    lambda: branches(confirmed("a"), many("b")),
    turns=("hi", "yes"),
    ordered=False,
)
wide(
    "a confirmation beside plain in a sequence",
    lambda: sequence(confirmed("a", Z, tools=[noted]), many("b")),
    turns=("hi", "yes"),
)
wide(
    "an agent as a tool in branches",
    lambda: branches(
        *[
            steady(
                name, calls(call(f"in{name}", {"request": "x"})), DONE, MORE, tools=[inner(f"in{name}", MORE)]
            )
            for name in "ab"
        ]
    ),
    ordered=False,
)
wide(
    "an agent as a tool that runs code",
    lambda: steady(
        "root", calls(call("inner", {"request": "x"})), DONE, MORE, tools=[AgentTool(coder("inner"))]
    ),
)
wide(
    "an agent as a tool beside a long one",
    lambda: steady(
        "root",
        calls(call("inner", {"request": "x"}), call("ask", {"q": "z"})),
        DONE,
        MORE,
        tools=[inner("inner", turn(types.Part(text="in"))), LONG_TOOL],
    ),
    turns=YES,
)
wide("edited in a loop", lambda: loop(many("w")), turns=("hi", "again", Act.EDIT, "on"))
