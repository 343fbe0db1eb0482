"""Fixtures every room shares. A missing server, Node or browser skips with a sentence; in CI it fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.e2e import oracle as judge

LONG = os.environ.get("RUNCAST_CHAOS", "") not in ("", "0")  # the long form, as `make chaos` runs it


def share(count: int) -> int:
    """How many of so many random cases are played: all of them in the long form, and a third of them else."""
    return count if LONG else -(-count // 3)


# The tests that hold the cores' coverage. Tracing makes others half as slow again and finds nothing more.
MEASURED = (
    *("adapters", "slim", "broadcast", "fuzz", "app/skins", "e2e/test_ai_sdk.py"),
    *("app/http/test_agents.py", "app/nodes/test_agent_descriptions.py", "app/nodes/test_annotations.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Switch coverage off in the rooms that hold no core."""
    here = Path(__file__).parent
    measured = tuple(here / room for room in MEASURED)
    for item in items:
        if not any(item.path.is_relative_to(room) for room in measured):
            item.add_marker(pytest.mark.no_cover)


# No property is about time: a busy machine is no fault of the code.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def missing(sentence: str) -> None:
    """Skip for want of an outside program, or fail where everything must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


@pytest.fixture(scope="session")
def oracle() -> Iterator[judge.Oracle]:
    """The official TypeScript client, one process for the whole session."""
    if not judge.available():
        missing(judge.MISSING)
    with judge.Oracle() as it:
        yield it
