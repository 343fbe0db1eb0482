"""Who may come in, what a presence channel learns of a user, limits that cannot work, and the numbers as text."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from runcast.broadcast import ConfigError, HubLimits
from runcast.broadcast.hub.gate import Gate, member_of
from runcast.broadcast.hub.limits import HubStats
from runcast.broadcast.hub.skins.metrics import exposition


def code(gate: Gate, **asked: Any) -> int | None:
    refusal = gate.refuses(**{"origin": None, "address": "a", "connections": 0, **asked})
    return None if refusal is None else refusal.code


@pytest.mark.parametrize(
    ("origins", "origin", "expected"),
    [
        (("*",), "https://x", None), (("https://x",), "https://x", None), (("https://x",), "https://y", 4009),
        (("https://x",), None, None), ((), "https://x", 4009), (("https://x",), "https://x.evil", 4009),
    ],
)  # fmt: skip
def test_origins(origins: tuple[str, ...], origin: str | None, expected: int | None):
    assert code(Gate(HubLimits(origins=origins)), origin=origin) == expected


def test_crowds():
    gate = Gate(HubLimits(connections=5, connections_per_address=2))
    assert code(gate, connections=4) is None
    assert code(gate, connections=5) == 4100
    gate.enter("a")
    assert code(gate) is None
    gate.enter("a")
    assert (code(gate), code(gate, address="b"), len(gate)) == (4100, None, 1)
    gate.leave("a")
    assert (code(gate), len(gate)) == (None, 1)
    gate.leave("a")
    assert len(gate) == 0


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"host": "app.example"}, True),
        ({"host": "app.example", "origin": "https://app.example"}, True),
        ({"host": "app.example:8080", "origin": "http://app.example:8080"}, True),
        ({"host": "app.example", "origin": "https://named.example"}, True),
        ({"host": "app.example", "origin": "https://evil.example"}, False),
        ({"host": "app.example", "origin": "https://app.example.evil"}, False),
        ({"host": "app.example", "origin": "null"}, False),
        ({"host": "app.example", "origin": "http://["}, False),
        ({"origin": "https://app.example"}, False),
    ],
)
def test_whose_page_may_use_a_users_cookies(headers: dict[str, str], own: bool):
    assert Gate(HubLimits(origins=("*", "https://named.example"))).own_page(headers) is own


@dataclass
class User:
    id: int


@pytest.mark.parametrize(
    ("user", "member"),
    [
        ("ann", {"user_id": "ann"}),
        (7, {"user_id": "7"}),
        (User(7), {"user_id": "7"}),
        ({"user_id": 7, "user_info": {"n": 1}, "password": "x"}, {"user_id": "7", "user_info": {"n": 1}}),
        (None, None), ("", None), (True, None), ({}, None), ({"user_id": None}, None), (SimpleNamespace(), None),
    ],
)  # fmt: skip
def test_what_the_others_learn_of_a_user(user: Any, member: dict[str, Any] | None):
    assert member_of(user) == member


@pytest.mark.parametrize(
    "change", [{"connections": 0}, {"pong": -1}, {"buffer": 1_000}, {"replay_bytes": 2_000_000}]
)
def test_limits_that_cannot_work(change: dict[str, Any]):
    with pytest.raises(ConfigError, match="must be"):
        HubLimits(**change)


def test_numbers_as_text():
    stats = HubStats(opened=3)
    stats.closed(4200)
    stats.closed(4200)
    text = exposition({"opened": stats.opened, "connections": 2, "closes": stats.closes})
    assert text.splitlines() == [
        "# TYPE runcast_hub_opened_total counter",
        "runcast_hub_opened_total 3",
        "# TYPE runcast_hub_connections gauge",
        "runcast_hub_connections 2",
        "# TYPE runcast_hub_closes_total counter",
        'runcast_hub_closes_total{code="4200"} 2',
    ]
