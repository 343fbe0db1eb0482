"""What strangers say to the hub: frames in lines, to the protocol's machine and to a whole hub over memory.

A line is a frame; `@GOOD@` in it becomes the proof that is right for its socket, its channel and its channel_data, as
a reference of five lines computes it. So the target reaches what lies behind a proof, and knows who may.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from typing import Any

from runcast.broadcast import Envelope, Hub, HubLimits
from runcast.broadcast.hub import protocol as p
from runcast.broadcast.hub.connection import Connection
from tests.broadcast.hub.fakes import Reader

TOKENS = (
    *(
        b'{"event":"pusher:subscribe","data":{"channel":"private-agent.s1","auth":"@GOOD@"}}\n',
        b'"channel_data":"',
    ),
    *(
        b'{"event":"pusher:unsubscribe","data":{"channel":"private-agent.s1"}}\n',
        b'{"event":"pusher:ping"}\n',
    ),
    *(
        b'{"event":"pusher:signin","data":{"user_data":"{\\"id\\":\\"u\\"}","auth":"@GOOD@"}}\n',
        b"presence-agent.s1",
    ),
    *(
        b'{"event":"client-x","channel":"private-agent.s1","data":{}}\n',
        b"#server-to-user-u",
        b"agent.s1",
        b"private-",
    ),
    *(
        b'{\\"recover\\":{\\"epoch\\":\\"e\\",\\"offset\\":1}}',
        b'{\\"user_id\\":\\"u\\",\\"user_info\\":{}}',
        b"@GOOD@",
    ),
    *(
        b"cache-",
        b"=b.",
        b"=h.",
        b'"type":"ping"',
        b'"data":',
        b'"channel":',
        b'"auth":',
        b"app-key:",
        b"null",
        b"\n",
    ),
    *(
        b"[[[[[[[[[[[[",
        b"\\ud800",
        b"\\u0000",
        b"1e999",
        b"9007199254740993",
        b'"event":',
        b"!publish\n",
        b"!anew\n",
    ),
)
KEY, SECRET = "app-key", "app-secret"
LIMITS = HubLimits(subscriptions=3, strikes=4, client_events=2, ring=8, replay=4)
LOOP = asyncio.new_event_loop()


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    lines = data.split(b"\n")[:24]
    _machine(lines)
    LOOP.run_until_complete(_hub(lines))


# ------------------------------------------------------------------ the machine alone


def _machine(lines: list[bytes]) -> None:
    socket = p.PusherSocket("1.2", key=KEY, secret=SECRET, limits=LIMITS, client_events=True)
    nonsense = 0
    for at, line in enumerate(lines):
        frame = _frame(line, "1.2")
        before, user = set(socket.channels), socket.user_id
        actions = socket.feed(frame, at * 0.1)
        struck = p.Nonsense | p.Limited | p.Refused | p.Close  # a failed proof is a strike too
        nonsense += any(isinstance(each, struck) for each in actions)
        for action in actions:
            _is_right(action, frame, before, user)
        assert len(socket.channels) <= LIMITS.subscriptions
        if any(isinstance(each, p.Close) for each in actions):
            assert nonsense > LIMITS.strikes, "closed without a reason"
            return
    assert p.plain_request(lines[0].decode("latin-1")) is not None
    plain = p.PlainSocket("x", "agent.s", limits=LIMITS)
    for at, line in enumerate(lines):
        plain.feed(_frame(line, "x"), at * 0.1)


def _is_right(action: p.Action, frame: str | bytes, before: set[str], user: str | None) -> None:
    """Nobody enters without a proof, and whatever is answered is a frame."""
    match action:
        case p.Send(text):
            assert isinstance(json.loads(text)["event"], str)
            assert "\n" not in text
        case p.Subscribe(channel) if channel.startswith("#"):
            assert channel == f"#server-to-user-{user}"
        case p.Subscribe(channel, position):
            said = json.loads(frame)["data"]
            assert hmac.compare_digest(
                said["auth"].encode(), _proof("1.2", channel, said.get("channel_data"))
            )
            assert position is None or 0 <= position.offset < 2**53
        case p.Whisper(channel):
            assert channel in before
        case _:
            pass


def _proof(socket_id: str, name: str, data: str | None) -> bytes:
    text = f"{socket_id}:{name}" if data is None else f"{socket_id}:{name}:{data}"
    return f"{KEY}:{hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()}".encode()


def _frame(line: bytes, socket_id: str) -> str | bytes:
    """The line as a frame of text, with the right proof where one is asked for; what is no text is a binary one."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return line
    if "@GOOD@" not in text:
        return text
    try:
        said: Any = json.loads(text)["data"]
        user, channel = said.get("user_data"), said.get("channel")
        name, data = (":user:", user) if isinstance(user, str) else (channel, said.get("channel_data"))
        proof = _proof(socket_id, str(name), data if isinstance(data, str) else None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UnicodeEncodeError):
        return text
    return text.replace("@GOOD@", proof.decode())


# ------------------------------------------------------------------ a whole hub


async def _hub(lines: list[bytes]) -> None:
    hub = Hub("app", KEY, SECRET, authorize=None, limits=LIMITS, client_events=True)
    watcher, stranger = Reader("watcher"), Reader("stranger")
    await watcher.come(hub)
    connection = stranger.connection = hub.open_pusher(stranger, address="b")
    seq, logs = 0, 1
    try:
        for line in lines:
            if line.startswith(b"!"):  # the next envelope of the thread, or the first of its log begun anew
                seq, logs = (1, logs + 1) if line == b"!anew" else (seq + 1, logs)
                await hub.publish("private-agent.s1", [_envelope(seq, f"e{logs}")])
            elif not connection.gone:
                hub.received(connection, _frame(line, connection.socket.socket_id))
        await asyncio.sleep(0)
        assert watcher.faults == [], "one socket's nonsense is no other's business"
        _held(hub, connection)
    finally:
        await hub.aclose()
    assert (hub.stats()["connections"], hub.stats()["channels"], hub.stats()["addresses"]) == (0, 0, 0)


def _held(hub: Hub, connection: Connection) -> None:
    stats = hub.stats()
    assert stats["connections"] == 2 - connection.gone
    assert len(connection.socket.channels) <= LIMITS.subscriptions
    assert stats["channels"] <= LIMITS.subscriptions + 1


def _envelope(seq: int, epoch: str) -> Envelope:
    at = "2026-01-16T10:05:00.123Z"
    return Envelope("agent.custom", "s1", "r1", at, seq, seq - 1, epoch, {"name": "n", "value": seq})
