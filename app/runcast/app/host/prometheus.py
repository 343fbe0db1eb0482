"""The host's numbers as Prometheus text. Pure; knows names, not their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runcast.broadcast.hub.skins.metrics import exposition

_NOW = frozenset(
    {"runs", "followers", "queued", "channels", "unflushed", "writers", "readers", "holds", "waiting", "dead"}
)


def numbers(stats: Mapping[str, Any]) -> str:
    """Gauges for what is true right now, counters for what happened since the start."""
    lines: list[str] = []
    for name, value in stats.items():
        if name == "hub":
            lines.append(exposition(value).rstrip("\n"))
        elif isinstance(value, Mapping):
            for inner, number in value.items():  # pyright: ignore[reportUnknownVariableType]  # names and numbers
                lines += _line(f"runcast_{name}_{inner}", number, now=inner in _NOW)  # pyright: ignore[reportUnknownArgumentType]  # names and numbers
        else:
            lines += _line(f"runcast_{name}", value, now=name in _NOW)
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any, *, now: bool) -> list[str]:
    if not isinstance(value, int | float):
        return []
    if now:
        return [f"# TYPE {name} gauge", f"{name} {value}"]
    return [f"# TYPE {name}_total counter", f"{name}_total {value}"]
