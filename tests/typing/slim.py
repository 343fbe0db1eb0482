"""What `runcast.slim` answers with, as type checkers see it. Checked, not run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, assert_type

from ag_ui.core import Event, Message, RunAgentInput

from runcast.slim import (
    AgentSerializer,
    AgentState,
    AnyEvent,
    Archive,
    Compacted,
    Conversation,
    Entry,
    LogOptions,
    LogStats,
    Portion,
    Pruned,
    Recovery,
    RunInfo,
    RunLog,
    SlimSerializer,
    Snapshot,
    Store,
    ThreadInfo,
    ThreadSize,
    Violation,
    checkpoint,
    compact,
    decode,
    encode,
    fold,
    open_store,
    verify,
)


def events(event: Event, several: list[Event]) -> None:
    """What was decoded can be encoded, and a list of the protocol's own events goes in everywhere."""
    assert_type(decode(encode(event)), AnyEvent)
    assert_type(verify(several), list[Violation])
    assert_type(compact(several), list[AnyEvent])
    assert_type(checkpoint(compact(several)), list[AnyEvent])
    conversation = assert_type(fold(several), Conversation)
    messages: list[Message] = list(conversation.messages)
    conversation.feed(several[0])
    assert messages


async def log(store: Store, asked: RunAgentInput) -> None:
    """A log's answers are plain data, all of them named."""
    it = RunLog(store, LogOptions(patience_ms=9), flush_ms=5)
    assert_type(it.archive, Archive)
    assert_type(it.recovery, Recovery)
    assert_type(await it.thread("t"), ThreadInfo | None)
    assert_type(await it.runs("t"), list[RunInfo])
    assert_type(await it.entries("t", after=3), list[Entry])
    assert_type(it.attach("t", after=3), AsyncGenerator[Entry, None])
    assert_type(it.join("t"), AsyncGenerator[Portion, None])
    assert_type(await it.restore("t"), list[AnyEvent])
    assert_type(await it.input("t", asked.run_id), RunAgentInput | None)
    assert_type(await it.snapshot("t"), Snapshot | None)
    assert_type(await it.archive.size("t"), ThreadSize)
    assert_type(await it.archive.compact("t"), Compacted)
    assert_type(await it.archive.prune(keep_bytes=1), Pruned)
    assert_type(it.stats(), LogStats)


def seams(url: str) -> None:
    """What is built in fits the seams that others may fill."""
    RunLog(open_store(url))
    restored(SlimSerializer(), {})


def restored(serializer: AgentSerializer, data: dict[str, Any]) -> AgentState:
    """A serializer of one's own goes where the slim one goes."""
    return serializer.deserialize(data)
