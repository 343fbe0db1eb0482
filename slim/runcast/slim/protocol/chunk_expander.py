"""Expands the `*_CHUNK` shorthand into START, CONTENT or ARGS, and END events, as the client's `transformChunks` does.

Each lane assembles one stream: a lane is one subagent (or the parent agent), since a chunk may leave out its id and then
means "the same as before". Does not know messages, nor whether a stream of explicit events is valid. Synthesised
openers and fragments keep the chunk's timestamp, which the client drops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ag_ui.core import (
    CustomEvent,
    MessagesSnapshotEvent,
    ReasoningMessageChunkEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    TextMessageChunkEvent,
    ToolCallChunkEvent,
    ToolCallResultEvent,
)

from runcast.slim.errors import InvalidStream
from runcast.slim.values.lifecycles import PHASES, Lifecycle
from runcast.slim.values.model_construction import built

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

Chunk: TypeAlias = TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent

CHUNKS = (TextMessageChunkEvent, ToolCallChunkEvent, ReasoningMessageChunkEvent)

# An explicit event ends the stream of its own lane; one about the whole run ends every stream; all others
# (RAW, ACTIVITY_*, REASONING_ENCRYPTED_VALUE, SUBAGENT_STARTED and unknown types) end nothing.
_OWN_LANE = frozenset(event for event, (_, phase) in PHASES.items() if phase != "chunk") | {
    ToolCallResultEvent,
    StateSnapshotEvent,
    StateDeltaEvent,
    CustomEvent,
    SubagentFinishedEvent,
    SubagentErrorEvent,
}
_EVERY_LANE = frozenset({RunStartedEvent, RunFinishedEvent, RunErrorEvent, MessagesSnapshotEvent})


@dataclass(frozen=True, slots=True)
class _Stream:
    """The stream of a lane, and the fields its opener set."""

    life: Lifecycle
    key: str
    tag: str | None
    opener: dict[str, Any]  # later chunks may repeat these fields but not change them


class ChunkExpander:
    """Feed it a stream; chunks come out as whole events, everything else unchanged."""

    def __init__(self) -> None:
        self.lanes: dict[str | None, _Stream] = {}  # the stream of each owner; empty means nothing to end

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """The events this one stands for. Raises InvalidStream for a chunk that continues nothing or contradicts."""
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
        return [_made(stream.life.end, stream, subagent_run_id=stream.tag)]

    def _chunk(self, chunk: Chunk) -> list[AnyEvent]:
        life, _ = PHASES[type(chunk)]
        key = life.key(chunk)
        lane = self._lane(chunk, life, key)
        stream = self.lanes.get(lane)
        out: list[AnyEvent] = []
        if stream is not None and stream.life is life and key in (None, stream.key):
            _agree(chunk, stream)
        else:
            stream = _opened(chunk, life, key)
            out += self._close(lane)
            out.append(_start(chunk, stream))
            self.lanes[lane] = stream
        self._carry(chunk, stream, out)
        return out

    def _carry(self, chunk: Chunk, stream: _Stream, out: list[AnyEvent]) -> None:
        """Add the fragment if the chunk has one; unknown fields go on the fragment, else on the opener."""
        extra = chunk.__pydantic_extra__ or {}
        empty = chunk.delta is None and chunk.raw_event is None
        if not empty or (not out and (chunk.metadata is not None or extra)):
            out.append(_fragment(chunk, stream, extra))
        elif out and extra:
            opener = out[-1]
            own = {name: value for name, value in extra.items() if name not in type(opener).model_fields}
            out[-1] = opener.model_copy(update=own)

    def _lane(self, chunk: Chunk, life: Lifecycle, key: str | None) -> str | None:
        """The lane of a chunk: by its id, else by its tag, else the only stream it can mean."""
        tag = chunk.subagent_run_id
        if key is not None:
            return self._lane_of(life, key, tag)
        if tag is not None:
            return tag
        candidates = [owner for owner, stream in self.lanes.items() if stream.life is life]
        if None in candidates or not candidates:
            return None
        if len(candidates) > 1:
            raise InvalidStream(
                f"{chunk.type.value} has neither an id nor a subagentRunId, and {len(candidates)} subagents have an"
                f" open {life.noun}; tag the chunk with the subagent it belongs to"
            )
        return candidates[0]

    def _lane_of(self, life: Lifecycle, key: str, tag: str | None) -> str | None:
        for owner, stream in self.lanes.items():
            if stream.life is life and stream.key == key:
                if tag not in (None, owner):
                    raise InvalidStream(
                        f"a chunk of {life.noun} {key!r} is tagged {tag!r}, but {owner or 'the parent agent'} opened it"
                    )
                return owner
        return tag


def _agree(chunk: Chunk, stream: _Stream) -> None:
    """A later chunk may repeat the opener's fields, but not change them."""
    for name, value in stream.opener.items():
        again = getattr(chunk, name)
        if again is not None and again != value:
            raise InvalidStream(
                f"a chunk of {stream.life.noun} {stream.key!r} has {name} {again!r}, but its opener has {value!r}"
            )


def _opened(chunk: Chunk, life: Lifecycle, key: str | None) -> _Stream:
    if key is None:
        raise InvalidStream(f"the first {chunk.type.value} of a stream must carry its id")
    match chunk:
        case TextMessageChunkEvent():
            opener = {"role": chunk.role or "assistant", "name": chunk.name}
        case ToolCallChunkEvent():
            if chunk.tool_call_name is None:
                raise InvalidStream("the first TOOL_CALL_CHUNK of a call must carry its toolCallName")
            opener = {"tool_call_name": chunk.tool_call_name, "parent_message_id": chunk.parent_message_id}
        case _:
            opener = {}
    return _Stream(life, key, chunk.subagent_run_id, opener)


def _start(chunk: Chunk, stream: _Stream) -> AnyEvent:
    return _made(
        stream.life.start,
        stream,
        **stream.opener,
        subagent_run_id=stream.tag,
        metadata=chunk.metadata,
        timestamp=chunk.timestamp,
    )


def _fragment(chunk: Chunk, stream: _Stream, extra: dict[str, Any]) -> AnyEvent:
    assert stream.life.content is not None  # every stream has deltas
    tag = chunk.subagent_run_id
    fields = {
        **extra,
        "delta": chunk.delta or "",
        "subagent_run_id": stream.tag if tag is None else tag,
        "metadata": chunk.metadata,
        "timestamp": chunk.timestamp,
        "raw_event": chunk.raw_event,
    }
    return _made(stream.life.content, stream, **fields)


def _made(kind: type[Any], stream: _Stream, **fields: Any) -> AnyEvent:
    return cast("AnyEvent", built(kind, **{**fields, stream.life.id_field: stream.key}))
