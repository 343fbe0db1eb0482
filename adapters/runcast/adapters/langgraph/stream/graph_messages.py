"""The conversations in the states of a run's graphs, compared with what streaming has shown.

A state hands its messages over by reference, so a kept message is the same object. A message that only a state holds is
emitted after the step (`ModelOutput.catch_up`). A message that is removed, or rewritten under its id, needs a
MESSAGES_SNAPSHOT; an appended one does not. Inner graphs' states are not shown, but their messages are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any

from ag_ui.core import AssistantMessage, Event, Message, UserMessage

from runcast.adapters.langgraph.content.answer import Answer, answer_of
from runcast.adapters.langgraph.content.plain_values import listed
from runcast.adapters.langgraph.stream.graph_state import as_state
from runcast.adapters.langgraph.stream.model_output import ModelOutput
from runcast.adapters.langgraph.stream.open_message import Emission
from runcast.adapters.langgraph.stream.parts import SEPARATOR, Namespace, Namespaces, messages_of, named_in
from runcast.adapters.langgraph.stream.shown_messages import Unsettled
from runcast.adapters.langgraph.stream.steps import is_hook
from runcast.adapters.langgraph.stream.subagents import Scope, Scopes

ToMessages = Callable[[Sequence[Any]], list[Message]]


class GraphMessages:
    """One graph's conversation, step by step."""

    def __init__(self) -> None:
        self.messages: list[Any] | None = None  # None until the graph shows one
        self.latest: list[Any] = []  # those that are held included
        self.news: list[Any] = []  # what the latest values hold and the ones before did not
        self._base: list[Any] | None = None  # what was there before any values
        self._streamed: dict[str, Answer] = {}  # id -> an answer as it was shown, until the state holds it
        self._held: dict[str | None, Answer] = {}  # id -> the run's messages as the client shows them
        self._changed = False  # a node has changed one of them as it lies in the state

    def streamed(self, key: str, shown: Any) -> None:
        """An answer of a model of this graph, or of one inside, as it is shown."""
        self._streamed[key] = answer_of(shown)

    def given(self, key: str, text: str) -> None:
        """A user's message, which the graph is given."""
        self._held[key] = text, []

    def returned(self, message: Any) -> None:
        """A node returned this message. The same object as before, it may have another content."""
        key = getattr(message, "id", None)
        if key in self._held and message.type in ("ai", "human"):
            before, self._held[key] = self._held[key], answer_of(message)
            self._changed = self._changed or before != self._held[key]

    def over(self) -> None:
        """The step in which answers were shown is over: the state holds them, or never will."""
        self._streamed.clear()

    def begins(self, messages: list[Any] | None) -> None:
        """What was there at the start, for a graph that shows its conversation only after a step."""
        if self.messages is None and self._base is None and messages is not None:
            self._base = list(messages)

    def values(self, messages: list[Any]) -> bool:
        """The conversation after a step; True if the client cannot know it from what was streamed.

        The first one is history, unless it is known with what the graph began.
        """
        before, self.messages = self.messages, list(messages)
        if before is None:
            self.news = [] if self._base is None else _news(self._base, messages)
            return False
        kept = len(messages) >= len(before) and all(map(is_, before, messages))
        grown = kept or _same_again(before, messages)
        self.news = messages[len(before) :] if grown else _news(before, messages)
        new = self.news if kept else [message for message in messages if message.id in self._streamed]
        rewritten = any(self._rewritten(message) for message in new) or self._changed
        kept_as = (each for each in self.news if each.type in ("ai", "human") and each.id is not None)
        self._held.update((each.id, answer_of(each)) for each in kept_as)
        self._changed = False
        return rewritten or not grown

    def _rewritten(self, message: Any) -> bool:
        streamed = self._streamed.pop(message.id, None)
        return streamed is not None and message.type == "ai" and streamed != answer_of(message)

    def open_calls(self) -> list[Mapping[str, Any]]:
        """Tool calls since the last human message that have no answer, in order."""
        return open_calls(self.messages or ())


class Conversations:
    """The conversations of the root graph and of the graphs inside it."""

    def __init__(
        self,
        emission: Emission,
        output: ModelOutput,
        to_messages: ToMessages | None,
        namespaces: Namespaces,
    ) -> None:
        self.root = GraphMessages()
        self._namespaces = namespaces
        self._emission = emission
        self._output = output
        self._to_messages = to_messages
        self._key = emission.options.messages_key
        self.unsettled: Unsettled | None = None  # what the last root step leaves to correct
        self._stepping = False  # a task of the root is over since the root's last values
        self._rewritten: set[Namespace] = set()  # graphs that have rewritten what is held
        self._released_by = frozenset(emission.options.released_by)
        self._awaited = not all(
            map(is_hook, self._released_by)
        )  # nodes of the user's own are the last to rewrite
        self._corrects = emission.options.snapshot_on_rewrite
        self._inner: dict[Namespace, GraphMessages] = {}
        self._named: set[str] = (
            set()
        )  # ids that nodes gave to messages written as dicts, since the last values

    def opens(self, shown: Sequence[Message], given: Sequence[Message]) -> None:
        """What the client shows at the start, of which the root may come to hold what an earlier run has shown of a graph
        inside; and what the graph is given, which a node may change."""
        for message in shown:
            key = self._output.loose_id(message.id) if isinstance(message, AssistantMessage) else None
            if key is not None:
                self.root.streamed(key, message)
        for message in given:
            if isinstance(message, UserMessage) and isinstance(message.content, str):
                self.root.given(message.id, message.content)

    def begins(self, ns: Namespace, task_input: Any) -> None:
        """A task of this graph starts, with the state it is given."""
        graph = self._inner.setdefault(ns, GraphMessages()) if ns else self.root
        graph.begins(messages_of(task_input, self._key))

    def task_over(self, task_id: str, *, root: bool = False) -> None:
        """The graphs that this task ran are over. `root`: it is a task of the root, and returned its result."""
        self._stepping = self._stepping or root
        for ns in [ns for ns in self._inner if task_id in self._namespaces.tasks(ns)]:
            del self._inner[ns]

    def written(self, update: Any, *, cached: bool) -> list[Event]:
        """A node's update of the root state; a `cached` one was written before the run was interrupted.

        A message of it without an id has none before the step is committed: the state's values bring it.
        """
        written = (as_state(update) or {}).get(self._key)
        self._named |= named_in(written)
        for message in listed(written) or (written,):
            self.root.returned(message)
        if not cached:
            return []
        self._stepping = True
        return [
            event
            for message in listed(written) or [written]
            if getattr(message, "id", None) is not None
            and hasattr(message, "type")
            and message.type != "remove"
            for event in self._output.whole(message, {}, None)
        ]

    def root_values(self, data: Any, *, waiting: bool) -> list[Event]:
        """The root state after a step. If it is `waiting` for answers, the step is shown again when it goes on."""
        messages = messages_of(data, self._key)
        if messages is not None:
            self.root.latest = messages
            events = self._stepped(self._ready(messages), waiting)
        else:
            self.root.begins([] if (as_state(data) or {}).get(self._key) is None else None)
            events = [] if waiting else self._emission.results.commit()
        if not waiting:
            self._named.clear()
        return events

    def _ready(self, messages: list[Any]) -> list[Any]:
        """Without what is held, and what follows it."""
        held = self._output.held
        at = next((at for at, each in enumerate(messages) if each.id in held), None) if held else None
        return messages if at is None else messages[:at]

    def rewrites(self, ns: Namespace, node: str, agent: str | None) -> None:
        """A task of this graph returned its result: perhaps the last that rewrites what is held."""
        if self._released_by and not self._released_by.isdisjoint((node, f"{agent}/{node}")):
            self._rewritten.add(ns)

    def rewritten(self, ns: Namespace, node: str) -> bool:
        """Whether this graph has rewritten what is held, as this node starts: those that do it are named, or are hooks."""
        found = ns in self._rewritten
        self._rewritten.discard(ns)
        return found or not (self._awaited or is_hook(node))

    def release(self, ns: Namespace, scopes: Scopes) -> list[Event]:
        """The graph has rewritten what it rewrites: messages that were held are emitted as the state has them."""
        graph = self._inner.get(ns) if ns else self.root
        waiting = self._output.held.intersection(each.id for each in graph.latest) if graph else ()
        if graph is None or not waiting:
            return []
        self._output.held -= waiting
        if not ns:
            return self._stepped(graph.latest, waiting=False)
        return self._inner_step(graph, ns, scopes.scope(ns))

    def release_inside(self, task_id: str, scopes: Scopes) -> list[Event]:
        """The same for the graphs that this task ran, which are over."""
        inside = [ns for ns in self._inner if task_id in self._namespaces.tasks(ns)]
        return [event for ns in inside for event in self.release(ns, scopes)]

    def inner_values(self, data: Any, ns: Namespace, scope: Scope) -> list[Event]:
        """A graph inside the root made a step."""
        messages = messages_of(data, self._key)
        if messages is None:
            return []
        graph = self._inner.setdefault(ns, GraphMessages())
        graph.latest = messages
        return self._inner_step(graph, ns, scope)

    def _inner_step(self, graph: GraphMessages, ns: Namespace, scope: Scope) -> list[Event]:
        graph.values(self._ready(graph.latest))
        if scope.hidden:
            for message in graph.news:
                self._output.hide(message.id)
            return []
        return self._output.catch_up(graph.news, SEPARATOR.join(self._namespaces.full(ns)), scope.owner)

    def over(self, scopes: Scopes) -> list[Event]:
        """The root graph ended: what waits is emitted, and what no state came to hold is taken back."""
        events = self.release((), scopes) + self._emission.results.commit()
        return events + self._unkept([])

    def _stepped(self, messages: list[Any], waiting: bool) -> list[Event]:
        before = self.root.messages
        rewritten = self.root.values(messages)
        if before is None:
            self._emission.results.seed(str(call["id"]) for call in self.root.open_calls())
        news = self.root.news
        events = self._caught_up(news, waiting)
        if waiting:
            return events
        if self._stepping:
            events += self._unkept(news)
        if before is not None:
            events += self._emission.results.commit()
            results = self._emission.results
            rewritten = results.differ(news) or rewritten or results.restate
            results.restate = False
            if rewritten and self._to_messages is not None and self._corrects:
                self._restate(before, messages, self._to_messages)
        return events

    def _unkept(self, news: list[Any]) -> list[Event]:
        """The root's step is over: what the state does not hold of it, and calls of agents that are over."""
        self._stepping = False
        state = self.root.latest
        if self.root.messages is None:
            return []
        gone = self._output.unkept(news, state)
        self.root.over()
        order = self._appended(news)
        if (gone and self._corrects) or order:
            self.unsettled = Unsettled(gone if self._corrects else (), order=order)
        return self._emission.results.abandoned(lambda: {self._output.public_id(each.id) for each in state})

    def _restate(
        self, before: list[Any], messages: list[Any], to_messages: Callable[[Sequence[Any]], list[Message]]
    ) -> None:
        """The state's messages are shown anew, in its order, once the client has what it holds of them."""
        stated = to_messages([message for message in messages if self._output.is_shown(message)])
        for message in stated:
            message.id = self._output.public_id(message.id)
        order = [message.id for message in stated]
        removed = {self._output.public_id(each.id) for each in before} - set(order)
        gone = () if self.unsettled is None else self.unsettled.gone
        self.unsettled = Unsettled(gone, stated, removed, order)

    def _caught_up(self, news: list[Any], waiting: bool) -> list[Event]:
        """Of a step that asks, only messages whose ids nodes gave: the others get new ids later."""
        if waiting:
            return self._output.catch_up([each for each in news if each.id in self._named], "", None)
        return self._output.catch_up(news, "", None, commit=True)

    def _appended(self, news: list[Any]) -> list[str]:
        ids = [self._output.public_id(each.id) for each in news if each.id and self._output.is_shown(each)]
        return ids if len(ids) > 1 else []


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
    """Whether the old messages are still there in their order and unchanged, though as other objects."""
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
