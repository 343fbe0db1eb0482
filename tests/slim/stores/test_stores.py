"""The contract of stores, over every store found."""

from __future__ import annotations

import pytest

from runcast.slim.stores import Store
from runcast.slim.stores.contract import CONTRACT, Check


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
async def test_a_store_keeps(check: Check, store: Store):
    await check(store)
