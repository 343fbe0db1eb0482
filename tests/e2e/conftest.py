"""Fixtures for tests that drive real clients and servers in Node, and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.conftest import LONG, missing
from tests.e2e.browser import MISSING, Browser, browsing, program
from tests.e2e.pusher import clients, soketi_port

__all__ = ["clients", "soketi_port"]

collect_ignore = [] if LONG else ["test_react_copilotkit.py"]  # 700 MB of packages: `make copilotkit`


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a module whose event loop is the module's."""
    if program() is None:
        missing(MISSING)
    async with browsing() as it:
        yield it
