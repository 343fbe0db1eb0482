"""Fixtures for tests that drive real clients and servers in Node."""

from __future__ import annotations

from tests.e2e.pusher import clients, soketi_port

__all__ = ["clients", "soketi_port"]
