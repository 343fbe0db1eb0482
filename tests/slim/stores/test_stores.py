"""The contract of stores, over every store found."""

from __future__ import annotations

import pytest

from runcast.slim import Conflict
from runcast.slim.stores import Store
from runcast.slim.stores.contract import CONTRACT, Check
from runcast.slim.stores.contract.tools import NOW, THREAD, TTL, batch, take


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
async def test_a_store_keeps(check: Check, store: Store):
    await check(store)


@pytest.mark.parametrize("tombstone", [False, True])
async def test_a_writer_learns_that_its_thread_is_gone_and_not_only_its_lease(store: Store, tombstone: bool):
    lease = await take(store)
    await store.delete(THREAD, now=NOW + TTL + 1, tombstone=tombstone)
    with pytest.raises(Conflict, match="was deleted"):
        await store.append(batch(lease, 1))
