"""The store in memory: each is a store of its own."""

from __future__ import annotations

import pytest

from runcast.slim import open_store
from runcast.slim.stores.contract.tools import THREAD, take, write_run

SHARED = False


def empty(request: pytest.FixtureRequest) -> str:
    return "memory://"


async def test_two_memory_stores_share_nothing():
    one, other = open_store("memory://"), open_store("memory://")
    await write_run(one, await take(one), "r")
    assert await one.thread(THREAD) is not None
    assert await other.thread(THREAD) is None
