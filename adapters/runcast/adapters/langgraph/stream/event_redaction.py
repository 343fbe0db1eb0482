"""A run's events without what its graph's middleware keeps from streams.

Middleware may declare that what a graph streams is rewritten (`PIIMiddleware(apply_to_output=True)`). It rewrites less of
the state: arguments and results of tools stay there as they are. Here it holds for the text of every event: live, corrected,
asked, failed or raw. Knows which fields of events hold text. Does not know what is rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ag_ui.core import Event, Message
from pydantic import BaseModel

from runcast.adapters.translator import Translator
from runcast.slim.values.type_guards import is_list, is_object

Rewrite = Callable[[str], str]
LOOKBACK = 128  # characters of a text that wait for what follows them: an address in two pieces is one
TEXTS = frozenset(("content", "snapshot", "value", "result", "message", "event", "description"))
PATCHES = frozenset(("delta", "patch"))
OWN = ("subagent_run_id", "message_id", "tool_call_id")  # ids that an event of an agent gives to it
OWNERS = (*OWN, "parent_subagent_run_id", "parent_message_id")


class RedactedTranslator:
    """A translator with its events rewritten: all of them, or those of the agents inside that are `named`."""

    def __init__(
        self, translator: Translator[Any], rewrite: Rewrite | None, named: Mapping[str, Rewrite] | None = None
    ) -> None:
        self._translator = translator
        self._redaction = AgentRedaction(named or {}) if rewrite is None else EventRedaction(rewrite)

    def start(self) -> list[Event]:
        """The run begins."""
        return self._redaction.events(self._translator.start())

    def feed(self, part: Any) -> list[Event]:
        """One part."""
        return self._redaction.events(self._translator.feed(part))

    def finish(self) -> list[Event]:
        """The graph ended, or waits for answers."""
        return self._redaction.events(self._translator.finish())

    def fail(self, error: BaseException) -> list[Event]:
        """The graph raised."""
        return self._redaction.events(self._translator.fail(error))

    def cancel(self) -> list[Event]:
        """The run was stopped."""
        return self._redaction.events(self._translator.cancel())


class EventRedaction:
    """The events of one run, rewritten in the order in which they come."""

    def __init__(self, rewrite: Rewrite) -> None:
        self._rewrite = rewrite
        self._texts: dict[str, tuple[str, Any]] = {}  # message -> its text that waits, and its latest event
        self._args: dict[str, tuple[str, Any]] = {}  # call -> its arguments so far, likewise

    def events(self, events: Sequence[Event]) -> list[Event]:
        """These events as they may be seen. The latest of a text waits for more of it, or for its end."""
        return [each for event in events for each in self._event(event)]

    def _event(self, event: Any) -> list[Event]:
        match event.type:
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                return self._text(event)
            case "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END":
                return [*_rest(self._texts, event.message_id, self._rewrite), event]
            case "TOOL_CALL_ARGS":
                held, _ = self._args.get(event.tool_call_id, ("", None))
                self._args[event.tool_call_id] = held + event.delta, event
                return []
            case "TOOL_CALL_END":
                return [*_rest(self._args, event.tool_call_id, partial(rewritten_json, self._rewrite)), event]
            case "MESSAGES_SNAPSHOT":
                messages = [self.message(each) for each in event.messages]
                return [event.model_copy(update={"messages": messages})]
            case _:
                return [_whole(event, self._rewrite)]

    def message(self, message: Message) -> Any:
        """A message of a snapshot."""
        return _message(self._rewrite, self._so_far(message))

    def _text(self, event: Any) -> list[Event]:
        held, _ = self._texts.get(event.message_id, ("", None))
        raw = held + event.delta
        at = max(len(raw) - LOOKBACK, 0)
        if self._rewrite(raw[:at]) + self._rewrite(raw[at:]) != self._rewrite(raw):
            at = 0  # the cut would go through something
        self._texts[event.message_id] = raw[at:], event
        return [event.model_copy(update={"delta": self._rewrite(raw[:at])})] if at else []

    def _so_far(self, message: Any) -> Any:
        """A message that is still streamed, without what waits: that comes behind the snapshot."""
        text, _ = self._texts.get(message.id, ("", None))
        if text and isinstance(message.content, str):
            return message.model_copy(update={"content": message.content.removesuffix(text)})
        if any(call.id in self._args for call in getattr(message, "tool_calls", None) or ()):
            return _with_arguments(message, lambda call: self._begun(call.id, call.function.arguments))
        return message

    def _begun(self, call_id: str, arguments: str) -> str:
        return arguments.removesuffix(self._args.get(call_id, ("", None))[0])


class AgentRedaction:
    """The events of some agents inside, by their names; the others' stay as they are."""

    def __init__(self, named: Mapping[str, Rewrite]) -> None:
        self._agents = {name: EventRedaction(rewrite) for name, rewrite in named.items()}
        self._owned: dict[Any, EventRedaction] = {}  # ids of subagents, messages and calls of those agents

    def events(self, events: Sequence[Event]) -> list[Event]:
        """These events as they may be seen."""
        return [each for event in events for each in self._event(event)]

    def _event(self, event: Any) -> list[Event]:
        if event.type == "MESSAGES_SNAPSHOT":
            messages = [self._message(each) for each in event.messages]
            return [event.model_copy(update={"messages": messages})]
        named = event.type in ("SUBAGENT_STARTED", "TEXT_MESSAGE_START")
        agent = self._agent(event, OWNERS, event.name if named else None, OWN)
        return [event] if agent is None else agent.events([event])

    def _message(self, message: Any) -> Any:
        calls = [call.id for call in getattr(message, "tool_calls", None) or ()]
        names = ("subagent_run_id", "id", "tool_call_id")
        agent = self._agent(message, names, getattr(message, "name", None), ("id",))
        if agent is None:
            return message
        self._owned.update(dict.fromkeys(calls, agent))
        return agent.message(message)

    def _agent(
        self, of: Any, owners: Sequence[str], name: str | None, own: Sequence[str]
    ) -> EventRedaction | None:
        """The agent that an event or a message is of; its own ids are known from then on."""
        ids = (getattr(of, each, None) for each in owners)
        found = next((self._owned[id] for id in ids if id in self._owned), self._agents.get(name or ""))
        if found is not None:
            self._owned.update({id: found for each in own if (id := getattr(of, each, None)) is not None})
        return found


def rewritten_messages(rewrite: Rewrite, messages: Sequence[Message]) -> list[Message]:
    """Messages with their text, arguments of calls and errors rewritten; ids and names stay."""
    return [_message(rewrite, each) for each in messages]


def rewritten(rewrite: Rewrite, value: Any) -> Any:
    """A JSON value with its strings rewritten; names of fields stay."""
    if isinstance(value, str):
        return rewrite(value)
    if is_list(value):
        return [rewritten(rewrite, each) for each in value]
    if is_object(value):
        return {key: rewritten(rewrite, each) for key, each in value.items()}
    return _part(rewrite, value)


def rewritten_json(rewrite: Rewrite, text: str) -> str:
    """JSON text with its strings rewritten; as a text, if it is cut short or has nothing to rewrite."""
    try:
        value = json.loads(text)
    except ValueError:
        return rewrite(text)
    found = rewritten(rewrite, value)
    return text if found == value else json.dumps(found, ensure_ascii=False)


def _rest(held: dict[str, tuple[str, Any]], key: str, rewrite: Rewrite) -> list[Event]:
    """What waited of a text that ends."""
    raw, last = held.pop(key, ("", None))
    return [last.model_copy(update={"delta": rewrite(raw)})] if raw else []


def _message(rewrite: Rewrite, message: Any) -> Any:
    found = {name: rewritten(rewrite, getattr(message, name, None)) for name in ("content", "error")}
    changed = {name: each for name, each in found.items() if each != getattr(message, name, None)}
    message = message.model_copy(update=changed) if changed else message
    if not getattr(message, "tool_calls", None):
        return message
    return _with_arguments(message, lambda call: rewritten_json(rewrite, call.function.arguments))


def _with_arguments(message: Any, arguments: Callable[[Any], str]) -> Any:
    calls = [
        call.model_copy(update={"function": call.function.model_copy(update={"arguments": arguments(call)})})
        for call in message.tool_calls
    ]
    return message.model_copy(update={"tool_calls": calls})


def _part(rewrite: Rewrite, value: Any) -> Any:
    """A content part: its fields may be parts as well."""
    if not isinstance(value, BaseModel):
        return value
    held = {name: rewritten(rewrite, each) for name, each in value if name != "type"}
    return value.model_copy(update=held)


def _whole(event: Any, rewrite: Rewrite) -> Event:
    """An event that is no piece of a text."""
    found: dict[str, Any] = {}
    for name in event.model_fields_set & (TEXTS | PATCHES):
        held = getattr(event, name)
        found[name] = _patch(rewrite, held) if name in PATCHES else rewritten(rewrite, held)
    outcome: Any = getattr(event, "outcome", None)
    if getattr(outcome, "interrupts", None):
        asked = [_question(rewrite, each) for each in outcome.interrupts]
        found["outcome"] = outcome.model_copy(update={"interrupts": asked})
    echo: Any = getattr(event, "input", None)
    if echo is not None:
        messages = rewritten_messages(rewrite, echo.messages)
        shown = {"messages": messages, "state": rewritten(rewrite, echo.state)}
        found["input"] = echo.model_copy(update=shown)
    changed: Event = event.model_copy(update=found) if found else event
    return changed


def _patch(rewrite: Rewrite, operations: Any) -> Any:
    """The operations of a patch: their values, not their paths."""
    return [
        each.model_copy(update={"value": rewritten(rewrite, each.value)}) if hasattr(each, "value") else each
        for each in operations
    ]


def _question(rewrite: Rewrite, interrupt: Any) -> Any:
    names = interrupt.model_fields_set & {"message", "metadata"}
    found: Mapping[str, Any] = {name: rewritten(rewrite, getattr(interrupt, name)) for name in names}
    return interrupt.model_copy(update=found)
