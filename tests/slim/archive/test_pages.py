"""An entry at a place that is taken is the same one again, or a conflict."""

from __future__ import annotations

import pytest

from runcast.slim.errors import Conflict
from tests.slim.logs import THREAD, make_log, started


async def test_another_run_at_a_place_that_is_taken_is_a_conflict() -> None:
    async with make_log("memory://") as log:
        first = await log.append(THREAD, started("r1"), seq=1)
        assert await log.append(THREAD, started("r1"), seq=1) == first
        with pytest.raises(Conflict, match="taken by another event"):
            await log.append(THREAD, started("r2"), seq=1)
