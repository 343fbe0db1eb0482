"""A run that nobody reads any more does not wait for a reader.

ADK cancels the agent of a run that is stopped or left, and waits for its end. An agent that answers the cancellation
with an event (a tool that raised another error is one) waits until that event is read, which no reader does: both would
wait for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner


class Unread(BasePlugin):
    """Drops the events of one runner, and of the runs inside its tool calls, once it reads them no more."""

    def __init__(self, runner: Runner) -> None:
        super().__init__("runcast-unread")
        self._queues: list[asyncio.Queue[Any]] = []
        self._end = runner._cleanup_root_task  # pyright: ignore[reportPrivateUsage]  # ADK has no other way in
        vars(runner)["_cleanup_root_task"] = self._ended

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """ADK calls this when a run begins; agents without nodes have no queue."""
        queue = invocation_context._event_queue  # pyright: ignore[reportPrivateUsage]  # no public name
        if queue is not None:
            self._queues.append(queue)

    async def _ended(self, task: asyncio.Task[None], name: str) -> None:
        """In place of ADK's end of a run, which comes after the last event that is read."""
        for queue in self._queues:
            vars(queue)["put"] = _drop
            while not queue.empty():
                await _drop(queue.get_nowait())
        await self._end(task, name)


async def _drop(item: tuple[Any, asyncio.Event | None]) -> None:
    if item[1] is not None:
        item[1].set()
