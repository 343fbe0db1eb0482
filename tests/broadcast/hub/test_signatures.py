"""Signatures: the protocol's golden vectors, PyPI `pusher` as the signing oracle, replay and windows."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

import pusher
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.broadcast.hub.signatures import (
    Position,
    RequestGuard,
    check_token,
    issue_token,
    position_data,
    position_of,
    read_position,
    read_token,
    realm_of,
    same,
    sign,
    sign_channel,
    sign_request,
    sign_user,
)
from runcast.slim.entry import bound

KEY, SECRET = "278d425bdf160c739803", "7ad3773142a6692b25b8"
MEMBER = '{"user_id":10,"user_info":{"name":"Mr. Channels"}}'
RECOVER = '{"recover":{"epoch":"k3f9x2","offset":41}}'
BODY = b'{"name":"foo","channels":["project-3"],"data":"{\\"some\\":\\"data\\"}"}'
PATH = "/apps/3/events"
NOW = 1_353_088_179


@pytest.mark.parametrize(
    ("channel", "data", "expected"),
    [
        ("private-foobar", None, "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4"),
        ("presence-foobar", MEMBER, "31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80"),
        ("private-agent.s1", RECOVER, "0001348b89091554a0087c9733f13ee7b5d9bc71c283c082d5b96ba3557e4711"),
    ],
)
def test_channels_are_signed_as_the_protocol_says(channel: str, data: str | None, expected: str):
    signed = sign_channel("1234.1234", channel, key=KEY, secret=SECRET, channel_data=data)
    assert signed == f"{KEY}:{expected}"


def test_a_proof_without_data_is_none_for_empty_data():
    plain, empty = (
        sign_channel("1.1", "presence-c", key=KEY, secret=SECRET, channel_data=data) for data in (None, "")
    )
    assert plain != empty
    assert empty == f"{KEY}:{sign(SECRET, '1.1:presence-c:')}"


def test_users_and_requests_are_signed_as_the_protocol_says():
    user = sign_user("1234.1234", '{"id":"12345"}', key=KEY, secret=SECRET)
    assert user == f"{KEY}:4708d583dada6a56435fb8bc611c77c359a31eebde13337c16ab43aa6de336ba"
    query = dict(parse_qsl(sign_request("POST", PATH, BODY, key=KEY, secret=SECRET, now=NOW)))
    assert query["body_md5"] == "ec365a775a4cd0599faeb73354201b6f"
    assert query["auth_signature"] == "da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c"


@given(
    socket=st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)),
    data=st.none() | st.dictionaries(st.text(), st.text()),
)
def test_the_official_library_signs_the_same(socket: tuple[int, int], data: dict[str, str] | None):
    official = pusher.Pusher("3", KEY, SECRET)
    socket_id = f"{socket[0]}.{socket[1]}"
    if data is None:
        expected = official.authenticate("private-x", socket_id)
        assert sign_channel(socket_id, "private-x", key=KEY, secret=SECRET) == expected["auth"]
    else:
        expected = official.authenticate("presence-x", socket_id, {"user_id": "u", "user_info": data})
        ours = sign_channel(
            socket_id, "presence-x", key=KEY, secret=SECRET, channel_data=expected["channel_data"]
        )
        assert ours == expected["auth"]
    official._pusher_client.http.session.close()


@pytest.mark.parametrize("proof", [None, 7, b"abc", "ab", "ABC", "\ud800", ["abc"]])
def test_only_the_same_text_is_the_same(proof: object):
    assert same("abc", "abc")
    assert not same(proof, "abc")


# ------------------------------------------------------------------- requests


def query(now: int = NOW, body: bytes = BODY, method: str = "POST") -> list[tuple[str, str]]:
    return parse_qsl(sign_request(method, PATH, body, key=KEY, secret=SECRET, now=now))


def check(guard: RequestGuard, now: int = NOW, made: int | None = None, body: bytes = BODY) -> str | None:
    refusal = guard.check("POST", PATH, query(now if made is None else made, body), body, now=now)
    return None if refusal is None else refusal.sentence


@pytest.mark.parametrize(("off", "served"), [(600, True), (-600, True), (601, False), (-601, False)])
def test_the_window(off: int, served: bool):
    assert (check(RequestGuard(KEY, SECRET), made=NOW + off) is None) is served


@pytest.mark.parametrize("stamp", ["", "x", "-5", "9" * 13, "٣"])
def test_a_time_that_is_none(stamp: str):
    asked = [(name, stamp if name == "auth_timestamp" else value) for name, value in query()]
    refusal = RequestGuard(KEY, SECRET).check("POST", PATH, asked, BODY, now=NOW)
    assert refusal is not None
    assert refusal.status == 401


def test_a_time_of_any_length_is_refused_with_a_sentence():
    for stamp in ("9" * 13, "9" * 5_000):
        refusal = RequestGuard(KEY, SECRET).check(
            "GET", PATH, [("auth_key", KEY), ("auth_timestamp", stamp)], b"", now=NOW
        )
        assert refusal is not None
        assert (refusal.status, refusal.sentence) == (
            401,
            "auth_timestamp must be seconds since the Unix epoch",
        )


def test_each_is_served_once_and_reading_as_often_as_one_likes():
    guard = RequestGuard(KEY, SECRET)
    assert check(guard) is None
    assert check(guard, made=NOW, now=NOW + 2) is None  # Laravel sends two equal events in one second
    assert "before" in str(check(guard, made=NOW, now=NOW + 3))
    refusal = guard.check("POST", PATH, query(), BODY, now=NOW + 3)
    assert refusal is not None
    assert refusal.served
    for _ in range(2):
        assert guard.check("GET", PATH, query(body=b"", method="GET"), b"", now=NOW) is None


@pytest.mark.parametrize("later", [3, 10, 300, 599, 600])
@pytest.mark.parametrize("made", [NOW, NOW + 600])
def test_a_captured_request_is_refused_for_as_long_as_its_time_would_pass(later: int, made: int):
    """Its signature is remembered for the whole window, whatever else is served meanwhile."""
    guard = RequestGuard(KEY, SECRET)
    assert check(guard, made=made) is None
    for second in range(1, later + 1, max(1, later // 5)):
        assert check(guard, now=NOW + second, body=b"%d" % second) is None
    assert check(guard, now=NOW + later, body=b"last") is None
    assert "before" in str(check(guard, now=NOW + later, made=made))


def test_a_full_memory_refuses_what_it_can_no_longer_tell_from_a_replay():
    guard = RequestGuard(KEY, SECRET, remember=3)
    assert check(guard, made=NOW - 5) is None
    for n in range(3):
        assert check(guard, body=b"%d" % n) is None
    assert check(guard, made=NOW + 1) is None  # what was made at NOW - 5 and NOW is forgotten now
    assert "before" in str(check(guard, made=NOW - 5))
    assert "before" in str(check(guard, made=NOW, body=b"new"))
    assert check(guard, made=NOW + 2) is None


def test_what_is_out_of_the_window_is_forgotten_and_stays_refused():
    guard = RequestGuard(KEY, SECRET, window=10)
    assert check(guard) is None
    assert check(guard, now=NOW + 11) is None
    assert "off" in str(check(guard, now=NOW + 11, made=NOW))


@pytest.mark.parametrize("change", ["auth_key", "auth_signature", "body_md5", "auth_version", "more"])
def test_nothing_can_be_changed_or_added(change: str):
    asked = [(name, f"{value}0" if name == change else value) for name, value in query()]
    asked += [("more", "1")] if change == "more" else []
    assert RequestGuard(KEY, SECRET).check("POST", PATH, asked, BODY, now=NOW) is not None


def test_a_body_without_a_digest_and_a_parameter_given_twice():
    guard = RequestGuard(KEY, SECRET)
    bare = [(name, value) for name, value in query() if name != "body_md5"]
    for asked, status in ((bare, 401), ([*query(), ("auth_key", KEY)], 400)):
        refusal = guard.check("POST", PATH, asked, BODY, now=NOW)
        assert refusal is not None
        assert refusal.status == status


def test_a_body_that_was_not_signed_is_refused_though_all_else_is_signed():
    """The signature is good; only the missing digest keeps a stranger's body out."""
    guard = RequestGuard(KEY, SECRET)
    unsigned = query(body=b"")
    assert "body_md5" not in dict(unsigned)
    refusal = guard.check("POST", PATH, unsigned, BODY, now=NOW)
    assert refusal is not None
    assert (refusal.status, refusal.sentence) == (401, "body_md5 is not the body's digest")
    assert guard.check("POST", PATH, unsigned, b"", now=NOW) is None


# --------------------------------------------------------------------- tokens


@given(st.text())
def test_a_token_lets_its_bearer_watch_its_thread_until_it_expires(session_id: str):
    token = issue_token(SECRET, session_id, expires=100)
    assert check_token(SECRET, token, session_id, now=99)
    assert not check_token(SECRET, token, session_id, now=100)
    assert not check_token(SECRET, token, session_id + "x", now=99)
    assert not check_token("other", token, session_id, now=99)


@pytest.mark.parametrize("token", [None, 7, "", ".", "a.b", "a.b.c", f"x.{sign(SECRET, 'x')}"])
def test_what_is_no_token(token: object):
    assert not check_token(SECRET, token, "s1", now=0)


@given(st.text(), st.text())
def test_a_token_names_its_realm_and_opens_the_same_thread(session_id: str, realm: str):
    token = issue_token(SECRET, session_id, expires=100, realm=realm)
    assert realm_of(token) == realm
    assert read_token(SECRET, token, now=99) == session_id
    assert read_token(SECRET, token, now=100) is None
    assert read_token("other", token, now=99) is None


@given(
    st.one_of(
        st.text(),
        st.sampled_from(["W10", "WzEsMiwzXQ", "eyJhIjoxfQ", "W1tbW1s", "é.x", "\ud800.x", "WzEsMl0.x"]),
    )
)
def test_whatever_calls_itself_a_token_names_a_realm_or_none(token: str):
    assert isinstance(realm_of(token), str)
    assert read_token(SECRET, token, now=0) is None


def test_a_thread_id_with_half_a_character_has_a_token_too():
    assert check_token(SECRET, issue_token(SECRET, "\ud800", expires=9), "\ud800", now=1)


# ------------------------------------------------------------------ positions


@given(st.text(max_size=64), st.integers(0, 2**53 - 1))
def test_a_position_survives_the_journey(epoch: str, offset: int):
    position = Position(epoch, offset)
    assert read_position(position_data(position)) == position


@pytest.mark.parametrize(
    "value",
    [
        None, 7, [], {}, {"epoch": 1, "offset": 1}, {"epoch": "e"}, {"epoch": "e", "offset": "1"},
        {"epoch": "e", "offset": True}, {"epoch": "e", "offset": -1}, {"epoch": "e", "offset": 2**53},
        {"epoch": "e" * 65, "offset": 1}, {"epoch": "e", "offset": 1.5},
    ],
)  # fmt: skip
def test_what_is_no_position(value: object):
    assert position_of(value) is None
    assert read_position(json.dumps({"recover": value})) is None


@pytest.mark.parametrize("data", [None, 7, "", "{oops", "[]", "7", '{"recover":[]}'])
def test_what_carries_no_position(data: object):
    assert read_position(data) is None


def test_a_request_with_another_apps_key_is_refused_though_its_signature_fits():
    query = sign_request("GET", "/apps/1/channels", b"", key="other", secret="secret", now=1_000)
    refusal = RequestGuard("key", "secret").check("GET", "/apps/1/channels", parse_qsl(query), b"", now=1_000)
    assert refusal is not None
    assert (refusal.status, "auth_key" in refusal.sentence) == (401, True)


def test_the_beginning_of_a_thread_is_bound_to_no_history():
    history = bound("k3f9x2", "1.0a0a0a0a")
    assert Position(history, 0) == Position("k3f9x2", 0)
    assert Position(history, 1).history == history


def test_a_position_that_was_given_its_mark_keeps_it():
    history = bound("k3f9x2", "1.0a0a0a0a")
    position = Position(history, 5, "2.0b0b0b0b")
    assert (position.epoch, position.mark) == (history, "2.0b0b0b0b")
    assert (Position("k3f9x2", 5).epoch, Position("k3f9x2", 5).mark) == ("k3f9x2", "")


def test_a_position_with_a_history_longer_than_any_is_none():
    assert position_of({"epoch": bound("k3f9x2", "1" * 500), "offset": 1}) is None
    assert read_position(b'{"recover":{"epoch":"e","offset":1}}') is None, "only text is signed"


def test_the_memory_is_full_when_it_is_full_and_not_before():
    guard = RequestGuard(KEY, SECRET, window=10, remember=2)
    assert check(guard) is None
    assert check(guard, made=NOW + 1, now=NOW + 1) is None
    assert check(guard, made=NOW, now=NOW + 1, body=b"late") is None, "two seconds fit"
    assert check(guard, made=NOW, now=NOW + 1, body=b"later") is not None
    later = NOW + 100  # all of it is forgotten, and its room is free
    for n, second in enumerate((0, 1)):
        assert check(guard, made=later + second, now=later + second, body=b"%d" % n) is None
    assert check(guard, made=later, now=later + 1, body=b"third") is None


def test_a_token_without_a_realm_has_no_place_for_one():
    assert realm_of(issue_token(SECRET, "s1", expires=9)) == ""
    assert len(issue_token(SECRET, "s1", expires=9)) < len(issue_token(SECRET, "s1", expires=9, realm="r"))
