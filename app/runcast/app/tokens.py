"""Tokens for sockets that can send no headers: a browser's WebSocket brings cookies, but never an Authorization.

Whoever may see a thread is given a token for it, over HTTP and with whatever headers it takes. A token is for watching
one thread of one tenant, and for a minute; a socket that is open by then stays open. Knows hubs and their secrets;
does not know who may see what (`auth.py`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from runcast.app.errors import NotFound
from runcast.broadcast import issue_token
from runcast.broadcast.hub.auth import read_token, realm_of, sign

if TYPE_CHECKING:
    from runcast.app.cast import Cast

LIFETIME = 60  # seconds


def watch_token(cast: Cast, thread_id: str, *, seconds: int = LIFETIME) -> str:
    """A token for a thread of this cast, for `/ws?token=…`; whoever calls this has decided who gets it."""
    if cast.hub is None:
        raise NotFound("this host has no hub")
    return issue_token(cast.hub.secret, thread_id, expires=int(time.time()) + seconds, realm=cast.tenant)


def watched(host: Cast, token: str) -> tuple[Cast, str] | None:
    """The cast and the thread that a token is good for now; None for one that is good for nothing."""
    if host.hub is None:
        return None
    tenant = realm_of(token)
    # The proof comes first: nobody makes a tenant by naming one.
    thread_id = read_token(secret_of(host.hub.secret, tenant), token, now=int(time.time()))
    return None if thread_id is None else (host.for_tenant(tenant), thread_id)


def secret_of(secret: str, tenant: str) -> str:
    """A tenant's own secret, made of the host's: what one hub signs is worth nothing at another."""
    return sign(secret, f"tenant:{tenant}") if tenant else secret
