"""Centrifugo, by its HTTP API: one POST for each lot, in order, with idempotency keys.

Centrifugo gives its own offsets; ours travel inside the data, and readers compare ours. It runs every command of a lot
whatever became of the one before, so the answers are matched one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import orjson

from runcast.broadcast.envelopes.budget import HUB, Budget
from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.errors import ConfigError, PublishError, WrongSettings
from runcast.broadcast.publishers.http_client import HttpOptions, HttpTarget, refusal, url_parts
from runcast.broadcast.publishers.lots import post_in_lots
from runcast.slim.values.type_guards import as_list, as_object

SCHEMES = ("centrifugo",)
# Error codes of the server API. All others are about one command.
_INTERNAL, _UNAUTHORIZED, _NOT_FOUND, _NOT_AVAILABLE, _TOO_MANY = 100, 101, 104, 108, 111
_SETTINGS = "the API key, the path and `http_api` of the server"
_PROBED = "private-agent.runcast-doctor"


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
        **http: Unpack[HttpOptions],
    ) -> None:
        self.budget = budget
        self._headers = {"X-API-Key": api_key, "Content-Type": "application/json"}
        self._batch = batch
        self._http = HttpTarget(url, **http)

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """One `batch` call for each lot; Centrifugo runs its commands in order."""
        commands = [_command(channel, each) for each in envelopes]
        await post_in_lots(commands, self._post, most=self._batch, limit=self.budget.request)

    async def probe(self) -> str:
        """Ask for the server's version and for the history of a thread's channel, which recovery needs."""
        nodes = as_list(as_object((await self._call("info", {})).get("result")).get("nodes"))
        version = as_object(nodes[0]).get("version", "") if nodes else ""
        answer = await self._call("history", {"channel": _PROBED, "limit": 0})
        found = f"Centrifugo {version} accepts the API key"
        if as_object(answer.get("error")).get("code") == _NOT_AVAILABLE:
            return (
                f"{found}; its channels keep no history, so a reader fetches what it missed from the log: "
                "set history_size and history_ttl to let Centrifugo recover"
            )
        return f"{found}; its channels keep a history"

    async def aclose(self) -> None:
        """Close the kept connections."""
        self._http.close()

    async def _post(self, commands: Sequence[bytes]) -> None:
        answer = await self._answer("/api/batch", b'{"commands":[' + b",".join(commands) + b"]}")
        _match(as_list(answer.get("replies")), len(commands))

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        return await self._answer(f"/api/{method}", orjson.dumps(parameters))

    async def _answer(self, path: str, body: bytes) -> dict[str, Any]:
        reply = await self._http.post(path, body, self._headers)
        if not 200 <= reply.status < 300:
            raise refusal("Centrifugo", reply.status, reply, settings=_SETTINGS)
        try:
            return as_object(orjson.loads(reply.body))
        except orjson.JSONDecodeError:
            raise PublishError("Centrifugo's answer is not its API's: check the url") from None


def _command(channel: str, envelope: Envelope) -> bytes:
    part = "" if envelope.part is None else f".{envelope.part[0]}"
    key = orjson.dumps(f"{channel}:{envelope.history}:{envelope.seq}{part}")
    head = b'{"publish":{"channel":' + orjson.dumps(channel) + b',"idempotency_key":' + key
    return head + b',"data":' + envelope.encode() + b"}}"


def _match(replies: list[Any], count: int) -> None:
    """One reply a command: raise the first error, with the positions of all commands that were published."""
    if len(replies) != count:
        raise PublishError("Centrifugo's answer is not its API's: check the url")
    errors = [as_object(as_object(reply).get("error")) for reply in replies]
    first = next((error for error in errors if error), None)
    if first is None:
        return
    delivered = [n for n, error in enumerate(errors) if not error]
    code, problem = first.get("code"), f"Centrifugo: {first.get('message')} ({first.get('code')})"
    if code in (_UNAUTHORIZED, _NOT_FOUND):
        raise WrongSettings(f"{problem}; check {_SETTINGS}", delivered=delivered)
    raise PublishError(problem, retry=code in (_INTERNAL, _TOO_MANY), delivered=delivered)


def connect(url: str) -> CentrifugoPublisher:
    """`centrifugo://:api_key@host:port`; `centrifugo+https://…` with TLS; a path is that before `/api`."""
    parts, origin, _, api_key = url_parts(url)
    if not parts.hostname or not api_key:
        raise ConfigError("give centrifugo://:api_key@host:port, or centrifugo+https://… with TLS")
    return CentrifugoPublisher(f"{origin}{parts.path}", api_key)
