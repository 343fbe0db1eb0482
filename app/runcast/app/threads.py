"""What the log tells of a thread, as the app asks for it: its state, its runs, its size, a tool's whole result.

Only reads, but for the end of a run that has lost its owner. Knows the log and snapshots; does not know which runs are
active here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
from ag_ui.core import Message, ToolCallResultEvent

from runcast.app.errors import NotFound
from runcast.slim import AgentState, RunInfo, RunLog, SlimSerializer, UnknownThread, fold

_PAGE = 1_000  # entries read at once


class Threads:
    """Reads a log's threads."""

    def __init__(self, log: RunLog, serializer: SlimSerializer) -> None:
        self._log = log
        self._serializer = serializer

    async def state(self, thread_id: str, run_id: str | None = None) -> AgentState | None:
        """The whole picture of a thread, as a run left it; None for a thread that has no run."""
        try:
            events = await self._log.restore(thread_id, run_id)
        except UnknownThread:
            return None
        told = await self._snapshot_state(thread_id, run_id)
        built = AgentState.from_events(events, base=None)
        if told is None:
            return built
        # The snapshot knows steps, times and the framework's place; the log has every message and the whole state.
        return replace(
            told,
            history=built.history,
            half_said=built.half_said,
            content_bytes=built.content_bytes,
            state=built.state,
            interrupts=built.interrupts,
            status=built.status,
            run_id=built.run_id,
            pending_tool_call_ids=built.pending_tool_call_ids,
            framework=built.framework or told.framework,
        )

    async def stands(self, thread_id: str, run_id: str) -> AgentState:
        """The thread as a run left it, to go on from there; a run that is not there is told.

        One that has lost its owner is closed first: an owner that only slept could still add to what is read here.
        """
        run = await self.known(thread_id, run_id)
        if run.status == "truncated":
            await self._log.reclaim(thread_id)
        state = await self.state(thread_id, run_id)
        if state is None:
            raise NotFound(f"there is no run {run_id!r} in thread {thread_id!r}")
        return state

    async def _snapshot_state(self, thread_id: str, run_id: str | None) -> AgentState | None:
        kept = await self._log.snapshot(thread_id)
        if kept is None or (run_id is not None and kept.run_id != run_id):
            return None
        return self._serializer.deserialize(kept.data)

    async def snapshot(self, thread_id: str) -> dict[str, Any]:
        """The newest snapshot that was kept, or one made now."""
        kept = await self._log.snapshot(thread_id)
        if kept is not None:
            return kept.data
        state = await self.state(thread_id)
        if state is None:
            raise NotFound(f"there is no thread {thread_id!r}")
        return self._serializer.serialize(state)

    async def messages(self, thread_id: str, run_id: str | None) -> list[Message]:
        """The conversation up to a run; empty for a thread that is new."""
        try:
            return fold(await self._log.restore(thread_id, run_id)).messages
        except UnknownThread:
            if run_id is not None:
                raise NotFound(f"there is no run {run_id!r} in thread {thread_id!r}") from None
            return []

    async def known(self, thread_id: str, run_id: str | None) -> RunInfo:
        """A run of the thread: the newest, or the one that is named."""
        runs = await self._log.runs(thread_id)
        found = [run for run in runs if run_id in (None, run.run_id)]
        if not found:
            what = f"run {run_id!r} in thread {thread_id!r}" if run_id else f"thread {thread_id!r}"
            raise NotFound(f"there is no {what}")
        return found[-1]

    async def size(self, thread_id: str) -> dict[str, Any]:
        """What the thread weighs: how many events, their bytes as they came and compacted, and the snapshot's."""
        size, kept = await self._log.size(thread_id), await self._log.snapshot(thread_id)
        return {
            "events": size.entries,
            "bytes": size.events,
            "compacted": size.segments or None,
            "snapshot": None if kept is None else len(orjson.dumps(kept.data)),
        }

    async def tool_result(self, thread_id: str, call_id: str) -> Any:
        """All that a tool answered, behind the summary that was broadcast; of a call told twice the last."""
        after = 0
        found: Any = None
        while entries := await self._log.entries(thread_id, after, _PAGE):
            after = entries[-1].seq
            for entry in entries:
                event = entry.event
                if isinstance(event, ToolCallResultEvent) and event.tool_call_id == call_id:
                    found = event.model_dump(mode="json", by_alias=True, exclude_none=True)["content"]
        if found is None:
            raise NotFound(f"no result of a tool call {call_id!r} is in thread {thread_id!r}")
        return found
