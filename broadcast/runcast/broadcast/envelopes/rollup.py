"""Joins chunks of one message within a few milliseconds into one envelope.

A token is four bytes and its envelope three hundred, so a fast model would fill the wire with envelopes. The first chunk
leaves at once; those that follow within the window are joined; any other envelope, and the end, flushes first, so that
the order holds. Pure: time is an argument, in milliseconds.

    feed(envelope, now) -> envelopes to send now        due() -> when to call `tick`, or None
    tick(now)           -> those with an ended window   flush() -> all that are held
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runcast.broadcast.envelopes.envelope import CHUNKS, Envelope
from runcast.broadcast.json_bytes import dumps

SPARE = "\0" * 256  # what a joined text is measured with: no character takes more bytes
DIGITS = 8  # of these characters make room for numbers that grow


class Coalescer:
    """One channel's roll-up of chunks; its output chains by `prev` whatever was merged."""

    def __init__(self, window_ms: int, *, fits: Callable[[Envelope], bool] | None = None) -> None:
        self._window = window_ms
        self._fits = fits  # absent: any size
        self._held: list[Envelope] = []  # chunks of one message, not yet joined
        self._opened = 0  # when their window began
        self._room = 0  # characters that may follow without being measured
        self._last_sent: tuple[str, int] | None = None  # the message sent last, and when
        self.merged = 0  # envelopes saved by joining

    def feed(self, envelope: Envelope, now: int) -> list[Envelope]:
        """Take one envelope; return those to send now."""
        if self._window == 0 or not _is_piece(envelope):
            return [*self.flush(), envelope]
        if self._held and joins(self._held[-1], envelope):
            return self._add(envelope, now)
        out, key = self.flush(), _message(envelope)
        recent = self._last_sent
        if recent is None or recent[0] != key or now - recent[1] >= self._window:
            self._last_sent = (key, now)
            return [*out, envelope]
        self._hold(envelope, recent[1])
        return out

    def due(self) -> int | None:
        """When the window ends; None when nothing is held."""
        return self._opened + self._window if self._held else None

    def tick(self, now: int) -> list[Envelope]:
        """The envelopes with an ended window."""
        due = self.due()
        if due is None or now < due:
            return []
        self._last_sent = (_message(self._held[0]), now)
        return self.flush()

    def flush(self) -> list[Envelope]:
        """All that are held, whatever the time."""
        if not self._held:
            return []
        joined, self._held = join(self._held), []
        return [joined]

    def _add(self, envelope: Envelope, now: int) -> list[Envelope]:
        if self._fits is not None and not self._has_room(envelope, self._fits):
            out = self.flush()
            self._hold(envelope, now)
            return out
        self._hold(envelope, self._opened)
        self.merged += 1
        if not envelope.payload["is_complete"]:
            return self.tick(now)
        return self.flush()

    def _has_room(self, envelope: Envelope, fits: Callable[[Envelope], bool]) -> bool:
        """Whether the joined envelope fits. It is measured once for many pieces: joining costs what is held."""
        self._room -= len(envelope.payload["chunk"])
        if self._room >= 0:
            return True
        joined = join([*self._held, envelope])
        spare = {**joined.payload, "chunk": joined.payload["chunk"] + SPARE}
        if fits(replace(joined, payload=spare)):
            self._room = len(SPARE) - DIGITS
            return True
        return fits(joined)

    def _hold(self, envelope: Envelope, opened: int) -> None:
        if not self._held:
            self._opened, self._room = opened, 0
        self._held.append(envelope)


class Stretches:
    """Envelopes in order, where the pieces of one text are one envelope of at most so many bytes; 0 joins none.

    A text's first piece stays alone, as when it was live: its time is when the text began.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held: list[list[Envelope]] = []
        self._room = 0  # bytes that the newest one may still take, once a second piece has come

    def __len__(self) -> int:
        return len(self._held)

    def add(self, envelope: Envelope) -> None:
        """Take the next envelope."""
        newest = self._held[-1] if self._most and self._held else []
        if newest and newest[0].payload.get("chunk_index") != 0 and joins(newest[-1], envelope):
            if len(newest) == 1:
                self._room = self._most - len(newest[0].encode())
            self._room -= len(dumps(envelope.payload["chunk"]))
            if self._room >= 0:
                newest.append(envelope)
                return
        self._held.append([envelope])

    def envelopes(self) -> list[Envelope]:
        """Those that were taken, joined."""
        return [join(each) for each in self._held]


def _is_piece(envelope: Envelope) -> bool:
    return envelope.type in CHUNKS and envelope.part is None and "replace" not in envelope.payload


def _message(envelope: Envelope) -> str:
    return f"{envelope.type} {envelope.execution_id} {envelope.payload['message_id']}"


def joins(one: Envelope, next_one: Envelope) -> bool:
    """Whether two pieces of one text may be joined: nothing is missing between them."""
    follow = (
        one.seq == next_one.prev and one.type == next_one.type and one.execution_id == next_one.execution_id
    )
    pieces = follow and _is_piece(one) and _is_piece(next_one)
    return pieces and one.payload["message_id"] == next_one.payload["message_id"]


def join(held: list[Envelope]) -> Envelope:
    """One envelope for all: text joined, position of the last, prev of the first."""
    if len(held) == 1:
        return held[0]
    first, last = held[0], held[-1]
    payload = {
        **first.payload,
        "chunk": "".join(envelope.payload["chunk"] for envelope in held),
        "is_complete": last.payload["is_complete"],
    }
    tokens = sum(envelope.payload.get("tokens_delta", 0) for envelope in held)
    if tokens:
        payload["tokens_delta"] = tokens
    return replace(last, prev=first.prev, payload=payload)
