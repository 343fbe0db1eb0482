"""A client's history that leaves the session's: an edited message, or the same message asked again.

The session is undone before the invocation of the first user message that the client replaced, and the client's
messages run instead. Reads nothing and writes nothing: `Plan` carries the result to the adapter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ag_ui.core import Message, UserMessage

from runcast.adapters.adk.intake.session_conversation import user_invocations

if TYPE_CHECKING:
    from google.adk.events.event import Event


@dataclass(frozen=True, slots=True)
class Fork:
    """The invocation to undo, with all after it, and the user messages to run instead."""

    before: str
    messages: list[UserMessage]


def fork(
    sent: Sequence[Message],
    news: Sequence[Message],
    held: Sequence[Message],
    live: Sequence[Event],
    *,
    anew: bool = False,
) -> Fork | None:
    """Compare the client's messages with those of the session (`held`); None when nothing is replaced.

    With `anew` all of the session is.
    """
    at = -1 if anew else _last_shared(sent, held)
    if at is None:
        return None
    invocations = user_invocations(live)
    if any(isinstance(message, UserMessage) for message in news):
        replaced = next((it.id for it in held[at + 1 :] if it.role == "user"), None)
    else:
        replaced = held[at].id if not news and held[at].role == "user" else None
    if replaced is None:
        return None
    before = invocations[replaced]
    new = {message.id for message in news}
    again = [
        it
        for it in sent
        if isinstance(it, UserMessage) and (it.id in new or invocations.get(it.id) == before)
    ]
    return Fork(before, again)


def _last_shared(sent: Sequence[Message], held: Sequence[Message]) -> int | None:
    """The place in the session of the last message that both hold."""
    places = {message.id: at for at, message in enumerate(held)}
    return next((places[it.id] for it in reversed(sent) if it.id in places), None)
