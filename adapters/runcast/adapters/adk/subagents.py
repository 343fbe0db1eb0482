"""Who speaks: the root agent, or one entry of another agent.

ADK names the author of every event, but not when an agent's turn begins and ends: a LoopAgent lets one agent speak
many times under one name and one branch. An *entry* is one such turn. It begins with the first event an agent shows
and ends when it is done (`done`); its id is made of that first event's id, so a stream and a rebuild agree.

It does not know what the events say, nor what is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runcast.adapters.adk.reading import parts_of

if TYPE_CHECKING:
    from google.adk.events.event import Event

Place = tuple[str, str]  # (node path or branch, author)


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn of an agent that is not the root."""

    id: str
    name: str
    parent: str | None


class Entries:
    """The turns that are open, by place. The root's name is learned from the first path where it is not given."""

    def __init__(self, root: str | None) -> None:
        self._root = root
        self._open: dict[Place, Entry] = {}

    def entry(self, event: Event) -> Entry | None:
        """The turn this event belongs to, opened with it when need be; None is the root agent."""
        author = event.author
        if self._root is None and event.node_info.path:
            self._root = event.node_info.path.partition("/")[0].partition("@")[0]
        if self._root is None or author in (self._root, "user", "model"):
            return None
        at = place(event)
        held = self._open.get(at)
        if held is None:
            held = self._open[at] = Entry(f"{author}:{event.id}", author, self._parent(event))
        return held

    def close(self, event: Event) -> Entry | None:
        """The agent that sent this event is done; its open turn, if it has one."""
        return self._open.pop(place(event), None)

    def clear(self) -> None:
        """Whatever comes next is another run."""
        self._open.clear()

    def _parent(self, event: Event) -> str | None:
        """The innermost open turn of an agent above this one, where ADK tells the path."""
        path = event.node_info.path
        while "/" in path:
            path = path.rpartition("/")[0]
            for (at, _), entry in self._open.items():
                if at == path:
                    return entry.id
        return None


def place(event: Event) -> Place:
    """Where an event comes from: two places never share a turn."""
    return (event.node_info.path or event.branch or "", event.author)


def node_name(event: Event) -> str:
    """The node that sent it: the last name of its path, without the count ADK adds."""
    last = event.node_info.path.rpartition("/")[2]
    return last.partition("@")[0] or event.author


def done(event: Event) -> bool:
    """Whether a complete event is its agent's last: it answered, passed the word on, or was told to have ended."""
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
    # A custom agent may yield many texts in one turn; a model's last answer says why it stopped.
    return event.finish_reason is not None
