"""ADK warns of its own deprecated and experimental parts; those that the cases need on purpose are let pass."""

from __future__ import annotations

from pathlib import Path

import pytest

LET_PASS = (
    "ignore:(Loop|Sequential|Parallel)Agent is deprecated in favor of Workflow:DeprecationWarning",
    "ignore:The `plugins` argument is deprecated:DeprecationWarning",  # ADK's own AgentTool uses it
    r"ignore:\[EXPERIMENTAL\]:UserWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for each in LET_PASS:
                item.add_marker(pytest.mark.filterwarnings(each))
