"""Laravel Reverb, Pusher, soketi, or runcast's own hub, by the Pusher HTTP API.

Signed requests, strictly in order, batched where the target allows. Status *and* body are checked: soketi answers
errors with status 200. Trying again is harmless: readers drop a `seq` they have.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import orjson

from runcast.broadcast.budget import HUB, PUSHER, REVERB, SOKETI, Budget
from runcast.broadcast.envelope import Envelope
from runcast.broadcast.errors import ConfigError, PublishError, TooLarge
from runcast.broadcast.hub.auth import sign_request
from runcast.broadcast.plain import as_object
from runcast.broadcast.publishers.http import HttpTarget, Reply

SCHEMES = ("pusher", "reverb", "soketi", "hub")
_BUDGETS = {"pusher": PUSHER, "reverb": REVERB, "soketi": SOKETI, "hub": HUB}
BATCH = 10  # the protocol's limit for one batch_events


class PusherPublisher:
    """Publishes into any server that speaks the Pusher HTTP API. `budget` defaults to the tightest, Reverb's."""

    name = "pusher"

    def __init__(
        self,
        url: str,
        app_id: str,
        key: str,
        secret: str,
        *,
        budget: Budget = REVERB,
        batch: int = 1,
        event_name: str | None = None,
        timeout: float = 5.0,
        connections: int = 4,
    ) -> None:
        self.budget = budget
        self._path = f"/apps/{app_id}/"
        self._key = key
        self._secret = secret
        self._batch = max(1, min(batch, BATCH))  # 1: Reverb's limit is on the whole request
        self._event_name = event_name  # None: the envelope's type
        self._http = HttpTarget(url, timeout=timeout, connections=connections)

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Post them one after the other, or in batches."""
        for start in range(0, len(envelopes), self._batch):
            events = [self._event(channel, each) for each in envelopes[start : start + self._batch]]
            if self._batch == 1:
                event = events[0]
                single = {"name": event["name"], "channels": [channel], "data": event["data"]}
                await self._post("events", orjson.dumps(single))
            else:
                await self._post("batch_events", orjson.dumps({"batch": events}))

    async def aclose(self) -> None:
        """Close the kept connections."""
        self._http.close()

    def _event(self, channel: str, envelope: Envelope) -> dict[str, str]:
        return {
            "channel": channel,
            "name": self._event_name or envelope.type,
            "data": envelope.encode().decode(),
        }

    async def _post(self, endpoint: str, body: bytes) -> None:
        path = self._path + endpoint
        query = sign_request("POST", path, body, key=self._key, secret=self._secret, now=int(time.time()))
        reply = await self._http.post(f"{path}?{query}", body, {"Content-Type": "application/json"})
        _check(reply)


def _check(reply: Reply) -> None:
    problem = _problem(reply)
    if problem is None:
        return
    status, text = problem
    if status == 413:
        raise TooLarge(f"the target refused the size ({text}); give the publisher its budget")
    # 401/403/404 are settings, 422 and 400 the request: none is cured by trying again.
    retry = status == 429 or status >= 500
    raise PublishError(f"the target answered {status}: {text}", retry=retry, after=reply.retry_after)


def _problem(reply: Reply) -> tuple[int, str] | None:
    text = reply.body[:200].decode(errors="replace")
    if not 200 <= reply.status < 300:
        return reply.status, text
    try:
        answer = as_object(orjson.loads(reply.body or b"{}"))
    except orjson.JSONDecodeError:
        return None
    if "error" in answer:
        code = answer.get("code")
        return (code if isinstance(code, int) else 400), text
    return None


def connect(url: str) -> PusherPublisher:
    """`reverb://key:secret@host:port/app_id`, likewise `pusher`, `soketi` and `hub`; `reverb+https://…` with TLS."""
    parts = urlsplit(url)
    kind, _, transport = parts.scheme.partition("+")
    app_id = parts.path.strip("/")
    if not (parts.hostname and parts.username and parts.password and app_id):
        raise ConfigError(f"give {kind}://key:secret@host:port/app_id, or {kind}+https://… with TLS")
    port = "" if parts.port is None else f":{parts.port}"
    origin = f"{transport or 'http'}://{parts.hostname}{port}"
    batch = 1 if kind == "reverb" else BATCH
    return PusherPublisher(origin, app_id, parts.username, parts.password, budget=_BUDGETS[kind], batch=batch)
