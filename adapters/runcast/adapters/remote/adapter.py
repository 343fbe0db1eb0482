"""A remote AG-UI agent as something a host can run and stop.

A remote run lives in its own process: when this host dies, the run is cut off and cannot be resumed inside. The host
retracts what was unfinished and can ask the agent again. Stopping closes the connection; an agent that goes on without
its reader goes on unseen. Knows `AgentClient` and `MendedRun`; does not know any server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from urllib.parse import urlsplit

import httpx
from ag_ui.core import AgentCapabilities, Event, IdentityCapabilities, RunAgentInput

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.client_schemas import AgentSchemas
from runcast.adapters.driving.pumps import Pumps
from runcast.adapters.remote.client import AgentClient, RemoteError
from runcast.adapters.remote.mended_run import MendedRun
from runcast.adapters.remote.options import RemoteOptions


class RemoteAdapter:
    """Any AG-UI agent by URL, as an `Adapter`: `Cast.open(agents=["https://host/agent"])` makes one as well."""

    reconciles_history = False  # the host removes what a broken run left unfinished

    def __init__(
        self,
        url: str,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        options: RemoteOptions | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self.client = AgentClient(url, headers=headers, options=options, http=http)
        self.name = name or _name_in(url)
        self._capabilities: AgentCapabilities | None = None
        self._schemas = AgentSchemas()
        self._pumps = Pumps()

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        """The remote agent's events, from RUN_STARTED to one terminal event, whatever the server does."""

        async def begin() -> tuple[AsyncIterator[Event], MendedRun]:
            return self._events(input), MendedRun(input, clock=_milliseconds)

        return self._pumps.run(input.run_id, begin, limit=self.client.options.waiting_events)

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Close the connection: AG-UI has no way to ask a remote run to stop."""
        self._pumps.cancel(run_id)

    def capabilities(self) -> AgentCapabilities:
        """The server's own description once it was asked, else the name alone."""
        return self._capabilities or AgentCapabilities(identity=IdentityCapabilities(name=self.name))

    def schemas(self) -> AgentSchemas:
        """The schemas of the server's agent once it was asked; only another runcast has them."""
        return self._schemas

    async def ask(self) -> None:
        """Ask the server what its agent can do and takes. Raises `RemoteError`."""
        self._capabilities = await self.client.capabilities() or self._capabilities
        self._schemas = await self.client.schemas() or self._schemas

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.aclose()

    async def _events(self, input: RunAgentInput) -> AsyncGenerator[Event]:
        """The client's events; the first one has a deadline of its own."""
        events = self.client.run(input)
        try:
            seconds = self.client.options.answer_seconds
            try:
                async with asyncio.timeout(seconds):
                    first = await anext(events, None)
            except TimeoutError:
                raise RemoteError(
                    f"{self.client.address} sent no event in {seconds:g} s; RemoteOptions sets how long"
                ) from None
            if first is not None:
                yield first
                async for event in events:
                    yield event
        finally:
            await events.aclose()


def _name_in(url: str) -> str:
    """The last part of the path, else the host: `https://host/agents/support` is `support`."""
    parts = urlsplit(url)
    return parts.path.rstrip("/").rpartition("/")[2] or parts.hostname or "agent"


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
