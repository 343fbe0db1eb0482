"""An ADK session is lost while a question is open: what a snapshot holds is enough to answer it, or it is said why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, Interrupt, Tool, ToolMessage, UserMessage
from google.adk.agents import SequentialAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext

from runcast.adapters.adk import AdkOptions
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer
from runcast.slim.snapshots.slim_config import SlimConfig
from tests.adapters.adk.fakes import agent, call, calls, model_of, text
from tests.adapters.adk.stage import Stage
from tests.adapters.adk.test_interrupts import crm, workflow

done: list[str] = []


def ask(q: str) -> None:
    """Ask somebody, who takes a while."""


def look(q: str) -> dict[str, Any]:
    """Look something up."""
    done.append(f"look {q}")
    return {"found": q}


def danger(x: str) -> dict[str, Any]:
    """Do something dangerous."""
    done.append(f"danger {x}")
    return {"did": x}


def book(day: str, tool_context: ToolContext) -> dict[str, Any]:
    """Book as many days as somebody says."""
    given = tool_context.tool_confirmation
    if given is None:
        tool_context.request_confirmation(hint="How many?", payload={"days": 0})
        return {"status": "waiting"}
    done.append(f"book {given.payload}")
    return {"booked": given.payload["days"]}


ASK = LongRunningFunctionTool(ask)
DANGER = FunctionTool(danger, require_confirmation=True)
PICK = Tool(name="pick", description="Let the user pick", parameters={"type": "object", "properties": {}})
INSTEAD = "send a new message instead of an answer"


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    done.clear()


def lost(stage: Stage, config: SlimConfig | None = None) -> AgentState:
    """All that is left of what was played: a snapshot, read again, and an adapter over empty sessions."""
    serializer = SlimSerializer(config, Redactor())
    state = AgentState.from_events([event for run in stage.runs for event in run], "agent")
    stage.service = InMemorySessionService()
    stage.open()
    return serializer.deserialize(serializer.serialize(state))


async def answered(stage: Stage, point: AgentState, payload: Any = None, **given: Any) -> Any:
    """The run in which every question has this answer."""
    entries = [{"interruptId": it.id, "status": "resolved", "payload": payload} for it in point.interrupts]
    return await stage.send(point.messages, resume=entries, point=point, **given)


def told(stage: Stage) -> list[tuple[str, Any]]:
    """What the model was shown last: texts, names of calls, and results."""
    shown: list[tuple[str, Any]] = []
    for content in model_of(stage.root).calls[-1].contents:
        for part in content.parts or []:
            if part.function_call is not None:
                shown.append(("call", part.function_call.name))
            elif part.function_response is not None:
                shown.append((part.function_response.name or "", part.function_response.response))
            else:
                shown.append((content.role or "", part.text))
    return shown


async def said(stage: Stage) -> list[Any]:
    return [(it.role, it.content) for it in await stage.messages()]


async def test_a_long_running_call_is_answered():
    stage = Stage(
        agent("root", calls(call("look", {"q": "a"})), calls(call("ask", {"q": "b"})), text("thanks"), tools=[ASK, look])
    )  # fmt: skip
    await stage.say("hi")
    point = lost(stage)
    run = await answered(stage, point, {"answer": 42})
    assert run[0].metadata["runcast"]["resumed_from"] == "snapshot"
    assert run[-1].outcome.type == "success"
    assert done == ["look a"]
    assert told(stage) == [
        ("user", "hi"), ("call", "look"), ("look", {"found": "a"}), ("call", "ask"), ("ask", {"answer": 42}),
    ]  # fmt: skip
    after = AgentState.from_events(run, base=point)
    assert [(it.role, it.content) for it in after.messages] == await said(stage)
    assert [it.id for it in point.messages] == [it.id for it in await stage.messages()][: len(point.messages)]


async def test_its_neighbour_in_the_same_turn_is_not_run_again():
    both = calls(call("ask", {"q": "1"}), call("look", {"q": "2"}))
    stage = Stage(agent("root", both, text("thanks"), tools=[ASK, look]))
    await stage.say("hi")
    run = await answered(stage, lost(stage), "yes")
    assert run[-1].outcome.type == "success"
    assert done == ["look 2"]
    shown = told(stage)
    assert shown[:3] == [("user", "hi"), ("call", "ask"), ("call", "look")]
    assert sorted(shown[3:]) == [("ask", {"result": "yes"}), ("look", {"found": "2"})]


async def test_one_of_two_answers_leaves_the_other_question_open():
    both = calls(call("ask", {"q": "1"}), call("ask", {"q": "2"}))
    stage = Stage(agent("root", both, text("thanks"), tools=[ASK]))
    await stage.say("hi")
    point = lost(stage)
    first, second = (it.id for it in point.interrupts)
    one = [{"interruptId": first, "status": "resolved", "payload": "one"}]
    await stage.send(point.messages, resume=one, point=point)
    assert [it.id for it in stage.interrupts] == [second]
    assert len(model_of(stage.root).calls) == 1
    await stage.answer({second: "two"})
    assert (await said(stage))[-1] == ("assistant", "thanks")


@pytest.mark.parametrize(
    ("payload", "result", "ran"),
    [
        (True, {"did": "1"}, ["look 2", "danger 1"]),
        (False, {"error": "This tool call is rejected."}, ["look 2"]),
    ],
    ids=["approved", "rejected"],
)
async def test_a_call_that_needs_approval_is_run_as_it_was_made_or_not_at_all(
    payload: bool, result: dict[str, Any], ran: list[str]
):
    both = calls(call("danger", {"x": "1"}), call("look", {"q": "2"}))
    stage = Stage(agent("root", both, text("done"), tools=[DANGER, look]))
    await stage.say("hi")
    point = lost(stage)
    run = await answered(stage, point, payload)
    assert run[0].metadata["runcast"]["resumed_from"] == "snapshot"
    assert run[-1].outcome.type == "success"
    assert done == ran
    shown = told(stage)
    assert shown[:3] == [("user", "hi"), ("call", "danger"), ("call", "look")]
    assert sorted(shown[3:], key=str) == sorted([("danger", result), ("look", {"found": "2"})], key=str)
    assert sum(role == "tool" for role, _ in await said(stage)) == 2


async def test_a_tool_that_asks_by_itself_has_its_answer():
    stage = Stage(agent("root", calls(call("book", {"day": "mo"})), text("done"), tools=[book]))
    await stage.say("hi")
    await answered(stage, lost(stage), {"confirmed": True, "payload": {"days": 3}})
    assert done == ["book {'days': 3}"]
    assert told(stage)[-1] == ("book", {"booked": 3})
    assert (await said(stage))[2:] == [("tool", '{"booked":3}'), ("assistant", "done")]


async def test_a_question_behind_older_turns():
    stage = Stage(agent("root", text("hello"), calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK]))
    await stage.say("hi")
    await stage.say("ask for me")
    await answered(stage, lost(stage), {"answer": 1})
    assert [words for _, words in told(stage)] == ["hi", "hello", "ask for me", "ask", {"answer": 1}]
    events = (await stage.session()).events  # type: ignore[union-attr]
    assert len({event.invocation_id for event in events}) == 3


async def test_an_agent_that_was_handed_the_word_goes_on():
    billing = agent("billing", calls(call("ask", {"q": "b"})), text("billing thanks"), tools=[ASK])
    moves = calls(call("transfer_to_agent", {"agent_name": "billing"}))
    stage = Stage(agent("root", moves, text("never"), sub_agents=[billing]))
    await stage.say("hi")
    run = await answered(stage, lost(stage), "ok")
    assert run[-1].outcome.type == "success"
    assert (await said(stage))[-1] == ("assistant", "billing thanks")
    assert (len(model_of(stage.root).calls), len(model_of(billing).calls)) == (1, 2)
    assert any(
        part.function_call for content in model_of(billing).calls[-1].contents for part in content.parts
    )


async def test_an_app_that_is_not_resumable_goes_on_too():
    root = agent("root", calls(call("danger", {"x": "1"})), text("done"), tools=[DANGER])
    stage = Stage(root, resumable=False)
    await stage.say("hi")
    await answered(stage, lost(stage), True)
    assert done == ["danger 1"]
    assert (await said(stage))[-1] == ("assistant", "done")


@pytest.mark.parametrize("pending", ["interrupt", "pending"])
async def test_a_frontend_tool_is_answered_by_its_message(pending: Any):
    root = agent("root", calls(call("pick", {})), text("blue it is"))
    stage = Stage(root, options=AdkOptions(frontend_tools=pending))
    await stage.say("hi", tools=[PICK])
    point = lost(stage)
    (made,) = point.messages[-1].tool_calls  # type: ignore[union-attr]
    result = ToolMessage(id="tm1", tool_call_id=made.id, content="blue")
    run = await stage.send([*point.messages, result], tools=[PICK], point=point)
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    assert told(stage) == [("user", "hi"), ("call", "pick"), ("pick", {"result": "blue"})]


async def test_a_question_that_is_too_old_stays_too_old():
    root = agent("root", calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK])
    stage = Stage(root, options=AdkOptions(interrupt_ttl=60))
    await stage.say("hi")
    point = lost(stage)
    (asked,) = point.interrupts
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    run = await answered(stage, replace(point, interrupts=[asked.model_copy(update={"expires_at": past})]), 1)
    assert run[-1].message == f"interrupt {asked.id!r} has expired: start a new run instead"


async def test_a_new_message_does_not_jump_over_a_question_that_can_be_answered():
    root = agent("root", calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK])
    stage = Stage(root, options=AdkOptions(on_new_message="refuse"))
    await stage.say("hi")
    point = lost(stage)
    run = await stage.send([*point.messages, UserMessage(id="n", content="well?")], point=point)
    assert "this thread waits for answers: send `resume` entries for" in run[-1].message  # type: ignore[union-attr]
    assert await stage.session() is None


# ------------------------------------------------------------------ what cannot be asked again


def of_a_login() -> Stage:
    return Stage(agent("root", calls(call("crm")), text("never"), tools=[crm]))


def of_a_workflow() -> Stage:
    return Stage(workflow())


def of_a_sequence() -> Stage:
    asking = agent("a", calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK])
    return Stage(SequentialAgent(name="seq", sub_agents=[agent("b", text("one")), asking]))


def with_a_secret() -> Stage:
    secret = calls(call("danger", {"x": "Bearer abcdefghijklmnopqrstuvwxyz0123456789"}))
    return Stage(agent("root", secret, text("never"), tools=[DANGER]))


def with_long_arguments() -> Stage:
    return Stage(agent("root", calls(call("danger", {"x": "y" * 5_000})), text("never"), tools=[DANGER]))


REFUSED: list[Any] = [
    (of_a_login, {}, "its secrets with it: " + INSTEAD + ", and the agent asks again"),
    (of_a_workflow, {}, "the progress of this workflow is lost with its session: " + INSTEAD),
    (of_a_sequence, {}, "the progress of the agents around 'a' is lost with its session: " + INSTEAD),
    (with_a_secret, {}, "the arguments of 'danger' only in part"),
    (with_long_arguments, {}, "the arguments of 'danger' only in part"),
    (with_long_arguments, {"redact_tool_args": True}, "the arguments of 'danger' only in part"),
]


@pytest.mark.parametrize(("make", "config", "why"), REFUSED)
async def test_an_answer_that_cannot_reach_its_question_is_refused(
    make: Callable[[], Stage], config: dict[str, Any], why: str
):
    stage = make()
    await stage.say("hi")
    assert stage.interrupts
    point = lost(stage, SlimConfig(**config))
    run = await answered(stage, point, True)
    assert [it.type.value for it in run] == ["RUN_STARTED", "RUN_ERROR"]
    assert run[-1].code == "invalid_input"
    assert why in run[-1].message
    assert await stage.session() is None
    assert done == []


@pytest.mark.parametrize("make", [of_a_login, with_a_secret])
async def test_a_new_message_lets_go_of_it(make: Callable[[], Stage]):
    """And the model is not shown a call that will never have a result."""
    stage = make()
    await stage.say("hi")
    point = lost(stage)
    run = await stage.send([*point.messages, UserMessage(id="n", content="well?")], point=point)
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    assert [it for it in told(stage) if it[0] == "call"] == []
    assert [words for role, words in told(stage) if role == "user"] == ["hi", "well?"]
    assert done == []


@pytest.mark.parametrize(
    ("interrupt", "why"),
    [
        (Interrupt(id="i", reason="tool", tool_call_id="gone"), "no longer holds the call of interrupt 'i'"),
        (Interrupt(id="i", reason="breakpoint"), "the session of interrupt 'i' is lost"),
    ],
    ids=["cut off", "another framework's"],
)
async def test_a_question_without_its_call_is_refused(interrupt: Interrupt, why: str):
    stage = Stage(agent("root", text("hello"), tools=[ASK]))
    point = AgentState(agent_id="a", history=[UserMessage(id="u", content="hi")], interrupts=[interrupt])
    run = await answered(stage, point, 1)
    assert why in run[-1].message
    result = ToolMessage(id="tm", tool_call_id="gone", content="x")
    run = await stage.send([*point.messages, result], point=point)
    assert why in run[-1].message  # type: ignore[union-attr]


@pytest.mark.parametrize("arguments", ['{"x": ', "[1]"])
async def test_arguments_that_are_no_object_are_not_run(arguments: str):
    made = {"id": "c", "type": "function", "function": {"name": "danger", "arguments": arguments}}
    history = [
        UserMessage(id="u", content="hi"),
        AssistantMessage.model_validate(
            {"id": "m", "role": "assistant", "content": "so:", "toolCalls": [made]}
        ),
    ]
    interrupt = Interrupt(id="i", reason="tool_approval", tool_call_id="c")
    stage = Stage(agent("root", text("hello"), tools=[DANGER]))
    point = AgentState(agent_id="a", history=history, interrupts=[interrupt])
    assert "only in part" in (await answered(stage, point, True))[-1].message
    await stage.send([*point.messages, UserMessage(id="n", content="well?")], point=point)
    assert told(stage) == [("user", "hi"), ("model", "so:"), ("user", "well?")]
