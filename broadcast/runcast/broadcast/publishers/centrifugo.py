"""Centrifugo, by its HTTP API: one POST a batch, in order, with idempotency keys.

Centrifugo gives its own offsets; ours travel inside the data, and readers go by ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import orjson

from runcast.broadcast.budget import HUB, Budget
from runcast.broadcast.envelope import Envelope
from runcast.broadcast.errors import ConfigError, PublishError
from runcast.broadcast.publishers.http import HttpTarget

SCHEMES = ("centrifugo",)


class CentrifugoPublisher:
    """Publishes into Centrifugo (`url` is the server, `api_key` the one of its HTTP API)."""

    name = "centrifugo"

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        budget: Budget = HUB,
        batch: int = 100,
        timeout: float = 5.0,
        connections: int = 4,
    ) -> None:
        self.budget = budget
        self._headers = {"X-API-Key": api_key, "Content-Type": "application/json"}
        self._batch = batch
        self._http = HttpTarget(url, timeout=timeout, connections=connections)

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """One `batch` call for each lot; Centrifugo runs its commands in order."""
        for start in range(0, len(envelopes), self._batch):
            commands = [_command(channel, each) for each in envelopes[start : start + self._batch]]
            body = b'{"commands":[' + b",".join(commands) + b"]}"
            reply = await self._http.post("/api/batch", body, self._headers)
            if not 200 <= reply.status < 300:
                retry = reply.status == 429 or reply.status >= 500
                raise PublishError(
                    f"Centrifugo answered {reply.status}", retry=retry, after=reply.retry_after
                )
            _check(reply.body)

    async def aclose(self) -> None:
        """Close the kept connections."""
        self._http.close()


def _command(channel: str, envelope: Envelope) -> bytes:
    part = "" if envelope.part is None else f".{envelope.part[0]}"
    key = orjson.dumps(f"{channel}:{envelope.epoch}:{envelope.seq}{part}")
    head = b'{"publish":{"channel":' + orjson.dumps(channel) + b',"idempotency_key":' + key
    return head + b',"data":' + envelope.encode() + b"}}"


def _check(body: bytes) -> None:
    """A 200 whose replies carry an error published nothing from there on."""
    try:
        replies = orjson.loads(body).get("replies", [])
    except (orjson.JSONDecodeError, AttributeError):
        raise PublishError("Centrifugo's answer is not its API's: check the url") from None
    for reply in replies:
        error = reply.get("error")
        if error:
            code = error.get("code", 0)
            raise PublishError(f"Centrifugo: {error.get('message')} ({code})", retry=code == 100)


def connect(url: str) -> CentrifugoPublisher:
    """`centrifugo://:api_key@host:port`; `centrifugo+https://…` with TLS."""
    parts = urlsplit(url)
    if not parts.hostname or not parts.password:
        raise ConfigError("give centrifugo://:api_key@host:port, or centrifugo+https://… with TLS")
    transport = parts.scheme.partition("+")[2] or "http"
    port = "" if parts.port is None else f":{parts.port}"
    return CentrifugoPublisher(f"{transport}://{parts.hostname}{port}", parts.password)
