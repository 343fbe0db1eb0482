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

    def __init_subclass__(cls, *, status: int | None = None, title: str | None = None) -> None:
        super().__init_subclass__()
        cls.status, cls.title = status or cls.status, title or cls.title

    @property
    def headers(self) -> dict[str, str]:
        """Headers of its HTTP answer."""
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


class Busy(AppError, status=409, title="The thread is busy"):
    """The thread has an active run; wait for it, or stop it."""


class Overtaken(Busy):
    """The thread has continued meanwhile; read it, and ask again if it still makes sense."""


class Over(AppError, status=409, title="The run is over"):
    """The run has ended already."""


class Full(AppError, status=429, title="Too many runs"):
    """As many runs as allowed are active."""

    retry_after = 1


class Closing(AppError, status=503, title="Shutting down"):
    """The host is shutting down; try another node, or again in a moment."""

    retry_after = 2


class NotFound(AppError, status=404, title="Not found"):
    """No such thing, as far as the user may know."""


class NotAllowed(AppError, status=403, title="Not allowed"):
    """The user may not do this."""


class BadRequest(AppError, status=400, title="Bad request"):
    """The request cannot be understood, or makes no sense now."""


class TooLarge(BadRequest, status=413, title="Too large"):
    """A body beyond the limit."""


class TooSlow(BadRequest, status=408, title="Too slow"):
    """A body that did not come in time."""


class WrongMedia(BadRequest, status=415, title="Not JSON"):
    """A body of a kind that is not accepted."""


class WrongMethod(AppError, status=405, title="Wrong method"):
    """The path exists, but not with this method."""

    def __init__(self, sentence: str, *, allow: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.allow = tuple(allow)  # methods

    @property
    def headers(self) -> dict[str, str]:
        """The methods there are."""
        return {"allow": ", ".join(self.allow)}


class Gone(AppError, status=410, title="Start over"):
    """A position that is no longer valid: start over from the snapshot."""
