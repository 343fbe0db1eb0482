"""What can go wrong in this house, one class a situation.

    SlimError
    ├── WireError            bytes or a mapping that are not an AG-UI event
    ├── LineageError         a run's ancestors form a cycle, are unknown, or belong to another thread
    ├── StoreError           the store could not do it (disk full, gone, read-only, newer schema)
    │   ├── Conflict         somebody else wrote this place in the log, or owns the run
    │   └── UnknownThread    no such thread or run for this tenant
    ├── ReaderTooSlow        an attached reader lagged past its bound and was cut; come back with `after`
    ├── InvalidStream        the log holds streams to the verifier, and this event breaks a rule
    ├── CheckpointRefused    a conversation that one MESSAGES_SNAPSHOT cannot say
    ├── SnapshotError        a snapshot that cannot be read, with the path of the wrong value
    └── EvidenceRefused      a run that cannot be exported without saying more than is true

A message says what to do next.
"""

from __future__ import annotations


class SlimError(Exception):
    """Root of everything `runcast.slim` raises on purpose."""


class WireError(SlimError):
    """Something that is not an AG-UI event: where it stood, what it was, what was expected."""

    def __init__(
        self,
        problem: str,
        *,
        expected: str | None = None,
        position: int | None = None,
        type: str | None = None,  # the wire's own word
        record: int | None = None,
    ) -> None:
        self.problem = problem
        self.expected = expected
        self.position = position  # bytes before the trouble, from the start of what was read
        self.type = type
        self.record = record  # which event of a stream, counted from 0
        at = "" if record is None else f" in record {record}"
        where = "" if position is None else f" at position {position}"
        what = "" if type is None else f" in {type}"
        wanted = "" if expected is None else f"; expected {expected}"
        super().__init__(f"{problem}{what}{at}{where}{wanted}")

    def within(self, record: int, offset: int) -> WireError:
        """The same trouble as a reader of streams sees it: in this record, whose bytes start at this offset."""
        return WireError(
            self.problem,
            expected=self.expected,
            position=offset + (self.position or 0),
            type=self.type,
            record=record,
        )


class LineageError(SlimError):
    """A chain of ancestors that cannot be walked."""


class StoreError(SlimError):
    """The store could not do what was asked; nothing was half written."""


class Conflict(StoreError):
    """Another writer took this place in the log, or holds the lease on the run."""


class UnknownThread(StoreError):
    """No such thread or run, as far as this tenant may know."""


class ReaderTooSlow(SlimError):
    """An attached reader lagged past its bound; attach again with `after` set to `last_seq`."""

    def __init__(self, last_seq: int, lag: int) -> None:
        self.last_seq = last_seq
        self.lag = lag
        super().__init__(
            f"the reader fell {lag} entries behind and was cut off; attach again with after={last_seq}"
        )


class InvalidStream(SlimError):
    """An event that breaks a rule of the protocol, refused by the log's policy."""


class CheckpointRefused(SlimError):
    """A conversation that one MESSAGES_SNAPSHOT cannot say: keep its events, compacted, instead."""


class SnapshotError(SlimError):
    """A snapshot that cannot be read; the path says where."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class EvidenceRefused(SlimError):
    """A run that the artifact cannot hold without loss; `reason` names the rule."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}: {detail}")
