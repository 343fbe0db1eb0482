"""The hub's answers over HTTP: the auth endpoint of Echo, and the HTTP API of the Pusher protocol.

Knows requests and the hub; does not know the server that carries them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote

import orjson

from runcast.broadcast.errors import HubError
from runcast.broadcast.hub.channels import canonical, channel_for, kind_of, valid_name
from runcast.broadcast.hub.gate import member_of
from runcast.broadcast.hub.hub import Hub
from runcast.broadcast.hub.memory.ring import read_envelope
from runcast.broadcast.hub.protocol import LARGEST_MEMBER
from runcast.broadcast.hub.signatures import Refusal, RequestGuard, position_data, position_of, sign_channel
from runcast.broadcast.hub.skins.metrics import exposition
from runcast.broadcast.json_bytes import dumps
from runcast.slim.values.type_guards import as_object

CHANNELS_PER_EVENT = 100
EVENTS_PER_BATCH = 10
LARGEST_DATA = 102_400  # characters of one event's data
LONGEST_EVENT = 200

_SOCKET_ID = re.compile(r"[0-9]{1,20}\.[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, read whole."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]  # lower case
    body: bytes


Answer = tuple[int, Any]  # a status, and JSON or text


class Api:
    """Answers requests. Every refusal is a real status with a sentence."""

    def __init__(self, hub: Hub, *, metrics: bool = False) -> None:
        self._hub = hub
        self._metrics = metrics
        self._guard = RequestGuard(hub.key, hub.secret)

    async def answer(self, request: Request) -> Answer:
        """Status and content for one request."""
        if request.path == "/up":
            return 200, {"status": "ok"}
        if request.path == "/metrics" and self._metrics:
            return 200, exposition(self._hub.stats())
        if request.path == "/broadcasting/auth":
            return await self._auth(request)
        # Publishers sign the path from `/apps/` on, whatever mount point or proxy stands before it.
        _, apps, route = request.path.partition("/apps/")
        if apps:
            return await self._api(replace(request, path=apps + route))
        return 404, {"error": "nothing is here"}

    # ---------------------------------------------------------- auth endpoint

    async def _auth(self, request: Request) -> Answer:
        """Sign a private channel for Echo, with the position that the reader sends along."""
        if request.method != "POST":
            return 405, {"error": "use POST"}
        given = _form(request)
        socket_id, channel = given.get("socket_id", ""), given.get("channel_name", "")
        if not valid_name(channel) or not _SOCKET_ID.fullmatch(socket_id):
            return 400, {"error": "send socket_id and channel_name"}
        session_id = self._session(channel, given.get("session_id"))
        access = self._hub.access
        try:
            user = await access.who(request.headers)
            allowed = session_id is not None and await access.allows(user, session_id)
        except HubError as error:
            return 503, {"error": str(error)}
        member = member_of(user) if kind_of(channel).presence else {}
        if not allowed or member is None:
            return 403, {"error": "this thread is not yours to watch"}
        return self._signed(socket_id, channel, {**_position(given), **member})

    def _session(self, channel: str, claimed: str | None) -> str | None:
        """The thread of a channel; where the name holds only a digest, the request names the thread too."""
        known = self._hub.session(channel)
        prefix = self._hub.prefix
        if (
            known is None
            and claimed
            and canonical(channel, prefix=prefix) == channel_for(claimed, prefix=prefix)
        ):
            return claimed
        return known

    def _signed(self, socket_id: str, channel: str, data: dict[str, Any]) -> Answer:
        hub = self._hub
        channel_data = dumps(data).decode() if data else None
        if channel_data is not None and len(channel_data) > LARGEST_MEMBER:
            return 400, {"error": f"user_id and user_info have at most {LARGEST_MEMBER} characters"}
        auth = sign_channel(socket_id, channel, key=hub.key, secret=hub.secret, channel_data=channel_data)
        return 200, {"auth": auth, **({"channel_data": channel_data} if channel_data else {})}

    # --------------------------------------------------------------- HTTP API

    async def _api(self, request: Request) -> Answer:
        query = parse_qsl(request.query, keep_blank_values=True)
        refusal = self._guard.check(request.method, request.path, query, request.body, now=int(time.time()))
        if refusal is not None and not refusal.served:
            return refusal.status, {"error": refusal.sentence}
        head = f"/apps/{self._hub.app_id}/"
        if not request.path.startswith(head):
            return 404, {"error": "no such app"}
        rest = request.path[len(head) :].rstrip("/")
        if request.method == "GET":
            return self._read(rest, dict(query))
        if request.method != "POST":
            return 404, {"error": "nothing is here"}
        match rest.split("/"):
            case ["users", user_id, "terminate_connections"]:
                if refusal is not None:
                    return refusal.status, {"error": refusal.sentence}
                self._hub.terminate(unquote(user_id))
                return 200, {}
            case ["events" | "batch_events"]:
                return await self._events(request.body, refusal, batch=rest == "batch_events")
            case _:
                return 404, {"error": "nothing is here"}

    async def _events(self, body: bytes, refusal: Refusal | None, *, batch: bool) -> Answer:
        try:
            content = as_object(orjson.loads(body))
        except orjson.JSONDecodeError:
            return 400, {"error": "the body is not JSON"}
        given = content.get("batch") if batch else [content]
        if not isinstance(given, list) or len(given) > EVENTS_PER_BATCH:  # pyright: ignore[reportUnknownArgumentType]  # untrusted JSON
            return 400, {"error": f"a batch is a list of at most {EVENTS_PER_BATCH} events"}
        events = [as_object(each) for each in given]  # pyright: ignore[reportUnknownVariableType]  # untrusted JSON
        if refusal is None:
            return await self._publish(events, batch=batch)
        # A publisher that asks again because the answer was lost signs the same envelopes in the same second: that is no
        # attack, and they were published. Any other event would be published twice.
        known = all(read_envelope(str(event.get("data"))) for event in events)
        return (200, {}) if known else (refusal.status, {"error": refusal.sentence})

    async def _publish(self, events: list[dict[str, Any]], *, batch: bool) -> Answer:
        for event in events:
            problem = _problem(event)
            if problem is not None:
                return problem
        for event in events:
            exclude = event.get("socket_id")
            await self._hub.trigger(_channels(event), event["name"], event["data"], exclude=exclude)
        if not any(isinstance(event.get("info"), str) for event in events):
            return 200, {}
        infos = [{name: self._info(name, event) for name in _channels(event)} for event in events]
        if batch:
            return 200, {"batch": [next(iter(info.values())) for info in infos]}
        return 200, {"channels": infos[0]}

    def _read(self, rest: str, query: Mapping[str, str]) -> Answer:
        occupied = self._hub.occupied()
        if rest == "channels":
            prefix = query.get("filter_by_prefix", "")
            found = {name: self._info(name, query) for name in occupied if name.startswith(prefix)}
            return 200, {"channels": found}
        match rest.split("/"):
            case ["channels", name] if valid_name(name):
                return 200, {"occupied": name in occupied, **self._info(name, query)}
            case ["channels", name, "users"] if valid_name(name):
                if not kind_of(name).presence:
                    return 400, {"error": "only presence channels have users"}
                return 200, {"users": [{"id": user_id} for user_id in self._hub.members(name)]}
            case _:
                return 404, {"error": "nothing is here"}

    def _info(self, channel: str, query: Mapping[str, Any]) -> dict[str, int]:
        wanted = str(query.get("info", "")).split(",")
        info: dict[str, int] = {}
        if "user_count" in wanted and kind_of(channel).presence:
            info["user_count"] = len(self._hub.members(channel))
        if "subscription_count" in wanted:
            info["subscription_count"] = self._hub.occupied().get(channel, 0)
        return info


def _channels(event: Mapping[str, Any]) -> Any:
    return event["channels"] if "channels" in event else [event.get("channel")]


def _problem(event: Mapping[str, Any]) -> Answer | None:
    channels, name, data = _channels(event), event.get("name"), event.get("data")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_EVENT:
        return 422, {"error": f"an event has a name of 1 to {LONGEST_EVENT} characters"}
    if not isinstance(data, str):
        return 422, {"error": "data is a string; encode objects as JSON"}
    if len(data) > LARGEST_DATA:
        return 413, {"error": f"data has at most {LARGEST_DATA} characters"}
    if not isinstance(channels, list) or not 0 < len(channels) <= CHANNELS_PER_EVENT:  # pyright: ignore[reportUnknownArgumentType]  # untrusted JSON
        return 400, {"error": f"an event goes to 1 to {CHANNELS_PER_EVENT} channels"}
    if not all(valid_name(channel) for channel in channels):  # pyright: ignore[reportUnknownVariableType]  # untrusted JSON
        return 422, {"error": "a channel's name is 1 to 200 of -a-zA-Z0-9_=@,.;"}
    return None


def _position(given: Mapping[str, str]) -> dict[str, Any]:
    """The position to sign into an answer, if the request has a valid one."""
    offset = given.get("offset", "")
    if not offset.isascii() or not offset.isdigit() or len(offset) > 16:
        return {}
    position = position_of({"epoch": given.get("epoch", ""), "offset": int(offset)})
    return {} if position is None else as_object(orjson.loads(position_data(position)))


def _form(request: Request) -> dict[str, str]:
    """The fields of a form or a JSON object, as text."""
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            given = as_object(orjson.loads(request.body))
        except orjson.JSONDecodeError:
            return {}
        return {name: str(value) for name, value in given.items() if isinstance(value, str | int)}
    pairs = parse_qs(request.body.decode("utf-8", "replace"))
    return {name: values[-1] for name, values in pairs.items()}
