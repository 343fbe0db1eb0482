"""The answers to tool calls, in the order of the calls.

Knows which calls one message made and which are answered. A result that comes before its elder siblings' waits for
them, for the client puts results down in the order they come; what still waits is committed when the step is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ag_ui.core import Event

from runcast.adapters.blocks import Meta, OpenBlocks
from runcast.adapters.frame import note
from runcast.adapters.langgraph.content import to_parts


class Results:
    """Calls without an answer, message by message, and the answers that wait."""

    def __init__(self, blocks: OpenBlocks, *, answered: Collection[str] = ()) -> None:
        self._blocks = blocks
        self._siblings: dict[str, list[str]] = {}  # call -> all unanswered calls of its message, in order
        self._answered = set(answered)  # result message ids the client holds already
        # call -> its result, owner and place, waiting for elders
        self._held: dict[str, tuple[Any, str | None, Meta | None]] = {}

    def announced(self, calls: list[str], call_id: str) -> None:
        """A call began; `calls` is the growing list of its message's calls."""
        calls.append(call_id)
        self._siblings[call_id] = calls

    def seed(self, calls: Iterable[str]) -> None:
        """Calls of earlier runs that are still open, in order."""
        waiting = list(calls)
        self._siblings.update(dict.fromkeys(waiting, waiting))

    def knows(self, call_id: str) -> bool:
        """Whether a model asked for this call and waits for its result."""
        return call_id in self._siblings

    def open(self) -> list[str]:
        """The calls without a result, in order."""
        return [call for call in self._siblings if call not in self._held]

    def forget(self, gone: Collection[str], calls: Collection[str]) -> None:
        """These results and calls were taken back; they may come again."""
        self._answered.difference_update(gone)
        for call_id in calls:
            self._siblings.pop(call_id, [call_id]).remove(call_id)
            self._held.pop(call_id, None)

    def add(self, message: Any, owner: str | None, noted: Meta | None = None) -> list[Event]:
        """A committed ToolMessage; `noted` says where it was given."""
        if message.id in self._answered:
            return []
        self._answered.add(message.id)
        call_id = str(getattr(message, "tool_call_id", None) or message.name or message.id)
        siblings = self._siblings.get(call_id)
        if siblings is None:
            return self._send(call_id, message, owner, noted)
        self._held[call_id] = (message, owner, noted)
        return self._send_ready(siblings)

    def _send_ready(self, siblings: list[str]) -> list[Event]:
        events: list[Event] = []
        while siblings and siblings[0] in self._held:
            call_id = siblings.pop(0)
            events += self._send(call_id, *self._held.pop(call_id))
        return events

    def commit(self) -> list[Event]:
        """The step is done: what waits goes out, in order, elders or not."""
        events: list[Event] = []
        for call_id in [call for call in self._siblings if call in self._held]:
            self._siblings[call_id].remove(call_id)
            events += self._send(call_id, *self._held.pop(call_id))
        return events

    def _send(self, call_id: str, message: Any, owner: str | None, noted: Meta | None) -> list[Event]:
        self._siblings.pop(call_id, None)
        failed = getattr(message, "status", None) == "error"
        facts = note(tool_name=message.name or None, error=failed or None)
        return self._blocks.result(
            message.id,
            call_id,
            to_parts(message.content),
            owner=owner,
            metadata={**(facts or {}), **(noted or {})} or None,
        )
