"""One socket's side of the conversation, frame by frame."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.broadcast import HubLimits, Position, sign_channel
from runcast.broadcast.hub import protocol as p
from runcast.broadcast.hub.signatures import sign_user

KEY, SECRET, SOCKET = "app-key", "app-secret", "1.1"
LIMITS = HubLimits(subscriptions=3, client_events=2, strikes=3)


def socket(**options: Any) -> p.PusherSocket:
    return p.PusherSocket(SOCKET, **{"key": KEY, "secret": SECRET, "limits": LIMITS, **options})


def say(it: p.PusherSocket, event: str, data: Any = None, *, now: float = 0.0, **more: Any) -> list[p.Action]:
    return it.feed(json.dumps({"event": event, "data": data, **more}), now)


def enter(it: p.PusherSocket, channel: str, data: str | None = None) -> list[p.Action]:
    auth = sign_channel(SOCKET, channel, key=KEY, secret=SECRET, channel_data=data)
    return say(it, "pusher:subscribe", {"channel": channel, "auth": auth, "channel_data": data})


def kinds(actions: list[p.Action]) -> list[str]:
    return [type(action).__name__ for action in actions]


def texts(actions: list[p.Action]) -> list[Any]:
    return [json.loads(action.text) for action in actions if isinstance(action, p.Send)]


def test_the_first_frame():
    frame = json.loads(socket().opened())
    assert frame["event"] == "pusher:connection_established"
    assert json.loads(frame["data"]) == {"socket_id": SOCKET, "activity_timeout": 30}
    quick = socket(limits=HubLimits(activity=0.1)).opened()
    assert '\\"activity_timeout\\":1}' in quick  # 0 would make the client throw


def test_entering_and_leaving():
    it = socket()
    assert enter(it, "private-agent.s1") == [p.Subscribe("private-agent.s1")]
    assert "already" in str(texts(enter(it, "private-agent.s1")))
    assert say(it, "pusher:unsubscribe", {"channel": "private-agent.s1"}) == [
        p.Unsubscribe("private-agent.s1")
    ]
    for data in ({"channel": "private-agent.s1"}, {"channel": 7}, {}, None, "x"):
        assert say(it, "pusher:unsubscribe", data) == []
    assert it.channels == set()


def test_a_signed_position_is_read():
    data = '{"recover":{"epoch":"k3f9x2","offset":41}}'
    assert enter(socket(), "private-agent.s1", data) == [
        p.Subscribe("private-agent.s1", Position("k3f9x2", 41))
    ]
    assert enter(socket(), "private-agent.s1", "x") == [p.Subscribe("private-agent.s1")]


def test_public_channels_only_where_they_are_meant_to_be():
    assert kinds(say(socket(), "pusher:subscribe", {"channel": "c"})) == ["Refused", "Send"]
    assert say(socket(public=True), "pusher:subscribe", {"channel": "c", "auth": ""}) == [p.Subscribe("c")]


def test_presence():
    data = '{"user_id":7,"user_info":{"n":1},"recover":{"epoch":"e","offset":1}}'
    assert enter(socket(), "presence-c", data) == [p.Subscribe("presence-c", Position("e", 1), "7", {"n": 1})]
    long = json.dumps({"user_id": "u", "user_info": "x" * 3_000})
    for bad in (None, "{}", "{oops", "[]", '{"user_id":""}', '{"user_id":true}', '{"user_id":null}', long):
        assert kinds(enter(socket(), "presence-c", bad)) == ["Refused", "Send"]


def test_too_many_channels():
    it = socket()
    for n in range(3):
        enter(it, f"private-c{n}")
    actions = enter(it, "private-c9")
    assert kinds(actions) == ["Limited", "Send"]
    assert texts(actions)[0]["data"]["status"] == 429


def test_signing_in():
    it = socket()
    data = '{"id":"u1"}'
    assert kinds(say(it, "pusher:subscribe", {"channel": "#server-to-user-u1"})) == ["Refused", "Send"]
    assert kinds(say(it, "pusher:signin", {"user_data": data, "auth": "x"})) == ["Refused", "Send"]
    auth = sign_user(SOCKET, data, key=KEY, secret=SECRET)
    (answer,) = texts(say(it, "pusher:signin", {"user_data": data, "auth": auth}))
    assert (answer["event"], json.loads(answer["data"])) == ("pusher:signin_success", {"user_data": data})
    assert kinds(say(it, "pusher:subscribe", {"channel": "#server-to-user-u2"})) == ["Refused", "Send"]
    assert say(it, "pusher:subscribe", {"channel": "#server-to-user-u1"}) == [
        p.Subscribe("#server-to-user-u1")
    ]


@pytest.mark.parametrize("data", ["{oops", "{}", '{"id":7}', '{"id":"a b"}'])
def test_signing_in_as_nobody(data: str):
    auth = sign_user(SOCKET, data, key=KEY, secret=SECRET)
    assert kinds(say(socket(), "pusher:signin", {"user_data": data, "auth": auth})) == ["Nonsense", "Send"]


def test_pings():
    it = socket()
    assert texts(say(it, "pusher:ping")) == [{"event": "pusher:pong", "data": {}}]
    assert say(it, "pusher:pong") == []


def test_client_events():
    it = socket(client_events=True, public=True)
    enter(it, "private-c")
    say(it, "pusher:subscribe", {"channel": "open"})
    assert say(it, "client-x", {"a": 1}, channel="private-c") == [
        p.Whisper("private-c", "client-x", {"a": 1})
    ]
    assert kinds(say(it, "client-x", 1, channel="private-c")) == ["Whisper"]
    assert kinds(say(it, "client-x", 1, channel="private-c")) == ["Limited", "Send"]
    assert kinds(say(it, "client-x", 1, channel="private-c", now=0.6)) == ["Whisper"]
    assert kinds(say(it, "client-x", 1, channel="open")) == ["Limited", "Send"]
    assert kinds(say(it, "client-x", 1, channel="private-d")) == ["Limited", "Send"]


def test_a_long_silence_saves_no_client_events_up():
    it = socket(client_events=True)
    enter(it, "private-c")
    sent = [kinds(say(it, "client-x", 1, channel="private-c", now=1_000.0))[0] for _ in range(5)]
    assert sent == ["Whisper"] * 2 + ["Limited"] * 3


def test_client_events_go_to_channels_that_the_socket_is_in_and_not_to_one_it_left():
    it = socket(client_events=True)
    enter(it, "private-c")
    say(it, "pusher:unsubscribe", {"channel": "private-c"})
    assert kinds(say(it, "client-x", 1, channel="private-c")) == ["Limited", "Send"]
    assert enter(it, "private-c") == [p.Subscribe("private-c")]


def test_client_events_that_are_off_or_too_long():
    assert kinds(say(socket(), "client-x", 1, channel="private-c")) == ["Limited", "Send"]
    it = socket(client_events=True)
    enter(it, "private-c")
    assert kinds(say(it, "client-" + "x" * 200, 1, channel="private-c")) == ["Limited", "Send"]


@pytest.mark.parametrize("on", [False, True])
def test_refused_client_events_never_close_a_page(on: bool):
    """An Echo page whispers with every key: 4301 would be final for pusher-js."""
    it = socket(client_events=on)
    enter(it, "private-c")
    for _ in range(1_000):
        (_, sent) = say(it, "client-typing", 1, channel="private-other")
        assert isinstance(sent, p.Send)
        error = json.loads(sent.text)
        assert error["event"] == "pusher:error"
        assert json.loads(error["data"])["code"] == 4301
    assert kinds(it.feed("x", 1.0)) == ["Nonsense", "Send"]


NONSENSE = [
    b"x", "{oops", "[]", "null", "7", "{}", '{"event":7}', '{"event":"x"}', '{"event":"pusher:subscribe"}',
    '{"event":"pusher:subscribe","data":"x"}', '{"event":"pusher:subscribe","data":{"channel":"a b"}}',
    '{"event":"pusher:signin","data":{}}', '{"event":"\\ud800"}', "[" * 5_000, "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_answered_and_counted(text: str | bytes):
    assert kinds(socket().feed(text, 0.0)) == ["Nonsense", "Send"]


def test_after_enough_nonsense_it_is_over_and_after_a_minute_forgiven():
    it = socket()
    for _ in range(3):
        assert kinds(it.feed("x", 1.0)) == ["Nonsense", "Send"]
    assert it.feed("x", 2.0) == [p.Nonsense(), p.Close(4301, "too many malformed frames or wrong proofs")]
    other = socket()
    for n in range(20):
        assert kinds(other.feed("x", n * 61.0)) == ["Nonsense", "Send"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["event", "data", "channel", "auth", "channel_data", "user_data"])
                | st.text(),
                inner,
            )
        ),
    )
)
def test_anything_at_all_is_survived(value: Any):
    it = socket(client_events=True, public=True)
    for text in (json.dumps(value), json.dumps({"event": "pusher:subscribe", "data": value})):
        for action in it.feed(text, 0.0):
            assert not isinstance(action, p.Whisper | p.Unsubscribe)


def test_an_events_name_cannot_break_out_of_its_frame():
    frame = json.loads(p.event_frame('x","channel":"private-other', "c", b'{"a":"\\""}'))
    assert frame == {"event": 'x","channel":"private-other', "channel": "c", "data": '{"a":"\\""}'}


def test_frames():
    assert json.loads(p.frame("e")) == {"event": "e"}
    assert json.loads(p.frame("e", channel="c", data={"a": 1})) == {
        "event": "e",
        "channel": "c",
        "data": '{"a":1}',
    }
    assert json.loads(p.subscribed_frame("c", {}))["data"] == "{}"


def test_the_plain_mode():
    it = p.PlainSocket("1", "c", limits=LIMITS)
    assert it.channels == {"c"}
    assert texts(it.feed('{"type":"ping"}', 0.0)) == [{"type": "pong"}]
    assert it.feed('{"type":"pong"}', 0.0) == []
    for text in ("{oops", b"\xff", "[]"):
        assert kinds(it.feed(text, 0.0)) == ["Nonsense", "Send"]
    assert kinds(it.feed("x", 0.0)) == ["Nonsense", "Close"]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("channel=agent.s1", p.PlainRequest("agent.s1")),
        ("channel=agent.s1&after=5", p.PlainRequest("agent.s1", None, Position("", 5))),
        ("session=a%2Fb&after=5&epoch=e&token=t", p.PlainRequest("", "a/b", Position("e", 5), "t")),
        ("channel=c&after=-1", p.PlainRequest("c")),
        ("channel=c&after=x", p.PlainRequest("c")),
        ("channel=c&after=" + "9" * 17, p.PlainRequest("c")),
        ("channel=c&after=5&epoch=" + "e" * 65, p.PlainRequest("c")),
        ("", p.PlainRequest("")),
    ],
)
def test_what_a_plain_socket_asks_for(query: str, wanted: p.PlainRequest):
    assert p.plain_request(query) == wanted


@pytest.mark.parametrize(
    "data",
    [{"auth": "app-key:00"}, {}, {"auth": 7}, {"auth": "app-key:00", "channel_data": {"user_id": 1}}],
)
def test_a_proof_that_is_not_good(data: dict[str, Any]):
    actions = say(socket(), "pusher:subscribe", {"channel": "private-agent.s1", **data})
    assert kinds(actions) == ["Refused", "Send"]
    assert texts(actions)[0]["channel"] == "private-agent.s1"


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("pusher:subscribe", {"channel": "private-agent.s1", "auth": "app-key:00"}),
        ("pusher:signin", {"user_data": '{"id":"ann"}', "auth": "app-key:00"}),
    ],
)
def test_whoever_guesses_proofs_is_sent_away(event: str, data: dict[str, Any]):
    it = socket()
    for _ in range(3):
        assert kinds(say(it, event, data, now=1.0)) == ["Refused", "Send"]
    assert kinds(say(it, event, data, now=2.0)) == ["Nonsense", "Close"]
    assert kinds(say(socket(), event, data, now=3.0)) == ["Refused", "Send"]  # another connection starts anew
