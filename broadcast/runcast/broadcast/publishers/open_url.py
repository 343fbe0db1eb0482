"""The publisher for a URL. Every file of this folder with `SCHEMES` is a target.

Does not know the settings of any target.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from runcast.broadcast.errors import ConfigError
from runcast.broadcast.publishers.base import Publisher

_HERE = "runcast.broadcast.publishers"


def open_publisher(url: str) -> Publisher:
    """The publisher for a URL, e.g. `reverb://key:secret@host:8080/app_id` or `redis://host`."""
    wanted = url.partition("://")[0].partition("+")[0]
    known: list[str] = []
    for module in iter_modules([str(Path(__file__).parent)]):
        try:
            target = import_module(f"{_HERE}.{module.name}")
        except ImportError:
            if wanted == module.name:
                raise
            continue
        schemes: tuple[str, ...] = getattr(target, "SCHEMES", ())
        if wanted in schemes:
            publisher: Publisher = target.connect(url)
            return publisher
        known += schemes
    # Text without a scheme is not quoted: a password may be in it.
    named = f"{wanted}://" if "://" in url and wanted.isalnum() else "this URL"
    raise ConfigError(f"no publisher takes {named}; there are {', '.join(sorted(known))}")
