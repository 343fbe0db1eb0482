"""Maps the entries of one thread to envelopes.

Pure: the same entries from a run's start give the same envelopes, so that a replay needs no stored ones. Gives
envelopes their position and keeps them within the budget; their payloads are made in `event_payloads`, `text_payloads`
and `agui`. Does not know frameworks, channels, targets or time. A mapper belongs to one thread and receives every entry
once, in order. It never raises for an entry's content: of an invalid stream it maps the valid events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, cast

from ag_ui.core import ReasoningMessageContentEvent, TextMessageContentEvent

from runcast.broadcast.config import BroadcastConfig
from runcast.broadcast.envelopes.agui import AGUI, faithful
from runcast.broadcast.envelopes.budget import Budget
from runcast.broadcast.envelopes.envelope import CHUNKS, Envelope, fit
from runcast.broadcast.envelopes.event_payloads import EventHandler, event_handlers
from runcast.broadcast.envelopes.run_view import Draft, RunView
from runcast.broadcast.envelopes.split_text import split_text
from runcast.broadcast.envelopes.text_payloads import Delta, Texts, text_handlers
from runcast.broadcast.json_bytes import iso
from runcast.slim.entry import Entry, begins
from runcast.slim.errors import InvalidStream
from runcast.slim.protocol.chunk_expander import CHUNKS as SHORTHAND
from runcast.slim.wire.codec import AnyEvent

_RUNS_REMEMBERED = 64  # ended runs with a kept status, so that no envelope is made twice
_ESCAPED = 12  # bytes that one character may need at most, as JSON in JSON
_KEYS = 600  # bytes that an envelope of a chunk needs beside its ids and its text
_GROW: frozenset[type] = frozenset(
    {TextMessageContentEvent, ReasoningMessageContentEvent}
)  # of which many come at once
Handler = Callable[[Texts, RunView, Any, int], list[Draft]]


@lru_cache
def _handlers(config: BroadcastConfig) -> Mapping[type, Handler]:
    """What makes the drafts of each event type, for all threads of a config."""
    table: dict[type, Handler] = {
        kind: partial(_without_texts, each, config) for kind, each in event_handlers(config).items()
    }
    return table | text_handlers(config)


def _without_texts(
    handler: EventHandler, config: BroadcastConfig, texts: Texts, view: RunView, event: Any, at: int
) -> list[Draft]:
    return handler(config, view, event, at)


class EnvelopeMapper:
    """One thread's entries in, its envelopes out."""

    def __init__(
        self, config: BroadcastConfig | None = None, *, prev: int = 0, budget: Budget | None = None
    ) -> None:
        self.config = config or BroadcastConfig()
        self.passed_over = 0  # chunk events without a message to continue
        self._prev = prev  # seq of the last envelope
        self._seen: int | None = None  # seq of the last entry
        self._budget = budget or Budget(self.config.max_envelope_bytes)
        self._runs: OrderedDict[str, RunView] = OrderedDict()
        self._entry: Entry  # the one being mapped
        self._at = 0  # its time
        self._second = -1  # for which `_clock` is the beginning of a timestamp
        self._clock = ""
        self._map = _handlers(self.config)
        self._texts = Texts(self.config, self._split)
        self._joined: frozenset[type] = frozenset() if self.config.faithful else _GROW & self._map.keys()

    @property
    def position(self) -> int:
        """The seq of the last envelope, which is the next one's `prev`."""
        return self._prev

    def feed(self, entry: Entry) -> list[Envelope]:
        """The envelopes of one entry; often none."""
        self._arrived(entry, entry.seq)
        if self.config.faithful:
            return self._place(entry, self._faithful(entry))
        event, at = entry.event, self._at
        view = self._runs.get(entry.run_id) or self._new_view(entry)
        # Only shorthand opens a lane, and only an event that comes while one is open may close it.
        if view.chunks.lanes or isinstance(event, SHORTHAND):
            drafts = self._spelled_out(view, event, at)
        else:
            drafts = self._handle(view, event, at)
        return self._placed(view, entry, drafts)

    def stretches(self, entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
        """Entries that follow each other, in pieces for `feed_stretch`: deltas of one text stay together."""
        at = 0
        while at < len(entries):
            end = self._end_of_stretch(entries, at)
            yield entries[at:end]
            at = end

    def feed_stretch(self, stretch: Sequence[Entry]) -> list[Envelope]:
        """The envelopes of a piece of `stretches`: deltas have one, as if theirs had been joined."""
        last = stretch[-1]
        if len(stretch) == 1:
            return self.feed(last)
        self._arrived(last, stretch[0].seq)
        view, event = self._runs[last.run_id], cast("Delta", last.event)
        delta = "".join([entry.event.__dict__["delta"] for entry in stretch])
        return self._placed(view, last, self._texts.grown(view, event, delta, len(stretch)))

    def _end_of_stretch(self, entries: Sequence[Entry], at: int) -> int:
        first = entries[at]
        kind, view = type(first.event), self._runs.get(first.run_id)
        if kind not in self._joined or view is None or view.chunks.lanes:
            return at + 1
        key, room = first.event.__dict__["message_id"], self._texts.room(view, cast("Delta", first.event))
        for end in range(at, len(entries)):
            entry = entries[end]
            fields = entry.event.__dict__
            if type(entry.event) is not kind or fields["message_id"] != key or entry.run_id != first.run_id:
                return end
            delta = fields["delta"]
            room -= len(delta)
            # One that ends in half a character may have no chunk.
            if room < 0 or fields["metadata"] is not None or not delta or "\ud800" <= delta[-1] <= "\udbff":
                return max(end, at + 1)
        return len(entries)

    def _arrived(self, entry: Entry, first: int) -> None:
        """An entry is the next to be mapped, with those behind `first` if it stands for several."""
        if self._seen is not None and first != self._seen + 1:
            # Another worker mapped the entries between; its run ended with the entry before this one, and is complete.
            self._prev = first - 1
        self._seen = entry.seq
        self._entry = entry
        stamp: int | None = getattr(entry.event, "timestamp", None)
        self._at = entry.at if stamp is None else stamp

    def _placed(self, view: RunView, entry: Entry, drafts: list[Draft]) -> list[Envelope]:
        if drafts:
            return self._place(entry, drafts)
        if view.partial:
            # Who maps the run from its start may have an envelope here: the next one must not chain over it.
            self._prev = entry.seq
        return []

    def _handle(self, view: RunView, event: AnyEvent, at: int) -> list[Draft]:
        handler = self._map.get(type(event))
        return [] if handler is None else handler(self._texts, view, event, at)

    def _spelled_out(self, view: RunView, event: AnyEvent, at: int) -> list[Draft]:
        """The same for events of which some are shorthand; an event may end a message that chunks began."""
        try:
            events = view.chunks.feed(event)
        except InvalidStream:
            self.passed_over += 1
            return []
        return [draft for each in events for draft in self._handle(view, each, at)]

    def _new_view(self, entry: Entry) -> RunView:
        ids = len(entry.thread_id) + len(entry.run_id) + len(entry.epoch) + len(entry.mark)
        room = (self._budget.limit - self._budget.overhead - _KEYS) // _ESCAPED - ids
        self._runs[entry.run_id] = view = RunView(entry.run_id, room)
        view.partial = entry.mark != "" and begins(entry.mark) < entry.seq
        if len(self._runs) > _RUNS_REMEMBERED:
            self._runs.popitem(last=False)
        return view

    # ------------------------------------------------------------------ placing

    def _place(self, entry: Entry, drafts: Sequence[Draft]) -> list[Envelope]:
        """Make envelopes of drafts, within the budget; several of one entry are numbered."""
        count = len(drafts)
        if count == 1:
            envelopes = [self._envelope(entry, drafts[0], None)]
        else:
            envelopes = [self._envelope(entry, draft, (n, count)) for n, draft in enumerate(drafts, 1)]
        if not self._small(entry, drafts):
            envelopes = [fit(envelope, self._budget) for envelope in envelopes]
        self._prev = entry.seq
        return envelopes

    def _envelope(self, entry: Entry, draft: Draft, part: tuple[int, int] | None) -> Envelope:
        return Envelope(
            draft[0],
            entry.thread_id,
            entry.run_id,
            self._stamp(self._at),
            entry.seq,
            self._prev,
            entry.epoch,
            draft[1],
            part,
            entry.mark,
        )

    def _small(self, entry: Entry, drafts: Sequence[Draft]) -> bool:
        """Whether this is one chunk of text that fits without being measured."""
        kind, payload = drafts[0]
        return len(drafts) == 1 and kind in CHUNKS and self._runs[entry.run_id].has_room(payload)

    def _stamp(self, at: int) -> str:
        """As `iso`, which is called once a second."""
        second, millis = divmod(at, 1000)
        if second != self._second:
            self._second, self._clock = second, iso(second * 1000)[:-4]
        return f"{self._clock}{millis:03}Z"

    def _split(self, kind: str, payload: dict[str, Any], key: str = "chunk") -> list[str]:
        """The text in pieces that each fit into an envelope: none of it is cut."""
        text: str = payload[key]
        entry = self._entry

        def fits(piece: str) -> bool:
            numbered = {**payload, "chunk_index": 10**9} if key == "chunk" else payload
            draft = (kind, {**numbered, key: piece})
            return self._budget.fits(self._envelope(entry, draft, (10**6, 10**6)).encode())

        return split_text(text, fits)

    # ----------------------------------------------------------------- faithful

    def _faithful(self, entry: Entry) -> list[Draft]:
        """The event itself; one that is too large in pieces that are events, or reduced to its ids."""

        def split(payload: dict[str, Any]) -> list[str]:
            return self._split(AGUI, payload, "delta")

        def fits(payload: dict[str, Any]) -> bool:
            return self._budget.fits(self._envelope(entry, (AGUI, payload), None).encode())

        return [(AGUI, payload) for payload in faithful(entry.event, fits=fits, split=split)]
