"""The views of a host's tenants: as many as there is room for, and none is closed while it is used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ag_ui.core import RunAgentInput

from runcast.adapters import Adapter
from runcast.app import Cast
from runcast.app.tenants.tenant_adapter import ForTenant
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


async def test_an_agent_knows_a_tenants_runs_and_threads_by_other_ids_and_by_the_same_everywhere() -> None:
    """A stop, a message for a running agent and a deletion reach the run and the thread that was begun."""
    seen = dict[str, str]()

    class Agent:
        name, reconciles_history = "agent", False

        async def run(self, input: Any, *, resume: Any = None) -> AsyncIterator[Any]:
            seen.update(run=input.run_id, thread=input.thread_id, parent=input.parent_run_id)
            return
            yield

        async def stop(self, run_id: str, *, hard: bool = False) -> None:
            seen["stop"] = run_id

        async def steer(self, run_id: str, take: Any) -> None:
            seen["steer"] = run_id

        async def forget(self, thread_id: str) -> None:
            seen["forget"] = thread_id

        def capabilities(self) -> Any: ...

    mine, other = (ForTenant(cast("Adapter", Agent()), name) for name in ("acme", "other"))
    given = RunAgentInput(thread_id="t", run_id="r", parent_run_id="p", messages=[], tools=[], context=[])
    found = list[dict[str, str]]()
    for each in (mine, other):
        assert [event async for event in each.run(given)] == []
        await each.stop("r")
        await each.steer("r", list)  # type: ignore[arg-type, return-value]  # nothing is taken
        await each.forget("t")
        assert seen["stop"] == seen["steer"] == seen["run"]
        assert seen["forget"] == seen["thread"]
        found.append({**seen})
    assert all(found[0][name] != found[1][name] for name in ("run", "thread", "parent"))
