"""HTTP requests over kept connections, on the standard library.

Requests run in threads, at most `connections` at a time. Knows bytes and status codes; does not know any target.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import SplitResult, unquote, urlsplit

from runcast.broadcast.errors import ConfigError, PublishError, TooLarge, WrongSettings
from runcast.slim.outage import place_of

# The target is well and refuses this message; another one may pass.
_MESSAGE = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Reply:
    """A target's answer."""

    status: int
    body: bytes
    retry_after: float | None = None

    @property
    def text(self) -> str:
        """The beginning of the body, for an error's sentence."""
        return self.body[:200].decode(errors="replace").strip()


class HttpOptions(TypedDict, total=False):
    """Keyword arguments of publishers over HTTP."""

    timeout: float  # seconds for one request; 5 by default
    connections: int  # requests at a time; 4 by default


class HttpTarget:
    """One origin, a few kept connections."""

    def __init__(self, url: str, *, timeout: float = 5.0, connections: int = 4) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not a target: give http://host:port or https://host")
        self.host = parts.hostname
        self._port = parts.port
        self._place = place_of(url) or "the target"  # for errors
        self.base = parts.path.rstrip("/")
        self._timeout = timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False
        self._turns = asyncio.Semaphore(connections)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None

    async def post(self, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Send a body; the reply whatever its status, `PublishError` when there is none."""
        async with self._turns:
            return await asyncio.to_thread(self._request, "POST", path, body, headers)

    async def get(self, path: str) -> Reply:
        """Ask; as `post`."""
        async with self._turns:
            return await asyncio.to_thread(self._request, "GET", path, None, {})

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        # The other side may have closed a kept connection meanwhile: one more try on a fresh one.
        for fresh in (False, True):
            connection = self._open() if fresh or not self._idle else self._idle.pop()
            try:
                connection.request(method, self.base + path, body, headers)
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if fresh or isinstance(error, TimeoutError):
                    raise PublishError(f"{self._place} did not answer: {type(error).__name__}") from error
                continue
            if response.will_close or self._closed:  # a cancelled request ends in its thread, after `close`
                connection.close()
            else:
                self._idle.append(connection)
            return Reply(response.status, content, _seconds(response.getheader("Retry-After")))
        raise PublishError(f"{self._place} did not answer")  # pragma: no cover  the loop returns or raises

    def _open(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(
                self.host, self._port, timeout=self._timeout, context=self._tls
            )
        return http.client.HTTPConnection(self.host, self._port, timeout=self._timeout)

    def close(self) -> None:
        """Close the kept connections."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def refusal(target: str, status: int, reply: Reply, *, settings: str) -> PublishError:
    """The error of a status that is not a success; `settings` names those that a 401, 403 or 404 points to."""
    problem = f"{target} answered {status}" + (f": {reply.text}" if reply.text else "")
    if status == 413:
        return TooLarge(f"{problem}; give the publisher the target's budget")
    if status in _MESSAGE:
        return PublishError(problem, retry=False)
    if status in (408, 429) or status >= 500:
        return PublishError(problem, after=reply.retry_after)
    return WrongSettings(f"{problem}; check {settings}", after=reply.retry_after)


def url_parts(url: str) -> tuple[SplitResult, str, str, str]:
    """A publisher's URL as its parts, its origin with the scheme after the `+`, its user and its password, decoded."""
    parts = urlsplit(url)
    transport = parts.scheme.partition("+")[2] or "http"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port is None else f":{parts.port}"
    return parts, f"{transport}://{host}{port}", unquote(parts.username or ""), unquote(parts.password or "")


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isdigit() else None
