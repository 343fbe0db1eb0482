"""Errors between the log and its watchers.

    BroadcastError
    ├── ConfigError          a setting that cannot work; the message names one that can
    ├── PublishError         a target refused envelopes or could not be reached
    │   ├── TooLarge         the target's limit is below the size of one envelope
    │   └── WrongSettings    the target refuses every request: key, secret, app id or path is wrong
    └── HubError             a wrong use of the hub

None of these reaches an agent's run: the broadcaster counts and logs them.
"""

from __future__ import annotations

from collections.abc import Collection


class BroadcastError(Exception):
    """Root of the errors that `runcast.broadcast` raises on purpose."""


class ConfigError(BroadcastError):
    """A setting that cannot work; the message names one that can."""


class PublishError(BroadcastError):
    """A target did not take all of a lot.

    `retry` is False when another attempt cannot help. `delivered` holds the positions within the lot that the target
    took all the same, and the error is about the first of the others; None when that is not known.
    """

    def __init__(
        self,
        problem: str,
        *,
        retry: bool = True,
        after: float | None = None,
        delivered: Collection[int] | None = None,
    ) -> None:
        self.retry = retry
        self.after = after  # seconds the target asked to wait
        self.delivered = delivered
        super().__init__(problem)


class TooLarge(PublishError):
    """The message is too large for the target; lower `max_envelope_bytes` or give the publisher its budget."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, retry=False)


class WrongSettings(PublishError):
    """The target refuses every request until a setting changes, so nothing is given up: the worker retries rarely."""


class HubError(BroadcastError):
    """A wrong use of the hub; the message says what to do."""
