"""Corners of the pure cores that no ordinary run of ADK turns."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
from ag_ui.core import ToolMessage
from google.adk.agents import LlmAgent
from google.adk.events.event import Event, NodeInfo
from google.genai import types

from runcast.adapters import InvalidInput, OpenBlocks
from runcast.adapters.adk import AdkAdapter, AdkOptions, AdkPlugin, AdkTranslator, messages_from_events
from runcast.adapters.adk.intake.plan import check_place
from runcast.adapters.adk.plain_values import Sent, changes, cut, dumps, plain
from runcast.adapters.adk.stream.complete_event import Reader
from runcast.adapters.adk.stream.steps import Steps
from runcast.adapters.adk.stream.streamed_args import ArgsWriter
from runcast.adapters.run_frame import RunIds
from tests.adapters.adk.fakes import agent, call, calls, text
from tests.adapters.adk.stage import Stage, kinds, strict


def event(*parts: types.Part, **given: Any) -> Event:
    return Event(
        author=given.pop("author", "root"), content=types.Content(role="model", parts=list(parts)), **given
    )


def started(**given: Any) -> AdkTranslator:
    translator = AdkTranslator(RunIds("t", "r"), **given)
    translator.start()
    return translator


def test_without_the_extra_one_error_says_what_to_install():
    script = "import sys; sys.modules['google.adk'] = None\nimport runcast.adapters.adk"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.strip().splitlines()[-1] == (
        'ImportError: runcast.adapters.adk needs google-adk: pip install "runcast[adk]"'
    )


def test_an_agent_below_another_open_agent_names_it_as_parent():
    translator = started(root="wf")
    outer = event(types.Part(text="a"), author="a", id="e1", node_info=NodeInfo(path="wf@1/a@1"))
    inner = event(types.Part(text="b"), author="b", id="e2", node_info=NodeInfo(path="wf@1/a@1/x@1/b@1"))
    events = translator.feed(outer) + translator.feed(inner) + translator.finish()
    told = [it for it in events if it.type.value == "SUBAGENT_STARTED"]
    assert [(it.name, it.parent_subagent_run_id) for it in told] == [("a", None), ("b", "a:e1")]  # type: ignore[union-attr]


def test_the_root_is_learned_from_the_first_path():
    translator = started()
    said = event(types.Part(text="a"), author="a", id="e1", node_info=NodeInfo(path="wf@1/a@1"))
    assert "SUBAGENT_STARTED" in kinds(translator.feed(said))
    assert "SUBAGENT_STARTED" not in kinds(started().feed(said.model_copy(update={"node_info": NodeInfo()})))


def test_a_streamed_call_is_not_begun_before_it_has_a_name_and_an_id():
    translator = started(options=AdkOptions(stream_args=True))
    for function in (
        types.FunctionCall(id="c", will_continue=True),
        types.FunctionCall(name="f", will_continue=True),
        types.FunctionCall(id="c", name="f", args={"x": 1}),
    ):
        part = types.Part(function_call=function)
        assert "TOOL_CALL_START" not in kinds(translator.feed(event(part, id="e", partial=True)))


def test_an_event_without_an_invocation_is_translated_too():
    translator = started()
    assert kinds(translator.feed(event(types.Part(text="x"), invocation_id="")))[1] == "TEXT_MESSAGE_START"
    assert "invocation_id" not in str(translator.finish()[-1])


def test_an_event_of_the_user_is_not_the_agents():
    assert started().feed(event(types.Part(text="x"), author="user")) == []


def test_a_message_that_came_while_the_agent_ran_is_the_users():
    said = event(types.Part(text="x"), author="user", invocation_id="steered-1", id="e")
    shown = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    translator = started()
    assert kinds(translator.feed(said)) == shown
    translator.aside(said)
    assert kinds(translator.finish()) == [*shown, "RUN_FINISHED"]


def test_only_one_ending_is_told():
    translator = started()
    translator.feed(event(types.Part(text="x"), id="e", partial=True))
    first = translator.finish()
    assert kinds(first)[-1] == "RUN_FINISHED"
    assert translator.cancel() == []
    assert translator.fail(ValueError("x")) == []


def test_questions_of_this_stream_are_known_without_a_session():
    translator = started()
    asked = event(call("ask", {}, id="c1"), long_running_tool_ids={"c1"})
    strict([*AdkTranslator(RunIds("t", "r")).start(), *translator.feed(asked), *(end := translator.finish())])
    assert [it.id for it in end[-1].outcome.interrupts] == ["c1"]  # type: ignore[union-attr]


def test_steps_that_started_twice_end_once():
    steps = Steps(OpenBlocks())
    assert kinds(steps.start("n") + steps.start("n")) == ["STEP_STARTED"]
    assert steps.finish("n") == []
    assert kinds(steps.finish("n")) == ["STEP_FINISHED"]
    assert steps.finish("n") == []
    assert steps.count == 1


def test_a_subagents_steps_are_forgotten_with_it():
    steps = Steps(OpenBlocks())
    steps.start("n", "sub")
    steps.forget("sub")
    assert not steps.is_open("n", "sub")


def test_nodes_that_wait_or_are_unknown_are_no_steps():
    steps = Steps(OpenBlocks())
    assert steps.nodes({"a": {"status": 1}, "b": None, "c": {"status": "odd"}, "d": {"status": 3}}) == []
    assert kinds(steps.nodes({"a": {"status": 2}})) == ["STEP_STARTED"]
    assert steps.nodes({"a": {"status": 2}}) == []
    assert steps.node_output("a") == []
    assert kinds(steps.nodes({"a": {"status": 4}})) == ["STEP_FINISHED"]


def test_code_without_a_language_and_a_result_that_names_its_code():
    reader = Reader()
    code = types.Part(executable_code=types.ExecutableCode(code="1", id="x"))
    result = types.CodeExecutionResult(id="x", outcome=types.Outcome.OUTCOME_FAILED)
    (made,) = reader.read(event(code)).calls
    assert (made.id, made.args) == ("x", '{"code":"1"}')
    (answer,) = reader.read(event(types.Part(code_execution_result=result))).answers
    assert (answer.call_id, answer.error, answer.content) == ("x", True, "")
    (late,) = reader.read(event(types.Part(code_execution_result=result))).answers
    assert late.call_id == "x"


def test_a_part_that_says_nothing_says_nothing():
    reading = Reader().read(event(types.Part(text="")))
    assert not reading.has_content
    assert messages_from_events([event(types.Part(text=""))]) == []


def test_a_result_without_a_name_has_no_note():
    answer = types.FunctionResponse(id="c", response={"x": 1})
    (message,) = messages_from_events([event(types.Part(function_response=answer))])
    assert message.metadata is None


def test_arguments_with_a_hole_too_wide_are_not_written():
    writer = ArgsWriter()
    piece = types.PartialArg(json_path="$.a[5000]", string_value="x")
    writer.feed(piece)
    assert writer.finish('{"b":["x"]}') is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.inf, "null"),
        ({1: "a"}, '{"1":"a"}'),
        ("\ud83d", '"\\ud83d"'),
        ({"half": "\ud83d", "thing": {1}}, '{"half": "\\ud83d", "thing": "{1}"}'),
    ],
)
def test_values_as_json(value: Any, told: str):
    assert dumps(value) == told


def test_what_cannot_be_told_otherwise_is_told_by_its_repr():
    circle: list[Any] = []
    circle.append(circle)
    assert plain(circle) == ["..."]
    assert plain({"nan": math.nan, "half": "\ud83d"}) == "{'nan': nan, 'half': '\\ud83d'}"


def test_texts_are_cut_to_a_length_and_marked():
    assert cut("abcdef", 5) == "ab..."
    assert cut("abcdef", 2) == "..."
    assert cut("abcdef", None) == cut("abcdef", 6) == "abcdef"


def test_what_was_sent_is_the_beginning_of_the_whole_or_not():
    sent = Sent()
    assert sent.rest("abc") == "abc"
    sent.add("a\ud83d")
    assert sent.rest("a\ud83dbc") == "bc"
    assert sent.rest("a\ud83d") == ""
    assert sent.rest("ab") is None
    assert sent.rest("a") is None


def test_a_clients_state_changes_what_differs_and_may_be_seen():
    held = {"a": 1, "b": None}
    assert changes({"a": 1, "b": 2, "c": None, "app:x": 1, "temp:y": 1}, held, AdkOptions()) == {
        "b": 2,
        "c": None,
    }
    assert changes("odd", held, AdkOptions()) == {}
    assert changes({"a": 2}, held, AdkOptions(accept_state=False)) == {}


def test_a_place_is_ours_or_unsaid():
    check_place({"checkpoint_id": "x"}, session_id="t")
    check_place({"session_id": "t"}, session_id="t")
    with pytest.raises(InvalidInput, match="belongs to another thread"):
        check_place({"session_id": "u"}, session_id="t")


async def test_a_second_result_for_a_call_is_refused():
    def look(q: str = "") -> dict[str, Any]:
        """Look something up."""
        return {"found": q}

    stage = Stage(agent("root", calls(call("look")), text("done"), tools=[look]))
    await stage.say("hi")
    call_id = (await stage.messages())[1].tool_calls[0].id  # type: ignore[union-attr]
    run = await stage.send([*await stage.messages(), ToolMessage(id="tm", tool_call_id=call_id, content="x")])
    assert run[-1].message == f"call {call_id!r} has its result already: send each only once"  # type: ignore[union-attr]


def test_an_agent_that_is_named_twice_is_told_once():
    leaf = agent("leaf", text("x"))
    root = agent("root", text("x"), sub_agents=[leaf])
    root.sub_agents.append(leaf)
    told = AdkAdapter(root).capabilities()
    assert told.multi_agent is not None
    assert [it.name for it in told.multi_agent.subagents or []] == ["leaf"]
    assert isinstance(root, LlmAgent)


def test_an_agent_without_schemas_has_no_forms():
    assert AdkAdapter(agent("root", text("x"))).schemas() == {}


async def test_a_plugin_that_was_never_used_closes():
    await AdkPlugin(print).close()
