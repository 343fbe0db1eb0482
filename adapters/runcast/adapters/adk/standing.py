"""What of a shown conversation a session stands by when a run begins.

The session keeps what is complete: a partial event is a hint for the screen and nothing more, in ADK's own words. So
of the latest turn that a client shows, what the session does not hold was said by an attempt that broke off, and goes;
what it holds in full and the client in part, or not at all, is said by the session's words. Earlier turns are left as
they are. Reads nothing: the session's events are handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ag_ui.core import Event as AgEvent
from ag_ui.core import Message, RunAgentInput

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.adk.conversation import live_events, messages_from_events
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.shown import Shown, half_of

if TYPE_CHECKING:
    from google.adk.events.event import Event

SPOKEN = frozenset({"assistant", "tool", "reasoning"})


def corrections(
    input: RunAgentInput,
    resume: ResumePoint | None,
    events: Sequence[Event],
    root: str | None,
    options: AdkOptions,
) -> list[AgEvent]:
    """The events that make the client show what the session holds; none where it does, or where nobody knows."""
    history: Sequence[Message] | None = getattr(resume, "history", None)
    shown = list(input.messages if history is None else history)
    held = messages_from_events(live_events(events), root=root, options=options)
    known = {message.id for message in shown}
    asked = next((message.id for message in reversed(held) if message.role == "user"), None)
    at = next((n for n, message in enumerate(shown) if message.id == asked), None)
    if asked is None or at is None:
        return []  # a client that tells its news alone says nothing of what it shows
    turn = {message.id: message for message in held[[each.id for each in held].index(asked) + 1 :]}
    after = shown[at + 1 :]
    end = next((n for n, message in enumerate(after) if message.role == "user"), len(after))
    said = [message for message in after[:end] if message.role in SPOKEN]
    answers = {it.tool_call_id for it in held if it.role == "tool"}
    gone = [
        it.id
        for it in said
        if it.id not in turn and not (it.role == "tool" and it.tool_call_id not in answers)
    ]
    halves = [turn[it.id] for it in said if it.id in turn and half_of(it, turn[it.id])]
    unseen = [it for it in turn.values() if it.id not in known and it.role != "user"]
    if not (gone or halves or unseen):
        return []
    return Shown(shown).restate(gone, [*halves, *unseen])
