"""What people build on ADK: plugins and callbacks that answer, rewrite, retry and skip, tasks and summaries.

Every shape is played for two turns with streaming on and off: valid for both judges, and the client's view is the
session's after each turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import DataSource, ImagePart, ResumeEntry, TextPart, UserMessage
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.plugins.save_files_as_artifacts_plugin import SaveFilesAsArtifactsPlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import FunctionTool
from google.adk.tools.get_user_choice_tool import get_user_choice_tool
from google.genai import types
from pydantic import BaseModel

from runcast.adapters.adk import AdkOptions, AdkPlugin, AdkTranslator, messages_from_events
from runcast.adapters.run_frame import RunIds
from runcast.slim import fold
from tests.adapters.adk.fakes import agent, call, calls, chunk, llm, text, turn
from tests.adapters.adk.stage import Stage, strict
from tests.e2e.oracle import Oracle

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:EventsCompactionConfig:DeprecationWarning"),
]


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def flaky() -> Callable[..., dict[str, Any]]:
    tries: list[int] = []

    def luck(q: str = "") -> dict[str, Any]:
        """Try one's luck."""
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("bad luck")
        return {"ok": 1}

    return luck


def words(content: str, role: str = "model") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=content)])


class Answers(BasePlugin):
    async def before_model_callback(self, **given: Any) -> LlmResponse:
        return LlmResponse(content=words("cached"))


class Rewrites(BasePlugin):
    async def after_model_callback(self, *, llm_response: LlmResponse, **given: Any) -> LlmResponse | None:
        return None if llm_response.partial else LlmResponse(content=words("rewritten"))


class Replaces(BasePlugin):
    async def on_event_callback(self, *, event: Any, **given: Any) -> Any:
        if event.partial or not event.content or not event.content.parts[0].text:
            return None
        return event.model_copy(update={"content": words(event.content.parts[0].text.upper())})


class Notes(BasePlugin):
    """Writes state on events."""

    async def on_event_callback(self, *, event: Any, **given: Any) -> None:
        event.actions.state_delta |= {"at": event.id, "_own": 1}


class Closes(BasePlugin):
    async def before_run_callback(self, **given: Any) -> types.Content:
        return words("closed today")


class Filters(BasePlugin):
    async def on_user_message_callback(self, **given: Any) -> types.Content:
        return words("[filtered]", "user")


class Consoles(BasePlugin):
    async def on_model_error_callback(self, **given: Any) -> LlmResponse:
        return LlmResponse(content=words("sorry"))


class Caches(BasePlugin):
    async def before_tool_callback(self, **given: Any) -> dict[str, Any]:
        return {"cached": True}


class Handles(BasePlugin):
    async def on_tool_error_callback(self, **given: Any) -> dict[str, Any]:
        return {"error": "handled"}


class Skips(BasePlugin):
    async def before_agent_callback(self, **given: Any) -> types.Content:
        return words("skipped")


class Adds(BasePlugin):
    async def after_agent_callback(self, **given: Any) -> types.Content:
        return words("and goodbye")


class Out(BaseModel):
    x: int


def task() -> Any:
    helper = agent(
        "helper", text("in", "ner"), calls(call("finish_task", {"result": "r"})), mode="task", description="d"
    )
    return agent("root", calls(call("helper", {"request": "q"})), text("done"), sub_agents=[helper])


def single_turn() -> Any:
    helper = agent("helper", text("in", "ner"), mode="single_turn", description="d")
    return agent("root", calls(call("helper", {"request": "q"})), text("done"), sub_agents=[helper])


def summarized() -> EventsCompactionConfig:
    summarizer = LlmEventSummarizer(llm=llm(text("summary")))
    return EventsCompactionConfig(compaction_interval=2, overlap_size=0, summarizer=summarizer)


def looks(*script: Any, **given: Any) -> Any:
    return agent("root", calls(call("look")), *script, tools=[look], **given)


Shape = tuple[Callable[[], Any], Callable[[], dict[str, Any]]]
SHAPES: dict[str, Shape] = {
    "a plugin answers for the model": (lambda: agent("root", text("x")), lambda: {"plugins": [Answers("p")]}),
    "a plugin rewrites answers": (
        lambda: agent("root", turn(types.Part(text="hm"), call("look")), text("se", "cret"), tools=[look]),
        lambda: {"plugins": [Rewrites("p")]},
    ),
    "a plugin replaces events": (lambda: looks(text("se", "cret")), lambda: {"plugins": [Replaces("p")]}),
    "a plugin ends runs early": (lambda: agent("root", text("x")), lambda: {"plugins": [Closes("p")]}),
    "a plugin filters questions": (lambda: agent("root", text("x")), lambda: {"plugins": [Filters("p")]}),
    "a plugin handles model errors": (
        lambda: agent("root", [chunk(types.Part(text="half ")), ValueError("x")], text("x")),
        lambda: {"plugins": [Consoles("p")]},
    ),
    "a plugin caches tools": (lambda: looks(text("x")), lambda: {"plugins": [Caches("p")]}),
    "a plugin handles tool errors": (
        lambda: agent("root", calls(call("luck")), text("x"), tools=[flaky()]),
        lambda: {"plugins": [Handles("p")]},
    ),
    "a plugin skips agents": (lambda: agent("root", text("x")), lambda: {"plugins": [Skips("p")]}),
    "a plugin adds a last word": (lambda: looks(text("x", "y")), lambda: {"plugins": [Adds("p")]}),
    "tools are tried again": (
        lambda: agent("root", calls(call("luck")), calls(call("luck")), text("ok"), tools=[flaky()]),
        lambda: {"plugins": [ReflectAndRetryToolPlugin(max_retries=3)]},
    ),
    "the context is filtered": (
        lambda: looks(text("a"), text("b")),
        lambda: {"plugins": [ContextFilterPlugin(num_invocations_to_keep=1)]},
    ),
    "the history is summarized": (
        lambda: agent("root", text("a"), text("b"), text("c")),
        lambda: {"events_compaction_config": summarized()},
    ),
    "a schema for the answer": (
        lambda: agent("root", text('{"x":', " 1}"), output_schema=Out, output_key="out"),
        dict,
    ),
    "a schema beside tools": (
        lambda: looks(calls(call("set_model_response", {"x": 1})), output_schema=Out),
        dict,
    ),
    "a choice of the user": (
        lambda: agent(
            "root",
            calls(call("get_user_choice", {"options": ["a", "b"]})),
            text("ok"),
            tools=[get_user_choice_tool],
        ),
        dict,
    ),
    "an agent called inline": (single_turn, dict),
    "an agent with a task": (task, dict),
    "an approval": (
        lambda: agent(
            "root", calls(call("look")), text("ok"), tools=[FunctionTool(look, require_confirmation=True)]
        ),
        dict,
    ),
}


@pytest.mark.parametrize("streaming", ["sse", "none"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_client_shows_what_the_session_holds(oracle: Oracle, shape: str, streaming: Any):
    make, given = SHAPES[shape]
    stage = Stage(make(), options=AdkOptions(streaming=streaming), **given())
    for number in range(3):
        waiting = stage.interrupts if stage.runs else []
        answers = [ResumeEntry(interrupt_id=it.id, status="cancelled") for it in waiting]
        run = await stage.say(f"question {number}", **({"resume": answers} if answers else {}))
        assert run[-1].type.value == "RUN_FINISHED", run[-1]
        assert "runcast.untranslated" not in [getattr(it, "name", None) for it in run]
        await stage.check(oracle)


async def test_the_plugins_of_a_run_are_not_logged_in_every_run(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    stage = Stage(agent("root", text("hello")), plugins=[Replaces("mine")])
    for said in ("one", "two"):
        await stage.say(said)
    assert [each for each in caplog.messages if "registered" in each] == ["Plugin 'mine' registered."]


async def test_files_that_a_plugin_stores_are_shown_as_stored(oracle: Oracle):
    stage = Stage(agent("root", text("nice")), plugins=[SaveFilesAsArtifactsPlugin()])
    image = ImagePart(source=DataSource(value="aGk=", mime_type="image/png"))
    await stage.send([UserMessage(id="u1", content=[TextPart(text="see"), image])])
    await stage.check(oracle)


async def test_our_plugin_before_one_that_replaces_events_ends_with_what_is_stored(oracle: Oracle):
    events: list[Any] = []
    plugin = AdkPlugin(events.append)
    service = InMemorySessionService()
    app = App(name="app", root_agent=agent("root", text("se", "cret")), plugins=[plugin, Replaces("p")])
    runner = Runner(app=app, session_service=service)
    await service.create_session(app_name="app", user_id="u", session_id="s")
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=words("hi", "user")):
        pass
    await plugin.aflush(5)
    strict(events)
    assert oracle.pipeline(events)["ok"]
    session = await service.get_session(app_name="app", user_id="u", session_id="s")
    assert session is not None
    held = messages_from_events(session.events, root="root")
    assert fold(events).messages == held
    assert held[-1].content == "SECRET"


def test_an_event_that_the_plugin_never_saw_is_passed_over_at_the_end():
    stored: list[Event] = []
    translator = AdkTranslator(RunIds("t", "r"), root="root", session=lambda: stored, observed=True)
    events = translator.start()
    for number in (1, 2):
        stored.append(Event(id=f"e{number}", author="root", actions=EventActions(state_delta={"n": number})))
        events += translator.feed(stored[-1])
    stored.append(Event(id="other", author="root", actions=EventActions(state_delta={"m": 1})))
    events += translator.finish()
    strict(events)
    deltas: list[Any] = [each for it in events if it.type.value == "STATE_DELTA" for each in it.delta]
    assert [(each.path, each.value) for each in deltas] == [("/n", 1), ("/n", 2)]


async def test_our_plugin_before_one_that_writes_state_ends_with_what_is_stored():
    events: list[Any] = []
    plugin = AdkPlugin(events.append)
    service = InMemorySessionService()
    root = agent("root", calls(call("look")), text("done"), tools=[look], output_key="said")
    app = App(name="app", root_agent=root, plugins=[plugin, Notes("p")])
    runner = Runner(app=app, session_service=service)
    await service.create_session(app_name="app", user_id="u", session_id="s")
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=words("hi", "user")):
        pass
    await plugin.aflush(5)
    strict(events)
    session = await service.get_session(app_name="app", user_id="u", session_id="s")
    assert session is not None
    assert fold(events).state == {"said": "done", "at": session.events[-1].id}
    written = [it.delta for it in events if it.type.value == "STATE_DELTA"]
    assert len(written) == 2  # what the agent wrote, and at the end what the other plugin did


def test_a_result_in_the_users_name_is_shown_once():
    translator = AdkTranslator(RunIds("t", "r"), root="root")
    asked = types.Part(function_call=types.FunctionCall(id="c1", name="helper", args={}))
    given = types.Part(
        function_response=types.FunctionResponse(id="c1", name="helper", response={"result": "r"})
    )
    question = Event(id="e1", author="root", content=types.Content(role="model", parts=[asked]))
    result = Event(id="e2", author="user", content=types.Content(role="user", parts=[given]))
    events = [
        *translator.start(),
        *translator.feed(question),
        *translator.feed(result),
        *translator.feed(result),
    ]
    events += translator.finish()
    strict(events)
    assert [it.content for it in events if it.type.value == "TOOL_CALL_RESULT"] == ["r"]  # type: ignore[union-attr]
