"""Numbers as Prometheus text, those of the hub by default. Pure; knows names, not what they count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

NOW = frozenset({"connections", "channels", "addresses", "remembered", "remembered_bytes", "buffered"})


def exposition(stats: Mapping[str, Any], *, prefix: str = "runcast_hub_", now: Collection[str] = NOW) -> str:
    """One line a number: gauges for what is so right now, counters for what has happened since the start."""
    lines: list[str] = []
    for name, value in stats.items():
        if name == "closes":
            lines.append(f"# TYPE {prefix}closes_total counter")
            lines += [f'{prefix}closes_total{{code="{code}"}} {value[code]}' for code in sorted(value)]
        elif name in now:
            lines += [f"# TYPE {prefix}{name} gauge", f"{prefix}{name} {value}"]
        else:
            lines += [f"# TYPE {prefix}{name}_total counter", f"{prefix}{name}_total {value}"]
    return "\n".join(lines) + "\n"
