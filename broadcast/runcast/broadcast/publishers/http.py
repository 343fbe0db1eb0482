"""HTTP POST with connections that are kept: what the publishers need of a client, on the standard library.

Requests run in threads, at most `connections` at a time. Knows bytes and status codes; does not know any target.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from runcast.broadcast.errors import ConfigError, PublishError


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    body: bytes
    retry_after: float | None = None


class HttpTarget:
    """One origin, a few kept connections."""

    def __init__(self, url: str, *, timeout: float = 5.0, connections: int = 4) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not a target: give http://host:port or https://host")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._base = parts.path.rstrip("/")
        self._timeout = timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._turns = asyncio.Semaphore(connections)
        self._tls = ssl.create_default_context() if self._secure else None

    async def post(self, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Send, and give the reply whatever its status; `PublishError` when there is none."""
        async with self._turns:
            return await asyncio.to_thread(self._post, path, body, headers)

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        # A kept connection may have been closed by the other side meanwhile: one more try on a fresh one.
        for fresh in (False, True):
            connection = self._open() if fresh or not self._idle else self._idle.pop()
            try:
                connection.request("POST", self._base + path, body, headers)
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if fresh or isinstance(error, TimeoutError):
                    raise PublishError(f"{self._host} did not answer: {type(error).__name__}") from error
                continue
            if response.will_close:
                connection.close()
            else:
                self._idle.append(connection)
            return Reply(response.status, content, _seconds(response.getheader("Retry-After")))
        raise PublishError(f"{self._host} did not answer")  # pragma: no cover  the loop returns or raises

    def _open(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=self._tls
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def close(self) -> None:
        """Close the kept connections."""
        while self._idle:
            self._idle.pop().close()


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isdigit() else None
