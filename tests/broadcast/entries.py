"""Entries to map: a small log in memory, one event a call, ten milliseconds apart."""

from __future__ import annotations

from collections.abc import Iterable

from ag_ui.core import Event

from runcast.broadcast import BroadcastConfig, Envelope, EnvelopeMapper
from runcast.slim.entry import Entry

START = 1_768_557_905_123  # 2026-01-16T10:05:05.123Z


class Thread:
    """Numbers events as a log would."""

    def __init__(self, thread_id: str = "t1", *, epoch: str = "k3f9x2", run_id: str = "r1") -> None:
        self.thread_id = thread_id
        self.epoch = epoch
        self.run_id = run_id
        self.seq = 0

    def entry(self, event: Event) -> Entry:
        self.seq += 1
        self.run_id = getattr(event, "run_id", None) or self.run_id
        return Entry(self.thread_id, self.seq, self.epoch, self.run_id, START + 10 * self.seq, event)

    def entries(self, events: Iterable[Event]) -> list[Entry]:
        return [self.entry(event) for event in events]


def mapped(events: Iterable[Event], config: BroadcastConfig | None = None) -> list[Envelope]:
    mapper = EnvelopeMapper(config)
    return [envelope for entry in Thread().entries(events) for envelope in mapper.feed(entry)]


def payloads(envelopes: Iterable[Envelope], kind: str) -> list[dict[str, object]]:
    return [dict(envelope.payload) for envelope in envelopes if envelope.type == kind]
