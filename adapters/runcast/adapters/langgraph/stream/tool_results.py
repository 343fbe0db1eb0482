"""The results of tool calls, in the order of the calls.

A client shows results in the order in which they arrive, and a model needs them in the order of the calls. So a result
waits for those of earlier calls of its message. What still waits is emitted when the step is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from ag_ui.core import AssistantMessage, Event, Message, ToolMessage

from runcast.adapters.langgraph.content.message_content import to_parts
from runcast.adapters.open_blocks import Meta, OpenBlocks
from runcast.slim.folding.run_metadata import run_metadata

ABANDONED = "The agent ended before this call returned."


class Results:
    """Calls without a result, message by message, and the results that wait."""

    def __init__(self, blocks: OpenBlocks, *, answered: Collection[str] = ()) -> None:
        self._blocks = blocks
        self._siblings: dict[str, list[str]] = {}  # call -> all unanswered calls of its message, in order
        # ids of results that the client holds already; one without an id is shown when the state has given it one
        self._answered: set[str | None] = {None, *answered}
        self._repeated: set[str] = set()  # calls with an id that an earlier message's call has
        self.restate = False  # something of them is not shown yet
        self._made: dict[str, tuple[str | None, str]] = {}  # call of this run -> its owner and message
        self._names: dict[
            tuple[str | None, str], str
        ] = {}  # owner and call -> the id under which it is shown
        self._contents: dict[str, Any] = {}  # id of a result -> its content, until a state has shown it
        # call -> its result, owner and place, waiting for earlier calls
        self._held: dict[str, tuple[Any, str | None, Meta | None]] = {}

    def begins(self, shown: Sequence[Message]) -> None:
        """What the client shows at the start: subagents that a break left may go on, and their calls have no results."""
        results = [message for message in shown if isinstance(message, ToolMessage)]
        answered = {message.tool_call_id for message in results}
        # a step that runs again may store a result otherwise than the broken run has shown it
        self._contents.update((it.id, it.content) for it in results if isinstance(it.content, str))
        for message in shown:
            owner = message.subagent_run_id if isinstance(message, AssistantMessage) else None
            made = (message.tool_calls or ()) if isinstance(message, AssistantMessage) and owner else ()
            waiting: list[str] = []
            for call in made:
                if call.id.startswith(f"{owner}:"):
                    self._names[owner, call.id.removeprefix(f"{owner}:")] = call.id
                if call.id not in answered:
                    self.announced(waiting, call.id, owner, message.id)

    def announced(self, calls: list[str], call_id: str, owner: str | None, message_id: str) -> None:
        """A call started; `calls` is the growing list of its message's calls."""
        calls.append(call_id)
        self._siblings[call_id] = calls
        self._made[call_id] = owner, message_id

    def is_taken(self, call_id: str, owner: str | None) -> bool:
        """Whether another agent made a call of this id in this run."""
        return self._made.get(call_id, (owner,))[0] != owner

    def renamed(self, call_id: str, owner: str) -> str:
        """The id under which a subagent's call is shown, since another one is shown under its own."""
        return self._names.setdefault((owner, call_id), f"{owner}:{call_id}")

    def shown_as(self, call_id: str, owner: str | None) -> str:
        """The id under which this agent's call is shown."""
        return self._names.get((owner, call_id), call_id)

    def is_shown(self, message_id: str | None) -> bool:
        """Whether the client has this result; one without an id is shown when the state has given it one."""
        return message_id in self._answered

    def maker(self, message: Any) -> str | None:
        """The subagent that made the call of this result; None if it is the root agent's, or of an earlier run."""
        return self._made.get(str(message.tool_call_id), (None,))[0] if message.type == "tool" else None

    def repeated(self, call_id: str) -> None:
        """An earlier message has a call of this id. Events would change that one: only a snapshot can show both."""
        self._repeated.add(call_id)
        self.restate = True

    def seed(self, calls: Iterable[str]) -> None:
        """Calls of earlier runs that have no result, in order."""
        waiting = list(calls)
        self._siblings.update(dict.fromkeys(waiting, waiting))

    def knows(self, call_id: str, owner: str | None) -> bool:
        """Whether a model made this call and it has no result."""
        return self.shown_as(call_id, owner) in self._siblings

    def open(self) -> list[str]:
        """The calls without a result, in order."""
        return [call for call in self._siblings if call not in self._held]

    def forget(self, gone: Collection[str], calls: Collection[str]) -> None:
        """These results and calls were taken back, and may come again."""
        self._answered.difference_update(gone)
        for call_id in calls:
            self._blocks.forget_call(call_id)
            self._made.pop(call_id, None)
            self._siblings.pop(call_id, [call_id]).remove(call_id)
            self._held.pop(call_id, None)

    def add(self, message: Any, owner: str | None, place: Meta | None = None) -> list[Event]:
        """A committed ToolMessage; `place` is the metadata of the place that returned it."""
        if message.id in self._answered:
            return []
        self._answered.add(message.id)
        asked = str(getattr(message, "tool_call_id", None) or message.name or message.id)
        call_id = self.shown_as(asked, owner)
        if call_id in self._repeated:
            self.restate = True
            return []
        siblings = self._siblings.get(call_id)
        if siblings is None:
            return self._send(call_id, message, owner, place)
        self._held[call_id] = (message, owner, place)
        return self._send_ready(siblings)

    def _send_ready(self, siblings: list[str]) -> list[Event]:
        events: list[Event] = []
        while siblings and siblings[0] in self._held:
            call_id = siblings.pop(0)
            events += self._send(call_id, *self._held.pop(call_id))
        return events

    def commit(self) -> list[Event]:
        """The step is committed: results that wait are emitted in order, whether or not earlier calls have theirs."""
        events: list[Event] = []
        for call_id in [call for call in self._siblings if call in self._held]:
            self._siblings[call_id].remove(call_id)
            events += self._send(call_id, *self._held.pop(call_id))
        return events

    def differ(self, news: Iterable[Any]) -> bool:
        """Whether a state holds results otherwise than they were emitted: redacted by a transformer of the agent's own."""
        sent, self._contents = self._contents, {}
        return any(sent.get(each.id, each.content) != each.content for each in news if sent)

    def abandoned(self, kept: Callable[[], Collection[str]]) -> list[Event]:
        """The root's step is over, and with it its subagents: calls of theirs that nothing will answer (an agent that hands
        over leaves before its tool returns) get a result that says so. Not those of messages that the root has `kept`.
        """
        made = [(call_id, *self._made[call_id]) for call_id in self._siblings if call_id in self._made]
        open_calls = [(call_id, owner) for call_id, owner, message in made if owner and message not in kept()]
        for call_id, _ in open_calls:
            self._siblings.pop(call_id).remove(call_id)
        facts = run_metadata(error=True)
        return [
            event
            for call_id, owner in open_calls
            for event in self._blocks.result(
                f"{call_id}:abandoned", call_id, ABANDONED, owner=owner, metadata=facts
            )
        ]

    def _send(self, call_id: str, message: Any, owner: str | None, place: Meta | None) -> list[Event]:
        self._siblings.pop(call_id, None)
        self._contents[message.id] = message.content
        failed = getattr(message, "status", None) == "error"
        facts = run_metadata(tool_name=message.name or None, error=failed or None)
        return self._blocks.result(
            message.id,
            call_id,
            to_parts(message.content),
            owner=owner,
            metadata={**(facts or {}), **(place or {})} or None,
        )
