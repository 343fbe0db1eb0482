"""State, artifacts and what has no word of its own (cases 42 to 46)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionResult
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, chunk, llm, text, turn
from tests.adapters.adk.stage import WHERE, Stage, kinds, texts, wire
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


def of(events: Any, kind: str) -> list[dict[str, Any]]:
    return [wire(event) for event in events if event.type.value == kind]


def custom(events: Any, name: str) -> list[Any]:
    return [it["value"] for it in of(events, "CUSTOM") if it["name"] == name]


class Thing:
    """Something JSON has no word for."""

    def __repr__(self) -> str:
        return "<thing>"


def writes(**state: Any) -> Any:
    def write(tool_context: ToolContext) -> str:
        """Write state."""
        for key, value in state.items():
            tool_context.state[key] = value
        return "written"

    return write


async def test_case_42_what_a_tool_writes_is_one_delta(oracle: Oracle):
    state = {
        "a/b": 1,
        "c~d": {"x": [1, None]},
        "none": None,
        "temp:t": 1,
        "user:u": 2,
        "app:p": 3,
        "_adk_x": 4,
    }
    stage = Stage(agent("root", calls(call("write")), text("done"), tools=[writes(**state)]))
    run = await stage.say("hi")
    (delta,) = [it["delta"] for it in of(run, "STATE_DELTA")]
    assert delta == [
        {"op": "add", "path": "/a~1b", "value": 1},
        {"op": "add", "path": "/c~0d", "value": {"x": [1, None]}},
        {"op": "add", "path": "/none", "value": None},
    ]
    client = await stage.check(oracle)
    assert client["state"] == {"a/b": 1, "c~d": {"x": [1, None]}, "none": None}


async def test_case_42_an_output_key_is_told_once(oracle: Oracle):
    stage = Stage(agent("root", text("the ", "plan"), output_key="plan"))
    run = await stage.say("hi")
    assert kinds(run).count("STATE_DELTA") == 1
    assert (await stage.check(oracle))["state"] == {"plan": "the plan"}


async def test_case_42_values_without_json_are_told_by_their_repr(oracle: Oracle):
    odd = {"thing": Thing(), "nan": math.nan, "half": "\ud83d", "big": 10**30}
    stage = Stage(agent("root", calls(call("write")), text("done"), tools=[writes(**odd)]))
    run = await stage.say("hi")
    (delta,) = [it["delta"] for it in of(run, "STATE_DELTA")]
    told = {it["path"]: it["value"] for it in delta}
    assert told["/thing"] == "<thing>"
    assert told["/nan"] is None


async def test_case_42_a_delta_of_private_keys_alone_is_not_told(oracle: Oracle):
    stage = Stage(
        agent("root", calls(call("write")), text("done"), tools=[writes(**{"temp:x": 1, "user:y": 1})])
    )
    run = await stage.say("hi")
    assert "STATE_DELTA" not in kinds(run)
    await stage.check(oracle)


async def test_case_42_the_user_chooses_what_is_shown(oracle: Oracle):
    write = writes(**{"a": 1, "b": 2, "user:u": 3})
    for options, seen in (
        (AdkOptions(state_keys={"a", "user:u"}), {"a": 1, "user:u": 3}),
        (AdkOptions(shared_state=True), {"a": 1, "b": 2, "user:u": 3}),
    ):
        stage = Stage(agent("root", calls(call("write")), text("done"), tools=[write]), options=options)
        await stage.say("hi")
        assert (await stage.check(oracle))["state"] == seen


async def test_the_client_gets_the_state_it_lacks_and_gives_what_it_changed(oracle: Oracle):
    stage = Stage(agent("root", text("one")))
    await stage.service.create_session(**WHERE, state={"kept": 1, "user:name": "Ada", "_adk_hidden": 1})
    run = await stage.say("hi")
    assert [it["snapshot"] for it in of(run, "STATE_SNAPSHOT")] == [{"kept": 1}]
    run = await stage.say("again", state={"kept": 1})
    assert "STATE_SNAPSHOT" not in kinds(run)
    assert (await stage.session()).events[-3].actions.state_delta == {}  # type: ignore[union-attr]
    run = await stage.say("more", state={"kept": 2, "new": [1], "user:name": "Eve", "temp:x": 1, "_adk_y": 1})
    session = await stage.session()
    assert session is not None
    assert {k: v for k, v in session.state.items() if k != "user:name"} == {
        "kept": 2,
        "new": [1],
        "_adk_hidden": 1,
    }
    assert session.state["user:name"] == "Ada"


async def test_the_clients_state_may_be_ignored(oracle: Oracle):
    stage = Stage(agent("root", text("one")), options=AdkOptions(accept_state=False))
    run = await stage.say("hi", state={"x": 1})
    assert (await stage.session()).state == {}  # type: ignore[union-attr]
    assert [it["snapshot"] for it in of(run, "STATE_SNAPSHOT")] == [{}]


class Emitting(BaseAgent):
    """A custom agent that yields these events."""

    said: list[Event] = []  # noqa: RUF012  # pydantic copies it

    async def _run_async_impl(self, ctx: Any) -> Any:
        for event in self.said:
            yield event.model_copy(
                update={"invocation_id": ctx.invocation_id, "author": self.name}, deep=True
            )


async def test_case_43_artifacts_are_told_by_name_and_version(oracle: Oracle):
    async def store(tool_context: ToolContext) -> str:
        """Store a file."""
        await tool_context.save_artifact("report.txt", types.Part(text="hello"))
        return "stored"

    stage = Stage(agent("root", calls(call("store")), text("done"), tools=[store]))
    run = await stage.say("hi")
    assert custom(run, "adk.artifacts") == [{"report.txt": 0}]
    await stage.check(oracle)


async def test_case_44_grounding_and_citations_are_told_once(oracle: Oracle):
    last = chunk(types.Part(text="found"), finish="STOP", usage=True)
    assert last.candidates
    last.candidates[0].grounding_metadata = types.GroundingMetadata(web_search_queries=["q"])
    last.candidates[0].citation_metadata = types.CitationMetadata(
        citations=[types.Citation(uri="https://x.test")]
    )
    stage = Stage(agent("root", [chunk(types.Part(text="I ")), last]))
    run = await stage.say("hi")
    assert custom(run, "adk.grounding") == [{"webSearchQueries": ["q"]}]
    assert custom(run, "adk.citations") == [{"citations": [{"uri": "https://x.test"}]}]
    assert texts(await stage.check(oracle))[1] == ("assistant", "I found")


async def test_case_45_code_that_gemini_ran_is_a_call_with_a_result(oracle: Oracle):
    code = types.Part(executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON))
    result = types.Part(
        code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")
    )
    stage = Stage(agent("root", turn(types.Part(text="let me see"), code, result, types.Part(text=" two"))))
    await stage.say("hi")
    client = await stage.check(oracle)
    assert texts(client)[1:] == [("assistant", "let me see two"), ("tool", "2")]
    made = client["messages"][1]["toolCalls"][0]["function"]
    assert made == {"name": "execute_code", "arguments": '{"code":"1+1","language":"PYTHON"}'}


class Counting(BaseCodeExecutor):
    """Runs nothing, and answers."""

    answer: str = "4"
    wrong: str = ""

    def execute_code(self, invocation_context: Any, code_execution_input: Any) -> CodeExecutionResult:
        return CodeExecutionResult(stdout=self.answer, stderr=self.wrong)


@pytest.mark.parametrize("wrong", ["", "NameError"])
async def test_case_45_code_that_adk_runs_is_a_call_with_a_result(oracle: Oracle, wrong: str):
    said = text("look:\n```python\nprint(2+2)\n```\n")
    root = LlmAgent(name="root", model=llm(said, text("four")), code_executor=Counting(wrong=wrong))
    stage = Stage(root, options=AdkOptions(streaming="none"))
    await stage.say("hi")
    client = await stage.check(oracle)
    tool = next(it for it in client["messages"] if it["role"] == "tool")
    assert ("NameError" if wrong else "4") in tool["content"]
    assert tool["metadata"]["runcast"].get("error", False) is bool(wrong)
    assert texts(client)[-1] == ("assistant", "four")


async def test_case_45_a_result_whose_code_nobody_saw(oracle: Oracle):
    part = types.Part(
        code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")
    )
    stage = Stage(Emitting(name="custom", said=[Event(content=types.Content(role="model", parts=[part]))]))
    run = await stage.say("hi")
    assert custom(run, "adk.code_result") == [{"outcome": "OUTCOME_OK", "output": "2"}]
    await stage.check(oracle)


async def test_case_46_a_picture_is_told_without_its_bytes(oracle: Oracle):
    picture = types.Part(inline_data=types.Blob(data=b"\x89PNG" * 100, mime_type="image/png"))
    link = types.Part(file_data=types.FileData(file_uri="gs://bucket/x.pdf", mime_type="application/pdf"))
    stage = Stage(agent("root", turn(types.Part(text="look: "), picture, link)))
    run = await stage.say("hi")
    (first, second) = custom(run, "adk.media")
    assert (first["mime_type"], first["size"]) == ("image/png", 400)
    assert (second["mime_type"], second["uri"]) == ("application/pdf", "gs://bucket/x.pdf")
    client = await stage.check(oracle)
    assert first["message_id"] == client["messages"][1]["id"]
    assert "iVBOR" not in str(run)
    assert "PNG" not in str([wire(event) for event in run])


async def test_custom_metadata_widgets_and_markers_are_told(oracle: Oracle):
    from google.adk.events.event_actions import EventCompaction
    from google.adk.events.ui_widget import UiWidget

    summary = EventCompaction(
        start_timestamp=1.0, end_timestamp=2.0, compacted_content=types.Content(parts=[])
    )
    said = [
        Event(
            custom_metadata={"k": 1, "runcast": {"x": 1}},
            content=types.Content(role="model", parts=[types.Part(text="a")]),
        ),
        Event(actions=EventActions(render_ui_widgets=[UiWidget(id="w", provider="p", payload={"x": 1})])),
        Event(actions=EventActions(compaction=summary)),
        Event(actions=EventActions(rewind_before_invocation_id="e-0")),
    ]
    stage = Stage(Emitting(name="custom", said=said))
    run = await stage.say("hi")
    assert custom(run, "adk.custom_metadata") == [{"k": 1}]
    (widget,) = of(run, "ACTIVITY_SNAPSHOT")
    assert (widget["messageId"], widget["activityType"], widget["content"]) == ("w", "p", {"x": 1})
    assert custom(run, "adk.compaction") == [{"from": 1.0, "to": 2.0}]
    assert custom(run, "adk.rewind") == [{"before_invocation_id": "e-0"}]
