"""The stores that outlive a process, each as a URL to something empty; and how often a test kills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.servers import own_schema, postgres_server

__all__ = ["postgres_server"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Something empty that several processes can open."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/runs.db"
    return own_schema(request.getfixturevalue("postgres_server"))


@pytest.fixture
def kills(url: str) -> int:
    """How often; RUNCAST_KILLS says another number."""
    return int(os.environ.get("RUNCAST_KILLS", "50" if url.startswith("sqlite") else "20"))
