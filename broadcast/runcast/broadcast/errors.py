"""What can go wrong between the log and the people who watch.

    BroadcastError
    ├── ConfigError          a setting that cannot work, with the sentence that says which would
    ├── PublishError         a target refused, or could not be reached; `retry` says whether to try again
    │   └── TooLarge         the target's limit is below what an envelope needs
    └── HubError             the hub was used in a way that cannot work

Nothing of this is ever raised into an agent's run: the broadcaster counts and reports it.
"""

from __future__ import annotations


class BroadcastError(Exception):
    """Root of everything `runcast.broadcast` raises on purpose."""


class ConfigError(BroadcastError):
    """A setting that cannot work; the message says which would."""


class PublishError(BroadcastError):
    """A target did not take an envelope. `retry` is False when trying again cannot help."""

    def __init__(self, problem: str, *, retry: bool = True, after: float | None = None) -> None:
        self.retry = retry
        self.after = after  # seconds the target asked to be left alone
        super().__init__(problem)


class TooLarge(PublishError):
    """The target says the message is too large; lower `max_envelope_bytes` or give it the right budget."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, retry=False)


class HubError(BroadcastError):
    """The hub was used in a way that cannot work; the message says what to do."""
