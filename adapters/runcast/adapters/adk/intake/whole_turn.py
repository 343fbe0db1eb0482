"""Whether there is anything to resume in the turn that a dead worker left.

ADK stores an agent's answer, and after it an event that ends the turn: between the two, a resumed invocation asks the
model again and answers twice. One that waits for the user must not be resumed without the answer: a sequence goes past
the question. Does not know runners and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.interrupts import open_interrupts
from runcast.adapters.adk.stream.complete_event import parts_of

if TYPE_CHECKING:
    from google.adk.events.event import Event


def is_whole(events: Sequence[Event], invocation: str, root: str | None) -> bool:
    """Whether this invocation waits for answers, or has the answer of an LLM agent: `root`, or one it transferred to."""
    if any(open_interrupts(events)):
        return True
    speakers = {event.actions.transfer_to_agent for event in events} | {root}
    said = [event for event in events if event.invocation_id == invocation and parts_of(event)]
    return root is not None and bool(said) and said[-1].author in speakers and _is_answer(said[-1])


def unnoted(events: Sequence[Event], invocation: str, agents: Iterable[Any]) -> list[Event]:
    """Answers of this invocation behind which ADK's note is missing that their agent has ended.

    With the note ADK goes on behind the agent; without, it asks the agent's model again.
    """
    models = {
        agent.name for agent in agents if hasattr(agent, "disallow_transfer_to_parent")
    }  # ADK's own test
    latest: dict[tuple[str, str | None], Event] = {}
    for event in events:
        if event.invocation_id == invocation and (parts_of(event) or event.actions.end_of_agent):
            latest[event.author, event.branch] = event
    found = [event for event in latest.values() if event.author in models]
    return [event for event in found if parts_of(event) and _is_answer(event)]


def _is_answer(event: Event) -> bool:
    """Whether an agent's turn ends with this event: code that was written is still executed."""
    executes = any(part.executable_code or part.code_execution_result for part in parts_of(event))
    return not executes and event.is_final_response()
