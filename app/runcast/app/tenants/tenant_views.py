"""The tenants' views of a host: created on demand, closed when idle and others need the room.

Knows the views and the order of their use; does not know how one is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast


class Views:
    """At most so many views, besides those in use; the longest unused one goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._views: dict[str, Cast] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Cast]:
        return iter(list(self._views.values()))

    def __len__(self) -> int:
        return len(self._views)

    def find(self, name: str) -> Cast | None:
        """A tenant's view, which counts as used now."""
        view = self._views.pop(name, None)
        if view is not None:
            self._views[name] = view
        return view

    def add(self, view: Cast) -> None:
        """Keep a view, and close idle ones when there are too many."""
        for each in self if len(self._views) >= self._most else ():
            if _is_idle(each):
                del self._views[each.tenant]
                task = asyncio.ensure_future(each.aclose(grace=0))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
            if len(self._views) < self._most:
                break
        self._views[view.tenant] = view

    async def aclose(self, grace: float) -> None:
        """Close them all, and wait for those already closing."""
        await asyncio.gather(*self._leaving, *(view.aclose(grace=grace) for view in self))


def _is_idle(view: Cast) -> bool:
    """Whether the view has no run, no watcher, and no handle of a remote run."""
    watched = view.hub is not None and bool(view.hub.occupied())
    return not (watched or view.remote_runs or len(view.followers) or view.slots.has(view.tenant))
