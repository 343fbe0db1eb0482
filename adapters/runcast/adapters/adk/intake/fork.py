"""A client's history that leaves the session's: an edited message, or the same message asked again.

The session is undone before the invocation of the first user message that the client replaced, and the client's
messages run instead. The rewind names them, so that a fork goes on when its process dies before they are stored.
Reads nothing and writes nothing: `Plan` carries the result to the adapter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag_ui.core import Message, UserMessage

from runcast.adapters.adk.intake.session_conversation import MARK, user_invocations
from runcast.slim.values.type_guards import as_mapping

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


def rewind_mark(messages: Sequence[Message]) -> dict[str, Any]:
    """The custom metadata of a rewind: the messages that run instead."""
    return {MARK: {"again": [message.id for message in messages]}}


def torn_fork(sent: Sequence[Message], events: Sequence[Event]) -> Fork | None:
    """The fork whose rewind is the last that a session holds: its messages were never stored."""
    before = events[-1].actions.rewind_before_invocation_id if events else None
    if not before:
        return None
    again = as_mapping(as_mapping(events[-1].custom_metadata).get(MARK)).get("again") or ()
    messages = [it for it in sent if isinstance(it, UserMessage) and it.id in again]
    return Fork(before, messages) if messages else None


def _last_shared(sent: Sequence[Message], held: Sequence[Message]) -> int | None:
    """The last place in the session of a message that the client holds, wherever it shows the message."""
    known = {message.id for message in sent}
    return next((at for at in reversed(range(len(held))) if held[at].id in known), None)
