"""From a URL to a store.

Knows that a scheme is the name of a file in this folder with a `connect(url)`; imports no driver before a URL of its
scheme is opened. A new store is a new file.
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
    scheme, separator, _ = url.partition("://")
    if not separator or not scheme.isidentifier():  # the error must not quote it: a password may be in it
        raise StoreError(f"a store's URL begins with a scheme and ://; use one like {EXAMPLES}")
    name = f"{__package__}.{ALIASES.get(scheme, scheme)}"
    if find_spec(name) is None:
        raise StoreError(f"{scheme!r} is not the scheme of a store; use a URL like {EXAMPLES}")
    connect = getattr(import_module(name), "connect", None)
    if connect is None:
        raise StoreError(f"{scheme!r} is not the scheme of a store; use a URL like {EXAMPLES}")
    store: Store = connect(url)
    return store
