"""What a stopped run stored and its client never received, brought where it belongs when the next run begins."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Message, RunAgentInput, UserMessage
from google.adk.events.event import Event
from google.genai import types

from runcast.adapters.adk import AdkOptions, messages_from_events
from runcast.adapters.adk.intake.corrections import corrections
from tests.adapters.adk.fakes import call
from tests.adapters.harness import wire
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


def event(name: str, author: str, *parts: types.Part) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=list(parts))
    return Event(id=name, author=author, invocation_id="i", content=content)


ASKED = event("u1", "user", types.Part(text="hi"))
THINKS = event("e1", "leaf", types.Part(text="hm", thought=True), call("look", {}, id="c1"))
ABORTED = types.FunctionResponse(id="c1", name="look", response={"error": "stopped"})
ANSWERED = event("r1", "leaf", types.Part(function_response=ABORTED))
SESSION = [ASKED, THINKS, ANSWERED]
NEXT = UserMessage(id="u2", content="on")


def view(oracle: Oracle, shown: list[Message]) -> Any:
    """The client after the corrections of a run that begins with these messages."""
    given = RunAgentInput(thread_id="t", run_id="r", messages=shown)
    events = corrections(given, None, SESSION, "root", AdkOptions())
    answer = oracle.apply(events, messages=[wire(it) for it in shown])
    assert answer["ok"], answer
    return answer["messages"]


HELD = messages_from_events(SESSION, root="root")


@pytest.mark.parametrize("known", range(1, len(HELD) + 1))
def test_it_stands_before_the_message_that_followed_the_stop(oracle: Oracle, known: int):
    reasoning, called = HELD[1], HELD[2]
    shown = [[HELD[0]], [HELD[0], reasoning], [HELD[0], reasoning, called], HELD][known - 1]
    found = view(oracle, [*shown, NEXT])
    assert [it["id"] for it in found] == [*(it.id for it in HELD), "u2"]
    assert {it["subagentRunId"] for it in found if it["role"] != "user"} == {"leaf:e1"}


def test_it_stands_at_the_end_without_a_message_behind_it(oracle: Oracle):
    assert [it["id"] for it in view(oracle, [HELD[0]])] == [it.id for it in HELD]
