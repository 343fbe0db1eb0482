"""The store that nodes share in tests."""

from __future__ import annotations

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
