"""The `*_CHUNK` shorthand, spelled out: START, CONTENT or ARGS, and END, as the client's `transformChunks` does.

Knows which stream each lane is assembling: a lane is one subagent (or the parent agent) and holds one stream, since
a chunk may leave out its id and then means "the same as before". Does not know messages, nor whether a stream of
explicit events is valid. Synthesised openers and fragments keep the chunk's timestamp, which the client drops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.built import built
from runcast.slim.errors import InvalidStream

if TYPE_CHECKING:
    from runcast.slim.wire import AnyEvent

__all__ = ["CHUNKS", "ChunkExpander"]

Chunk: TypeAlias = TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent
Kind = Literal["text message", "tool call", "reasoning message"]

CHUNKS = (TextMessageChunkEvent, ToolCallChunkEvent, ReasoningMessageChunkEvent)

# An explicit event ends what its own lane was assembling; one about the whole run ends every lane; all others
# (RAW, ACTIVITY_*, REASONING_ENCRYPTED_VALUE, SUBAGENT_STARTED, and what nobody knows) end nothing.
_OWN_LANE = frozenset(
    {
        TextMessageStartEvent,
        TextMessageContentEvent,
        TextMessageEndEvent,
        ToolCallStartEvent,
        ToolCallArgsEvent,
        ToolCallEndEvent,
        ToolCallResultEvent,
        StateSnapshotEvent,
        StateDeltaEvent,
        CustomEvent,
        StepStartedEvent,
        StepFinishedEvent,
        ReasoningStartEvent,
        ReasoningMessageStartEvent,
        ReasoningMessageContentEvent,
        ReasoningMessageEndEvent,
        ReasoningEndEvent,
        SubagentFinishedEvent,
        SubagentErrorEvent,
    }
)
_EVERY_LANE = frozenset({RunStartedEvent, RunFinishedEvent, RunErrorEvent, MessagesSnapshotEvent})

_KINDS: dict[type[BaseEvent], Kind] = {
    TextMessageChunkEvent: "text message",
    ToolCallChunkEvent: "tool call",
    ReasoningMessageChunkEvent: "reasoning message",
}


@dataclass(frozen=True, slots=True)
class _Stream:
    """What a lane is assembling, and what its opener said of it."""

    kind: Kind
    key: str
    tag: str | None
    said: dict[str, Any]  # the opener's own fields, which later chunks may repeat but not change


class ChunkExpander:
    """Feed it a stream; chunks come out as whole events, everything else as it is."""

    def __init__(self) -> None:
        self.lanes: dict[
            str | None, _Stream
        ] = {}  # what each owner is assembling; empty means nothing to end

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """What this event stands for. Raises InvalidStream for a chunk that continues nothing or contradicts."""
        kind = type(event)
        if isinstance(event, CHUNKS):
            return self._chunk(event)
        if kind in _OWN_LANE:
            return [*self._close(getattr(event, "subagent_run_id", None)), event]
        if kind in _EVERY_LANE:
            return [*(end for owner in list(self.lanes) for end in self._close(owner)), event]
        return [event]

    def _close(self, owner: str | None) -> list[AnyEvent]:
        stream = self.lanes.pop(owner, None)
        if stream is None:
            return []
        match stream.kind:
            case "text message":
                return [built(TextMessageEndEvent, message_id=stream.key, subagent_run_id=stream.tag)]
            case "tool call":
                return [built(ToolCallEndEvent, tool_call_id=stream.key, subagent_run_id=stream.tag)]
            case _:
                return [built(ReasoningMessageEndEvent, message_id=stream.key, subagent_run_id=stream.tag)]

    def _chunk(self, chunk: Chunk) -> list[AnyEvent]:
        kind = _KINDS[type(chunk)]
        key = chunk.tool_call_id if isinstance(chunk, ToolCallChunkEvent) else chunk.message_id
        lane = self._lane(chunk, kind, key)
        stream = self.lanes.get(lane)
        out: list[AnyEvent] = []
        if stream is not None and stream.kind == kind and key in (None, stream.key):
            _agree(chunk, stream)
        else:
            stream = _opened(chunk, kind, key)
            out += self._close(lane)
            out.append(_start(chunk, stream))
            self.lanes[lane] = stream
        self._carry(chunk, stream, out)
        return out

    def _carry(self, chunk: Chunk, stream: _Stream, out: list[AnyEvent]) -> None:
        """Add the fragment if the chunk has one; what else it carries rides there, or on the opener."""
        extra = chunk.__pydantic_extra__ or {}
        silent = chunk.delta is None and chunk.raw_event is None
        if not silent or (not out and (chunk.metadata is not None or extra)):
            out.append(_fragment(chunk, stream, extra))
        elif out and extra:
            opener = out[-1]
            shown = {name: value for name, value in extra.items() if name not in type(opener).model_fields}
            out[-1] = opener.model_copy(update=shown)

    def _lane(self, chunk: Chunk, kind: Kind, key: str | None) -> str | None:
        """The lane a chunk speaks to: its id says so, else its tag, else the only stream it can mean."""
        tag = chunk.subagent_run_id
        if key is not None:
            return self._lane_of(kind, key, tag)
        if tag is not None:
            return tag
        candidates = [owner for owner, stream in self.lanes.items() if stream.kind == kind]
        if None in candidates or not candidates:
            return None
        if len(candidates) > 1:
            raise InvalidStream(
                f"{chunk.type.value} has neither an id nor a subagentRunId, and {len(candidates)} subagents have an"
                f" open {kind}; tag the chunk with the subagent it belongs to"
            )
        return candidates[0]

    def _lane_of(self, kind: Kind, key: str, tag: str | None) -> str | None:
        for owner, stream in self.lanes.items():
            if stream.kind == kind and stream.key == key:
                if tag not in (None, owner):
                    raise InvalidStream(
                        f"a chunk of {kind} {key!r} is tagged {tag!r}, but {owner or 'the parent agent'} opened it"
                    )
                return owner
        return tag


def _agree(chunk: Chunk, stream: _Stream) -> None:
    """A later chunk may repeat what the opener said, but not change it."""
    for name, said in stream.said.items():
        again = getattr(chunk, name)
        if again is not None and again != said:
            raise InvalidStream(
                f"a chunk of {stream.kind} {stream.key!r} says {name} {again!r}, but its opener said {said!r}"
            )


def _opened(chunk: Chunk, kind: Kind, key: str | None) -> _Stream:
    if key is None:
        raise InvalidStream(f"the first {chunk.type.value} of a stream must carry its id")
    match chunk:
        case TextMessageChunkEvent():
            said = {"role": chunk.role or "assistant", "name": chunk.name}
        case ToolCallChunkEvent():
            if chunk.tool_call_name is None:
                raise InvalidStream("the first TOOL_CALL_CHUNK of a call must carry its toolCallName")
            said = {"tool_call_name": chunk.tool_call_name, "parent_message_id": chunk.parent_message_id}
        case _:
            said = {}
    return _Stream(kind, key, chunk.subagent_run_id, said)


def _start(chunk: Chunk, stream: _Stream) -> AnyEvent:
    common: dict[str, Any] = {
        "subagent_run_id": stream.tag,
        "metadata": chunk.metadata,
        "timestamp": chunk.timestamp,
    }
    match stream.kind:
        case "text message":
            return built(TextMessageStartEvent, message_id=stream.key, **stream.said, **common)
        case "tool call":
            return built(ToolCallStartEvent, tool_call_id=stream.key, **stream.said, **common)
        case _:
            return built(ReasoningMessageStartEvent, message_id=stream.key, **common)


def _fragment(chunk: Chunk, stream: _Stream, extra: dict[str, Any]) -> AnyEvent:
    tag = chunk.subagent_run_id
    common: dict[str, Any] = {
        **extra,
        "delta": chunk.delta or "",
        "subagent_run_id": stream.tag if tag is None else tag,
        "metadata": chunk.metadata,
        "timestamp": chunk.timestamp,
        "raw_event": chunk.raw_event,
    }
    match stream.kind:
        case "text message":
            return built(TextMessageContentEvent, message_id=stream.key, **common)
        case "tool call":
            return built(ToolCallArgsEvent, tool_call_id=stream.key, **common)
        case _:
            return built(ReasoningMessageContentEvent, message_id=stream.key, **common)
