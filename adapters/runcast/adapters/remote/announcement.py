"""How a host recognises the URL of an AG-UI agent without importing an HTTP client."""

from __future__ import annotations

from typing import Any

from runcast.adapters.adapter import Adapter
from runcast.adapters.frameworks import Framework


def is_agent_url(agent: object) -> bool:
    """Whether this is the address of an agent: a text that begins with `http://` or `https://`."""
    return isinstance(agent, str) and agent.startswith(("http://", "https://"))


def _wrap(url: Any, name: str | None) -> Adapter:
    from runcast.adapters.remote import RemoteAdapter

    return RemoteAdapter(url, name=name)


FRAMEWORK = Framework(
    name="AG-UI by URL",
    extra="remote",
    distributions=("httpx",),
    agents="the URL of an AG-UI agent",
    recognises=is_agent_url,
    wrap=_wrap,
)
