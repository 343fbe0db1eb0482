"""Whose events are rewritten: an agent's by its name, or by the place where its graph began."""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    Event,
    FunctionCall,
    Interrupt,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    SubagentStartedEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)
from langchain_core.messages import AIMessage, HumanMessage

from runcast.adapters.langgraph.stream.event_redaction import AgentRedaction, RedactedTranslator
from tests.adapters.langgraph.stream.test_event_redaction import ADDRESS, rewrite

INSIDE = {"type": "custom", "ns": ("a:1", "tools:2"), "data": {}}
NOTE = CustomEvent(name="x", value=ADDRESS)


class Failing:
    """A translator that says the same at every turn."""

    def start(self) -> list[Event]:
        return [CustomEvent(name="x", value=ADDRESS)]

    def feed(self, part: Any) -> list[Event]:
        return self.start()

    def finish(self) -> list[Event]:
        return self.start()

    def fail(self, error: BaseException) -> list[Event]:
        return self.start()

    def cancel(self) -> list[Event]:
        return self.start()


def test_every_door_of_a_translator_is_rewritten():
    it = RedactedTranslator(Failing(), AgentRedaction(rewrite))
    made = [it.start(), it.feed(1), it.finish(), it.fail(ValueError()), it.cancel()]
    assert [each.model_dump()["value"] for events in made for each in events] == ["[address]"] * 5


def test_of_a_team_only_the_agents_that_redact_are_rewritten():
    redaction = AgentRedaction(named={"alice": rewrite})
    call = ToolCall(id="c", function=FunctionCall(name="find", arguments=f'{{"a": "{ADDRESS}"}}'))
    events: list[Event] = [
        SubagentStartedEvent(subagent_run_id="s", name="alice"),
        SubagentStartedEvent(subagent_run_id="below", name="carol", parent_subagent_run_id="s"),
        SubagentStartedEvent(subagent_run_id="b", name="bob"),
        ToolCallStartEvent(
            tool_call_id="c", tool_call_name="find", parent_message_id="m", subagent_run_id="s"
        ),
        ToolCallArgsEvent(tool_call_id="c", delta=f'{{"a": "{ADDRESS}"}}'),
        ToolCallEndEvent(tool_call_id="c"),
        ToolCallResultEvent(message_id="t", tool_call_id="c", content=ADDRESS),
        ToolCallResultEvent(message_id="t2", tool_call_id="d", content=ADDRESS, subagent_run_id="below"),
        ToolCallResultEvent(message_id="t3", tool_call_id="e", content=ADDRESS, subagent_run_id="b"),
        MessagesSnapshotEvent(
            messages=[
                UserMessage(id="u", content=ADDRESS),
                AssistantMessage(id="n", name="alice", content=ADDRESS, tool_calls=[call]),
                ToolMessage(id="o", tool_call_id="c", content=ADDRESS),
                ToolMessage(id="t2", tool_call_id="d", content=ADDRESS),
                AssistantMessage(id="p", name="bob", content=ADDRESS),
            ]
        ),
    ]
    seen = redaction.events(events)
    args = [each.delta for each in seen if isinstance(each, ToolCallArgsEvent)]
    results = [each.content for each in seen if isinstance(each, ToolCallResultEvent)]
    assert (args, results) == (['{"a": "[address]"}'], ["[address]", "[address]", ADDRESS])
    *_, snapshot = seen
    assert isinstance(snapshot, MessagesSnapshotEvent)
    texts = [each.content for each in snapshot.messages]
    assert texts == [ADDRESS, "[address]", "[address]", "[address]", ADDRESS]
    made = snapshot.messages[1]
    assert isinstance(made, AssistantMessage)
    assert made.tool_calls is not None
    assert made.tool_calls[0].function.arguments == '{"a": "[address]"}'
    it = RedactedTranslator(Failing(), AgentRedaction(named={"alice": rewrite}))
    assert [each.model_dump()["value"] for each in it.start()] == [ADDRESS]


def place(*segments: str) -> AgentRedaction:
    redaction = AgentRedaction()
    redaction.begins(segments, rewrite)
    return redaction


def test_what_is_emitted_at_the_place_of_a_graph_is_rewritten():
    redaction = place("a:1")
    for ns, found in [(("a:1",), "[address]"), (("a:2",), ADDRESS), ((), ADDRESS), (("a",), "[address]")]:
        (event,) = redaction.events([NOTE], {**INSIDE, "ns": ns})
        assert event.model_dump()["value"] == found


def test_a_place_is_over_with_its_task():
    redaction = place("a:1")
    end = {"type": "tasks", "ns": (), "data": {"id": "1", "name": "a", "interrupts": []}}
    assert redaction.events([], {**end, "data": {**end["data"], "triggers": ()}}) == []
    assert redaction.events([NOTE], INSIDE) != [NOTE]
    assert redaction.events([], end) == []
    assert redaction.events([NOTE], INSIDE) == [NOTE]


def test_the_graph_itself_is_no_agent_inside():
    redaction = AgentRedaction(rewrite)
    redaction.begins((), rewrite)
    assert [each.model_dump()["value"] for each in redaction.events([NOTE])] == ["[address]"]


def test_what_a_node_returns_that_runs_a_graph_is_the_graph_s():
    made = AIMessage("so", id="m", tool_calls=[{"name": "find", "args": {}, "id": "c"}])
    said = {"langgraph_checkpoint_ns": "a:1"}
    update = {"a": [{"messages": [HumanMessage(ADDRESS, id="u"), made], "note": 1}], "b": {"messages": made}}
    for part in (
        {"type": "updates", "ns": (), "data": update},
        {"type": "messages", "ns": (), "data": (made, said)},
    ):
        redaction = place("a:1")
        redaction.events([], part)
        result = ToolCallResultEvent(message_id="t", tool_call_id="c", content=ADDRESS)
        other = ToolCallResultEvent(message_id="t2", tool_call_id="d", content=ADDRESS)
        seen = redaction.events([result, other])
        assert [each.model_dump()["content"] for each in seen] == ["[address]", ADDRESS]


def asking(*interrupts: Interrupt) -> Event:
    outcome = RunFinishedInterruptOutcome(type="interrupt", interrupts=list(interrupts))
    return RunFinishedEvent(thread_id="t", run_id="r", outcome=outcome)


def test_a_question_is_rewritten_that_a_graph_asks_at_its_place_or_about_its_call():
    redaction = place("a:1")
    asked = {"id": "9", "name": "tools", "interrupts": [{"id": "i"}]}
    redaction.events([], {"type": "tasks", "ns": ("a:1",), "data": asked})
    redaction.events([ToolCallStartEvent(tool_call_id="c", tool_call_name="find")], INSIDE)
    questions = (
        Interrupt(id="i", reason="x", message=ADDRESS),
        Interrupt(id="j", reason="x", message=ADDRESS, tool_call_id="c"),
        Interrupt(id="k", reason="x", message=ADDRESS),
    )
    (seen,) = redaction.events([asking(*questions)])
    assert isinstance(seen, RunFinishedEvent)
    assert isinstance(seen.outcome, RunFinishedInterruptOutcome)
    assert [each.message for each in seen.outcome.interrupts] == ["[address]", "[address]", ADDRESS]


def test_an_error_holds_what_any_agent_wrote():
    (seen,) = place("a:1").events([RunErrorEvent(message=ADDRESS)])
    assert seen.model_dump()["message"] == "[address]"


def stated(redaction: AgentRedaction, *messages: Any) -> list[Any]:
    (seen,) = redaction.events([MessagesSnapshotEvent(messages=list(messages))])
    assert isinstance(seen, MessagesSnapshotEvent)
    return [each.content for each in seen.messages]


def test_of_messages_without_a_name_those_stay_that_the_client_holds_or_another_agent_emitted():
    mine, other = AssistantMessage(id="m", content=ADDRESS), AssistantMessage(id="n", content=ADDRESS)
    user = UserMessage(id="u", content=ADDRESS)
    assert stated(AgentRedaction(unnamed=[rewrite]), user, mine) == [ADDRESS, "[address]"]
    changed = AssistantMessage(id="n", content="else")
    redaction = AgentRedaction(unnamed=[rewrite], held=[mine, changed])
    assert stated(redaction, mine, other) == [ADDRESS, "[address]"]
    redaction = AgentRedaction(unnamed=[rewrite])
    redaction.events([TextMessageStartEvent(message_id="n"), TextMessageEndEvent(message_id="n")])
    assert stated(redaction, mine, other) == ["[address]", ADDRESS]


def test_without_a_rule_events_stay_the_same():
    redaction = AgentRedaction()
    assert redaction.idle
    assert redaction.events([NOTE], INSIDE) == [NOTE]
    assert RedactedTranslator(Failing(), redaction).feed(INSIDE) == [NOTE]
