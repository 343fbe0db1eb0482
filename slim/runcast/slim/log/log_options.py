"""The options of a log, and the part of it that one tenant sees.

Knows names, defaults and meanings; does not know the code that acts on them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict

from runcast.slim.stores import refusals
from runcast.slim.stores.blob_codec import Codec
from runcast.slim.stores.records import Key

Verify = Literal["off", "warn", "reject"]
Raw = Literal["drop", "keep"]
OnStoreError = Literal["raise", "continue"]
Derive = Literal["auto", "manual"]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How a log behaves. `RunLog` also accepts each of these as a keyword argument."""

    verify: Verify = "warn"  # what to do with an event that breaks a rule of the protocol
    raw: Raw = "drop"  # RAW events and `rawEvent`; if kept, `archive.raws` alone reads them
    on_store_error: OnStoreError = "raise"  # or continue the run unrecorded, and retry later
    patience_ms: int = 0  # how long an append retries an unavailable store before it raises
    flush_ms: int = 20
    flush_events: int = 256
    buffer_events: int = 10_000  # how many events may wait for a store that fails
    reader_queue: int = 1_000  # how far a reader may fall behind the live end
    lease_ms: int = 15_000
    codec: Codec = "auto"  # of derived data: "xz", "gzip", "zstd" or "none"
    derive: Derive = "auto"  # compact a thread when runs of it have ended
    owner: str | None = None  # the name under which the log takes leases; made up when absent
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    new_id: Callable[[], str] = lambda: os.urandom(16).hex()


class LogChanges(TypedDict, total=False):
    """Options of `LogOptions` as keyword arguments."""

    verify: Verify
    raw: Raw
    on_store_error: OnStoreError
    patience_ms: int
    flush_ms: int
    flush_events: int
    buffer_events: int
    reader_queue: int
    lease_ms: int
    codec: Codec
    derive: Derive
    owner: str | None
    clock: Callable[[], int]
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Scope:
    """The tenant of a view of the log; `bound` when the view reaches no other tenant."""

    tenant: str = ""
    bound: bool = False

    def key(self, thread_id: str) -> Key:
        """The store's key of one of its threads."""
        return Key(self.tenant, refusals.unless_text("a thread id", thread_id))

    def covers(self, key: Key) -> bool:
        """Whether a thread is in it."""
        return not self.bound or key.tenant == self.tenant

    @property
    def only(self) -> str | None:
        """The tenant that a query over the whole store is limited to; None for all."""
        return self.tenant if self.bound else None
