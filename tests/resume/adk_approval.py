"""The same ADK agent, whose second tool must be approved before it is run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ag_ui.core import Interrupt
from google.adk.tools import FunctionTool

from runcast.adapters.adk import AdkAdapter
from tests.resume.adk_agent import clerk
from tests.resume.worker import did


def answer(asked: Interrupt) -> Any:
    return True


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[AdkAdapter]:
    def confirm(question: str) -> dict[str, Any]:
        """Send what was asked for."""
        did(folder, "confirm")
        return {"sent": question}

    yield clerk(folder, FunctionTool(confirm, require_confirmation=True))
