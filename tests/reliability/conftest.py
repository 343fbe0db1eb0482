"""The stores that outlive a process, each as a URL to something empty; how often a test kills; and the ledgers' table.

`RUNCAST_CHAOS=1` (`make chaos`) makes every scene long, and writes the table beside the benchmarks' results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import LONG, missing
from tests.house.tree import ROOT
from tests.reliability.engines import Postgres, Redis
from tests.reliability.ledger import Ledger, Row, table, write
from tests.servers import (
    POSTGRES,
    REDIS,
    own_schema,
    postgres_programs,
    postgres_server,
    redis_program,
)

__all__ = ["postgres_server"]

collect_ignore = [] if LONG else ["test_langgraph_server.py"]  # installs and starts LangGraph's own server

RESULTS = ROOT / "benchmarks" / "results" / "chaos.json"


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


@pytest.fixture
def long() -> bool:
    """Whether this is `make chaos`."""
    return LONG


@pytest.fixture
def mortal_postgres() -> Iterator[Postgres]:
    """A PostgreSQL that the test may kill."""
    if postgres_programs() is None:
        missing(POSTGRES)
    with Postgres() as it:
        yield it


@pytest.fixture
def mortal_redis() -> Iterator[Redis]:
    """A Redis that the test may kill; it comes back empty."""
    if redis_program() is None:
        missing(REDIS)
    with Redis() as it:
        yield it


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """The scene's ledger; its row goes into the table, however the test ends."""
    it = Ledger(request.node.name.removeprefix("test_").replace("_", " "))
    yield it
    request.node.user_properties.append(("ledger", asdict(it.row)))


@pytest.fixture
async def http() -> Any:
    """A client for many watchers at once."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=httpx.Timeout(20, read=60), limits=limits) as client:
        yield client


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table of all scenes."""
    rows: list[Row] = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "teardown":
                rows += [Row(**value) for name, value in report.user_properties if name == "ledger"]
    if rows:
        terminalreporter.section("scenes")
        for line in table(rows):
            terminalreporter.write_line(line)
        if LONG:
            write(rows, RESULTS)
