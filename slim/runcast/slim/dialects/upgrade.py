"""Upgrades events of older AG-UI dialects to 1.0.

Producers before 1.0, drafts and tutorials have written events that 1.0 spells differently. Each rule turns parsed JSON
into the parsed JSON of 1.0; where the official client translates the same shape, the rules agree with it. Nothing is
validated: the reader refuses what no rule understands.

Knows shapes and the events before; does not know bytes, models, clocks or chance. An id that an older event did not
carry is derived from the run's id and a count, so the same stream always gives the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from pydantic.alias_generators import to_camel

from runcast.slim.dialects.spelling import respelled
from runcast.slim.dialects.upgrade_messages import upgraded_input
from runcast.slim.dialects.upgrade_rules import LONE_RULES
from runcast.slim.values.lifecycles import STREAMS, wire_type
from runcast.slim.values.protocol_shapes import EVENT_SHAPES, INPUT_SHAPE
from runcast.slim.values.type_guards import as_object, is_object

Json = dict[str, Any]

# The wire's type and id key of each event that opens, continues or ends a stream.
_OPENS: Final = {wire_type(life.start): (life.name, to_camel(life.id_field)) for life in STREAMS}
_CLOSES: Final = {wire_type(life.end): (life.name, to_camel(life.id_field)) for life in STREAMS}
_CONTINUES: Final = {
    **{wire_type(life.content): (life.name, to_camel(life.id_field)) for life in STREAMS if life.content},
    **_CLOSES,
}


def upgrade(found: Mapping[str, Any]) -> Json:
    """One event in 1.0, without its stream: an id that depends on earlier events is the first one."""
    return Upgrader().upgrade(found)


def upgrade_input(found: Mapping[str, Any]) -> Json:
    """A run's input in 1.0."""
    given = respelled(found, INPUT_SHAPE)
    return respelled(upgraded_input(given, None, given.get("runId")), INPUT_SHAPE)


class Upgrader:
    """Upgrades the events of one stream, in order, and remembers what later ones depend on. One per stream."""

    def __init__(self, *, thread_id: str | None = None) -> None:
        self.thread_id = thread_id  # of starts and ends of runs that name no thread
        self.run_id: str | None = None  # of the last run that started
        self._span: str | None = None  # the id that the open THINKING_START was given
        self._thought: str | None = None  # the id that the open THINKING_TEXT_MESSAGE_START was given
        self._counts = {"thinking": 0, "thought": 0}  # ids given so far
        self._open: dict[str, set[str]] = {life.name: set() for life in STREAMS}  # ids, by kind

    def upgrade(self, found: Mapping[str, Any]) -> Json:
        """The event in 1.0; the argument is not changed."""
        tag = _text(found, "type")
        shape = EVENT_SHAPES.get(tag)
        event = dict(found) if shape is None else respelled(found, shape)
        if tag in LONE_RULES:
            event = LONE_RULES[tag](event)
        elif tag in self._rules:
            event = self._rules[tag](self, event)
        shape = EVENT_SHAPES.get(_text(event, "type"))
        if shape is not None:
            event = respelled(event, shape)  # again, for keys that a rule has moved
            self.note(event)
        return event

    def note(self, event: Mapping[str, Any]) -> None:
        """Remember what later events need of an event of 1.0."""
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

    def _new(self, kind: str) -> str:
        self._counts[kind] += 1
        name = f"{kind}:{self._counts[kind]}"
        return name if self.run_id is None else f"{self.run_id}:{name}"

    def _thinking_start(self, event: Json) -> Json:
        # REASONING_START has no field for the title; the client drops it, a log may not.
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
        """A delta or an end without an id belongs to the open stream, if there is only one."""
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
        """Drafts had the outcome as a word, with an `interrupt` beside it."""
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
    """The draft's interrupt had an id and a payload; 1.0 keeps what applications add under `metadata`."""
    fields = {key: value for key, value in as_object(given).items() if value is not None}
    interrupt = {"id": f"{run_id}:interrupt", "reason": "interrupt", **fields}
    if "payload" in interrupt:
        interrupt["metadata"] = _with(interrupt.get("metadata"), "payload", interrupt.pop("payload"))
    return interrupt


def _with(metadata: Any, key: str, value: Any) -> Any:
    """Metadata with one more key; a value that is no object is left for the reader to refuse."""
    if metadata is None:
        return {key: value}
    return {key: value, **metadata} if is_object(metadata) else metadata


def _text(event: Mapping[str, Any], key: str) -> str:
    found = event.get(key)
    return found if isinstance(found, str) else ""
