"""The host's numbers as Prometheus text. Pure; knows names, not their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runcast.broadcast.hub.skins.metrics import exposition
from runcast.slim.values.type_guards import as_mapping

_NOW = frozenset({"runs", "followers"})
_NOW_INSIDE = frozenset({"queued", "channels", "unflushed", "writers", "readers", "holds", "waiting", "dead"})


def numbers(stats: Mapping[str, Any]) -> str:
    """The numbers of the host itself, and those of each part under its name; the hub has its own."""
    own = {name: value for name, value in stats.items() if isinstance(value, int | float)}
    parts = {name: as_mapping(value) for name, value in stats.items() if name not in own}
    texts = [exposition(own, prefix="runcast_", now=_NOW)]
    texts += [
        exposition(part) if name == "hub" else exposition(part, prefix=f"runcast_{name}_", now=_NOW_INSIDE)
        for name, part in parts.items()
    ]
    return "".join(texts)
