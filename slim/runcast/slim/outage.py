"""Something outside that is away: a log line when it is lost and one when it is back, however often it is tried meanwhile.

Knows when to log, and what a message may show of a URL; does not know what is away, nor how it is tried.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from urllib.parse import urlsplit

QUIET = 60.0  # seconds without a failure, after which the next one is news again


def place_of(url: str, *, port: int | None = None) -> str:
    """Host and port of a URL's server, or the path of its socket, as a message may show them; never a credential.

    `port` is the usual one, for a URL without. "" where there is no server, or where a password with a `/` was misread:
    a part of it would be the host.
    """
    parts = urlsplit(url)
    if "@" in url and "@" not in parts.netloc:
        return ""
    if not parts.netloc:
        return parts.path if parts.scheme == "unix" else ""
    place = parts.netloc.rpartition("@")[2]
    has_port = place.rpartition("]")[2].count(":") > 0
    return place if port is None or has_port else f"{place}:{port}"


class Outage:
    """The absence of one thing. Several tasks that need it may report to the same `Outage`."""

    def __init__(
        self, log: logging.Logger, *, quiet: float = QUIET, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._quiet = quiet
        self._clock = clock
        self._reasons: set[str] = set()  # that were logged since it was there last
        self._failed = clock()  # when it was missed last

    def lost(self, why: str) -> None:
        """An attempt failed: log the reason, unless it was logged since the thing was there last."""
        now = self._clock()
        if now - self._failed > self._quiet:
            self._reasons.clear()
        self._failed = now
        if why not in self._reasons:
            self._reasons.add(why)
            self._log.warning("%s", why)

    def over(self, text: str) -> None:
        """An attempt succeeded: log this, if anything was logged before."""
        if self._reasons:
            self._reasons.clear()
            self._log.warning("%s", text)
