"""The options of a log, and names that have moved."""

from __future__ import annotations

import pytest

from runcast.slim.log.log_options import LogOptions
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import open_store
from tests.slim.logs import THREAD, make_log, turn


async def test_options_are_given_together_or_one_by_one() -> None:
    together = RunLog(open_store("memory://"), LogOptions(owner="a", lease_ms=9), lease_ms=8)
    assert (together.owner, together.lease_ms) == ("a", 8), "a keyword argument counts"
    with pytest.raises(TypeError, match="flush_seconds"):
        RunLog(open_store("memory://"), flush_seconds=1)


async def test_a_moved_method_keeps_its_old_spelling_for_one_release() -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r"))
        with pytest.warns(DeprecationWarning, match=r"RunLog\.size is RunLog\.archive\.size now"):
            old = log.size
        assert await old(THREAD) == await log.archive.size(THREAD)
        with pytest.warns(DeprecationWarning, match=r"RunLog\.recovery\.recover"):
            assert await log.recover() == []
        with pytest.raises(AttributeError, match="'shrink'"):
            _ = log.shrink
