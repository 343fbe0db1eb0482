"""Secrets taken out of a stream of events, also where they are split over deltas.

A delta passes at once, and as the same object, unless a secret may begin in it. From there on the stream's text is
held until it is certain: the next blank mostly, the end of the message at the latest. Rules:

1. What is released, joined, equals the whole text redacted at once; where secrets run into each other it may hide
   more, never less.
2. A stream holds at most `window` characters. What outgrows them is replaced, and the rest of that stream dropped:
   it fails closed.
3. Held text is released before anything that ends, replaces or restates its message, so order and outcome stand.

Knows which events carry deltas and which end them. Does not know what a secret is, or who reads the events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from ag_ui.core import (
    ActivitySnapshotEvent,
    MessagesSnapshotEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.linear import searchable

if TYPE_CHECKING:
    from collections.abc import Callable

    from runcast.slim.scan import Finding, Scanner
    from runcast.slim.wire import AnyEvent

__all__ = ["StreamRedactor"]

PIECES = 48  # how many of the last deltas stay known after they were released, and
CONTEXT = 128  # how many of their characters: the name before a value, the border of a word
LONG_HOLD = 512  # characters up to which every delta is looked at
REMEMBERED = 4_096  # harmless deltas known by heart; tokens repeat

_PLAIN, _DELTA, _CHUNK, _BORDER, _END = range(5)

# What an event is to the stream it names: its part, the drawer that stream lies in, the field with its id, and, of a
# border, the one field besides metadata that may hold content.
_PARTS: dict[type[Any], tuple[int, int, str, str]] = {
    TextMessageContentEvent: (_DELTA, 0, "message_id", ""),
    ReasoningMessageContentEvent: (_DELTA, 1, "message_id", ""),
    ToolCallArgsEvent: (_DELTA, 2, "tool_call_id", ""),
    TextMessageChunkEvent: (_CHUNK, 0, "message_id", ""),
    ReasoningMessageChunkEvent: (_CHUNK, 1, "message_id", ""),
    ToolCallChunkEvent: (_CHUNK, 2, "tool_call_id", ""),
    TextMessageStartEvent: (_BORDER, 0, "message_id", "name"),
    TextMessageEndEvent: (_BORDER, 0, "message_id", "metadata"),
    ReasoningMessageStartEvent: (_BORDER, 1, "message_id", "metadata"),
    ReasoningMessageEndEvent: (_BORDER, 1, "message_id", "metadata"),
    ToolCallStartEvent: (_BORDER, 2, "tool_call_id", "tool_call_name"),
    ToolCallEndEvent: (_BORDER, 2, "tool_call_id", "metadata"),
    RunStartedEvent: (_END, 0, "", ""),
    RunFinishedEvent: (_END, 0, "", ""),
    RunErrorEvent: (_END, 0, "", ""),
}
_OTHER = (_PLAIN, 0, "", "")
_MINTS = (ToolCallResultEvent, ActivitySnapshotEvent)  # make or replace the message they name
_RESTATES = (MessagesSnapshotEvent, RunStartedEvent, RunFinishedEvent, RunErrorEvent)


class _Rules(Protocol):
    """What is asked of a `Redactor`."""

    replace: str
    window: int
    hold: int
    also: Callable[[str], str] | None
    holds_always: bool
    scanner: Scanner
    harmless: set[str]
    suspects: Callable[[bytes], bool]

    def event(self, event: AnyEvent, data: bytes | None = None) -> AnyEvent: ...
    def replaced(self, text: str, findings: Iterable[Finding]) -> str: ...


class _Stream:
    """One message's text, reasoning or arguments while they grow. Most never hold anything: that costs nothing."""

    held = ""
    owed = ""  # held as well, and not looked at yet
    awake = False  # a secret may have begun: look at the next delta whatever it is
    muted = False  # the window was outgrown: nothing leaves any more
    last: AnyEvent | None = None  # what held text will be sent like

    def __init__(self) -> None:
        self.recent: deque[str] = deque(maxlen=PIECES)  # what was released last

    def context(self) -> str:
        return "".join(self.recent)[-CONTEXT:]


class StreamRedactor:
    """The events of one thread, in order, without their secrets. Holds text back; `close` lets go of it."""

    def __init__(self, redactor: _Rules) -> None:
        self._redactor = redactor
        self._look = redactor.event
        self._suspects = redactor.suspects
        self._scanner = redactor.scanner
        self._always = redactor.holds_always or redactor.also is not None
        self._streams: tuple[dict[str, _Stream], ...] = ({}, {}, {})  # texts, reasoning, arguments: by id
        self._chunked: tuple[type, str] | None = None  # the stream that a chunk without an id goes on with
        self._harmless = redactor.harmless
        self._holding = 0  # streams that hold text

    def feed(self, event: AnyEvent, data: bytes | None = None) -> list[AnyEvent]:
        """What may leave now. `data`, the event's encoded bytes, spares encoding it again to look into it."""
        part, drawer, name, content = _PARTS.get(type(event), _OTHER)
        if part == _CHUNK or self._chunked is not None:
            return self._chunks(event, data)
        fields = event.__dict__
        if part == _DELTA:
            delta, key = fields["delta"], fields[name]
            stream = self._streams[drawer].get(key)
            if stream is None:
                stream = self._streams[drawer][key] = _Stream()
            if (
                not self._holding
                and (delta in self._harmless or self._is_harmless(delta, stream))
                and not stream.awake
                and fields["metadata"] is None
                and fields["raw_event"] is None
                and not event.__pydantic_extra__
            ):
                stream.recent.append(delta)
                return [event]
            return [*self._twins(drawer, key), *self._delta(stream, event, delta)]
        out = self._before(event) if self._holding else []
        if part == _BORDER:
            self._streams[drawer].pop(fields[name], None)
            if fields[content] is None and not _carries(event):
                out.append(event)
                return out
        elif part == _END:
            self._streams = ({}, {}, {})
        out.append(self._look(event, data) if data is None or self._suspects(data) else event)
        return out

    def redact(self, events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
        """A whole stream at once."""
        for event in events:
            yield from self.feed(event)
        yield from self.close()

    def close(self) -> list[AnyEvent]:
        """What is still held, for a stream that ends without saying so."""
        return [
            event
            for drawer in (0, 1, 2)
            for key in self._streams[drawer]
            for event in self._let_go(drawer, key)
        ]

    # ------------------------------------------------------------------ deltas

    def _is_harmless(self, delta: str, stream: _Stream) -> bool:
        if self._always or len(delta) > CONTEXT or (not delta.isascii() and _unencodable(delta)):
            return False
        if self._scanner.stirs(delta):  # perhaps for what stands before it
            return not (stream.recent or self._scanner.wakes(delta))
        if len(self._harmless) < REMEMBERED:
            self._harmless.add(delta)
        return True

    def _delta(self, stream: _Stream, event: Any, delta: str) -> list[AnyEvent]:
        bare = event.model_copy(update={"delta": ""}) if _carries(event) else None
        stream.last = event
        released = self._released(stream, delta)
        if bare is None:
            if released == delta:
                return [event]
            return [_like(event, released)] if released else []
        redacted = self._redactor.event(bare)
        if redacted is bare and released == delta:
            return [event]
        return [redacted.model_copy(update={"delta": released})]

    def _released(self, stream: _Stream, delta: str) -> str:
        """What of the held text and the delta is certain by now."""
        if stream.muted:
            return ""
        stream.owed += delta
        if len(stream.owed) < len(stream.held) // 8 - LONG_HOLD // 8:
            return ""  # a long hold is looked through now and then only
        context = stream.context()
        text, since = context + stream.held + stream.owed, len(context)
        if not (stream.held or self._always or self._scanner.wakes(searchable(text))):
            stream.owed, stream.awake = "", False
            stream.recent.append(delta[-CONTEXT:])
            return delta
        stream.owed = ""
        findings, wait, stream.awake = self._scanner.growing(text, since, 2 * self._redactor.window)
        wait = self._backed_off(text, max(wait, since), since, findings)
        released = self._redacted(text, findings, since, wait)
        self._hold(stream, text[wait:])
        stream.recent = deque((text[max(0, wait - CONTEXT) : wait],), maxlen=PIECES)
        if len(stream.held) > self._redactor.window:
            self._hold(stream, "")
            stream.muted = True
            return released + self._redactor.replace
        return released

    def _hold(self, stream: _Stream, text: str) -> None:
        self._holding += bool(text) - bool(stream.held)
        stream.held = text

    def _backed_off(self, text: str, wait: int, since: int, findings: list[Finding]) -> int:
        """Where patterns or a callable of the user's look on, the last characters wait for what may come."""
        if not self._always:
            return wait
        wait = max(since, min(wait, len(text) - self._redactor.hold))
        if self._redactor.also is not None:
            blank = max(text.rfind(" ", since, wait), text.rfind("\n", since, wait))
            full = len(text) - since > self._redactor.window // 2
            wait = blank + 1 if blank >= since else wait if full else since
        for each in findings:
            if each.start < wait < each.end:
                wait = max(each.start, since)
        return wait

    def _redacted(self, text: str, findings: Iterable[Finding], since: int, wait: int) -> str:
        """The part between `since` and `wait` with what was found in it replaced."""
        inside = [_clamped(each, since) for each in findings if since < each.end and each.start < wait]
        released = self._redactor.replaced(text[since:wait], inside)
        return released if self._redactor.also is None else self._redactor.also(released)

    # ------------------------------------------------------------------ everything else

    def _before(self, event: AnyEvent) -> list[AnyEvent]:
        """Held text that must not come after this event."""
        part, drawer, name, _ = _PARTS.get(type(event), _OTHER)
        if part == _BORDER:
            return self._let_go(drawer, event.__dict__[name])
        if isinstance(event, _MINTS):
            return [*self._let_go(0, event.message_id), *self._let_go(1, event.message_id)]
        return self.close() if isinstance(event, _RESTATES) else []

    def _chunks(self, event: AnyEvent, data: bytes | None) -> list[AnyEvent]:
        """A chunk, or what follows one: a chunked message ends when something else comes."""
        part, drawer, name, _ = _PARTS.get(type(event), _OTHER)
        ended = self._end_of_chunks(event)
        if part != _CHUNK:
            return [*ended, *self.feed(event, data)]
        fields = event.__dict__
        if fields["delta"] is None:
            return [*ended, self._look(event, data)]
        key = fields[name] or (self._chunked[1] if self._chunked else "")
        self._chunked = (type(event), key)
        stream = self._streams[drawer].setdefault(key, _Stream())
        return [*ended, *self._twins(drawer, key), *self._delta(stream, event, fields["delta"])]

    def _end_of_chunks(self, event: AnyEvent) -> list[AnyEvent]:
        if self._chunked is None:
            return []
        kind, key = self._chunked
        _, drawer, name, _ = _PARTS[kind]
        if type(event) is kind and event.__dict__[name] in (None, key):
            return []
        self._chunked = None
        return self._let_go(drawer, key, forget=True)

    def _twins(self, drawer: int, key: str) -> list[AnyEvent]:
        """Text and reasoning may grow under one id, and then their order counts."""
        return self._let_go(1 - drawer, key) if drawer < 2 else []

    def _let_go(self, drawer: int, key: str, *, forget: bool = False) -> list[AnyEvent]:
        """The held text of one stream, as final as it gets."""
        stream = self._streams[drawer].get(key)
        if stream is None:
            return []
        if forget:
            del self._streams[drawer][key]
        if not stream.held + stream.owed:
            return []
        context = stream.context()
        text, since = context + stream.held + stream.owed, len(context)
        released = self._redacted(text, self._scanner.findings(text), since, len(text))
        self._hold(stream, "")
        stream.owed = ""
        stream.recent.append(text[since:][-CONTEXT:])
        return [_like(stream.last, released)] if released else []


def _carries(event: Any) -> bool:
    """Whether there is more on the event than its delta."""
    return event.metadata is not None or event.raw_event is not None or bool(event.__pydantic_extra__)


def _like(event: Any, delta: str) -> AnyEvent:
    """Another delta of the same stream."""
    fields = {
        name: value
        for name, value in event.__dict__.items()
        if value is not None and name not in ("metadata", "raw_event", "type", "delta")
    }
    again: AnyEvent = type(event)(delta=delta, **fields)
    return again


def _clamped(finding: Finding, since: int) -> Finding:
    start = max(finding.start, since) - since
    return type(finding)(start, finding.end - since, finding.quote)


def _unencodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
