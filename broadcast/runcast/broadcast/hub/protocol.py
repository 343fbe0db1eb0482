"""The server's side of one socket: Pusher protocol 7, and the plain JSON mode.

Pure: a frame and the time go in, actions come out. Knows frames, signatures of channels and the limits of one
connection; does not know the other sockets, history or the network. No input is trusted: a malformed frame is answered
and counted, and too many of them close the connection.

    Send(text)          a frame for this socket
    Subscribe(...)      the signature was good             Unsubscribe(channel)   it leaves
    Whisper(...)        a client event for the others      Refused(channel)       the signature was bad
    Limited()           beyond a limit, or switched off    Nonsense()             a malformed frame
    Close(code, why)    the end
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import orjson

from runcast.broadcast.hub.channels import kind_of, valid_name
from runcast.broadcast.hub.limits import HubLimits
from runcast.broadcast.hub.signatures import (
    Position,
    position_of,
    read_position,
    same,
    sign_channel,
    sign_user,
)
from runcast.broadcast.json_bytes import dumps
from runcast.slim.values.type_guards import as_object

# Close codes of the protocol: 4000-4099 never reconnect, 4100-4199 after a second, 4200-4299 at once.
NO_APP = 4001
OVER_CAPACITY = 4100
RECONNECT = 4200
NO_PONG = 4201
STRUCK_OUT = CLIENT_EVENT_REFUSED = 4301
WATCHES_NOTHING = 4202
MAY_NOT = 4009
FORGOTTEN = 4010
# Of WebSocket itself: Pusher clients come back after a second.
TOO_LARGE = 1009
CANNOT_TELL = 1011

LONGEST_EVENT = 200
LARGEST_MEMBER = 2_048
FORGIVEN = 60.0  # seconds after which strikes are forgotten


@dataclass(frozen=True, slots=True)
class Send:
    """A frame for this socket."""

    text: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The socket may join; `position` is where it wants to continue."""

    channel: str
    position: Position | None = None
    user_id: str | None = None
    user_info: Any = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The socket leaves a channel."""

    channel: str


@dataclass(frozen=True, slots=True)
class Whisper:
    """A client event for the others on a channel."""

    channel: str
    event: str
    data: Any


@dataclass(frozen=True, slots=True)
class Refused:
    """A bad signature; the answer is among the actions."""

    channel: str


@dataclass(frozen=True, slots=True)
class Nonsense:
    """A malformed frame; the answer is among the actions."""


@dataclass(frozen=True, slots=True)
class Limited:
    """A request beyond a limit, or switched off; the answer is among the actions."""


@dataclass(frozen=True, slots=True)
class Close:
    """The end of the connection."""

    code: int
    reason: str


Action = Send | Subscribe | Unsubscribe | Whisper | Refused | Nonsense | Limited | Close


def frame(event: str, *, channel: str | None = None, data: Any = None, text: bool = True) -> str:
    """A server frame. `data` travels as a string of JSON, as the protocol wants it; `text=False` leaves it a value."""
    wire: dict[str, Any] = {"event": event}
    if channel is not None:
        wire["channel"] = channel
    if data is not None:
        wire["data"] = dumps(data).decode() if text else data
    return dumps(wire).decode()


def event_frame(event: str, channel: str, body: bytes) -> str:
    """An envelope's frame: its JSON as a string inside JSON."""
    name, quoted = dumps(event).decode(), orjson.dumps(body.decode()).decode()
    return f'{{"event":{name},"channel":"{channel}","data":{quoted}}}'


class _Strikes:
    """Malformed frames within a minute."""

    def __init__(self, limits: HubLimits) -> None:
        self._most = limits.strikes
        self._count = 0
        self._since = 0.0

    def out(self, now: float) -> bool:
        """Count one more; True when it was one too many."""
        if now - self._since > FORGIVEN:
            self._count, self._since = 0, now
        self._count += 1
        return self._count > self._most


class PusherSocket:
    """One Pusher connection, from its opening on."""

    def __init__(
        self,
        socket_id: str,
        *,
        key: str,
        secret: str,
        limits: HubLimits,
        client_events: bool = False,
        public: bool = False,
    ) -> None:
        self.socket_id = socket_id
        self.channels: set[str] = set()
        self.user_id: str | None = None  # after signin
        self._key = key
        self._secret = secret
        self._limits = limits
        self._client_events = client_events
        self._public = public  # channels without a signature exist
        self._strikes = _Strikes(limits)
        self._now = 0.0
        self._tokens = float(limits.client_events)  # client events it may send now
        self._refilled = 0.0

    def opened(self) -> str:
        """The first frame. An activity timeout of 0 would make the client throw."""
        return frame(
            "pusher:connection_established",
            data={"socket_id": self.socket_id, "activity_timeout": max(1, int(self._limits.activity))},
        )

    def feed(self, text: str | bytes, now: float) -> list[Action]:
        """Answer one frame."""
        self._now = now
        if isinstance(text, bytes):
            return self._strike("send text frames; binary ones mean nothing here")
        try:
            message = as_object(orjson.loads(text))
        except (orjson.JSONDecodeError, UnicodeEncodeError, RecursionError):
            return self._strike("that was not JSON")
        event = message.get("event")
        if not isinstance(event, str):
            return self._strike('a frame is an object with an "event"')
        if event == "pusher:ping":
            return [Send('{"event":"pusher:pong","data":{}}')]
        if event == "pusher:pong":
            return []
        if event == "pusher:subscribe":
            return self._subscribe(as_object(message.get("data")))
        if event == "pusher:unsubscribe":
            return self._unsubscribe(as_object(message.get("data")).get("channel"))
        if event == "pusher:signin":
            return self._signin(as_object(message.get("data")))
        if event.startswith("client-"):
            return self._whisper(event, message.get("channel"), message.get("data"))
        return self._strike(f"{event[:60]!r} is no event a client can send")

    # --------------------------------------------------------- subscriptions

    def _subscribe(self, data: dict[str, Any]) -> list[Action]:
        channel = data.get("channel")
        if not isinstance(channel, str) or not valid_name(channel):
            return self._strike("a channel's name is 1 to 200 of -a-zA-Z0-9_=@,.;")
        if channel in self.channels:
            return [Send(error_frame(None, f"this socket is in {channel} already"))]
        if len(self.channels) >= self._limits.subscriptions:
            why = f"a connection may be in {self._limits.subscriptions} channels; leave one first"
            return [Limited(), Send(_subscription_error(channel, "LimitReached", why, 429))]
        kind = kind_of(channel)
        if channel.startswith("#server-to-user-"):
            if self.user_id is None or channel != f"#server-to-user-{self.user_id}":
                return self._refuse(channel)
            return self._enter(Subscribe(channel))
        given = data.get("channel_data")
        if kind.private and not self._proven(data.get("auth"), channel, given):
            return self._struck() or self._refuse(channel)
        if not kind.private and not self._public:
            return self._refuse(channel)
        if kind.presence:
            return self._enter_presence(channel, given)
        return self._enter(Subscribe(channel, position=read_position(given)))

    def _proven(self, auth: Any, channel: str, channel_data: Any) -> bool:
        if channel_data is not None and not isinstance(channel_data, str):
            return False
        expected = sign_channel(
            self.socket_id, channel, key=self._key, secret=self._secret, channel_data=channel_data
        )
        return same(auth, expected)

    def _enter_presence(self, channel: str, channel_data: Any) -> list[Action]:
        try:
            member = as_object(orjson.loads(channel_data))
        except (orjson.JSONDecodeError, TypeError):
            member = {}
        user_id = member.get("user_id")
        known = isinstance(user_id, str | int) and not isinstance(user_id, bool)
        if not known or len(channel_data) > LARGEST_MEMBER or str(user_id) == "":
            why = "a presence channel needs channel_data with a user_id"
            return [Refused(channel), Send(_subscription_error(channel, "AuthError", why, 401))]
        position = position_of(member.get("recover"))
        return self._enter(Subscribe(channel, position, str(user_id), member.get("user_info")))

    def _enter(self, subscribe: Subscribe) -> list[Action]:
        self.channels.add(subscribe.channel)
        return [subscribe]

    def _refuse(self, channel: str) -> list[Action]:
        why = "The connection is unauthorized."
        return [Refused(channel), Send(_subscription_error(channel, "AuthError", why, 401))]

    def _unsubscribe(self, channel: Any) -> list[Action]:
        if not isinstance(channel, str) or channel not in self.channels:
            return []
        self.channels.discard(channel)
        return [Unsubscribe(channel)]

    # ----------------------------------------------------------------- other

    def _signin(self, data: dict[str, Any]) -> list[Action]:
        user_data = data.get("user_data")
        if not isinstance(user_data, str):
            return self._strike("pusher:signin needs user_data")
        expected = sign_user(self.socket_id, user_data, key=self._key, secret=self._secret)
        if not same(data.get("auth"), expected):
            return self._struck() or [
                Refused("#signin"),
                Send(error_frame(4009, "Connection is unauthorized")),
            ]
        try:
            user_id = as_object(orjson.loads(user_data)).get("id")
        except orjson.JSONDecodeError:
            user_id = None
        if not isinstance(user_id, str) or not valid_name(f"#server-to-user-{user_id}"):
            return self._strike("pusher:signin needs an id of the characters a channel may have")
        self.user_id = user_id
        return [Send(frame("pusher:signin_success", data={"user_data": user_data}))]

    def _whisper(self, event: str, channel: Any, data: Any) -> list[Action]:
        """A client event. A refused one is an error frame and no strike: its page may send many of them."""
        refused = self._why_no_whisper(event, channel)
        if refused is not None:
            return [Limited(), Send(error_frame(CLIENT_EVENT_REFUSED, refused))]
        return [Whisper(channel, event, data)]

    def _why_no_whisper(self, event: str, channel: Any) -> str | None:
        if not self._client_events:
            return "client events are off on this hub; its owner sets client_events=True"
        if not isinstance(channel, str) or channel not in self.channels or not kind_of(channel).private:
            return "client events go to private and presence channels that the client is in"
        if len(event) > LONGEST_EVENT:
            return f"an event's name has at most {LONGEST_EVENT} characters"
        rate = self._limits.client_events
        self._tokens = min(float(rate), self._tokens + (self._now - self._refilled) * rate)
        self._refilled = self._now
        if self._tokens < 1:
            return f"at most {rate} client events a second"
        self._tokens -= 1
        return None

    def _strike(self, sentence: str) -> list[Action]:
        return self._struck() or [Nonsense(), Send(error_frame(None, sentence))]

    def _struck(self) -> list[Action]:
        """The close of a connection after too many malformed frames and wrong proofs; nothing before."""
        if self._strikes.out(self._now):
            return [Nonsense(), Close(STRUCK_OUT, "too many malformed frames or wrong proofs")]
        return []


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """The query string of a plain socket."""

    channel: str
    session_id: str | None = None  # instead of a channel, or for one with a name that holds only a digest
    position: Position | None = None
    token: str | None = None


def plain_request(query: str) -> PlainRequest:
    """Read `channel=…` or `session=…`, `after=…`, `epoch=…`, `token=…`. Without an epoch any will do."""
    given = {name: values[-1] for name, values in parse_qs(query).items()}
    after = given.get("after", "")
    position = None
    if after.isascii() and after.isdigit() and len(after) < 17:
        position = position_of({"epoch": given.get("epoch", ""), "offset": int(after)})
    return PlainRequest(given.get("channel", ""), given.get("session"), position, given.get("token"))


class PlainSocket:
    """The plain JSON mode: one socket, one channel, named when it was opened; envelopes come as they are."""

    def __init__(self, socket_id: str, channel: str, *, limits: HubLimits) -> None:
        self.socket_id = socket_id
        self.channels = {channel}
        self.user_id: str | None = None
        self._strikes = _Strikes(limits)

    def feed(self, text: str | bytes, now: float) -> list[Action]:
        """A client can only send `{"type": "ping"}` and its pong."""
        try:
            kind = as_object(orjson.loads(text)).get("type")
        except (orjson.JSONDecodeError, UnicodeEncodeError, RecursionError):
            kind = None
        if kind == "ping":
            return [Send('{"type":"pong"}')]
        if kind == "pong":
            return []
        if self._strikes.out(now):
            return [Nonsense(), Close(STRUCK_OUT, "too many malformed frames")]
        return [Nonsense(), Send(dumps({"type": "hub.error", "message": 'send {"type": "ping"}'}).decode())]


def subscribed_frame(channel: str, data: Any) -> str:
    """`subscription_succeeded`, which comes before all data of the channel."""
    return frame("pusher_internal:subscription_succeeded", channel=channel, data=data)


def error_frame(code: int | None, message: str) -> str:
    """An error within the connection; pusher-js reports it and its state stays."""
    return frame("pusher:error", data={"code": code, "message": message})


def _subscription_error(channel: str, kind: str, error: str, status: int) -> str:
    data = {"type": kind, "error": error, "status": status}
    return frame("pusher:subscription_error", channel=channel, data=data, text=False)
