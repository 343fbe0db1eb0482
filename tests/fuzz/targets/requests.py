"""What comes in over HTTP before any route sees it: paths, queries, headers, ids, positions, proofs, tokens.

The first line is a path with its query, the next ones are headers, and behind an empty line stands the body.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Any

from runcast.app.errors import BadRequest
from runcast.app.http.http_messages import headers_of, identifier, path_of, query_of
from runcast.app.http.sse import position
from runcast.app.tenants.access_policy import AccessPolicy, from_here, own_origin
from runcast.broadcast import Hub, HubLimits, channel_for, issue_token
from runcast.broadcast.hub.channels import session_of, valid_name
from runcast.broadcast.hub.gate import Gate
from runcast.broadcast.hub.protocol import plain_request
from runcast.broadcast.hub.signatures import RequestGuard, check_token
from runcast.broadcast.hub.skins.pusher_api import Api, Request

TOKENS = (
    *(
        b"/threads/t1/events?after=",
        b"/broadcasting/auth",
        b"/apps/app/events?auth_key=app-key",
        b"&auth_timestamp=",
    ),
    *(
        b"&auth_signature=",
        b"&body_md5=",
        b"/apps/app/channels/private-agent.s/users",
        b"/up",
        b"%2e%2e%2f",
        b"%00",
    ),
    *(
        b"%ed%a0%80",
        b"%ff",
        b"../",
        b"\n\n",
        b"\nhost: localhost",
        b"\nhost: [::1]:80",
        b"\norigin: http://localhost",
    ),
    *(
        b"\norigin: http://[",
        b"\norigin: null",
        b"\nhost: [",
        b"\nx-forwarded-for: 1",
        b"\nsec-fetch-site: cross-site",
    ),
    *(
        b"\ncontent-type: application/json",
        b"socket_id=1.2&channel_name=private-agent.s",
        b"&session_id=",
        b"&epoch=e",
    ),
    *(
        b'{"name":"n","channels":["c"],"data":"{}"}',
        b'{"batch":[',
        b"\nlast-event-id: e:1",
        b"127.0.0.1",
        b"&offset=1",
    ),
    *(
        b"?channel=agent.s1&token=",
        b"&session=",
        b"=b.",
        b"private-agent.",
        b"99999999999999999999",
        b"-1",
        b"\xe2\x80\xa8",
    ),
)
KEY, SECRET = "app-key", "app-secret"
LOCAL = AccessPolicy()
LOOP = asyncio.new_event_loop()
ADDRESSES = ("127.0.0.1", "::1", "10.0.0.7", "", "unix:")


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    head, _, body = data.partition(b"\n\n")
    line, *rest = head.split(b"\n")
    path, _, query = line.partition(b"?")
    pairs = [(name.strip(), value.strip()) for name, _, value in (each.partition(b":") for each in rest)]
    scope = {"path": path.decode("latin-1"), "raw_path": line, "query_string": query, "headers": pairs}
    headers = headers_of(scope)
    segments = _or_bad(path_of, scope) or ()
    _or_bad(query_of, scope)
    for segment in segments:
        _id(segment)
    _or_bad(position, headers.get("last-event-id", ""))
    _doors(headers, data[-1] if data else 0)
    _names(path.decode("latin-1"))
    _proofs(path.decode("latin-1"), query.decode("latin-1"), body)
    method = "GET" if not body else "POST"
    request = Request(method, path.decode("latin-1"), query.decode("latin-1"), headers, body)
    status, content = LOOP.run_until_complete(_answer(request))
    assert status in (200, 400, 401, 403, 404, 405, 413, 422, 503)
    assert "auth" not in content or status == 401, "nobody is let in where nobody may"


def _or_bad(read: Any, *given: Any) -> Any:
    try:
        return read(*given)
    except BadRequest:
        return None


def _id(segment: str) -> None:
    taken = _or_bad(identifier, "an id", segment)
    if taken is not None:
        assert taken == segment
        assert len(taken.encode()) <= 4 * 512
        assert not set(taken) & set("\r\n\0")


def _doors(headers: dict[str, str], choice: int) -> None:
    address = ADDRESSES[choice % len(ADDRESSES)]
    if from_here(address, headers):
        host = headers["host"]
        assert ip_address(address).is_loopback
        assert any(word in host.lower() for word in ("localhost", "127.", "[")), host
    assert not LOCAL.holds_token(headers)
    assert LOCAL.holds_token({**headers, "authorization": f"Bearer {LOCAL.token}"})
    origin = headers.get("origin")
    if own_origin(headers, ()) and origin is not None:
        assert headers.get("host") is not None
        assert origin.endswith(headers["host"]) or "/" in origin.partition("://")[2]
    Gate(HubLimits()).own_page(headers)
    Gate(HubLimits(origins=("http://a",))).refuses(origin=origin, address=address, connections=1)


def _names(text: str) -> None:
    channel = channel_for(text)
    assert valid_name(channel)
    assert session_of(channel) in (text, None)
    known = session_of(text)
    if known is not None and valid_name(text):
        assert known
    plain_request(text)


def _proofs(path: str, query: str, body: bytes) -> None:
    """Whoever has no secret is never let in, whatever is sent."""
    pairs = [(name, value) for name, _, value in (each.partition("=") for each in query.split("&"))]
    assert RequestGuard(KEY, SECRET).check("POST", path, pairs, body, now=1_700_000_000) is not None
    assert not check_token(SECRET, query, path, now=0)
    token = issue_token(SECRET, path, expires=10)
    assert check_token(SECRET, token, path, now=9)
    assert not check_token(SECRET, token, path, now=10)
    assert not check_token(SECRET, token, path + "x", now=9)


async def _answer(request: Request) -> Any:
    api = Api(Hub("app", KEY, SECRET, authorize=lambda user, thread: False))
    return await api.answer(request)
