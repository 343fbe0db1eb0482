"""Snapshots beside a thread: the newest one of a run counts, and one always stays. As bytes they are JSON, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runcast.slim.archive.blobs import snapshot_body
from runcast.slim.errors import StoreError
from tests.slim.logs import THREAD, make_log, started, text


async def test_of_several_snapshots_of_a_run_the_newest_counts_and_one_always_stays() -> None:
    async with make_log("memory://") as log:
        await log.append(THREAD, started("r"))
        for n, event in enumerate(text("m", "a", "b", "c")):
            await log.append(THREAD, event)
            kept = await log.save_snapshot(THREAD, {"n": n})
            assert await log.snapshot(THREAD) == kept
        await log.save_snapshot(THREAD, {"n": 9}, keep=0)
        size = (await log.archive.size(THREAD)).snapshots
        found = await log.snapshot(THREAD)
        assert found is not None
        assert (found.data, found.size) == ({"n": 9}, size)


@pytest.mark.parametrize("data", [{"a": [1, "ä", None]}, {"half": "\ud83d"}, {"long": 2**70}])
def test_a_serializers_snapshot_is_the_same_whichever_way_it_is_written(data: dict[str, Any]) -> None:
    assert json.loads(snapshot_body(data, plain=True)) == json.loads(snapshot_body(data)) == data


@pytest.mark.parametrize("bad", [float("nan"), object(), {1, 2}])
def test_what_is_not_json_is_refused(bad: object) -> None:
    with pytest.raises(StoreError, match="must be JSON"):
        snapshot_body({"bad": bad})
