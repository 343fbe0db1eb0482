"""Errors as problem+json with a sentence. Knows the houses' errors; shows nothing of any other.

Does not know routes.
"""

from __future__ import annotations

import logging

from runcast.adapters import InvalidInput, ThreadBusy, UnknownRun
from runcast.app.errors import AppError
from runcast.app.http.http_messages import Answer
from runcast.broadcast import HubError
from runcast.slim import Conflict, Forgotten, InvalidStream, LineageError, SlimError, UnknownThread, WireError

logger = logging.getLogger("runcast.app")

_KNOWN: tuple[tuple[type[Exception], int, str], ...] = (
    (UnknownThread, 404, "Not found"),
    (Forgotten, 410, "Forgotten"),
    (Conflict, 409, "The thread is busy"),
    (LineageError, 409, "That does not go together"),
    (InvalidStream, 400, "Bad request"),
    (WireError, 400, "Bad request"),
    (UnknownRun, 404, "Not found"),
    (ThreadBusy, 409, "The thread is busy"),
    (InvalidInput, 400, "Bad request"),
    (HubError, 503, "Cannot find out who you are"),
)


def problem(error: Exception) -> Answer:
    """The answer that explains an error and what to do about it. What is the host's own fault is logged."""
    if isinstance(error, AppError):
        return _answer(error.status, error.title, str(error), error.headers)
    for kind, status, title in _KNOWN:
        if isinstance(error, kind):
            return _answer(status, title, str(error))
    if isinstance(error, SlimError):
        logger.error("the store could not answer: %s", error)
        return _answer(503, "The store cannot do that now", "try again in a moment; see the host's log")
    logger.error("a request could not be answered", exc_info=error)
    return _answer(500, "Something went wrong", "this is the host's fault; see its log")


def _answer(status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> Answer:
    # As UTF-8 can hold it, and no longer than a sentence needs.
    detail = detail[:1_000].encode("utf-8", "replace").decode()
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Answer(content, status, "application/problem+json", headers)
