"""Tenants' views of a host: made when somebody asks, let go when nobody uses them and others need the room.

Knows which are there and for how long nobody asked; does not know how one is made or what being used means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runcast.app.cast import Cast


class Views:
    """So many views, the longest unused first; those in use are kept beyond that."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._views: dict[str, Cast] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Cast]:
        return iter(list(self._views.values()))

    def __len__(self) -> int:
        return len(self._views)

    def find(self, name: str) -> Cast | None:
        """A tenant's view, as somebody asks for it."""
        view = self._views.pop(name, None)
        if view is not None:
            self._views[name] = view
        return view

    def add(self, view: Cast) -> None:
        """Keep a view, and let idle ones go where there are too many."""
        for each in self if len(self._views) >= self._most else ():
            if each.idle:
                del self._views[each.tenant]
                task = asyncio.ensure_future(each.let_go())
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
            if len(self._views) < self._most:
                break
        self._views[view.tenant] = view

    async def aclose(self, grace: float) -> None:
        """Close them all, and wait for those that are leaving."""
        await asyncio.gather(*self._leaving, *(view.aclose(grace=grace) for view in self))
