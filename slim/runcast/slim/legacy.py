"""Older dialects of AG-UI, said in 1.0.

Producers before 1.0, drafts and tutorials have written events that 1.0 spells differently. Each rule turns parsed JSON
into the parsed JSON that 1.0 would have had; where the official client translates the same shape, the rules agree with
it. Nothing is validated: what no rule understands is handed on for the reader to refuse.

Knows shapes, and what a stream has said so far; does not know bytes, models, clocks or chance. An id that the older
event did not carry is derived from the run's id and a count, so the same stream always gives the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from runcast.slim.legacy_messages import upgraded_input
from runcast.slim.legacy_rules import LONE_RULES
from runcast.slim.legacy_spelling import respelled
from runcast.slim.shapes import EVENT_SHAPES, INPUT_SHAPE
from runcast.slim.wire_json import is_object

__all__ = ["Upgrader", "upgrade", "upgrade_input"]

Json = dict[str, Any]

# Which kind of block an event opens or closes, and the key that says which one. Content continues one.
_OPENS: Final = {
    "TEXT_MESSAGE_START": ("text", "messageId"),
    "REASONING_MESSAGE_START": ("reasoning", "messageId"),
    "TOOL_CALL_START": ("call", "toolCallId"),
}
_CLOSES: Final = {
    "TEXT_MESSAGE_END": ("text", "messageId"),
    "REASONING_MESSAGE_END": ("reasoning", "messageId"),
    "TOOL_CALL_END": ("call", "toolCallId"),
}
_CONTINUES: Final = {
    "TEXT_MESSAGE_CONTENT": ("text", "messageId"),
    "REASONING_MESSAGE_CONTENT": ("reasoning", "messageId"),
    "TOOL_CALL_ARGS": ("call", "toolCallId"),
    **_CLOSES,
}


def upgrade(found: Mapping[str, Any]) -> Json:
    """One event as 1.0 says it, judged alone: where its neighbours would have told an id, it is the first one."""
    return Upgrader().upgrade(found)


def upgrade_input(found: Mapping[str, Any]) -> Json:
    """A run's input as 1.0 says it."""
    given = respelled(found, INPUT_SHAPE)
    return respelled(upgraded_input(given, None, given.get("runId")), INPUT_SHAPE)


class Upgrader:
    """Turns the events of one stream, in order, and remembers what later ones lean on. One per stream."""

    def __init__(self, *, thread_id: str | None = None) -> None:
        self.thread_id = thread_id  # of starts and ends of runs that name no thread
        self.run_id: str | None = None  # of the last run that started
        self._span: str | None = None  # the id that the open THINKING_START was given
        self._thought: str | None = None  # the id that the open THINKING_TEXT_MESSAGE_START was given
        self._counts = {"thinking": 0, "thought": 0}  # ids given so far
        self._open: dict[str, set[str]] = {"text": set(), "reasoning": set(), "call": set()}  # ids, by kind

    def upgrade(self, found: Mapping[str, Any]) -> Json:
        """The event as 1.0 says it; what was given is left as it was."""
        tag = _text(found, "type")
        shape = EVENT_SHAPES.get(tag)
        event = dict(found) if shape is None else respelled(found, shape)
        if tag in LONE_RULES:
            event = LONE_RULES[tag](event)
        elif tag in self._rules:
            event = self._rules[tag](self, event)
        shape = EVENT_SHAPES.get(_text(event, "type"))
        if shape is not None:
            event = respelled(event, shape)  # once more, for what a rule has uncovered
            self.note(event)
        return event

    def note(self, event: Mapping[str, Any]) -> None:
        """Remember what an event of 1.0 tells the ones after it."""
        tag = event["type"]
        if tag == "RUN_STARTED":
            self.thread_id = _text(event, "threadId") or self.thread_id
            self.run_id = _text(event, "runId") or self.run_id
            self._open = {kind: set() for kind in self._open}
        elif tag in _OPENS:
            kind, key = _OPENS[tag]
            self._open[kind].add(_text(event, key))
        elif tag in _CLOSES:
            kind, key = _CLOSES[tag]
            self._open[kind].discard(_text(event, key))

    def _new(self, what: str) -> str:
        self._counts[what] += 1
        name = f"{what}:{self._counts[what]}"
        return name if self.run_id is None else f"{self.run_id}:{name}"

    def _thinking_start(self, event: Json) -> Json:
        # REASONING_START has no room for the title; the client drops it, a log may not.
        self._span = self._new("thinking")
        title = event.pop("title", None)
        if title is not None:
            event["metadata"] = _with(event.get("metadata"), "title", title)
        return {**event, "type": "REASONING_START", "messageId": self._span}

    def _thinking_end(self, event: Json) -> Json:
        span, self._span = self._span or self._new("thinking"), None
        return {**event, "type": "REASONING_END", "messageId": span}

    def _thought_start(self, event: Json) -> Json:
        self._thought = self._new("thought")
        return {**event, "type": "REASONING_MESSAGE_START", "messageId": self._thought, "role": "reasoning"}

    def _thought_content(self, event: Json) -> Json:
        return {
            **event,
            "type": "REASONING_MESSAGE_CONTENT",
            "messageId": self._thought or self._new("thought"),
        }

    def _thought_end(self, event: Json) -> Json:
        thought, self._thought = self._thought or self._new("thought"), None
        return {**event, "type": "REASONING_MESSAGE_END", "messageId": thought}

    def _continuation(self, event: Json) -> Json:
        """A delta or an end that names nothing means what is open, if that is one thing."""
        kind, key = _CONTINUES[event["type"]]
        if key not in event and len(self._open[kind]) == 1:
            (event[key],) = self._open[kind]
        return event

    def _run_started(self, event: Json) -> Json:
        given = event.get("input")
        if is_object(given):
            event = {**{key: given[key] for key in ("threadId", "runId") if key in given}, **event}
        event = self._in_thread(event)
        if is_object(given):
            event["input"] = upgraded_input(given, event.get("threadId"), event.get("runId"))
        return event

    def _run_finished(self, event: Json) -> Json:
        """The outcome was once a word, with an `interrupt` beside it."""
        event = self._in_thread(event)
        if self.run_id is not None:
            event.setdefault("runId", self.run_id)
        outcome, beside = event.get("outcome"), event.get("interrupt")
        if outcome == "interrupt" or (outcome is None and is_object(beside)):
            event.pop("interrupt", None)
            event["outcome"] = {"type": "interrupt", "interrupts": [_interrupt(beside, event.get("runId"))]}
        elif outcome in ("success", "cancelled"):
            event["outcome"] = {"type": outcome}
        return event

    def _in_thread(self, event: Json) -> Json:
        if self.thread_id is not None:
            event.setdefault("threadId", self.thread_id)
        return event

    _rules: ClassVar[Mapping[str, Callable[[Any, Json], Json]]] = {
        "THINKING_START": _thinking_start,
        "THINKING_END": _thinking_end,
        "THINKING_TEXT_MESSAGE_START": _thought_start,
        "THINKING_TEXT_MESSAGE_CONTENT": _thought_content,
        "THINKING_TEXT_MESSAGE_END": _thought_end,
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_finished,
        **dict.fromkeys(_CONTINUES, _continuation),
    }


def _interrupt(given: Any, run_id: Any) -> Json:
    """The draft's interrupt had an id and a payload; in 1.0 what applications add lives under `metadata`."""
    said = {key: value for key, value in (given if is_object(given) else {}).items() if value is not None}
    interrupt = {"id": f"{run_id}:interrupt", "reason": "interrupt", **said}
    if "payload" in interrupt:
        interrupt["metadata"] = _with(interrupt.get("metadata"), "payload", interrupt.pop("payload"))
    return interrupt


def _with(metadata: Any, key: str, value: Any) -> Any:
    """Metadata with one key more; what is no object is left for the reader to refuse."""
    if metadata is None:
        return {key: value}
    return {key: value, **metadata} if is_object(metadata) else metadata


def _text(event: Mapping[str, Any], key: str) -> str:
    found = event.get(key)
    return found if isinstance(found, str) else ""
