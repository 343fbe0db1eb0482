"""Laravel Reverb, Pusher, soketi or runcast's own hub, by the Pusher HTTP API.

Signed requests, strictly in order, in batches within the target's limits. Status *and* body are checked: soketi answers
errors with status 200. The API has no idempotency key, so a request whose answer was lost is posted again and arrives
twice at Reverb, Pusher and soketi; a reader that compares `seq` drops the second, and the hub does so itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Unpack
from urllib.parse import quote, unquote

import orjson

from runcast.broadcast.envelopes.budget import HUB, PUSHER, REVERB, SOKETI, Budget
from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.errors import ConfigError, PublishError
from runcast.broadcast.hub.signatures import sign_request
from runcast.broadcast.publishers.http_client import HttpOptions, HttpTarget, Reply, refusal, url_parts
from runcast.broadcast.publishers.lots import post_in_lots
from runcast.slim.values.type_guards import as_object

SCHEMES = ("pusher", "reverb", "soketi", "hub")
_BUDGETS = {"pusher": PUSHER, "reverb": REVERB, "soketi": SOKETI, "hub": HUB}
BATCH = 10  # the protocol's limit for one batch_events
_REQUEST = 360  # bytes of a request line with its signature and of the headers, without names
_SETTINGS = {401: "the key and the secret", 403: "the app's permissions", 404: "the app id and the path"}


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
        batch: int = BATCH,
        event_name: str | None = None,
        **http: Unpack[HttpOptions],
    ) -> None:
        self.budget = budget
        self._path = f"/apps/{quote(app_id, safe='')}/"
        self._key = key
        self._secret = secret
        self._batch = max(1, min(batch, BATCH))
        self._event_name = event_name  # None: the envelope's type
        self._http = HttpTarget(url, **http)
        around = _REQUEST + len(self._http.base + self._path + self._http.host + key)
        self._limit = max(1, budget.request - around) if budget.request else 0

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Post them in batches that the target's limit for a request allows."""
        events = [self._event(channel, each) for each in envelopes]
        await post_in_lots(events, partial(self._post, channel), most=self._batch, limit=self._limit)

    async def probe(self) -> str:
        """List the occupied channels, which needs the app id, the key and the secret."""
        path = self._path + "channels"
        query = sign_request("GET", path, b"", key=self._key, secret=self._secret, now=int(time.time()))
        reply = await self._http.get(f"{path}?{query}")
        _check(reply)
        return f"{self._http.host} accepts the app id, the key and the secret"

    async def aclose(self) -> None:
        """Close the kept connections."""
        self._http.close()

    def _event(self, channel: str, envelope: Envelope) -> bytes:
        name = self._event_name or envelope.type
        head = b'{"channel":' + orjson.dumps(channel) + b","
        return head + orjson.dumps({"name": name, "data": envelope.encode().decode()})[1:]

    async def _post(self, channel: str, events: Sequence[bytes]) -> None:
        if len(events) == 1:
            name = orjson.dumps(channel)
            rest = events[0][len(name) + len('{"channel":') :]
            path, body = self._path + "events", b'{"channels":[' + name + b"]" + rest
        else:
            path, body = self._path + "batch_events", b'{"batch":[' + b",".join(events) + b"]}"
        query = sign_request("POST", path, body, key=self._key, secret=self._secret, now=int(time.time()))
        reply = await self._http.post(f"{path}?{query}", body, {"Content-Type": "application/json"})
        _check(reply)


def _check(reply: Reply) -> None:
    status = reply.status
    if 200 <= status < 300:
        status = _status_in(reply.body)
    if status != 200:
        settings = _SETTINGS.get(status, "the scheme, the host and the path")
        raise refusal("the target", status, reply, settings=f"{settings} in the publisher's URL")


def _status_in(body: bytes) -> int:
    """The status that the body of a 200 means: soketi's errors carry their code there."""
    try:
        answer = as_object(orjson.loads(body or b"{}"))
    except orjson.JSONDecodeError:
        if body.lstrip().startswith(b"{"):
            raise PublishError("the target's answer breaks off") from None
        return 200
    if "error" not in answer:
        return 200
    code = answer.get("code")
    return code if isinstance(code, int) else 400


def connect(url: str) -> PusherPublisher:
    """`reverb://key:secret@host:port/app_id`, likewise `pusher`, `soketi` and `hub`; `reverb+https://…` with TLS.

    Segments before the app id are the path of the server's API: `hub://key:secret@host/live/1001`.
    """
    parts, origin, key, secret = url_parts(url)
    kind = parts.scheme.partition("+")[0]
    prefix, _, app_id = parts.path.strip("/").rpartition("/")
    if not (parts.hostname and key and secret and app_id):
        raise ConfigError(f"give {kind}://key:secret@host:port/app_id, or {kind}+https://… with TLS")
    return PusherPublisher(f"{origin}/{prefix}", unquote(app_id), key, secret, budget=_BUDGETS[kind])
