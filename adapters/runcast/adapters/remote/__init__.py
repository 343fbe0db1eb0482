"""Any agent that serves AG-UI by URL, as an adapter like the others."""

try:
    import httpx as _httpx
except ImportError as missing:
    raise ImportError("remote agents need the package httpx: pip install 'runcast[remote]'") from missing

from runcast.adapters.remote.adapter import RemoteAdapter
from runcast.adapters.remote.client import AgentClient, RemoteError
from runcast.adapters.remote.mended_run import MendedRun
from runcast.adapters.remote.options import RemoteOptions

del _httpx

__all__ = ["AgentClient", "MendedRun", "RemoteAdapter", "RemoteError", "RemoteOptions"]
