"""Tokens for sockets that can send no headers: a browser's WebSocket brings cookies, but never an Authorization.

A user who may see a thread gets a token for it over HTTP, where headers can be sent. A token allows to watch one thread
of one tenant, for a minute; a socket that is open by then stays open. Knows hubs and their secrets; does not know
permissions (`access_policy.py`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from runcast.app.errors import NotFound
from runcast.broadcast import issue_token
from runcast.broadcast.hub.signatures import read_token, realm_of, sign

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

LIFETIME = 60  # seconds


def watch_token(cast: Cast, thread_id: str, *, seconds: int = LIFETIME) -> str:
    """A token for a thread of this cast, for `/ws?token=…`. The caller has checked that its receiver may see the thread."""
    if cast.hub is None:
        raise NotFound("this host has no hub")
    return issue_token(cast.hub.secret, thread_id, expires=int(time.time()) + seconds, realm=cast.tenant)


def watched(host: Cast, token: str) -> tuple[Cast, str] | None:
    """The cast and the thread of a valid token; None for an invalid one."""
    if host.hub is None:
        return None
    tenant = realm_of(token)
    # The proof comes first: naming a tenant must not create one.
    thread_id = read_token(secret_of(host.hub.secret, tenant), token, now=int(time.time()))
    return None if thread_id is None else (host.for_tenant(tenant), thread_id)


def secret_of(secret: str, tenant: str) -> str:
    """A tenant's own secret, derived from the host's: a signature of one hub is invalid at another."""
    return sign(secret, f"tenant:{tenant}") if tenant else secret
