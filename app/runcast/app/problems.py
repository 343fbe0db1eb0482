"""What went wrong, as problem+json with a sentence. Knows the houses' errors; shows nothing of any other.

Does not know routes.
"""

from __future__ import annotations

import logging

from runcast.adapters import InvalidInput, ThreadBusy, UnknownRun
from runcast.app.errors import AppError
from runcast.app.web import Answer
from runcast.broadcast import HubError
from runcast.slim import Conflict, InvalidStream, LineageError, SlimError, UnknownThread, WireError

logger = logging.getLogger("runcast.app")

_KNOWN: tuple[tuple[type[Exception], int, str], ...] = (
    (UnknownThread, 404, "Not found"),
    (Conflict, 409, "The thread is busy"),
    (LineageError, 409, "That does not go together"),
    (InvalidStream, 400, "Bad request"),
    (WireError, 400, "Bad request"),
    (UnknownRun, 404, "Not found"),
    (ThreadBusy, 409, "The thread is busy"),
    (InvalidInput, 400, "Bad request"),
    (HubError, 503, "Cannot tell who you are"),
)


def problem(error: Exception) -> Answer:
    """The answer that says what to do about an error."""
    if isinstance(error, AppError):
        return _told(error.status, error.title, str(error), error.headers)
    for kind, status, title in _KNOWN:
        if isinstance(error, kind):
            return _told(status, title, str(error))
    if isinstance(error, SlimError):
        logger.error("the store could not answer: %s", error)
        return _told(503, "The store cannot do that now", "try again in a moment; the host's log says more")
    logger.error("a request could not be answered", exc_info=error)
    return _told(500, "Something went wrong", "this is the host's fault; its log says more")


def _told(status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> Answer:
    content = {"type": "about:blank", "title": title, "status": status, "detail": _sound(detail)}
    return Answer(content, status, "application/problem+json", headers or {})


def _sound(text: str) -> str:
    """The same, as UTF-8 can hold it, and no longer than a sentence needs."""
    return text[:1_000].encode("utf-8", "replace").decode()
