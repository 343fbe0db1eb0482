"""The envelope: a compact, stable message to a watcher.

Five keys that never change (`type`, `session_id`, `execution_id`, `timestamp`, `payload`) and the position (`seq`,
`prev`, `epoch`, `mark`, `part`). A reader's whole rule is: `seq <= last` drop, `prev == last` apply, else fetch
`after=last`. `docs/protocol.md` is the standard. Does not know the source or the target of envelopes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from runcast.broadcast.envelopes.agui import AGUI
from runcast.broadcast.envelopes.budget import Budget, smaller
from runcast.broadcast.json_bytes import dumps
from runcast.slim.entry import bound, is_mark
from runcast.slim.values.truncation import cut

CHUNKS = frozenset({"agent.stream.chunk", "agent.reasoning.chunk"})


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message to a watcher, with its place in the thread."""

    type: str
    session_id: str  # the thread
    execution_id: str  # the run
    timestamp: str  # UTC, milliseconds, ends in Z
    seq: int  # of its entry; of the last one when several were merged
    prev: int  # the seq of the envelope before this one in the same projection
    epoch: str  # the log's incarnation: a seq means nothing under another
    payload: Mapping[str, Any]
    part: tuple[int, int] | None = None  # (n, of): one entry gave several envelopes; they travel back to back
    mark: str = ""  # of the run's history, see `runcast.slim.entry`

    @property
    def history(self) -> str:
        """The epoch as a reader that has applied this envelope brings it back."""
        return bound(self.epoch, self.mark)

    def to_dict(self) -> dict[str, Any]:
        """The wire form, keys in their documented order."""
        wire: dict[str, Any] = {
            "type": self.type,
            "session_id": self.session_id,
            "execution_id": self.execution_id,
            "seq": self.seq,
            "prev": self.prev,
            "epoch": self.epoch,
            "timestamp": self.timestamp,
            "payload": self.payload,
        }
        if self.mark:
            wire["mark"] = self.mark
        if self.part is not None:
            wire["part"] = list(self.part)
        return wire

    def encode(self) -> bytes:
        """Compact UTF-8 JSON."""
        return dumps(self.to_dict(), halves=self.type == AGUI)

    @classmethod
    def from_dict(cls, wire: Mapping[str, Any]) -> Envelope:
        """Read the wire form back; unknown keys are ignored, as every reader must do."""
        part, mark = wire.get("part"), wire.get("mark")
        return cls(
            type=wire["type"],
            session_id=wire["session_id"],
            execution_id=wire["execution_id"],
            timestamp=wire["timestamp"],
            seq=wire["seq"],
            prev=wire["prev"],
            epoch=wire["epoch"],
            payload=wire["payload"],
            part=None if part is None else (part[0], part[1]),
            mark=mark if is_mark(mark) else "",
        )


def fit(envelope: Envelope, budget: Budget) -> Envelope:
    """The same envelope within a budget: cut by rule and marked, never dropped.

    Texts and lists shrink by degrees; then only the identifying fields stay; at last ids of extreme length are cut too,
    because the budget always holds. An activity is whole or a reference.
    """
    body = envelope.encode()
    if budget.fits(body):
        return envelope
    for payload in smaller(envelope.type, envelope.payload, len(body)):
        fitted = replace(envelope, payload=payload)
        if budget.fits(fitted.encode()):
            return fitted
    return replace(
        envelope,
        type=cut(envelope.type, 64),
        session_id=cut(envelope.session_id, 64),
        execution_id=cut(envelope.execution_id, 64),
        epoch=cut(envelope.epoch, 64),
        payload={"truncated": True, "original_bytes": len(body)},
    )
