"""Pauses and answers (cases 26 to 36): every pause is an interrupt, every answer one result."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from ag_ui.core import Tool, ToolMessage
from fastapi.openapi.models import APIKey, APIKeyIn
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.auth import AuthConfig
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes
from google.adk.events.request_input import RequestInput
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from google.genai import types

from runcast.adapters.adk import AdkOptions
from runcast.slim.folding.conversation import fold
from tests.adapters.adk.fakes import agent, call, calls, model_of, text, turn
from tests.adapters.adk.stage import Stage, brief, kinds, texts, wire
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


def ask(q: str) -> None:
    """Ask somebody, who takes a while."""


def ticket(q: str) -> dict[str, Any]:
    """Open a ticket."""
    return {"status": "pending", "ticket": 7}


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def danger(x: int) -> dict[str, Any]:
    """Do something dangerous."""
    return {"did": x}


ASK = LongRunningFunctionTool(ask)
DANGER = FunctionTool(danger, require_confirmation=True)


async def test_case_26_a_long_running_call_is_an_interrupt(oracle: Oracle):
    stage = Stage(agent("root", calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK]))
    run = await stage.say("hi")
    assert brief(run) == CALL
    (asked,) = stage.interrupts
    assert (asked.reason, asked.tool_call_id) == ("tool", asked.id)
    assert kinds(run)[-1] == "RUN_FINISHED"
    await stage.check(oracle)
    again = await stage.answer({asked.id: {"answer": 42}})
    assert brief(again) == [
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
    ]
    client = await stage.check(oracle)
    assert texts(client)[2:] == [("tool", '{"answer":42}'), ("assistant", "thanks")]
    assert client["pendingInterrupts"] == []


async def test_case_27_a_long_running_call_that_gave_a_result_is_no_pause(oracle: Oracle):
    root = agent(
        "root",
        calls(call("ticket", {"q": "1"})),
        text("wait"),
        text("done"),
        tools=[LongRunningFunctionTool(ticket)],
    )
    stage = Stage(root)
    run = await stage.say("hi")
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    assert texts(await stage.check(oracle))[2:] == [
        ("tool", '{"status":"pending","ticket":7}'),
        ("assistant", "wait"),
    ]


async def test_case_27_its_result_may_be_renewed_by_the_client(oracle: Oracle):
    root = agent(
        "root",
        calls(call("ticket", {"q": "1"})),
        text("wait"),
        text("done"),
        tools=[LongRunningFunctionTool(ticket)],
    )
    stage = Stage(root)
    await stage.say("hi")
    call_id = (await stage.messages())[1].tool_calls[0].id  # type: ignore[union-attr]
    news = ToolMessage(id="tm1", tool_call_id=call_id, content='{"status": "closed"}')
    await stage.send([*await stage.messages(), news])
    assert [(it.id, it.content) for it in await stage.messages() if it.role == "tool"][1:] == [
        ("tm1", '{"status":"closed"}')
    ]
    assert (await stage.messages())[-1].content == "done"


async def test_case_28_a_long_running_and_a_normal_call_in_one_turn(oracle: Oracle):
    both = calls(call("ask", {"q": "1"}), call("look", {"q": "2"}))
    stage = Stage(agent("root", both, text("thanks"), tools=[ASK, look]))
    run = await stage.say("hi")
    assert brief(run) == [*CALL[:2] * 2, *CALL[2:] * 2, "TOOL_CALL_RESULT"]
    (asked,) = stage.interrupts
    await stage.answer({asked.id: "yes"})
    client = await stage.check(oracle)
    assert texts(client)[2:] == [("tool", '{"found":"2"}'), ("tool", "yes"), ("assistant", "thanks")]
    assert len(model_of(stage.root).calls) == 2


async def test_case_29_one_of_two_answers_leaves_the_other_question_open(oracle: Oracle):
    both = calls(call("ask", {"q": "1"}), call("ask", {"q": "2"}))
    stage = Stage(agent("root", both, text("thanks"), tools=[ASK]))
    await stage.say("hi")
    first, second = stage.interrupts
    run = await stage.answer({first.id: "one"})
    stage.keep()
    assert stage.native[1] == []
    assert brief(run) == ["TOOL_CALL_RESULT"]
    assert [it.id for it in stage.interrupts] == [second.id]
    await stage.answer({second.id: "two"})
    assert texts_of(await stage.messages())[2:] == [("tool", "one"), ("tool", "two"), ("assistant", "thanks")]


def texts_of(messages: Any) -> list[tuple[str, Any]]:
    return [(it.role, it.content) for it in messages]


def asking(name: str) -> LlmAgent:
    return agent(name, calls(call("ask", {"q": name})), text(f"{name} thanks"), tools=[ASK])


async def test_case_30_a_sequence_goes_on_after_the_answer(oracle: Oracle):
    stage = Stage(SequentialAgent(name="seq", sub_agents=[asking("a"), agent("b", text("b here"))]))
    run = await stage.say("hi")
    (asked,) = stage.interrupts
    ended = [wire(it) for it in run if it.type.value == "SUBAGENT_FINISHED"]
    assert ended[0]["outcome"] == {"type": "suspended", "interruptIds": [asked.id]}
    assert asked.subagent_run_id == ended[0]["subagentRunId"]
    await stage.answer({asked.id: "ok"})
    assert [words for _, words in texts(await stage.check(oracle))[2:]] == ["ok", "a thanks", "b here"]


async def test_case_30_parallel_agents_wait_each_for_its_answer(oracle: Oracle):
    stage = Stage(ParallelAgent(name="par", sub_agents=[asking("a"), asking("b")]))
    await stage.say("hi")
    assert len(stage.interrupts) == 2
    await stage.answer({it.id: "ok" for it in stage.interrupts})
    assert stage.interrupts == []
    client = await stage.check(oracle, ordered=False)
    assert sorted(words for _, words in texts(client)[-2:]) == ["a thanks", "b thanks"]


@pytest.mark.parametrize("resumable", [True, False])
@pytest.mark.parametrize(("tool", "given"), [("ask", {"q": "1"}), ("danger", {"x": 1})])
async def test_case_30_answers_that_come_together_continue_every_branch(
    oracle: Oracle, tool: str, given: dict[str, Any], resumable: bool
):
    def one(name: str) -> LlmAgent:
        return agent(name, calls(call(tool, given)), text(f"{name} thanks"), tools=[ASK, DANGER])

    both = ParallelAgent(name="both", sub_agents=[one("a"), one("b")])
    root = SequentialAgent(name="seq", sub_agents=[both, agent("z", text("all done"))])
    stage = Stage(root, resumable=resumable)
    await stage.say("hi")
    await stage.answer({it.id: True for it in stage.interrupts})
    assert stage.interrupts == []
    words = [words for role, words in texts(await stage.check(oracle, ordered=False)) if role == "assistant"]
    assert sorted(words[2:4]) == ["a thanks", "b thanks"]
    assert words[4:] == (
        ["all done"] if resumable else []
    )  # without notes ADK knows no team behind an answer


async def test_case_30_a_sub_agent_goes_on_after_the_answer(oracle: Oracle):
    moves = calls(call("transfer_to_agent", {"agent_name": "billing"}))
    stage = Stage(agent("root", moves, text("never"), sub_agents=[asking("billing")]))
    await stage.say("hi")
    (asked,) = stage.interrupts
    run = await stage.answer({asked.id: "ok"})
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    assert [words for _, words in texts(await stage.check(oracle))[2:]] == ["ok", "billing thanks"]
    assert len(model_of(stage.root).calls) == 1


@pytest.mark.parametrize("payload", [True, None, {"confirmed": True}], ids=["true", "nothing", "words"])
async def test_case_31_an_approved_call_has_exactly_one_result(oracle: Oracle, payload: Any):
    stage = Stage(agent("root", calls(call("danger", {"x": 1})), text("done"), tools=[DANGER]))
    run = await stage.say("hi")
    assert brief(run) == CALL
    (asked,) = stage.interrupts
    assert asked.reason == "tool_approval"
    assert asked.message == "Run danger?"
    assert asked.tool_call_id == next(it.tool_call_id for it in run if it.type.value == "TOOL_CALL_START")  # type: ignore[union-attr]
    await stage.answer({asked.id: payload})
    client = await stage.check(oracle)
    assert texts(client)[2:] == [("tool", '{"did":1}'), ("assistant", "done")]


@pytest.mark.parametrize("how", ["false", "words", "cancelled"])
async def test_case_32_a_rejected_call_has_one_error_result(oracle: Oracle, how: str):
    stage = Stage(agent("root", calls(call("danger", {"x": 1})), text("as you wish"), tools=[DANGER]))
    await stage.say("hi")
    (asked,) = stage.interrupts
    if how == "cancelled":
        await stage.answer(cancel=[asked.id])
    else:
        await stage.answer({asked.id: False if how == "false" else {"confirmed": False}})
    client = await stage.check(oracle)
    assert texts(client)[2:] == [
        ("tool", '{"error":"This tool call is rejected."}'),
        ("assistant", "as you wish"),
    ]
    assert client["messages"][2]["metadata"]["runcast"]["error"] is True


async def test_case_33_a_confirmation_with_a_payload_brings_it_to_the_tool(oracle: Oracle):
    def book(day: str, tool_context: ToolContext) -> dict[str, Any]:
        """Book a day off."""
        given = tool_context.tool_confirmation
        if given is None:
            tool_context.request_confirmation(hint="How many?", payload={"days": 0})
            return {"status": "waiting"}
        return {"booked": given.payload["days"]} if given.confirmed else {"booked": 0}

    stage = Stage(agent("root", calls(call("book", {"day": "mo"})), text("done"), tools=[book]))
    await stage.say("hi")
    (asked,) = stage.interrupts
    assert asked.message == "How many?"
    assert asked.metadata == {"runcast": {"value": {"days": 0}}}
    await stage.answer({asked.id: {"confirmed": True, "payload": {"days": 3}}})
    assert texts(await stage.check(oracle))[2:] == [("tool", '{"booked":3}'), ("assistant", "done")]


async def test_case_33_a_bare_payload_means_yes(oracle: Oracle):
    def pick(tool_context: ToolContext) -> dict[str, Any]:
        """Pick one."""
        given = tool_context.tool_confirmation
        if given is None:
            tool_context.request_confirmation(hint="Which?")
            return {"status": "waiting"}
        return {"picked": given.payload}

    stage = Stage(agent("root", calls(call("pick")), text("done"), tools=[pick]))
    await stage.say("hi")
    await stage.answer({stage.interrupts[0].id: {"one": 1}})
    assert texts(await stage.check(oracle))[2] == ("tool", '{"picked":{"one":1}}')


def secret_config() -> AuthConfig:
    scheme = APIKey.model_validate({"in": APIKeyIn.header, "name": "X-Key"})
    raw = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="raw-secret-1")
    return AuthConfig(auth_scheme=scheme, raw_auth_credential=raw, credential_key="crm")


def crm(tool_context: ToolContext) -> dict[str, Any]:
    """Ask the CRM."""
    given = tool_context.get_auth_response(secret_config())
    if given is None:
        tool_context.request_credential(secret_config())
        return {"status": "login first"}
    return {"logged_in": given.api_key == "user-key"}


async def test_case_34_a_credential_request_is_an_interrupt_without_secrets(oracle: Oracle):
    stage = Stage(agent("root", calls(call("crm")), text("done"), tools=[crm]))
    run = await stage.say("hi")
    (asked,) = stage.interrupts
    assert asked.reason == "credential"
    assert asked.tool_call_id == next(it.tool_call_id for it in run if it.type.value == "TOOL_CALL_START")  # type: ignore[union-attr]
    assert asked.metadata["runcast"]["value"]["credentialKey"] == "crm"
    assert "raw-secret-1" not in str(run)
    given = secret_config()
    given.exchanged_auth_credential = AuthCredential(
        auth_type=AuthCredentialTypes.API_KEY, api_key="user-key"
    )
    answer = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    again = await stage.answer({asked.id: answer})
    assert "user-key" not in str(again)
    client = await stage.check(oracle)
    assert texts(client)[-1] == ("assistant", "done")
    assert [role for role, _ in texts(client)] == ["user", "assistant", "tool", "assistant"]


def workflow() -> Workflow:
    def who(node_input: Any) -> Any:
        yield RequestInput(message="Who?", response_schema={"type": "string"}, payload={"k": 1})

    def greet(node_input: Any) -> str:
        return f"hello {node_input}"

    return Workflow(name="wf", edges=[(START, who, greet)])


async def test_case_35_a_workflow_that_needs_input_asks_and_goes_on(oracle: Oracle):
    stage = Stage(workflow())
    run = await stage.say("hi")
    (asked,) = stage.interrupts
    assert (asked.reason, asked.message, asked.response_schema) == ("input", "Who?", {"type": "string"})
    assert asked.tool_call_id is None
    assert asked.metadata == {"runcast": {"value": {"k": 1}}}
    assert "TOOL_CALL_START" not in kinds(run)
    again = await stage.answer({asked.id: "Bob"})
    assert again[-1].result == "hello Bob"  # type: ignore[union-attr]
    await stage.check(oracle)


REFUSE = AdkOptions(on_new_message="refuse")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"answers": {"nope": 1}}, "no interrupt 'nope' waits in this thread; waiting: "),
        ({"twice": True}, "is answered twice: send one entry for each"),
        ({"text": True}, "this thread waits for answers: send `resume` entries for adk-"),
        ({"tool": "nope"}, "tool result for unknown call 'nope': send the call's own id"),
    ],
    ids=["unknown", "twice", "text instead", "unknown call"],
)
async def test_case_36_a_wrong_answer_is_refused_and_nothing_stored(
    oracle: Oracle, given: dict[str, Any], sentence: str
):
    stage = Stage(agent("root", calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK]), options=REFUSE)
    await stage.say("hi")
    (asked,) = stage.interrupts
    before = (await stage.session()).events  # type: ignore[union-attr]
    if "answers" in given:
        run = await stage.answer(given["answers"])
    elif "twice" in given:
        run = await stage.answer({asked.id: 1}, cancel=[asked.id])
    elif "text" in given:
        run = await stage.say("never mind")
    else:
        message = ToolMessage(id="tm", tool_call_id=given["tool"], content="x")
        run = await stage.send([*await stage.messages(), message])
    assert kinds(run) == ["RUN_STARTED", "RUN_ERROR"]
    assert run[-1].code == "invalid_input"  # type: ignore[union-attr]
    assert sentence in run[-1].message  # type: ignore[union-attr]
    assert (await stage.session()).events == before  # type: ignore[union-attr]
    assert len(model_of(stage.root).calls) == 1
    await stage.answer({asked.id: "now"})
    assert (await stage.messages())[-1].content == "thanks"


async def test_case_36_an_answer_that_nobody_waits_for(oracle: Oracle):
    stage = Stage(agent("root", text("hello")))
    await stage.say("hi")
    run = await stage.answer({"x": 1})
    assert run[-1].message == (  # type: ignore[union-attr]
        "nothing waits for an answer in this thread: send a message instead of `resume`"
    )


async def test_case_36_an_answer_in_a_thread_that_is_new(oracle: Oracle):
    stage = Stage(agent("root", text("hello")))
    run = await stage.answer({"x": 1})
    assert run[-1].code == "invalid_input"  # type: ignore[union-attr]
    assert await stage.session() is None


async def test_an_answer_that_comes_too_late_is_refused(oracle: Oracle):
    root = agent("root", calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK])
    stage = Stage(root, options=AdkOptions(interrupt_ttl=-1))
    await stage.say("hi")
    (asked,) = stage.interrupts
    assert asked.expires_at is not None
    run = await stage.answer({asked.id: 1})
    assert run[-1].message == f"interrupt {asked.id!r} has expired: start a new run instead"  # type: ignore[union-attr]


async def test_what_was_not_answered_in_time_can_still_be_cancelled(oracle: Oracle):
    root = agent("root", calls(call("ask", {"q": "1"})), text("never mind"), tools=[ASK])
    stage = Stage(root, options=AdkOptions(interrupt_ttl=-1))
    await stage.say("hi")
    await stage.answer(cancel=[stage.interrupts[0].id])
    assert texts(await stage.check(oracle))[-1] == ("assistant", "never mind")


async def test_an_answer_whose_run_broke_may_be_named_again(oracle: Oracle):
    script = [calls(call("ask", {"q": "1"})), [ValueError("gone")], text("here I am")]
    stage = Stage(agent("root", *script, tools=[ASK]))
    await stage.say("hi")
    (asked,) = stage.interrupts
    run = await stage.answer({asked.id: "yes"})
    assert kinds(run)[-1] == "RUN_ERROR"
    run = await stage.answer({asked.id: "yes"})
    assert kinds(run) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    again = [{"interruptId": asked.id, "status": "cancelled"}]
    await stage.say("still there?", resume=again)
    client = await stage.check(oracle)
    assert texts(client)[2:] == [("tool", "yes"), ("user", "still there?"), ("assistant", "here I am")]


async def test_an_answer_and_a_new_message_do_not_mix(oracle: Oracle):
    from ag_ui.core import ResumeEntry, UserMessage

    stage = Stage(agent("root", calls(call("ask", {"q": "1"})), text("thanks"), tools=[ASK]))
    await stage.say("hi")
    entry = ResumeEntry(interrupt_id=stage.interrupts[0].id, status="resolved", payload=1)
    news = UserMessage(id="u9", content="also")
    run = await stage.send([*await stage.messages(), news], resume=[entry])
    assert run[-1].message == "answers and a new message do not go into one run: send the answers first"  # type: ignore[union-attr]


async def test_a_cancelled_long_running_call_is_an_error_the_agent_reads(oracle: Oracle):
    stage = Stage(agent("root", calls(call("ask", {"q": "1"})), text("never mind"), tools=[ASK]))
    await stage.say("hi")
    await stage.answer(cancel=[stage.interrupts[0].id])
    client = await stage.check(oracle)
    assert client["messages"][2]["metadata"]["runcast"]["error"] is True
    assert texts(client)[-1] == ("assistant", "never mind")


FRONTEND = Tool(
    name="pick_color",
    description="Let the user pick",
    parameters={"type": "object", "properties": {"of": {"type": "string"}}},
)


async def test_a_frontend_tool_may_end_the_run_as_an_interrupt_and_is_answered_by_a_tool_message(
    oracle: Oracle,
):
    asking = AdkOptions(frontend_tools="interrupt")
    root = agent("root", calls(call("pick_color", {"of": "walls"})), text("blue it is"), tools=[look])
    stage = Stage(root, options=asking)
    await stage.say("hi", tools=[FRONTEND])
    declared = model_of(root).calls[0].config.tools[0].function_declarations  # type: ignore[index,union-attr]
    assert {it.name for it in declared} == {"look", "pick_color"}  # type: ignore[union-attr]
    (asked,) = stage.interrupts
    result = ToolMessage(id="tm1", tool_call_id=asked.id, content="blue")
    await stage.send([*await stage.messages(), result], tools=[FRONTEND])
    assert [(it.id, it.content) for it in await stage.messages()][2] == ("tm1", "blue")
    assert (await stage.messages())[-1].content == "blue it is"
    with_both = Stage(
        agent("root", calls(call("pick_color", {"of": "walls"})), text("blue it is")), options=asking
    )
    await with_both.say("hi", tools=[FRONTEND])
    (asked,) = with_both.interrupts
    await with_both.send(
        [*await with_both.messages(), ToolMessage(id="tm1", tool_call_id=asked.id, content="blue")],
        tools=[FRONTEND],
        resume=[{"interruptId": asked.id, "status": "resolved", "payload": "blue"}],
    )
    client = await with_both.check(oracle, state=None)
    assert texts(client)[2:] == [("tool", "blue"), ("assistant", "blue it is")]


async def test_an_agent_written_for_agui_s_own_server_gets_the_clients_tools_in_place_of_its_placeholder() -> (
    None
):
    toolset = import_module("ag_ui_adk").AGUIToolset
    helper = agent("helper", calls(call("pick_color", {"of": "walls"})), tools=[toolset(), look])
    go = calls(call("transfer_to_agent", {"agent_name": "helper"}))
    root = agent("root", go, tools=[look], sub_agents=[helper])
    stage = Stage(root)
    await stage.say("hi", tools=[FRONTEND])
    assert stage.interrupts == []
    offered = [
        [each.name for each in model_of(one).calls[0].config.tools[0].function_declarations]  # type: ignore[index,union-attr]
        for one in (root, helper)
    ]
    assert ["pick_color" in names for names in offered] == [False, True]


async def test_a_frontend_tool_ends_the_run_as_a_pending_call_which_every_client_can_answer(oracle: Oracle):
    root = agent("root", turn(types.Part(text="well"), call("pick_color")), text("blue it is"))
    stage = Stage(root)
    run = await stage.say("hi", tools=[FRONTEND])
    outcome = run[-1].outcome  # type: ignore[union-attr]
    assert outcome.type == "success"
    [pending] = fold(run).pending_tool_call_ids
    result = ToolMessage(id="tm1", tool_call_id=pending, content="blue")
    await stage.send([*await stage.messages(), result], tools=[FRONTEND])
    client = await stage.check(oracle)
    assert texts(client)[2:] == [("tool", "blue"), ("assistant", "blue it is")]
