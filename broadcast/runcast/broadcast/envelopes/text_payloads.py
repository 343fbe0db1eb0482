"""Streamed text and reasoning in chunks, and the snapshots that correct them.

Knows the length of each text and whether a later snapshot differs from it; does not know entries, positions or other
kinds of events.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, cast

from ag_ui.core import (
    MessagesSnapshotEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from runcast.broadcast.config import BroadcastConfig
from runcast.broadcast.envelopes.run_view import Draft, RunView, TextView, owned
from runcast.slim.folding.run_metadata import metadata_of
from runcast.slim.values.truncation import clean
from runcast.slim.values.type_guards import as_mapping

TEXT, THOUGHT = "agent.stream.chunk", "agent.reasoning.chunk"
Split = Callable[[str, dict[str, Any]], list[str]]
Delta = TextMessageContentEvent | ReasoningMessageContentEvent


class Texts:
    """Turns deltas into numbered chunks. `split` cuts a chunk into pieces that fit into envelopes."""

    def __init__(self, config: BroadcastConfig, split: Split) -> None:
        self._config = config
        self._chunks = config.chunks
        self._longest = config.max_response_chars
        self._split = split

    def started(self, view: RunView, event: TextMessageStartEvent, at: int) -> list[Draft]:
        """A message opens, or opens again; the first envelope comes with its first text."""
        known = view.texts.get(event.message_id)
        if known is None:
            role = event.role or "assistant"
            view.texts[event.message_id] = known = TextView(role, event.subagent_run_id)
        known.gone = False
        if known.role == "assistant" and known.owner is None and view.response_id != event.message_id:
            view.response_id, view.response = event.message_id, ""
        return []

    def continued(self, view: RunView, event: TextMessageContentEvent, at: int) -> list[Draft]:
        """Text of a message that was started; that of others is dropped, as the client does."""
        drafts = self._text(view, event.message_id, event.delta, 1)
        return _counted(drafts, view.texts[event.message_id], event) if drafts and event.metadata else drafts

    def _text(self, view: RunView, message_id: str, delta: str, deltas: int) -> list[Draft]:
        text = view.texts.get(message_id)
        if text is None or text.gone:
            return []
        if view.response_id == message_id and len(view.response) <= self._longest:
            view.response += delta[: self._longest + 1]
        if not self._chunks:
            return []
        piece = _whole(text, delta)
        return self._chunk(view, TEXT, message_id, text, piece, deltas=deltas) if piece else []

    def ended(self, view: RunView, event: TextMessageEndEvent, at: int) -> list[Draft]:
        """The message is complete; half a character that nothing followed is shown as a replacement character."""
        text = view.texts.get(event.message_id)
        if text is None or text.gone or not self._chunks:
            return []
        rest, text.half = clean(text.half), ""
        drafts = self._chunk(view, TEXT, event.message_id, text, rest, complete=True)
        return _counted(drafts, text, event)

    def room(self, view: RunView, event: Delta) -> int:
        """The characters of the text that this delta continues which fit into one chunk; 0 if it begins the text: that
        has a chunk of its own, so that a watcher's text has the place of its beginning."""
        texts = view.texts if type(event) is TextMessageContentEvent else view.thoughts
        text = texts.get(event.message_id)
        return view.room - len(event.message_id) - len(text.owner or "") if text and text.index else 0

    def grown(self, view: RunView, last: Delta, delta: str, deltas: int) -> list[Draft]:
        """One chunk for several deltas of a text that have room in it; `delta` is all of them."""
        if type(last) is TextMessageContentEvent:
            return self._text(view, last.message_id, delta, deltas)
        text = view.thoughts[last.message_id]
        return self._chunk(view, THOUGHT, last.message_id, text, _whole(text, delta), deltas=deltas)

    def thought(self, view: RunView, event: ReasoningMessageContentEvent, at: int) -> list[Draft]:
        """Reasoning as it comes."""
        text = self._thought(view, event.message_id, event.subagent_run_id)
        piece = _whole(text, event.delta)
        return self._chunk(view, THOUGHT, event.message_id, text, piece) if piece else []

    def thought_ended(self, view: RunView, event: ReasoningMessageEndEvent, at: int) -> list[Draft]:
        """The thought is complete."""
        text = self._thought(view, event.message_id, event.subagent_run_id)
        rest, text.half = clean(text.half), ""
        return self._chunk(view, THOUGHT, event.message_id, text, rest, complete=True)

    def corrected(self, view: RunView, event: MessagesSnapshotEvent, at: int) -> list[Draft]:
        """A snapshot that differs from the streamed text replaces it: redacted text must not stay visible.

        Absence deletes: a message that is not in the snapshot becomes empty.
        """
        drafts: list[Draft] = []
        contents = {message.id: message.content for message in event.messages}
        for message_id, text in view.texts.items():
            content = contents.get(message_id) or ""
            text.gone = message_id not in contents
            if isinstance(content, str):  # else it is media, which no envelope carries
                drafts += self._replaced(view, message_id, text, clean(content))
        return drafts + self._from_before(view, event, contents)

    def _from_before(
        self, view: RunView, event: MessagesSnapshotEvent, contents: dict[str, Any]
    ) -> list[Draft]:
        """Corrections that the snapshot names for messages of an earlier run, which this view does not have."""
        named = metadata_of(event).get("corrects")
        if not isinstance(named, dict):
            return []
        named = cast("dict[str, list[str]]", named)
        drafts: list[Draft] = []
        for kind, key in ((TEXT, "messages"), (THOUGHT, "reasoning")):
            known = view.texts if kind == TEXT else {}
            if kind == THOUGHT and not self._config.reasoning:
                continue
            for message_id in named.get(key, ()):
                content = contents.get(message_id) or ""
                if message_id in known or not isinstance(content, str):
                    continue
                role = "assistant" if kind == TEXT else "reasoning"
                pieces = self._chunk(view, kind, message_id, TextView(role), clean(content), complete=True)
                pieces[0][1]["replace"] = True
                drafts += pieces
        return drafts

    def _replaced(self, view: RunView, message_id: str, text: TextView, full: str) -> list[Draft]:
        if text.half == "" and len(full) == text.length and zlib.crc32(full.encode()) == text.crc:
            return []
        text.length = text.crc = 0
        text.half = ""
        pieces = self._chunk(view, TEXT, message_id, text, full, complete=True)
        pieces[0][1]["replace"] = True
        if view.response_id == message_id:
            view.response = full[: self._longest + 1]
        return pieces

    def _thought(self, view: RunView, message_id: str, owner: str | None) -> TextView:
        text = view.thoughts.get(message_id)
        if text is None:
            text = view.thoughts[message_id] = TextView("reasoning", owner)
        return text

    def _chunk(
        self,
        view: RunView,
        kind: str,
        message_id: str,
        text: TextView,
        piece: str,
        *,
        complete: bool = False,
        deltas: int = 1,
    ) -> list[Draft]:
        payload: dict[str, Any] = {
            "message_id": message_id,
            "chunk": piece,
            "chunk_index": text.index,
            "is_complete": complete,
        }
        if text.role not in ("assistant", "reasoning"):
            payload["role"] = text.role
        step = view.current_step(text.owner)
        if step is not None:
            payload["step_number"] = step
        owned(payload, text.owner)
        text.length += len(piece)
        text.crc = zlib.crc32(piece.encode(), text.crc)
        if view.has_room(payload):
            text.index += deltas
            return [(kind, payload)]
        pieces = self._split(kind, payload)
        text.index += len(pieces)
        first: int = payload["chunk_index"]
        drafts = [
            (kind, {**payload, "chunk": each, "chunk_index": first + n, "is_complete": False})
            for n, each in enumerate(pieces)
        ]
        drafts[-1][1]["is_complete"] = complete
        return drafts


def text_handlers(config: BroadcastConfig) -> dict[type, Callable[[Texts, RunView, Any, int], list[Draft]]]:
    """The handler of each event type; disabled types have none."""
    table: dict[type, Callable[[Texts, RunView, Any, int], list[Draft]]] = {
        TextMessageStartEvent: Texts.started,
        TextMessageContentEvent: Texts.continued,
        TextMessageEndEvent: Texts.ended,
    }
    if config.chunks:
        table[MessagesSnapshotEvent] = Texts.corrected
    if config.reasoning:
        table[ReasoningMessageContentEvent] = Texts.thought
        table[ReasoningMessageEndEvent] = Texts.thought_ended
    return table


def _counted(
    drafts: list[Draft], text: TextView, event: TextMessageContentEvent | TextMessageEndEvent
) -> list[Draft]:
    """Note on the last chunk how many output tokens were reported since the one before."""
    so_far = as_mapping(metadata_of(event).get("usage")).get("completion")
    if isinstance(so_far, int) and so_far > text.tokens:
        drafts[-1][1]["tokens_delta"] = so_far - text.tokens
        text.tokens = so_far
    return drafts


def _whole(text: TextView, delta: str) -> str:
    """The delta after the half character that was held; a new half at its end is held in turn."""
    if delta.isascii() and not text.half:
        return delta
    piece = text.half + delta
    text.half = ""
    if piece and "\ud800" <= piece[-1] <= "\udbff":
        text.half, piece = piece[-1], piece[:-1]
    return clean(piece)
