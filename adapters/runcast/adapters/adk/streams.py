"""What of each model call went out already, so that its complete event adds only what is missing.

In ADK all partial events of one call and its complete event share one id. A partial is a display hint: it may be
cut, rewritten by a callback afterwards, or never completed. Texts are not kept, only their length and digest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runcast.adapters.adk.streamed_args import ArgsWriter
from runcast.adapters.adk.subagents import Entry, Place
from runcast.adapters.adk.values import Sent

LEFT_OPEN = (
    64  # streams without an end that are remembered: custom nodes may yield partials that never complete
)


@dataclass(slots=True)
class Stream:
    """One model call that is being streamed."""

    id: str
    entry: Entry | None
    step: str
    thought: Sent = field(default_factory=Sent)
    text: Sent = field(default_factory=Sent)
    args: dict[str, ArgsWriter] = field(default_factory=dict[str, ArgsWriter])

    @property
    def owner(self) -> str | None:
        """The subagent run that its events belong to."""
        return None if self.entry is None else self.entry.id


class Streams:
    """The calls that stream: at most one is current at a place, the others wait for a late end within a bound."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._current: dict[Place, str] = {}

    def get(self, event_id: str) -> Stream | None:
        """The stream of this event, when it has begun."""
        return self._streams.get(event_id)

    def begin(self, at: Place, stream: Stream) -> Stream | None:
        """Another call begins here; the one it follows, when that never ended."""
        before = self._streams.get(self._current.get(at, ""))
        self._current[at] = stream.id
        self._streams[stream.id] = stream
        while len(self._streams) > LEFT_OPEN:
            del self._streams[next(iter(self._streams))]
        return before

    def end(self, at: Place, event_id: str) -> Stream | None:
        """The complete event is here."""
        if self._current.get(at) == event_id:
            del self._current[at]
        return self._streams.pop(event_id, None)

    def current(self, at: Place) -> bool:
        """Whether a call streams here."""
        return self._current.get(at) in self._streams

    def end_current(self, at: Place) -> Stream:
        """The call that streams here breaks off; what it began is remembered as unfinished."""
        return self._streams[self._current.pop(at)]

    def unfinished_calls(self) -> bool:
        """Whether a call was begun that no complete event has confirmed."""
        return any(stream.args for stream in self._streams.values())
