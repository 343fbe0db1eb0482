"""Reads a thread from the log: its state, runs, size, agent, and the whole of a message or a tool's result.

Remembers what the newest runs of this process left, so that the next turn of a thread costs the same however long it is.
Knows the log and snapshots; does not know which runs are active here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
from ag_ui.core import Message, RunStartedEvent, ToolCallResultEvent

from runcast.app.errors import NotFound
from runcast.app.runs.newest import Newest
from runcast.slim import AgentState, RunInfo, RunLog, SlimSerializer, UnknownThread, fold
from runcast.slim.folding.run_metadata import RunMetadata, metadata_of

if TYPE_CHECKING:
    from runcast.app.runs.run import Left, LocalRun
    from runcast.slim.archive.info import Claim

REMEMBERED = 32_000_000  # bytes of what runs have left
_PAGE = 1_000  # entries read at once


class Threads:
    """Reads a log's threads."""

    def __init__(self, log: RunLog, serializer: SlimSerializer) -> None:
        self._log = log
        self._serializer = serializer
        self._left: Newest[Left] = Newest(REMEMBERED)  # by thread

    def remember(self, run: LocalRun) -> None:
        """Remember what a run has left."""
        left = run.left
        if left is not None:
            self._left.put(run.thread_id, left, left.weight)

    def forget(self, thread_id: str) -> None:
        """Remember nothing of a thread."""
        self._left.take(thread_id)

    async def state_under(self, claim: Claim, thread_id: str, run_id: str | None) -> AgentState | None:
        """As `state`, for the holder of the thread's lease."""
        left = self._left.take(thread_id)  # its thread moves on now
        if left is None or (left.seq, left.history) != (claim.seq, claim.history):
            return await self.state(thread_id, run_id)
        if run_id not in (None, left.state.run_id):
            return await self.state(thread_id, run_id)
        return _joined(self._kept(json.loads(left.snapshot)), left.state)

    async def state(self, thread_id: str, run_id: str | None = None) -> AgentState | None:
        """The whole state of a thread, as a run left it; None for a thread that has no run."""
        try:
            events = await self._log.restore(thread_id, run_id)
        except UnknownThread:
            return None
        kept = await self._log.snapshot(thread_id)
        built = AgentState.from_events(events, base=None)
        if kept is None or (run_id is not None and kept.run_id != run_id):
            return built
        return _joined(self._kept(kept.data), built)

    def _kept(self, snapshot: Mapping[str, Any]) -> AgentState:
        """What only the snapshot has."""
        return self._serializer.deserialize({**snapshot, "messages": []})

    async def snapshot(self, thread_id: str) -> dict[str, Any]:
        """The newest snapshot that was kept, or one made now."""
        kept = await self._log.snapshot(thread_id)
        if kept is not None:
            return kept.data
        state = await self.state(thread_id)
        if state is None:
            raise NotFound(f"there is no thread {thread_id!r}")
        return self._serializer.serialize(state)

    async def agent_of(self, thread_id: str, run: RunInfo) -> str | None:
        """The name of the agent that a run is of, as its RUN_STARTED has it."""
        name = (await self.metadata_of(thread_id, run)).get("agent")
        return name if isinstance(name, str) else None

    async def metadata_of(self, thread_id: str, run: RunInfo) -> RunMetadata:
        """Runcast's metadata of a run's RUN_STARTED."""
        entries = await self._log.entries(thread_id, run.first_seq - 1, 1)
        event = entries[0].event if entries else None
        return metadata_of(event) if isinstance(event, RunStartedEvent) else {}

    async def known(self, thread_id: str, run_id: str | None) -> RunInfo:
        """A run of the thread, the newest unless one is named; raises `NotFound`."""
        runs = await self._log.runs(thread_id)
        found = [run for run in runs if run_id in (None, run.run_id)]
        if not found:
            what = f"run {run_id!r} in thread {thread_id!r}" if run_id else f"thread {thread_id!r}"
            raise NotFound(f"there is no {what}")
        return found[-1]

    async def size(self, thread_id: str) -> dict[str, Any]:
        """The thread's events, their bytes raw and compacted, and the bytes of its snapshot."""
        size, kept = await self._log.archive.size(thread_id), await self._log.snapshot(thread_id)
        return {
            "events": size.entries,
            "bytes": size.events,
            "compacted": size.segments or None,
            "snapshot": None if kept is None else len(orjson.dumps(kept.data)),
        }

    async def message(self, thread_id: str, message_id: str, run_id: str | None = None) -> Message:
        """A message as a run left it: the newest, unless one is named."""
        try:
            events = await self._log.restore(thread_id, run_id)
        except UnknownThread as error:
            raise NotFound(str(error)) from error
        for found in reversed(fold(events).messages):
            if found.id == message_id:
                return found
        raise NotFound(f"no message {message_id!r} is in thread {thread_id!r}")

    async def tool_result(self, thread_id: str, call_id: str) -> Any:
        """A tool's whole result, of which a summary was broadcast; the last one if there are several."""
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


def _joined(kept: AgentState, built: AgentState) -> AgentState:
    """A snapshot has steps, times and the framework's position; the events have every message and the whole state."""
    return replace(
        kept,
        history=built.history,
        half_said=built.half_said,
        content_bytes=built.content_bytes,
        state=built.state,
        interrupts=built.interrupts,
        status=built.status,
        run_id=built.run_id,
        pending_tool_call_ids=built.pending_tool_call_ids,
        framework=built.framework or kept.framework,
    )
