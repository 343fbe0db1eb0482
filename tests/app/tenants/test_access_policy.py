"""What counts as this machine and as our own page, and what the policy says without any server."""

from __future__ import annotations

import pytest

from runcast.app import AccessPolicy
from runcast.app.errors import NotAllowed
from runcast.app.tenants.access_policy import COOKIE, from_here, host_name, is_loopback, own_origin

TOKEN = "a-token-of-16-and-more"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("app.localhost", True),
        ("evillocalhost", False),
        ("localhost.example", False),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_a_name_or_an_address_means_this_machine_or_not(host: str, here: bool) -> None:
    assert is_loopback(host) is here


@pytest.mark.parametrize(("address", "host", "here"), [
    ("127.0.0.1", "localhost:8000", True),
    ("10.0.0.1", "localhost:8000", False),
    ("127.0.0.1", "example.org", False),
    ("127.0.0.1", "", False),
    ("127.0.0.1", "lo\tcalhost", False),
])  # fmt: skip
def test_a_request_is_made_here_and_for_here(address: str, host: str, here: bool) -> None:
    assert from_here(address, {"host": host}) is here
    assert from_here("127.0.0.1", {}) is False


@pytest.mark.parametrize(("host", "name"), [
    ("a.example:80", "a.example"), ("[::1]:8000", "::1"), ("A.example", "a.example"), ("[oops", ""), ("", ""),
    ("lo\tcalhost", ""), ("local\nhost", ""), ("localhost\0", ""), ("local host", ""), ("localhost ", ""),
])  # fmt: skip
def test_a_host_header_has_a_name(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "http://here:8000"}, True),
        ({"origin": "http://here:8001"}, False),
        ({"origin": "http://here"}, False),
        ({"origin": "https://allowed.example"}, True),
        ({"origin": "https://other.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://[oops"}, False),
    ],
)
def test_a_page_is_our_own_or_an_allowed_one(headers: dict[str, str], own: bool) -> None:
    assert own_origin({"host": "here:8000", **headers}, ("https://allowed.example",)) is own
    assert own_origin({"host": "here:8000", "origin": "https://any.example"}, ("*",))


@pytest.mark.parametrize(("headers", "held"), [
    ({"authorization": f"Bearer {TOKEN}"}, True),
    ({"authorization": f"bearer  {TOKEN} "}, True),
    ({"authorization": f"Basic {TOKEN}"}, False),
    ({"authorization": TOKEN}, False),
    ({"authorization": "Bearer "}, False),
    ({"cookie": f"a=b; {COOKIE}8000={TOKEN}"}, True),
    ({"cookie": f"a={TOKEN}"}, False),
    ({"cookie": f"{COOKIE}8000=guessed"}, False),
    ({}, False),
])  # fmt: skip
def test_the_token_comes_as_a_bearer_token_or_in_our_cookie(headers: dict[str, str], held: bool) -> None:
    assert AccessPolicy(token=TOKEN).holds_token(headers) is held


def test_only_a_local_host_has_its_token_in_its_first_url() -> None:
    policy = AccessPolicy(token=TOKEN)
    assert policy.first_url("http://localhost:1") == f"http://localhost:1/?token={TOKEN}"
    assert policy.first_url("http://localhost:1", "/agents/a") == f"http://localhost:1/agents/a?token={TOKEN}"
    policy.use(authorize=lambda user, thread_id: True)
    assert not policy.local
    assert policy.first_url("http://localhost:1") == "http://localhost:1"
    assert policy.first_url("http://localhost:1", "/agents/a") == "http://localhost:1/agents/a"


async def test_a_later_use_leaves_what_it_does_not_name() -> None:
    policy = AccessPolicy(token=TOKEN)
    policy.use(identify=lambda headers: headers["x-user"], tenant=lambda user: f"tenant of {user}")
    policy.use(authorize=lambda user, thread_id: user == "ann")
    assert await policy.who({"x-user": "ann"}) == "ann"
    assert policy.tenant("ann") == "tenant of ann"
    assert await policy.allows("ann", "t1") is True
    assert await policy.allows("bob", "t1") is False


async def test_what_is_given_later_takes_nothing_back() -> None:
    """Least of all `authorize`, without which the host would be local."""
    policy = AccessPolicy(token=TOKEN)
    policy.use(authorize=lambda user, thread: user == "ann", tenant={"ann": "acme", "bob": ""}.get)
    policy.use(identify=lambda headers: headers["x-user"])
    assert not policy.local
    assert await policy.who({"x-user": "ann"}) == "ann"
    assert (await policy.allows("ann", "t1"), await policy.allows("bob", "t1")) == (True, False)
    assert policy.tenant("ann") == "acme"
    for without in ("bob", "eve"):
        with pytest.raises(NotAllowed, match="no tenant"):
            policy.tenant(without)


@pytest.mark.parametrize(
    "token", ["", "short", TOKEN + " ", TOKEN + "\n", f"{TOKEN};path=/", "a" * 201, "ä" * 20]
)
def test_a_token_is_what_a_cookie_and_a_header_can_carry(token: str) -> None:
    with pytest.raises(ValueError, match="16 to 200"):
        AccessPolicy(token=token)
