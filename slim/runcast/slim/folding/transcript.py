"""The messages of a conversation: in order, found by id, grown in place.

Has the operations of a client's list of messages: append, put a tool result behind its call, replace in place, restate
all. Every step costs the same however many messages there are: the list is linked, and ids and tool calls are
indexed. Does not know events.

When two messages share an id, the client always means the first of them, and so do the indexes. A snapshot that
restates a doubled id puts one and the same message in both places: a place (`Node`) is not a message (`Body`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from pydantic import BaseModel, ValidationError

from runcast.slim.errors import PatchRefused
from runcast.slim.values.json_patch import Document
from runcast.slim.values.surrogates import join_text
from runcast.slim.wire.encoders import in_json_types

_MODELS: dict[str, type[BaseModel]] = {
    "activity": ActivityMessage,
    "assistant": AssistantMessage,
    "developer": DeveloperMessage,
    "reasoning": ReasoningMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "user": UserMessage,
}


class Call:
    """A tool call inside a message; its arguments grow."""

    __slots__ = ("data", "parts")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.parts: list[str] = []  # arguments that are not joined yet

    def merge(self, metadata: dict[str, Any] | None) -> None:
        """Fold an event's metadata in, key by key; the last write wins."""
        if metadata is not None:
            self.data["metadata"] = {**self.data.get("metadata", {}), **metadata}

    def settle(self) -> None:
        """Join the arguments."""
        if self.parts:
            function = self.data["function"]
            function["arguments"] = join_text((function["arguments"], *self.parts))
            self.parts = []

    def model(self) -> ToolCall:
        """The protocol's model of this call as it stands."""
        self.settle()
        return ToolCall.model_validate(self.data)


class Body:
    """One message: the model it came as, and wire-shaped data from the first change on."""

    __slots__ = ("_calls", "_data", "_document", "_model", "_parts", "key", "role")

    def __init__(self, data: dict[str, Any]) -> None:
        self.key: str = data["id"]
        self.role: str = data["role"]
        self._model: Message | None = None  # set while it equals the data
        self._data: dict[str, Any] | None = data
        self._calls: dict[str, Call] | None = None  # by id, once one of them was asked for
        self._parts: list[str] = []  # text that is not joined yet
        self._document: Document | None = None  # an activity's content, once it was patched

    @classmethod
    def of(cls, model: Message) -> Body:
        """A message that came whole; its model is used as it is until something changes."""
        body = cls.__new__(cls)
        body.key, body.role = model.id, model.role
        body._model, body._data, body._calls, body._parts, body._document = model, None, None, [], None
        return body

    def append(self, delta: str) -> list[str]:
        """Let the text grow, and return the list in which it may grow on.

        Content that is a list of parts gives way to text, as it does in the client.
        """
        self._thaw()
        self._parts.append(delta)
        return self._parts

    def open(self) -> dict[str, Any]:
        """The wire-shaped data, to be changed."""
        self._thaw()
        assert self._data is not None
        return self._data

    def merge(self, metadata: dict[str, Any] | None) -> None:
        """Fold an event's metadata in, key by key; the last write wins."""
        if metadata is not None:
            data = self.open()
            data["metadata"] = {**data.get("metadata", {}), **metadata}

    def call_ids(self) -> Iterable[str]:
        """The ids of its tool calls, in order."""
        if self._calls is not None:
            return list(self._calls)
        if self._data is not None:
            return [call["id"] for call in self._data.get("toolCalls") or ()]
        calls = self._model.tool_calls if isinstance(self._model, AssistantMessage) else None
        return [call.id for call in calls or ()]

    def call(self, key: str) -> Call:
        """The first of its tool calls with this id, to be changed."""
        data = self.open()
        if self._calls is None:
            self._calls = {}
            for each in data.get("toolCalls") or ():
                self._calls.setdefault(each["id"], Call(each))
        return self._calls[key]

    def add_call(self, key: str, name: str) -> Call:
        """A new tool call at the end, without arguments yet."""
        data = self.open()
        call = Call({"id": key, "type": "function", "function": {"name": name, "arguments": ""}})
        calls: list[dict[str, Any]] = data.get("toolCalls") or []
        calls.append(call.data)
        data["toolCalls"] = calls
        if self._calls is not None:
            self._calls[key] = call
        return call

    def patched(self, operations: list[dict[str, Any]], activity_type: str) -> Body | PatchRefused:
        """This activity with its content patched, as a body of its own; or why the patch does not apply."""
        data = self.open()
        document = self._document or Document(data["content"])
        failure = document.patch(operations)
        if failure is not None:
            return failure
        body = Body({**data, "activityType": activity_type})
        body._document = document
        return body

    def result_of(self) -> Any:
        """The call that it answers; None for a message that is no result."""
        if self._data is not None:
            return self._data.get("toolCallId")
        return getattr(self._model, "tool_call_id", None)

    def activity_type(self) -> Any:
        """The type of an activity; None for other messages."""
        if self._data is not None:
            return self._data.get("activityType")
        return getattr(self._model, "activity_type", None)

    def wire(self) -> dict[str, Any]:
        """The wire-shaped message, not to be changed by the caller."""
        if self._data is None:
            assert self._model is not None
            return in_json_types(self._model)
        data = self._data
        if self._parts:
            before = data.get("content")
            data["content"] = join_text((before if isinstance(before, str) else "", *self._parts))
            self._parts.clear()
        for call in (self._calls or {}).values():
            call.settle()
        if self._document is not None:
            data["content"] = self._document.value
        return data

    def model(self) -> Message:
        """The protocol's model of this message; built unchecked where the protocol has no shape for it."""
        if self._model is None or self._parts:
            data, schema = self.wire(), _MODELS[self.role]
            try:
                self._model = schema.model_validate(data)  # type: ignore[assignment]  # one of Message's members
            except ValidationError:
                self._model = schema.model_construct(**data)  # type: ignore[assignment]  # as above
        assert self._model is not None
        return self._model

    def _thaw(self) -> None:
        if self._data is None:
            self._data = self.wire()
        self._model = None


class Node:
    """A place in the transcript."""

    __slots__ = ("anchor", "before", "body", "era", "last_result", "next", "offset")

    def __init__(self, body: Body, anchor: int, offset: int = 0) -> None:
        self.body = body
        self.next: Node | None = None
        self.before: Node | None = None
        self.anchor = anchor  # with `offset`, grows along the list: orders two nodes
        self.offset = offset
        self.last_result: Node | None = None  # where the tool results behind this node ended when last looked
        self.era = 0  # the transcript's era in which that was true

    def acted_on(self) -> bool:
        """Whether a result of one of its calls stands behind it."""
        follows = self.next
        return follows is not None and follows.body.result_of() in self.body.call_ids()


class Transcript:
    """A client's messages."""

    def __init__(self, bodies: Iterable[Body] = ()) -> None:
        self._restart(bodies)

    def _restart(self, bodies: Iterable[Body]) -> None:
        self._first: Node | None = None
        self._last: Node | None = None
        self._length = 0
        self._by_id: dict[str, Node] = {}
        self._by_call: dict[str, Node] = {}
        self._doubled_calls = False  # some call id was seen twice
        self._anchor = 0
        self._era = 0  # counts changes that may move the end of a row of tool results
        for body in bodies:
            self.append(body)

    def __iter__(self) -> Iterator[Body]:
        node = self._first
        while node is not None:
            yield node.body
            node = node.next

    def __reversed__(self) -> Iterator[Body]:
        node = self._last
        while node is not None:
            yield node.body
            node = node.before

    def __len__(self) -> int:
        return self._length

    def find(self, key: str) -> Node | None:
        """The first message with this id."""
        return self._by_id.get(key)

    def holder(self, call_id: str) -> Node | None:
        """The first message that holds this tool call."""
        return self._by_call.get(call_id)

    def append(self, body: Body) -> Node:
        """A message at the end."""
        self._anchor += 1
        node = Node(body, self._anchor)
        if self._last is None:
            self._first = node
        else:
            self._last.next, node.before = node, self._last
        self._last = node
        self._length += 1
        self._by_id.setdefault(body.key, node)
        for call_id in body.call_ids():
            self._claim(call_id, node)
        return node

    def add_call(self, node: Node, key: str, name: str) -> Call:
        """A tool call that is in no message yet, at the end of this one."""
        self._claim(key, node)
        return node.body.add_call(key, name)

    def _claim(self, call_id: str, node: Node) -> None:
        if self._by_call.setdefault(call_id, node) is not node:
            self._doubled_calls = True

    def insert_result(self, call_id: str, body: Body) -> None:
        """A tool result: behind the message that holds its call and the results already there, else at the end.

        Providers refuse a history in which anything stands between a call and its result.
        """
        owner = self._by_call.get(call_id)
        if owner is None:
            self.append(body)
            return
        before = owner if owner.last_result is None or owner.era != self._era else owner.last_result
        while before.next is not None and before.next.body.role == "tool":
            before = before.next
        node = Node(body, before.anchor, before.offset + 1)
        node.next, node.before, before.next = before.next, before, node
        self._length += 1
        if node.next is None:
            self._last = node
        else:
            node.next.before = node
        owner.last_result, owner.era = node, self._era
        if node.next is not None and node.next.anchor == node.anchor:
            self._renumber()
        self._index_inserted(node)

    def _index_inserted(self, node: Node) -> None:
        known = self._by_id.setdefault(node.body.key, node)
        if (node.anchor, node.offset) < (known.anchor, known.offset):
            self._by_id[node.body.key] = node

    def _renumber(self) -> None:
        node, self._anchor = self._first, 0
        while node is not None:
            self._anchor += 1
            node.anchor, node.offset = self._anchor, 0
            node = node.next

    def replace(self, node: Node, body: Body) -> None:
        """Put another message with the same id in this place; it holds no tool calls."""
        former = node.body
        node.body = body
        if former.role == "tool":
            self._era += 1
        lost = [call_id for call_id in former.call_ids() if self._by_call[call_id] is node]
        if lost and self._doubled_calls:
            self._restart(list(self))
        else:
            for call_id in lost:
                del self._by_call[call_id]

    def restate(self, bodies: list[Body], keep: Callable[[Body], bool]) -> None:
        """Apply a MESSAGES_SNAPSHOT.

        A restated message takes its former place; the others follow at the end in the snapshot's order. Messages
        that are not restated go, unless `keep` holds for them: the snapshot could not have known them.
        """
        restated = {body.key: body for body in bodies}
        kept = [restated.get(body.key, body) for body in self if body.key in restated or keep(body)]
        held = {body.key for body in kept}
        self._restart([*kept, *(body for body in bodies if body.key not in held)])


class History(Sequence[Message]):
    """A transcript to read from either end: a message is made when it is looked at, and then kept."""

    __slots__ = ("_transcript",)

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    def __len__(self) -> int:
        return len(self._transcript)

    def __iter__(self) -> Iterator[Message]:
        return (body.model() for body in self._transcript)

    def __reversed__(self) -> Iterator[Message]:
        return (body.model() for body in reversed(self._transcript))

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> list[Message]: ...
    def __getitem__(self, at: int | slice) -> Message | list[Message]:
        if isinstance(at, slice):
            return list(self)[at]
        size = len(self)
        place = at + size if at < 0 else at
        if not 0 <= place < size:
            raise IndexError(f"there are {size} messages, and no number {at}")
        if place <= size // 2:
            return next(islice(self, place, None))
        return next(islice(reversed(self), size - 1 - place, None))
