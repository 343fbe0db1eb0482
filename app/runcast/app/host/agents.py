"""The agents that a cast knows: its own by name, and those that other nodes announce.

A tenant's registry shows the host's agents under the tenant's ids, and may have agents of its own. Knows adapters; does
not run them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runcast.adapters import Adapter
from runcast.app.errors import BadRequest, NotFound
from runcast.app.host.agent_adapters import as_adapter, cautions
from runcast.app.nodes.handover import OnBusy, RemoteAgent
from runcast.app.tenants.tenant_adapter import ForTenant

logger = logging.getLogger("runcast.app")


class Agents(Mapping[str, Adapter]):
    """Adapters by name, those of other nodes first."""

    def __init__(self, host: Agents | None = None, tenant: str = "") -> None:
        self._host = host
        self._tenant = tenant
        self._own: dict[str, Adapter] = {}
        self._remote: dict[str, Adapter] = {}
        self._made: list[Any] = []  # of URLs: their connections are this host's to close
        self._on_busy: dict[str, OnBusy] = {}

    def __getitem__(self, name: str) -> Adapter:
        found = self._own.get(name)
        if found is None and self._host is not None:
            found = self.bound(self._host[name])
        return self._remote[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._remote, *(self._host or ()), *self._own]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def named(self, name: str) -> Adapter:
        """The agent of this name; raises `NotFound` with the names there are."""
        if name not in self:
            raise NotFound(f"no agent is called {name!r}; there are: {', '.join(self) or 'none'}")
        return self[name]

    def on_busy(self, name: str) -> OnBusy | None:
        """What a message for this agent does while a run is active, where that was set."""
        found = self._on_busy.get(name)
        return self._host.on_busy(name) if found is None and self._host is not None else found

    def register(self, agent: Any, name: str | None = None, on_busy: OnBusy | None = None) -> Adapter:
        """Add an agent, wrapped by the adapter it needs."""
        adapter, warnings = self._add(agent, name, on_busy)
        _warn({adapter.name: warnings})
        return adapter

    def register_all(self, agents: Iterable[Any]) -> None:
        """Add agents; what holds for several of them is one warning."""
        added = [self._add(agent) for agent in agents]
        _warn({adapter.name: warnings for adapter, warnings in added})

    def _add(
        self, agent: Any, name: str | None = None, on_busy: OnBusy | None = None
    ) -> tuple[Adapter, list[str]]:
        bare = as_adapter(agent, name=name)
        adapter = self.bound(bare)
        if adapter.name in self._own or adapter.name in (self._host or ()):
            raise BadRequest(
                f"an agent called {adapter.name!r} is registered already: give this one another name"
            )
        self._own[adapter.name] = adapter
        if bare is not agent and hasattr(bare, "aclose"):
            self._made.append(bare)
        if on_busy is not None:
            self._on_busy[adapter.name] = on_busy
        return adapter, cautions(bare)

    async def aclose(self) -> None:
        """Close the connections to agents that were given by URL."""
        for each in self._made:
            await each.aclose()

    def remember(self, adapter: Adapter) -> None:
        """Keep the adapter of a run, unless its name is taken, so that the thread can be continued by name."""
        if adapter.name not in self:
            self._own[adapter.name] = adapter

    def set_remote(self, agents: Mapping[str, RemoteAgent]) -> None:
        """Replace the agents of other nodes by these."""
        self._remote = dict(agents)

    def bound(self, agent: Any) -> Adapter:
        """The agent as an adapter that works under this tenant's ids."""
        known = any(agent is each for each in self._own.values())
        adapter = agent if known else as_adapter(agent)
        bare = not self._tenant or isinstance(adapter, ForTenant)
        return adapter if bare else ForTenant(adapter, self._tenant)


def _warn(found: Mapping[str, Iterable[str]]) -> None:
    """Log what a crash would lose: each sentence once, with the names of its agents."""
    agents: dict[str, list[str]] = {}
    for name, warnings in found.items():
        for warning in warnings:
            agents.setdefault(warning, []).append(name)
    for warning, names in agents.items():
        logger.warning("%s %s: %s", "agent" if len(names) == 1 else "agents", ", ".join(names), warning)
