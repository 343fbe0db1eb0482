"""From a URL to a store.

Knows that a scheme is the name of a file in this folder, which has a `connect(url)`; imports no driver before its
scheme is asked for. A new store is a new file.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from runcast.slim.errors import StoreError
from runcast.slim.stores.base import Store

ALIASES = {"postgresql": "postgres"}
EXAMPLES = "memory://, sqlite:///runs.db, postgresql://user@host/name"


def open_store(url: str) -> Store:
    """The store behind a URL, which connects at its first use: `memory://`, `sqlite:///runs.db`, `postgresql://…`.

    SQLite takes `?mode=ro`, `synchronous=FULL`, `patience_ms=`, `poll_ms=` and `max_bytes=`; a PostgreSQL URL is
    libpq's own. Raises `StoreError` for an unknown scheme, and `ImportError` that names the extra to install.
    """
    scheme = url.partition("://")[0]
    name = f"{__package__}.{ALIASES.get(scheme, scheme)}"
    if "://" not in url or not scheme.isidentifier() or find_spec(name) is None:
        raise StoreError(f"{scheme!r} is no scheme of a store; give a URL like {EXAMPLES}")
    connect = getattr(import_module(name), "connect", None)
    if connect is None:
        raise StoreError(f"{scheme!r} is no scheme of a store; give a URL like {EXAMPLES}")
    store: Store = connect(url)
    return store
