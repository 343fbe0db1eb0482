"""The errors of this house, one class for each situation.

    SlimError
    ├── WireError            bytes or a mapping that are not an AG-UI event
    ├── PatchRefused         a JSON Patch that does not apply to its document
    │   └── PatchTooLarge    it would create more than a patch or a document may hold
    ├── LineageError         a run's ancestors form a cycle, are unknown, or belong to another thread
    ├── StoreError           the store could not do it (disk full, gone, read-only, newer schema)
    │   ├── Conflict         another writer took this place in the log, or owns the run
    │   │   └── Forgotten    the thread was forgotten, and its id stays taken
    │   └── UnknownThread    no such thread or run for this tenant
    ├── ReaderTooSlow        an attached reader lagged past its bound and was cut; come back with `after`
    ├── InvalidStream        the log holds streams to the verifier, and this event breaks a rule
    ├── CheckpointRefused    a conversation that one MESSAGES_SNAPSHOT cannot express
    ├── SnapshotError        a snapshot that cannot be read, with the path of the wrong value
    └── EvidenceRefused      a run that cannot be exported without loss

A message is a sentence with the next step.
"""

from __future__ import annotations


class SlimError(Exception):
    """Root of everything `runcast.slim` raises on purpose."""


class WireError(SlimError):
    """Data that is not an AG-UI event: its place, the problem, the expected form."""

    def __init__(
        self,
        problem: str,
        *,
        expected: str | None = None,
        position: int | None = None,
        type: str | None = None,  # the type on the wire
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
        """The same error for a reader of streams: in this record, which starts at this offset."""
        return WireError(
            self.problem,
            expected=self.expected,
            position=offset + (self.position or 0),
            type=self.type,
            record=record,
        )


class PatchRefused(SlimError):
    """A JSON Patch that does not apply to its document; nothing of it was applied."""


class PatchTooLarge(PatchRefused):
    """A JSON Patch that would create more than a patch or a document may hold, found before it was created."""


class LineageError(SlimError):
    """A chain of ancestors that cannot be followed."""


class StoreError(SlimError):
    """The store could not do the call; nothing was half written."""


class Conflict(StoreError):
    """Another writer took this place in the log, or holds the lease on the run."""


class Forgotten(Conflict):
    """The thread was forgotten; its id stays taken, so that it is not used again by accident."""


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
    """A conversation that one MESSAGES_SNAPSHOT cannot express: keep its events, compacted, instead."""


class SnapshotError(SlimError):
    """A snapshot that cannot be read; `path` names the place."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class EvidenceRefused(SlimError):
    """A run that the artifact cannot hold without loss; `reason` names the rule."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}: {detail}")
