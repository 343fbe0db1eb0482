"""What the page's process and the worker's agree on."""

from __future__ import annotations

from pathlib import Path

LEASE_MS = 1_500  # of a dead worker's runs; short, so that a demo does not wait
NAMES = {"langgraph": "travel-desk", "adk": "travel_desk"}


def log_url(folder: Path) -> str:
    """The log that both open."""
    return f"sqlite:///{folder}/runs.db"
