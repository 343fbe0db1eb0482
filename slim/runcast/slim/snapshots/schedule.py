"""When to take a snapshot of a thread.

A snapshot is due at the end of a run, which an interrupt is too, and during a run after a number of entries or
milliseconds since the last one. Time is the time of the entries. Does not know where snapshots are stored.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ag_ui.core import RunErrorEvent, RunFinishedEvent

from runcast.slim.entry import Entry
from runcast.slim.snapshots.agent_state import AgentState, StateBuilder
from runcast.slim.snapshots.serializer import AgentSerializer
from runcast.slim.values.lifecycles import DELTAS

TOGETHER = 32  # entries that are folded at once: a processor is quicker at one thing many times


class SnapshotTaker:
    """Follows one thread's log and takes its snapshots. One object per thread."""

    def __init__(
        self,
        serializer: AgentSerializer,
        *,
        every_entries: int = 500,
        every_ms: int = 15_000,
        base: AgentState | None = None,
        agent_id: str | None = None,
    ) -> None:
        """`base` is the state of the last snapshot; entries that it includes are skipped."""
        if every_entries < 1 or every_ms < 1:
            raise ValueError("every_entries and every_ms are at least 1")
        self._builder = StateBuilder(agent_id, base=base)
        self._waiting = deque[Entry]()  # not folded yet
        self.taken: AgentState | None = None  # the state of the last snapshot
        self._serializer = serializer
        self._every_entries = every_entries
        self._every_ms = every_ms
        self._seq = 0 if base is None or base.seq is None else base.seq
        self._since: int | None = None  # time of the last snapshot, or of the first entry
        self._count = 0  # entries since then

    @property
    def builder(self) -> StateBuilder:
        """The state so far."""
        self._fold()
        return self._builder

    def _fold(self) -> None:
        while self._waiting:
            self._builder.feed_entry(self._waiting.popleft())

    def feed(self, entry: Entry) -> dict[str, Any] | None:
        """Add the next entry; returns a snapshot when one is due."""
        if entry.seq <= self._seq:
            return None
        self._seq = entry.seq
        self._waiting.append(entry)
        self._count += 1
        self._since = entry.at if self._since is None else self._since
        due = self._count >= self._every_entries or entry.at - self._since >= self._every_ms
        event = entry.event
        if not due and (type(event) in DELTAS or not isinstance(event, RunFinishedEvent | RunErrorEvent)):
            if len(self._waiting) >= TOGETHER:
                self._fold()
            return None
        self._count, self._since = 0, entry.at
        return self.take()

    def take(self) -> dict[str, Any]:
        """A snapshot of the thread as it is now."""
        self.taken = self.builder.state()
        return self._serializer.serialize(self.taken)
