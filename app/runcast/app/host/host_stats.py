"""The counters of a cast's parts, in one place: what `Cast.stats` returns and `/metrics` shows.

Knows the parts; does not know Prometheus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast


def numbers_of(cast: Cast) -> dict[str, Any]:
    """Plain numbers by part and name."""
    numbers: dict[str, Any] = {"runs": len(cast.active), "followers": len(cast.followers)}
    if cast.broadcaster is not None:
        numbers["broadcaster"] = cast.broadcaster.stats()
    if cast.hub is not None:
        numbers["hub"] = cast.hub.stats()
    log = cast.log.stats()
    numbers["log"] = {name: getattr(log, name) for name in type(log).__slots__}
    numbers["retention"] = cast.retention.stats()
    if cast.options.webhooks:
        numbers["webhooks"] = cast.outbox.stats()
    numbers["forgotten"] = cast.forgetter.forgotten
    return numbers
