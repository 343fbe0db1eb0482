"""The conversation as the graph's state holds it, watched for what streaming cannot say.

Knows the list in the messages channel, handed over by reference: kept messages are the same objects. A message
removed, or one whose words were changed under its id, needs a MESSAGES_SNAPSHOT; an appended one does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from runcast.adapters.langgraph.speech import same_words


class Transcript:
    """The root graph's conversation, step by step."""

    def __init__(self) -> None:
        self.messages: list[Any] | None = None  # None until the graph shows one
        self.news: list[Any] = []  # what the latest values hold and the ones before did not
        self._base: list[Any] | None = None  # what was there before any values
        self._told: dict[str, Any] = {}  # id -> the final message a model gave, until the state holds it

    def told(self, message: Any) -> None:
        """A model's final message was streamed in these words."""
        self._told[message.id] = message

    def begins(self, messages: list[Any] | None) -> None:
        """What was there at the start, for a graph that shows its conversation only after a step."""
        if self.messages is None and self._base is None and messages is not None:
            self._base = list(messages)

    def values(self, messages: list[Any]) -> bool:
        """The conversation after a step; True when the client cannot know it from what was streamed.

        The first one is history, unless it is known with what the graph began.
        """
        before, self.messages = self.messages, list(messages)
        if before is None:
            self.news = [] if self._base is None else _news(self._base, messages)
            return False
        kept = len(messages) >= len(before) and all(map(is_, before, messages))
        grown = kept or _same_again(before, messages)
        self.news = messages[len(before) :] if grown else _news(before, messages)
        new = self.news if kept else [message for message in messages if message.id in self._told]
        rewritten = any(self._reworded(message) for message in new)
        return rewritten or not grown

    def _reworded(self, message: Any) -> bool:
        told = self._told.pop(message.id, None)
        return told is not None and message.type == "ai" and not same_words(told, message)

    def open_calls(self) -> list[Mapping[str, Any]]:
        """Tool calls since the last human message that have no answer, in order."""
        return open_calls(self.messages or ())


def open_calls(messages: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Tool calls since the last human message that have no answer, in order. Costs what that turn is long."""
    done: set[str] = set()
    found: list[Mapping[str, Any]] = []
    for message in reversed(messages):
        if message.type == "human":
            break
        if message.type == "tool":
            done.add(message.tool_call_id)
        calls = getattr(message, "tool_calls", None) or ()
        found[:0] = [call for call in calls if call["id"] not in done]
    return found


def _news(before: list[Any], after: list[Any]) -> list[Any]:
    """The messages that were not there before, neither as this object nor under this id."""
    objects, ids = set(map(id, before)), {message.id for message in before}
    return [
        message
        for message in after
        if id(message) not in objects and (message.id is None or message.id not in ids)
    ]


def _same_again(before: list[Any], after: list[Any]) -> bool:
    """Whether the old messages are still there in old order and old words, though as other objects."""
    if len(after) < len(before):
        return False
    return all(
        old is new
        or (
            old.id == new.id
            and old.type == new.type
            and old.content == new.content
            and _calls(old) == _calls(new)
        )
        for old, new in zip(before, after, strict=False)
    )


def _calls(message: Any) -> Any:
    return getattr(message, "tool_calls", None)
