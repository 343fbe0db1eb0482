"""Errors of starting, stopping and resuming runs, with their HTTP status.

AppError
├── Busy             the thread has an active run, here or on another node
│   └── Overtaken    the thread has continued without this run
├── Over             the run has ended already
├── Full             as many runs as allowed are active; try again in a moment
├── Closing          the host is shutting down
├── NotFound         no such thread, run, agent or tool call, as far as the user may know
├── NotAllowed       `authorize` refused
├── Gone             a position that is no longer valid
├── BadRequest       a request that cannot be understood, or makes no sense now
│   ├── TooLarge     a body beyond the limit
│   ├── TooSlow      a body that did not come in time
│   └── WrongMedia   a body that is not JSON
└── WrongMethod      the path exists, but not with this method
"""

from __future__ import annotations

from collections.abc import Iterable


class AppError(Exception):
    """Root of everything `runcast.app` raises on purpose; `status` and `title` are for HTTP."""

    status = 500
    title = "Something went wrong"
    retry_after: int | None = None  # seconds

    @property
    def headers(self) -> dict[str, str]:
        """Headers of its HTTP answer."""
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


class Busy(AppError):
    """The thread has an active run; wait for it, or stop it."""

    status = 409
    title = "The thread is busy"


class Overtaken(Busy):
    """The thread has continued meanwhile; read it, and ask again if it still makes sense."""


class Over(AppError):
    """The run has ended already."""

    status = 409
    title = "The run is over"


class Full(AppError):
    """As many runs as allowed are active."""

    status = 429
    title = "Too many runs"
    retry_after = 1


class Closing(AppError):
    """The host is shutting down; try another node, or again in a moment."""

    status = 503
    title = "Shutting down"
    retry_after = 2


class NotFound(AppError):
    """No such thing, as far as the user may know."""

    status = 404
    title = "Not found"


class NotAllowed(AppError):
    """The user may not do this."""

    status = 403
    title = "Not allowed"


class BadRequest(AppError):
    """The request cannot be understood, or makes no sense now."""

    status = 400
    title = "Bad request"


class TooLarge(BadRequest):
    """A body beyond the limit."""

    status = 413
    title = "Too large"


class TooSlow(BadRequest):
    """A body that did not come in time."""

    status = 408
    title = "Too slow"


class WrongMedia(BadRequest):
    """A body of a kind that is not accepted."""

    status = 415
    title = "Not JSON"


class WrongMethod(AppError):
    """The path exists, but not with this method."""

    status = 405
    title = "Wrong method"

    def __init__(self, sentence: str, *, allow: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.allow = tuple(allow)  # methods

    @property
    def headers(self) -> dict[str, str]:
        """The methods there are."""
        return {"allow": ", ".join(self.allow)}


class Gone(AppError):
    """A position that is no longer valid: start over from the snapshot."""

    status = 410
    title = "Start over"
