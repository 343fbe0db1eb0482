"""Every scene, played live before the official client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.langgraph.scenes import SCENES
from tests.adapters.langgraph.stage import Stage


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted(SCENES))
async def test_the_client_holds_what_the_graph_holds(name: str, oracle: Any):
    await SCENES[name](Stage(oracle))
