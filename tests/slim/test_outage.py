"""What is away is logged once until it is back."""

from __future__ import annotations

import logging

import pytest

from runcast.slim.outage import Outage, place_of


def test_every_reason_is_logged_once_until_the_thing_is_back(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    outage = Outage(logging.getLogger("runcast.test"), quiet=60, clock=lambda: now)
    outage.over("back")  # it was never away
    for why in ("gone", "gone", "refused", "gone", "refused"):
        now += 59
        outage.lost(why)
    assert caplog.messages == ["gone", "refused"]
    outage.over("back")
    outage.over("back")
    outage.lost("gone")
    assert caplog.messages == ["gone", "refused", "back", "gone"]
    now += 61  # nobody reported that it was back, but it must have been
    outage.lost("gone")
    assert caplog.messages[4:] == ["gone"]


@pytest.mark.parametrize(
    ("url", "port", "place"),
    [
        ("postgresql://ann:secret@db:5433/runs", None, "db:5433"),
        ("redis://:secret@cache", 6379, "cache:6379"),
        ("redis://[::1]", 6379, "[::1]:6379"),
        ("redis://[::1]:7000/2", 6379, "[::1]:7000"),
        ("https://key:secret@api-eu.example.com/path", None, "api-eu.example.com"),
        ("unix:///run/redis.sock", 6379, "/run/redis.sock"),
        ("sqlite:///runs.db", None, ""),
        ("postgresql://ann:sec/ret@db/runs", None, ""),  # `ann:sec` would be the host
        ("redis://:sec?ret@cache", 6379, ""),
    ],
)
def test_the_place_of_a_server_shows_no_credential(url: str, port: int | None, place: str) -> None:
    assert place_of(url, port=port) == place
