"""The views of a host's tenants: as many as there is room for, and none is closed while it is used."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runcast.app import Cast
from runcast.app.tenants.tenant_views import Views


@dataclass
class View:
    """What `Views` asks of a cast."""

    tenant: str
    hub: Any = field(default_factory=lambda: SimpleNamespace(occupied=dict))
    remote_runs: set[Any] = field(default_factory=set[Any])
    followers: list[Any] = field(default_factory=list[Any])
    running: bool = False
    closed: list[float] = field(default_factory=list[float])

    @property
    def slots(self) -> Any:
        return SimpleNamespace(has=lambda tenant: self.running and tenant == self.tenant)

    async def aclose(self, *, grace: float) -> None:
        await asyncio.sleep(0)
        self.closed.append(grace)


def views(most: int, *given: View) -> Views:
    it = Views(most)
    for each in given:
        it.add(cast("Cast", each))
    return it


def names(it: Views) -> list[str]:
    return [each.tenant for each in it]


async def test_the_longest_unused_one_goes_first_and_only_for_want_of_room() -> None:
    a, b, c = View("a"), View("b", hub=None), View("c")
    it = views(3, a, b, c)
    assert it.find("a") is cast("Cast", a)
    assert it.find("x") is None
    it.add(cast("Cast", View("d")))
    assert (names(it), len(it)) == (["c", "a", "d"], 3)
    await it.aclose(2.5)
    assert (b.closed, a.closed, c.closed) == ([0], [2.5], [2.5])


@pytest.mark.parametrize(
    "use",
    [
        {"hub": SimpleNamespace(occupied=lambda: {"private-agent.t1": 1})},
        {"remote_runs": {1}},
        {"followers": [1]},
        {"running": True},
    ],
)
async def test_one_that_is_used_stays(use: dict[str, Any]) -> None:
    used, idle = View("used", **use), View("idle")
    it = views(2, used, idle)
    it.add(cast("Cast", View("new")))
    assert names(it) == ["used", "new"]
    it.add(cast("Cast", View("newer", **use)))
    it.add(cast("Cast", View("newest")))
    assert names(it) == ["used", "newer", "newest"]  # more than there is room for
    await it.aclose(0)
    assert (used.closed, idle.closed) == ([0], [0])
