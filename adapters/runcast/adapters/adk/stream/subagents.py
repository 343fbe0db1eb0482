"""The author of an event: the root agent, or one turn of another agent.

ADK names the author of every event, but not where an agent's turn begins and ends: a LoopAgent runs one agent many
times under one name and one branch. An *entry* is one such turn. It begins with the agent's first visible event and
ends with its last (`done`); its id is made of the first event's id, so that a stream and a rebuild agree.

Does not know the content of events, nor what is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runcast.adapters.adk.stream.complete_event import parts_of

if TYPE_CHECKING:
    from google.adk.events.event import Event

Place = tuple[str, str]  # (node path or branch, author)


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn of an agent that is not the root."""

    id: str
    name: str
    parent: str | None

    def begins_with(self, event_id: str) -> bool:
        """Whether this is the turn's first event."""
        return self.id == f"{self.name}:{event_id}"


class Entries:
    """The open turns, by place. Without a given name, the root is the first name of the first path."""

    def __init__(self, root: str | None, base: Entry | None = None) -> None:
        self._root = root
        self._base = base  # the turn of the root, in a runner inside a tool call
        self._open: dict[Place, Entry] = {}

    def entry(self, event: Event) -> Entry | None:
        """The turn of this event, begun if it is new; None is the root agent."""
        author = event.author
        if self._root is None and event.node_info.path:
            self._root = event.node_info.path.partition("/")[0].partition("@")[0]
        if self._root is None or author in (self._root, "user", "model"):
            return self._base
        at = place(event)
        held = self._open.get(at)
        if held is None:
            held = self._open[at] = Entry(f"{author}:{event.id}", author, self._parent(event))
        return held

    def close(self, event: Event) -> Entry | None:
        """End the turn of the event's agent; returns it, if one was open."""
        return self._open.pop(place(event), None)

    def clear(self) -> None:
        """End all turns: the next event is of another run."""
        self._open.clear()

    def _parent(self, event: Event) -> str | None:
        """The innermost open turn above this agent, where ADK gives a path."""
        path = event.node_info.path
        while "/" in path:
            path = path.rpartition("/")[0]
            for (at, _), entry in self._open.items():
                if at == path:
                    return entry.id
        return None if self._base is None else self._base.id


def place(event: Event) -> Place:
    """The origin of an event; two places never share a turn."""
    return (event.node_info.path or event.branch or "", event.author)


def node_name(event: Event) -> str:
    """The last name of the event's path, without ADK's counter."""
    last = event.node_info.path.rpartition("/")[2]
    return last.partition("@")[0] or event.author


def done(event: Event) -> bool:
    """Whether a complete event is its agent's last: it answered, transferred, escalated or ended."""
    actions = event.actions
    if actions.end_of_agent or actions.transfer_to_agent or actions.escalate:
        return True
    if event.long_running_tool_ids:
        return False
    parts = parts_of(event)
    if any(part.function_call or part.executable_code or part.code_execution_result for part in parts):
        return False
    if any(part.function_response for part in parts):
        return bool(actions.skip_summarization) and not actions.requested_tool_confirmations
    # A custom agent may yield many texts in one turn; a model's last answer has a finish reason.
    return event.finish_reason is not None
