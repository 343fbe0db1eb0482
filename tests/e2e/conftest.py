"""Fixtures for tests that drive real clients and servers in Node."""

from __future__ import annotations

from tests.conftest import LONG
from tests.e2e.pusher import clients, soketi_port

__all__ = ["clients", "soketi_port"]

collect_ignore = [] if LONG else ["test_react_copilotkit.py"]  # 700 MB of packages: `make copilotkit`
