"""The walk through storage that the protocol's guide describes, as the example does it, over all stores."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from runcast.slim import verify
from tests.slim.logs import make_log

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "branches.py"
FRANCE = ["Capital of France?", "Paris it is "]


async def test_every_branch_is_restored_alone(store_url: str, capsys: pytest.CaptureFixture[str]):
    example = runpy.run_path(str(EXAMPLE))
    seen = await example["main"](store_url)
    assert seen == {
        "run1": FRANCE,
        "run2": [*FRANCE, "And of the UK?", "That is London "],
        "run3": [*FRANCE, "And of Japan?", "That is Tokyo "],
    }
    assert capsys.readouterr().out.splitlines()[:3] == [
        "run1: continue of None, completed, 7 entries",
        "run2: continue of run1, completed, 7 entries",
        "run3: branch of run1, completed, 7 entries",
    ]
    if store_url != "memory://":
        async with make_log(store_url) as log:
            for run_id in seen:
                assert verify(await log.restore("trip", run_id)) == []
                assert verify(await log.restore("trip", run_id, compacted=False)) == []
