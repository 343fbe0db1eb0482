"""What desk and worker have to agree on."""

from __future__ import annotations

from pathlib import Path

LEASE_MS = 1_500  # how long a dead worker's threads stay its own: short, so that nobody has to wait in a demo
NAMES = {"langgraph": "travel-desk", "adk": "travel_desk"}


def log_url(folder: Path) -> str:
    """The log that both open."""
    return f"sqlite:///{folder}/runs.db"
