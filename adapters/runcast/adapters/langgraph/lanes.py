"""One message in the making, and its tool calls in the making.

Knows how integrations cut calls into chunks (by index, by id, whole, interleaved); does not know events.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from runcast.adapters.langgraph.encode import mapped


class Call:
    """A tool call whose name, id and arguments may come in any order and any number of chunks."""

    __slots__ = ("held", "id", "name", "spoke", "told")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.held = ""  # argument text not told yet
        self.told = False
        self.spoke = False  # some argument text came

    def take(self) -> str:
        """The argument text that waits."""
        text, self.held = self.held, ""
        self.spoke = self.spoke or bool(text)
        return text


class Lane:
    """A message that a model is saying."""

    __slots__ = (
        *("_named", "_open", "_thoughts", "again", "begun", "calls", "finish_reason", "id", "mark", "model"),
        "owner",
        *("noted", "sealed", "slot", "task", "thought", "usage"),
    )

    def __init__(
        self, public_id: str, mark: str | None, task: str, owner: str | None, *, again: bool = False
    ) -> None:
        self.id = public_id
        self.mark = mark  # the model run, where it is known
        self.task = task  # the checkpoint namespace of the node that called the model
        self.owner = owner
        self.noted: dict[str, Any] | None = None  # what travels with its beginning: where it was said
        self.calls: list[str] = []  # ids of calls told, unanswered ones in order (shared with Results)
        self.thought: str | None = None  # id of the latest thought
        self.slot: Hashable = None  # the block it came in
        self.begun = False  # whether its start was told
        self.sealed = ""  # its signature so far
        self.again = again  # the client has this message already
        self.finish_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, int] | None = None
        self._open: list[Call] = []  # all calls, in order of appearance
        self._named: dict[int, Call] = {}  # index -> the call that pieces of this index go to
        self._thoughts = 0

    def begin_thought(self, slot: Hashable) -> str:
        """Another thought of this message begins; its id."""
        self._thoughts += 1
        self.thought = f"{self.id}:reasoning:{self._thoughts}"
        self.slot = slot
        self.sealed = ""
        self.begun = False
        return self.thought

    def call_for(self, entry: Mapping[str, Any]) -> Call:
        """The call an entry of `tool_call_chunks` belongs to, with the entry's name, id and text added to it."""
        index, call_id = entry.get("index"), entry.get("id")
        call = self._find(index, call_id)
        if call is None:
            call = Call()
            self._open.append(call)
            if index is not None:
                self._named[index] = call
        call.id = call.id or call_id or ""
        call.name = call.name or entry.get("name") or ""
        call.held += entry.get("args") or ""
        return call

    def _find(self, index: int | None, call_id: str | None) -> Call | None:
        call = self._named.get(index) if index is not None else None
        if call is None and index is None and self._open:
            known = [each for each in self._open if call_id and each.id == call_id]
            call = known[0] if known else (self._open[-1] if not call_id else None)
        if call is not None and call_id and call.id and call.id != call_id:
            return None  # the index was used again for another call
        return call

    def open_calls(self) -> list[Call]:
        """Every call of this message, in order of appearance."""
        return self._open

    def learn(self, message: Any) -> None:
        """Why the model stopped, what it is called and what it used, from wherever the provider put it."""
        facts = mapped(message.response_metadata)
        reason = facts.get("finish_reason") or facts.get("stop_reason") or facts.get("done_reason")
        self.finish_reason = str(reason) if reason else self.finish_reason
        model = facts.get("model_name") or facts.get("model")
        self.model = str(model) if model else self.model
        if message.usage_metadata:
            self.usage = _added(self.usage, message.usage_metadata)


def _added(sums: dict[str, int] | None, usage: Mapping[str, Any]) -> dict[str, int]:
    """Usage as runcast notes it. Providers split it over chunks (Anthropic: input first, output last): it adds up."""
    named = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
    before = sums or {}
    return {ours: before.get(ours, 0) + int(usage.get(theirs) or 0) for ours, theirs in named.items()}
