"""A run's events without what its graph's middleware keeps from streams.

Middleware may declare that what a graph streams is rewritten (`PIIMiddleware(apply_to_output=True)`). It rewrites less of
the state: arguments and results of tools stay there as they are. Here it holds for the text of every event: live, corrected,
asked, failed or raw. Where only agents inside do so, it holds for what they emit: an agent is known by its name, or by the
place where its graph began, which is the namespace of the task that runs it. Knows which fields of events hold text, and whose an
event is. Does not know what is rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ag_ui.core import Event, Message
from pydantic import BaseModel

from runcast.adapters.langgraph.content.plain_values import listed
from runcast.adapters.langgraph.stream.graph_state import as_state
from runcast.adapters.langgraph.stream.parts import SEPARATOR, Namespace, names_of
from runcast.adapters.translator import Translator
from runcast.slim.values.type_guards import as_mapping, is_list, is_object

Rewrite = Callable[[str], str]
LOOKBACK = 128  # characters of a text that wait for what follows them: an address in two pieces is one
PIECE = 32  # characters that are looked at together: a look at each token costs as much as the token
TEXTS = frozenset(("content", "snapshot", "value", "result", "message", "event", "description"))
PATCHES = frozenset(("delta", "patch"))
OWN = ("subagent_run_id", "message_id", "tool_call_id")  # ids that an event of an agent gives to it
OWNERS = (*OWN, "parent_subagent_run_id", "parent_message_id")
OF_ALL = ("RAW", "RUN_ERROR")  # hold what any agent wrote
MODELS = ("assistant", "tool", "reasoning")


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
                return [self.whole(event)]

    def whole(self, event: Any) -> Event:
        """An event that is no piece of a text."""
        return _whole(event, self._rewrite)

    def question(self, interrupt: Any) -> Any:
        """An open question."""
        return _question(self._rewrite, interrupt)

    def message(self, message: Message) -> Any:
        """A message of a snapshot."""
        return _message(self._rewrite, self._so_far(message))

    def _text(self, event: Any) -> list[Event]:
        held, _ = self._texts.get(event.message_id, ("", None))
        raw = held + event.delta
        at = len(raw) - LOOKBACK if len(raw) >= LOOKBACK + PIECE else 0
        shown = raw[:at]
        if at and (whole := self._rewrite(raw)) != raw:
            shown = self._rewrite(raw[:at])
            at = at if shown + self._rewrite(raw[at:]) == whole else 0  # the cut would go through something
        self._texts[event.message_id] = raw[at:], event
        return [event.model_copy(update={"delta": shown})] if at else []

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


Redactions = tuple[EventRedaction, ...]  # the innermost agent's first


class RedactedTranslator:
    """A translator with its events rewritten."""

    def __init__(self, translator: Translator[Any], redaction: AgentRedaction) -> None:
        self._translator = translator
        self._redaction = redaction

    def start(self) -> list[Event]:
        """The run begins."""
        return self._redaction.events(self._translator.start())

    def feed(self, part: Any) -> list[Event]:
        """One part."""
        events = self._translator.feed(part)
        return events if self._redaction.idle else self._redaction.events(events, part)

    def finish(self) -> list[Event]:
        """The graph ended, or waits for answers."""
        return self._redaction.events(self._translator.finish())

    def fail(self, error: BaseException) -> list[Event]:
        """The graph raised."""
        return self._redaction.events(self._translator.fail(error))

    def cancel(self) -> list[Event]:
        """The run was stopped."""
        return self._redaction.events(self._translator.cancel())


class AgentRedaction:
    """The events of one run: all rewritten if the graph `rewrite`s, and those of the agents inside that do.

    `named` are agents inside, by their names; `unnamed` the others' rewriting. `held` are the messages that the client holds:
    a snapshot of the messages does not tell which an agent without a name wrote in an earlier run, so each is rewritten
    that the client does not hold as it is.
    """

    def __init__(
        self,
        rewrite: Rewrite | None = None,
        named: Mapping[str, Rewrite] | None = None,
        unnamed: Sequence[Rewrite] = (),
        held: Sequence[Message] = (),
    ) -> None:
        self._rewrite = rewrite
        self._root = None if rewrite is None else EventRedaction(rewrite)
        self._redactions: dict[Rewrite, EventRedaction] = {}
        self._named = {name: (self._of(rewrite),) for name, rewrite in (named or {}).items()}
        self._unnamed: Redactions = tuple(map(self._of, dict.fromkeys(unnamed)))
        self._places: dict[Namespace, Redactions] = {}
        self._owned: dict[Any, Redactions] = {}  # ids of subagents, messages, calls and questions
        self._others: set[str] = set()  # ids of messages that other agents emit
        self._held = {each.id: each for each in held}
        self.idle = rewrite is None and not self._redactions

    def _of(self, rewrite: Rewrite) -> EventRedaction:
        return self._redactions.setdefault(rewrite, EventRedaction(rewrite))

    def begins(self, place: Namespace, rewrite: Rewrite) -> None:
        """A graph that rewrites begins in this task, or (of one that keeps its state) in the running one of its name."""
        if rewrite is self._rewrite:
            return  # the graph itself
        redaction = self._of(rewrite)
        for each in (place, names_of(place)):
            self._places[each] = _with(self._places.get(each, ()), (redaction,))
        self._unnamed = _with(self._unnamed, (redaction,))
        self.idle = False

    def events(self, events: Sequence[Event], part: Any = None) -> list[Event]:
        """These events of a part as they may be seen."""
        if self.idle:
            return list(events)
        around = self._around(part) if self._places and is_object(part) else ()
        shown = [each for event in events for each in self._event(event, around)]
        return shown if self._root is None else self._root.events(shown)

    # ------------------------------------------------------------------ whose

    def _around(self, part: Mapping[str, Any]) -> Redactions:
        """Of the graphs around the one that a part is from, those that rewrite."""
        ns: Namespace = part["ns"]
        kind, data = part["type"], part["data"]
        if kind == "messages":
            path = tuple(str(as_mapping(data[1]).get("langgraph_checkpoint_ns", "")).split(SEPARATOR))
            self._returned(data[0], self._places.get(path, ()))
            ns = max(path[:-1], ns, key=len)  # deeper, where the stream leaves out graphs inside
        found = self._at(ns)
        if kind == "updates":
            for node, update in as_mapping(data).items():
                self._returned(update, self._places.get((*names_of(ns), node), ()))
        elif kind == "tasks":
            for asked in as_mapping(data).get("interrupts") or () if found else ():
                self._owned[as_mapping(asked).get("id")] = found
            if "triggers" not in data:
                self._places.pop((*ns, f"{data['name']}:{data['id']}"), None)
        return found

    def _at(self, ns: Namespace) -> Redactions:
        found: Redactions = ()
        for length in range(len(ns), -1, -1):
            found = _with(found, self._places.get(ns[:length], ()))
        return found

    def _returned(self, returned: Any, found: Redactions) -> None:
        """What a node returns that runs a graph which rewrites: a model's messages, and their calls, are that graph's."""
        for message in _models_messages(returned) if found else ():
            for each in (message.id, *(call["id"] for call in getattr(message, "tool_calls", ()))):
                self._owned.setdefault(each, found)

    def _agents(
        self, of: Any, owners: Sequence[str], name: str | None, own: Sequence[str], around: Redactions = ()
    ) -> Redactions:
        """Those that rewrite an event or a message; its own ids are theirs from then on."""
        ids = (getattr(of, each, None) for each in owners)
        known = self._named.get(name or "", ())
        found = next((self._owned[id] for id in ids if id in self._owned), known) or around
        if found:
            self._owned.update({id: found for each in own if (id := getattr(of, each, None)) is not None})
        return found

    # ----------------------------------------------------------------- events

    def _event(self, event: Any, around: Redactions) -> list[Event]:
        if event.type == "MESSAGES_SNAPSHOT":
            messages = [self._message(each) for each in event.messages]
            return [event.model_copy(update={"messages": messages})]
        if event.type in OF_ALL:
            return _by_all(event, self._redactions.values())
        if getattr(getattr(event, "outcome", None), "interrupts", None):
            return [self._asking(event)]
        named = event.type in ("SUBAGENT_STARTED", "TEXT_MESSAGE_START")
        agents = self._agents(event, OWNERS, event.name if named else None, OWN, around)
        if not agents:
            self._others.update(id for each in OWN[1:] if (id := getattr(event, each, None)) is not None)
        events = [event]
        for agent in agents:
            events = agent.events(events)
        return events

    def _asking(self, event: Any) -> Event:
        asked = list(event.outcome.interrupts)
        for at, each in enumerate(asked):
            for agent in self._owned.get(each.id) or self._owned.get(each.tool_call_id) or ():
                asked[at] = agent.question(asked[at])
        shown: Event = event.model_copy(
            update={"outcome": event.outcome.model_copy(update={"interrupts": asked})}
        )
        return shown

    def _message(self, message: Any) -> Any:
        calls = [call.id for call in getattr(message, "tool_calls", None) or ()]
        names = ("subagent_run_id", "id", "tool_call_id")
        agents = self._agents(message, names, getattr(message, "name", None), ("id",))
        self._owned.update(dict.fromkeys(calls, agents) if agents else {})
        if not agents and message.role in MODELS and self._is_new(message):
            agents = self._unnamed
        for agent in agents:
            message = agent.message(message)
        return message

    def _is_new(self, message: Any) -> bool:
        """Whether the client does not hold this message as it is, from an earlier run or this one."""
        held = self._held.get(message.id)
        same = held is not None and all(
            getattr(held, each, None) == getattr(message, each, None) for each in ("content", "tool_calls")
        )
        return not same and self._others.isdisjoint((message.id, getattr(message, "tool_call_id", None)))


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


def _with(found: Redactions, more: Redactions) -> Redactions:
    return (*found, *(each for each in more if each not in found))


def _by_all(event: Any, redactions: Iterable[EventRedaction]) -> list[Event]:
    for each in redactions:
        event = each.whole(event)
    return [event]


def _models_messages(returned: Any) -> Iterator[Any]:
    """Of a message, or of one or several updates of a state."""
    for update in listed(returned) or (returned,):
        held = (update,) if hasattr(update, "content") else (as_state(update) or {}).values()
        for each in (each for value in held for each in listed(value) or (value,)):
            if getattr(each, "type", None) == "ai" and getattr(each, "id", None) is not None:
                yield each
