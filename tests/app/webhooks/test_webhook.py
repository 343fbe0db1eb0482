"""A webhook as a value: its name in the store, what it hears of, and what its secrets sign."""

from __future__ import annotations

import time
from base64 import b64encode

import pytest
import standardwebhooks

from runcast.app import Webhook
from runcast.app.webhooks.webhook import Happening, hooks_for, key_of, signed

OLD, NEW = (f"whsec_{b64encode(bytes([n]) * 32).decode()}" for n in (1, 2))
URL = "https://example.com/hook"


def hook(url: str = URL, **more: object) -> Webhook:
    return Webhook(url, (NEW,), **more)  # type: ignore[arg-type]


def test_two_webhooks_have_one_name_only_if_they_are_the_same() -> None:
    names = [
        each.key
        for each in (
            hook(),
            hook(tenant=""),
            hook(tenant="ab", thread_id="c"),
            hook(tenant="a", thread_id="bc"),
            hook(tenant="abc"),
            hook(thread_id="abc"),
            hook(f"{URL}a", tenant="b", thread_id="c"),
        )
    ]
    assert len(set(names)) == len(names)
    assert hook(events=("failed",)).key == Webhook(URL, (OLD,)).key == names[0], (
        "secrets and events may change"
    )


@pytest.mark.parametrize(
    ("given", "happening", "tenant", "thread", "wants"),
    [
        ({}, "completed", "acme", "t1", True),
        ({"events": ("failed",)}, "completed", "acme", "t1", False),
        ({"tenant": "acme"}, "queued", "acme", "t1", True),
        ({"tenant": "acme"}, "queued", "beta", "t1", False),
        ({"tenant": ""}, "queued", "", "t1", True),
        ({"tenant": ""}, "queued", "beta", "t1", False),
        ({"thread_id": "t1"}, "failed", "acme", "t1", True),
        ({"thread_id": "t1"}, "failed", "acme", "t2", False),
    ],
)
def test_it_hears_of_its_own_alone(
    given: dict[str, object], happening: Happening, tenant: str, thread: str, wants: bool
) -> None:
    assert hook(**given).wants(happening, tenant, thread) is wants


def test_a_function_is_asked_for_the_thread() -> None:
    assert hooks_for([hook()], "acme", "t1") == [hook()]
    assert hooks_for(lambda tenant, thread: [hook(tenant=tenant, thread_id=thread)], "acme", "t1") == [
        hook(tenant="acme", thread_id="t1")
    ]


@pytest.mark.parametrize("length", [23, 24, 64, 65])
def test_a_secret_has_24_to_64_bytes(length: int) -> None:
    text = f"whsec_{b64encode(bytes(length)).decode()}"
    if 24 <= length <= 64:
        assert key_of(text) == bytes(length)
    else:
        with pytest.raises(ValueError, match="24 to 64"):
            key_of(text)


def test_every_secret_signs_an_attempt_at_its_time() -> None:
    now = int(time.time())
    headers = signed((NEW, OLD), "msg_1", now, b'{"a":1}')
    for secret in (NEW, OLD):
        assert standardwebhooks.Webhook(secret).verify('{"a":1}', headers) == {"a": 1}
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(NEW).verify('{"a":1}', {**headers, "webhook-timestamp": str(now - 1)})


@pytest.mark.parametrize(
    "url",
    [
        "https://user@example.com/",
        "https://:pw@example.com/",
        "http://example.com/",
        "https:///x",
        "ftp://a/",
    ],
)
def test_an_address_is_https_with_a_host_and_without_a_user(url: str) -> None:
    with pytest.raises(ValueError, match=r"webhook"):
        Webhook(url, (NEW,))
