"""The promises of every store, as checks to run against a store of your own.

Knows which checks there are; does not know a test runner. A check is an async function that is given an empty store,
opened or not, and raises `Broken` with a sentence when a promise is broken:

    @pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
    async def test_my_store(check):
        store = MyStore(...)
        try:
            await check(store)
        finally:
            await store.close()
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from runcast.slim.stores.base import Store
from runcast.slim.stores.contract import note_cases, reading_cases, writing_cases
from runcast.slim.stores.contract.tools import Broken

Check = Callable[[Store], Awaitable[None]]
"""One promise of the contract: takes an open, empty store and raises `Broken` when the store breaks it."""

# Every check, in the order of its file.
CONTRACT: tuple[Check, ...] = tuple(
    check
    for module in (writing_cases, reading_cases, note_cases)
    for check in vars(module).values()
    if inspect.iscoroutinefunction(check) and check.__module__ == module.__name__
)

__all__ = ["CONTRACT", "Broken", "Check"]
