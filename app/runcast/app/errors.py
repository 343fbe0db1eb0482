"""What can go wrong when runs are started, stopped and resumed, and how HTTP says it.

AppError
├── Busy             the thread has an active run, here or on another node
│   └── Overtaken    the thread has gone on since, without this run
├── Over             the run has ended already
├── Full             as many runs as allowed are active; come back in a moment
├── Closing          the host is shutting down
├── NotFound         no such thread, run, agent or tool call, as far as the asker may know
├── NotAllowed       `authorize` said no
├── Gone             a position that means nothing here any more
├── BadRequest       what was sent cannot be understood, or makes no sense now
│   ├── TooLarge     a body beyond the limit
│   └── WrongMedia   a body that is not JSON
└── WrongMethod      there is something, but it is asked otherwise
"""

from __future__ import annotations

from collections.abc import Iterable


class AppError(Exception):
    """Root of everything `runcast.app` raises on purpose; `status` and `title` are HTTP's words for it."""

    status = 500
    title = "Something went wrong"

    @property
    def headers(self) -> dict[str, str]:
        """What else HTTP says of it."""
        return {}


class Busy(AppError):
    """The thread has an active run; wait for it, or stop it."""

    status = 409
    title = "The thread is busy"


class Overtaken(Busy):
    """The thread has gone on since; look at it, and ask again if it still makes sense."""


class Over(AppError):
    """The run has ended already."""

    status = 409
    title = "The run is over"


class Full(AppError):
    """As many runs as allowed are active."""

    status = 429
    title = "Too many runs"

    @property
    def headers(self) -> dict[str, str]:
        """When to come back."""
        return {"retry-after": "1"}


class Closing(AppError):
    """The host is shutting down; ask the next one."""

    status = 503
    title = "Shutting down"

    @property
    def headers(self) -> dict[str, str]:
        """When to come back."""
        return {"retry-after": "2"}


class NotFound(AppError):
    """No such thing, as far as the asker may know."""

    status = 404
    title = "Not found"


class NotAllowed(AppError):
    """The asker may not do this."""

    status = 403
    title = "Not allowed"


class BadRequest(AppError):
    """What was sent cannot be understood, or makes no sense now."""

    status = 400
    title = "Bad request"


class TooLarge(BadRequest):
    """A body beyond the limit."""

    status = 413
    title = "Too large"


class WrongMedia(BadRequest):
    """A body of a kind that is not taken."""

    status = 415
    title = "Not JSON"


class WrongMethod(AppError):
    """There is something at this path, but it is asked otherwise."""

    status = 405
    title = "Ask otherwise"

    def __init__(self, sentence: str, *, allow: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.allow = tuple(allow)  # methods

    @property
    def headers(self) -> dict[str, str]:
        """How it can be asked."""
        return {"allow": ", ".join(self.allow)}


class Gone(AppError):
    """A position that means nothing here any more: start over from the snapshot."""

    status = 410
    title = "Start over"
