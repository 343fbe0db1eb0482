"""Removes secrets from a stream of events, also secrets that are split over deltas.

A delta passes at once, and as the same object, unless a secret may begin in it. From there on the stream's text is
held until it is certain: mostly until the next blank, at the latest until the end of the message. Rules:

1. The released text, joined, equals the whole text redacted at once; where secrets run into each other it may hide
   more, never less.
2. A stream holds at most `window` characters. A longer hold is replaced, and the rest of that stream dropped: it fails
   closed.
3. Held text is released before any event that ends, replaces or restates its message, so order and outcome stay.

Knows which events carry deltas and which end them. Does not know what a secret is, or where the events go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from runcast.slim.redaction.event_parts import (
    BORDER,
    CHUNK,
    CHUNKS,
    DELTA,
    MINTS,
    OTHER,
    PARTS,
    PLAIN,
    RESTATES,
    START,
    TERSE,
)
from runcast.slim.redaction.outline import BRIEF, LONGEST, OUTLINE
from runcast.slim.values.linear_regex import searchable

if TYPE_CHECKING:
    from collections.abc import Callable

    from runcast.slim.redaction.outline import Familiar
    from runcast.slim.redaction.scanner import Scanner
    from runcast.slim.redaction.value_extent import Finding
    from runcast.slim.values.linear_regex import Finder
    from runcast.slim.wire.codec import AnyEvent

PIECES = 48  # how many of the last released deltas give context, and
CONTEXT = 128  # how many of their characters: the name before a value, the border of a word
TAIL = 40  # as many characters has the beginning of a word that a delta ends
LONG_HOLD = 512  # up to so many held characters, a hold is scanned at every blank, and
FEW = 8  # whenever so many more have come
REMEMBERED = 4_096  # harmless deltas and short texts that are cached, of each; tokens and names repeat

Pieces = deque[str]


class _Rules(Protocol):
    """The parts of a `Redactor` that are used here."""

    replace: str
    window: int
    hold: int
    also: Callable[[str], str] | None
    holds_always: bool
    scanner: Scanner
    harmless: set[str]
    openers: set[str]
    glimpse: Finder
    familiar: Familiar

    def event(self, event: AnyEvent, data: bytes | None = None) -> AnyEvent: ...
    def replaced(self, text: str, findings: Iterable[Finding]) -> str: ...


class _Stream:
    """One message's text, reasoning or arguments while a secret may grow in them."""

    held = ""
    owed = ""  # held as well, and not scanned yet
    awake = False  # a secret may have begun: scan the next delta in any case
    muted = False  # the hold outgrew the window: nothing is released any more
    last: AnyEvent | None = None  # the model for the event that releases held text

    def __init__(self, recent: Pieces) -> None:
        self.recent = recent  # released last

    def context(self) -> str:
        return "".join(self.recent)[-CONTEXT:]

    def released(self, text: str) -> None:
        self.recent.append(text)


class StreamRedactor:
    """The events of one thread, in order, without their secrets. Holds text back; `close` releases it."""

    def __init__(self, redactor: _Rules) -> None:
        self._redactor = redactor
        self._redact_event = redactor.event
        self._may_hold = redactor.glimpse
        self._scanner = redactor.scanner
        self._always = redactor.holds_always or redactor.also is not None
        # Texts, reasoning and arguments, by id. For most, only the last released deltas are kept.
        self._streams: tuple[dict[str, _Stream | Pieces], ...] = ({}, {}, {})
        self._chunked: tuple[type, str] | None = None  # the stream that a chunk without an id continues
        self._harmless = redactor.harmless
        self._openers = redactor.openers
        self._familiar = redactor.familiar
        self._outlines = redactor.familiar.outlines
        self._open = 0  # streams that hold text, and a chunked message that may continue

    def feed(self, event: AnyEvent, data: bytes | None = None) -> Sequence[AnyEvent]:
        """The events that may leave now. Pass the event's encoded bytes as `data` to save encoding it again."""
        if self._open:
            return self._carefully(event, data)
        part, drawer, name, content = PARTS.get(type(event), OTHER)
        if part == DELTA:
            fields, streams = event.__dict__, self._streams[drawer]
            recent = streams.get(fields[name])
            if fields["metadata"] is None and fields["raw_event"] is None and not event.__pydantic_extra__:
                if type(recent) is deque:
                    if fields["delta"] in self._harmless:
                        recent.append(fields["delta"])
                        return (event,)
                elif recent is None and fields["delta"] in self._openers:
                    streams[fields[name]] = deque((fields["delta"],), PIECES)
                    return (event,)
            return self._read(drawer, fields[name], event, data)
        if part == BORDER:
            fields = event.__dict__
            key, streams = fields[name], self._streams[drawer]
            bare = fields["metadata"] is None and fields["raw_event"] is None and not event.__pydantic_extra__
            streams.pop(key, None)
            if bare and fields[content] is None:
                return (event,)
        elif part != TERSE and (part != PLAIN or data is None or len(data) > BRIEF):
            return self._rare(part, event, data)
        if data is not None and data.translate(OUTLINE) in self._outlines:
            return (event,)
        return (self._terse(event, data),)

    def _read(self, drawer: int, key: str, event: Any, data: bytes | None) -> Sequence[AnyEvent]:
        """A delta that is not known to be harmless, or is the first one of its stream, or carries something."""
        recent, delta = self._streams[drawer].get(key), event.delta
        if isinstance(recent, _Stream) or not (
            delta in (self._openers if recent is None else self._harmless) or self._is_harmless(delta, recent)
        ):
            return self._grown(drawer, key, event, delta)
        if _carries(event) and (data is None or self._may_hold(data)):
            return self._grown(drawer, key, event, delta)
        self._streams[drawer].setdefault(key, deque(maxlen=PIECES)).append(delta)  # type: ignore[union-attr]  # no _Stream
        return (event,)

    def _rare(self, part: int, event: AnyEvent, data: bytes | None) -> Sequence[AnyEvent]:
        """The beginning or the end of a run, a chunk, or what has a content of its own."""
        if part == CHUNK:
            return self._chunks(event, data)
        if part == START:
            self._streams = ({}, {}, {})
        # A longer one asks or holds something.
        if part != PLAIN and data is not None and len(data) <= LONGEST:
            known = data.translate(OUTLINE) in self._outlines
            return (event,) if known else (self._terse(event, data),)
        return (self._redact_event(event, data) if data is None or self._may_hold(data) else event,)

    def _terse(self, event: AnyEvent, data: bytes | None) -> AnyEvent:
        """An event of few outlines, the first times that it has one of them."""
        if data is None or self._may_hold(data):
            return self._redact_event(event, data)
        self._familiar.learn(data.translate(OUTLINE))
        return event

    def _carefully(self, event: AnyEvent, data: bytes | None) -> list[AnyEvent]:
        """The same while text is held, or while a chunked message may continue."""
        part, drawer, name, content = PARTS.get(type(event), OTHER)
        if part == CHUNK or self._chunked is not None:
            return self._chunks(event, data)
        if part == DELTA:
            return self._grown(drawer, event.__dict__[name], event, event.__dict__["delta"])
        out = self._before(event)
        if part == BORDER:
            self._streams[drawer].pop(event.__dict__[name], None)
            if event.__dict__[content] is None and not _carries(event):
                return [*out, event]
        elif part == START:
            self._streams = ({}, {}, {})
        return [*out, self._redact_event(event, data)]

    def redact(self, events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
        """A whole stream at once."""
        for event in events:
            yield from self.feed(event)
        yield from self.close()

    def close(self) -> list[AnyEvent]:
        """The text still held, for a stream that ends without an event."""
        return [
            event
            for drawer in (0, 1, 2)
            for key in self._streams[drawer]
            for event in self._release(drawer, key)
        ]

    # ------------------------------------------------------------------ deltas

    def _is_harmless(self, delta: str, recent: Pieces | None) -> bool:
        if self._always or len(delta) > CONTEXT or (not delta.isascii() and _unencodable(delta)):
            return False
        if self._scanner.wakes(delta):
            return False
        remembers = len(self._openers) < REMEMBERED
        if remembers:
            self._openers.add(delta)
        if ":" in delta or "=" in delta:  # an operator: the name may stand before it
            return not recent
        if self._scanner.resumes(delta):
            return not recent or not self._scanner.begins("".join(recent)[-TAIL:] + delta)
        if remembers:
            self._harmless.add(delta)
        return True

    def _grown(self, drawer: int, key: str, event: Any, delta: str) -> list[AnyEvent]:
        """A delta in which a secret may begin, continue or end."""
        streams = self._streams[drawer]
        known = streams.get(key)
        stream = streams[key] = (
            known if isinstance(known, _Stream) else _Stream(known or deque(maxlen=PIECES))
        )
        out = self._delta(stream, event, delta)
        if drawer < 2 and key in self._streams[1 - drawer]:
            # Text and reasoning may grow under one id, and then their order matters.
            out = [*self._release(1 - drawer, key), *out]
        if not (stream.held or stream.awake or stream.muted):
            streams[key] = stream.recent
        return out

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
        return [redacted.model_copy(update={"delta": released or (None if type(event) in CHUNKS else "")})]

    def _released(self, stream: _Stream, delta: str) -> str:
        """The part of the held text and the delta that is certain by now."""
        if stream.muted:
            return ""
        stream.owed += delta
        few = len(stream.owed) < max(FEW, len(stream.held) // 8 - LONG_HOLD // 8)
        if stream.held and few and not (len(stream.held) < LONG_HOLD and delta[-1:].isspace()):
            return ""  # a hold is not scanned at every character, and a long one only now and then
        context = stream.context()
        text, since = context + stream.held + stream.owed, len(context)
        if not (stream.held or self._always or self._scanner.wakes(searchable(text))):
            stream.owed, stream.awake = "", False
            stream.released(delta[-CONTEXT:])
            return delta
        stream.owed = ""
        findings, wait, stream.awake = self._scanner.growing(text, since, 2 * self._redactor.window)
        if wait == len(text) and not (findings or stream.held or self._always):
            stream.released(delta[-CONTEXT:])
            return delta
        wait = self._backed_off(text, max(wait, since), since, findings)
        released = self._redacted(text, findings, since, wait)
        self._hold(stream, text[wait:])
        stream.recent = deque((text[max(0, wait - CONTEXT) : wait],), PIECES)
        if len(stream.held) > self._redactor.window:
            self._hold(stream, "")
            stream.muted = True
            return released + self._redactor.replace
        return released

    def _hold(self, stream: _Stream, text: str) -> None:
        self._open += bool(text) - bool(stream.held)
        stream.held = text

    def _backed_off(self, text: str, wait: int, since: int, findings: Sequence[Finding]) -> int:
        """With patterns or a callable of the user, the last characters wait for the next ones."""
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
        """The part between `since` and `wait` with its findings replaced."""
        inside = [_clamped(each, since) for each in findings if since < each.end and each.start < wait]
        released = self._redactor.replaced(text[since:wait], inside)
        return released if self._redactor.also is None else self._redactor.also(released)

    # ------------------------------------------------------------------ everything else

    def _before(self, event: AnyEvent) -> list[AnyEvent]:
        """Held text that must not come after this event."""
        part, drawer, name, _ = PARTS.get(type(event), OTHER)
        if part == BORDER:
            return self._release(drawer, event.__dict__[name])
        if isinstance(event, MINTS):
            return [*self._release(0, event.message_id), *self._release(1, event.message_id)]
        return self.close() if isinstance(event, RESTATES) else []

    def _chunks(self, event: AnyEvent, data: bytes | None) -> list[AnyEvent]:
        """A chunk, or an event after one: any other event ends a chunked message."""
        part, drawer, name, _ = PARTS.get(type(event), OTHER)
        ended = self._end_of_chunks(event)
        if part != CHUNK:
            return [*ended, *self.feed(event, data)]
        fields = event.__dict__
        if fields["delta"] is None:
            return [*ended, self._redact_event(event, data)]
        key = fields[name] or (self._chunked[1] if self._chunked else "")
        self._open += self._chunked is None
        self._chunked = (type(event), key)
        return [*ended, *self._grown(drawer, key, event, fields["delta"])]

    def _end_of_chunks(self, event: AnyEvent) -> list[AnyEvent]:
        if self._chunked is None:
            return []
        kind, key = self._chunked
        _, drawer, name, _ = PARTS[kind]
        if type(event) is kind and event.__dict__[name] in (None, key):
            return []
        self._open -= 1
        self._chunked = None
        return self._release(drawer, key, forget=True)

    def _release(self, drawer: int, key: str, *, forget: bool = False) -> list[AnyEvent]:
        """The held text of one stream, as it will stay."""
        streams = self._streams[drawer]
        stream = streams.pop(key, None) if forget else streams.get(key)
        if not isinstance(stream, _Stream) or not stream.held + stream.owed:
            return []
        context = stream.context()
        text, since = context + stream.held + stream.owed, len(context)
        released = self._redacted(text, self._scanner.findings(text, since), since, len(text))
        self._hold(stream, "")
        stream.owed = ""
        stream.released(text[since:][-CONTEXT:])
        return [_like(stream.last, released)] if released else []


def _carries(event: Any) -> bool:
    """Whether the event has more than its delta."""
    if event.metadata is not None or event.raw_event is not None or event.__pydantic_extra__:
        return True
    part, _, name, _ = PARTS.get(event.__class__, OTHER)
    return part == CHUNK and event.__dict__[name] is not None  # the next chunks continue its id


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
    return searchable(text) != text
