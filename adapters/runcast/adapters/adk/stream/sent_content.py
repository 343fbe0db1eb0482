"""How much of each model call was sent, so that its complete event adds only the rest.

All partial events of one call and its complete event share one id. Only the length and digest of sent text are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runcast.adapters.adk.plain_values import Sent
from runcast.adapters.adk.stream.streamed_args import ArgsWriter
from runcast.adapters.adk.stream.subagents import Entry, Place

LEFT_OPEN = 64  # streams kept without an end: custom nodes may yield partials that never complete


@dataclass(slots=True)
class Stream:
    """One model call while it streams."""

    id: str
    entry: Entry | None
    step: str
    thought: Sent = field(default_factory=Sent)
    text: Sent = field(default_factory=Sent)
    blank: str = ""  # blanks before the first visible character of a thought
    args: dict[str, ArgsWriter] = field(default_factory=dict[str, ArgsWriter])

    @property
    def owner(self) -> str | None:
        """The subagent run of its events."""
        return None if self.entry is None else self.entry.id


class Streams:
    """The streaming calls: at most one is current at a place, a bounded number of others waits for a late end."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._current: dict[Place, str] = {}

    def get(self, event_id: str) -> Stream | None:
        """The stream of this event id, if it has begun."""
        return self._streams.get(event_id)

    def begin(self, at: Place, stream: Stream) -> Stream | None:
        """Begin a call; returns the call before it, if that never ended."""
        before = self._streams.get(self._current.get(at, ""))
        self._current[at] = stream.id
        self._streams[stream.id] = stream
        while len(self._streams) > LEFT_OPEN:
            del self._streams[next(iter(self._streams))]
        return before

    def end(self, at: Place, event_id: str) -> Stream | None:
        """End the call of this event; returns its stream, if there was one."""
        if self._current.get(at) == event_id:
            del self._current[at]
        return self._streams.pop(event_id, None)

    def current(self, at: Place) -> Stream | None:
        """The call that streams here."""
        return self._streams.get(self._current.get(at, ""))

    @property
    def any_current(self) -> bool:
        """Whether a call streams anywhere."""
        return any(id in self._streams for id in self._current.values())

    def end_current(self, at: Place) -> Stream:
        """End the current call here without a complete event; its calls stay unfinished."""
        return self._streams[self._current.pop(at)]

    def unfinished_calls(self) -> bool:
        """Whether a tool call was streamed that no complete event has confirmed."""
        return any(stream.args for stream in self._streams.values())
