"""What of a shown conversation the graph stands by when a run begins, and what it will say again or never said.

Decides by the graph's own record: the messages its state holds, and which tasks are done (`places`). A message that
nobody can place stays: it may be an application's own. Of what the client did not get to see, or in part, the graph's
words are given instead. Reads nothing: state and levels are handed in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import Message

from runcast.adapters.langgraph.places import PLACE, Level, is_done, stops
from runcast.adapters.shown import half_of


@dataclass(frozen=True, slots=True)
class Standing:
    """What is shown, what of it goes, and what is said instead."""

    shown: Sequence[Message] | None = None  # None: nobody knows what is shown
    gone: Sequence[str] = ()
    instead: Sequence[Message] = field(default_factory=list[Message])


def place_of(message: Message) -> str | None:
    """Where this message was said, as its adapter noted it."""
    calls: Sequence[Any] = getattr(message, "tool_calls", None) or ()
    for noted in (message, *calls):
        place = (noted.metadata or {}).get(PLACE)
        if isinstance(place, str):
            return place
    return None


def doubtful(shown: Sequence[Message], held: Collection[str], root: Level) -> dict[str, str]:
    """The shown messages that the state does not hold and whose task is not known to be done, with their places."""
    placed = {message.id: place_of(message) for message in shown if message.id not in held}
    return {
        key: place
        for key, place in placed.items()
        if place is not None and not is_done(stops(place)[:1], {"": root})
    }


def standing(
    shown: Sequence[Message],
    held: Collection[str],
    turn: Mapping[str, Message],
    given: Mapping[str, Message],
    levels: Mapping[str, Level],
) -> Standing:
    """Judge what is shown.

    The state holds the messages `held`; those of its latest turn are `turn`, and `given` those that done tasks gave.
    """
    known = {message.id for message in shown}
    gone = [
        key
        for key, place in doubtful(shown, held, levels[""]).items()
        if key not in given and not is_done(stops(place), levels)
    ]
    truth = {**given, **turn}
    halves = [truth[each.id] for each in shown if each.id in truth and half_of(each, truth[each.id])]
    return Standing(shown, gone, [*halves, *_unseen(shown, list(turn.values()), known)])


def _unseen(shown: Sequence[Message], turn: Sequence[Message], known: set[str]) -> list[Message]:
    """What the agent said in the latest turn, and nobody saw: the log died before."""
    if not turn or turn[0].role != "user" or turn[0].id not in known:
        return []
    said = {_words(message) for message in shown}
    return [
        message
        for message in turn[1:]
        if message.id not in known and message.role in ("assistant", "tool") and _words(message) not in said
    ]


def _words(message: Message) -> Any:
    calls: Sequence[Any] = getattr(message, "tool_calls", None) or ()
    return message.role, str(message.content or ""), tuple(call.id for call in calls)


def recalled_anew(history: Sequence[Message], messages: Sequence[Message]) -> Standing:
    """Where the graph holds nothing of the thread: what it is not told again was half said, and goes."""
    told = {message.id: message for message in messages}
    said = [message for message in history if message.role in ("assistant", "tool")]
    gone = [message.id for message in said if message.id not in told]
    return Standing(history, gone, [told[each.id] for each in said if told.get(each.id, each) != each])
