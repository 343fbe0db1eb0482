"""A message that a model is emitting: its text, reasoning, signatures and tool calls, as events.

Knows how integrations cut calls into chunks (by index, by id, whole, interleaved) and in which order a message's parts
are emitted. Does not know which message a chunk belongs to (see `model_output`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from ag_ui.core import CustomEvent, Event

from runcast.adapters.langgraph.content.content_blocks import Piece, pieces
from runcast.adapters.langgraph.content.plain_values import plain
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.stream.tool_results import Results
from runcast.adapters.open_blocks import Clock, OpenBlocks
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.values.type_guards import as_mapping


class OpenCall:
    """A tool call. Its name, id and arguments may come in any order and any number of chunks."""

    __slots__ = ("args", "emitted", "given", "has_args", "id", "name", "repeated")

    def __init__(self) -> None:
        self.id = ""
        self.given = ""  # the id as the model gave it: perhaps not the one that is emitted
        self.name = ""
        self.args = ""  # argument text that is not emitted yet
        self.emitted = False  # TOOL_CALL_START is out
        self.has_args = False  # some argument text came
        self.repeated = False  # another message has a call of this id

    def take_args(self) -> str:
        """The argument text that waits."""
        text, self.args = self.args, ""
        self.has_args = self.has_args or bool(text)
        return text


class CallChunks:
    """The calls of one message, put together from the entries of `tool_call_chunks`."""

    __slots__ = ("_by_index", "calls")

    def __init__(self) -> None:
        self.calls: list[OpenCall] = []  # in order of appearance
        self._by_index: dict[int, OpenCall] = {}

    def add(self, entry: Mapping[str, Any]) -> OpenCall:
        """The call an entry belongs to, with the entry's name, id and text added to it."""
        index, call_id = entry.get("index"), entry.get("id")
        call = self._find(index, call_id)
        if call is None:
            call = OpenCall()
            self.calls.append(call)
            if index is not None:
                self._by_index[index] = call
        call.given = call.given or call_id or ""
        call.id = call.id or call.given
        call.name = call.name or entry.get("name") or ""
        call.args += entry.get("args") or ""
        return call

    def _find(self, index: int | None, call_id: str | None) -> OpenCall | None:
        call = self._by_index.get(index) if index is not None else None
        if call is None and index is None and self.calls:
            same = [each for each in self.calls if call_id and each.given == call_id]
            call = same[0] if same else (self.calls[-1] if not call_id else None)
        if call is not None and call_id and call.given and call.given != call_id:
            return None  # the index was used again for another call
        return call


class Emission:
    """What all messages of a run share to emit their events: open blocks, results, options, clock."""

    __slots__ = ("blocks", "clock", "is_shown", "options", "results")

    def __init__(
        self,
        blocks: OpenBlocks,
        results: Results,
        options: LangGraphOptions,
        clock: Clock | None,
        *,
        is_shown: Callable[[str], bool] = lambda call_id: False,
    ) -> None:
        """`is_shown` finds a tool call in the client's view."""
        self.is_shown = is_shown
        self.blocks = blocks
        self.results = results
        self.options = options
        self.clock = clock

    def tags(self, owner: str | None) -> dict[str, Any]:
        """Owner and time of an event that belongs to no block."""
        tags: dict[str, Any] = {} if owner is None else {"subagent_run_id": owner}
        if self.clock is not None:
            tags["timestamp"] = self.clock()
        return tags


class OpenMessage:
    """One message, from its first chunk to its end."""

    __slots__ = (
        *("_calls", "_emission", "_reasoning_count", "_reasoning_started", "_signature", "_slot", "call_ids"),
        *("finish_reason", "id", "known", "mark", "model", "name", "owner", "reasoning", "start", "task", "usage"),
    )  # fmt: skip

    def __init__(
        self,
        emission: Emission,
        public_id: str,
        *,
        mark: str | None = None,
        task: str = "",
        owner: str | None = None,
        name: str | None = None,
        known: bool = False,
    ) -> None:
        self.id = public_id
        self.mark = mark  # the model run, if it is known
        self.task = task  # the checkpoint namespace of the node that called the model
        self.owner = owner
        self.name = name
        self.known = known  # the client has this message already
        self.start: dict[str, Any] | None = None  # metadata of its first event: the place that emitted it
        self.call_ids: list[str] = []  # ids of emitted calls without a result, in order (shared with Results)
        self.reasoning: str | None = None  # id of the latest reasoning
        self.finish_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, int] | None = None
        self._emission = emission
        self._calls = CallChunks()
        self._slot: Hashable = None  # the content block of the latest reasoning
        self._signature = ""  # of the latest reasoning, so far
        self._reasoning_count = 0
        self._reasoning_started = False

    # --------------------------------------------------------------- content

    def text(self, delta: str) -> list[Event]:
        """A piece of its text; an empty one only opens the message."""
        return self._emission.blocks.text(
            self.id, delta, name=self.name, owner=self.owner, metadata=self.start
        )

    def content(self, content: Any, extra: Mapping[str, Any]) -> list[Event]:
        """All pieces of a chunk's content, and of the reasoning that some providers put beside it."""
        events: list[Event] = []
        for piece in pieces(content, extra):
            match piece.kind:
                case "text":
                    events += self.text(piece.text)
                case "reasoning":
                    events += self._reason(piece)
                case "signature":
                    events += self._sign(piece)
                case "text-signature":
                    events += self.text("")
                    events += self._emission.blocks.encrypted(self.id, piece.text, owner=self.owner)
                case "other":
                    events += self._carry(piece.block)
                case _:
                    pass  # signatures of calls follow the calls
        return events

    def _reason(self, piece: Piece) -> list[Event]:
        if not piece.text:
            return []
        blocks, current = self._emission.blocks, self.reasoning
        over = self._reasoning_started and current is not None and not blocks.is_open_reasoning(current)
        if current is not None and piece.slot == self._slot and not over:
            return self._emit_reasoning(current, piece.text)
        events = [] if current is None else blocks.close_reasoning(current)
        return events + self._emit_reasoning(self._begin_reasoning(piece.slot), piece.text)

    def _begin_reasoning(self, slot: Hashable) -> str:
        self._reasoning_count += 1
        self.reasoning = reasoning = f"{self.id}:reasoning:{self._reasoning_count}"
        self._slot, self._signature, self._reasoning_started = slot, "", False
        return reasoning

    def reasoning_ids(self) -> list[str]:
        """The ids of all its reasoning so far."""
        return [f"{self.id}:reasoning:{number + 1}" for number in range(self._reasoning_count)]

    def _emit_reasoning(self, reasoning: str, text: str) -> list[Event]:
        self._reasoning_started = True
        return self._emission.blocks.reasoning(
            reasoning, text, message_id=self.id, owner=self.owner, metadata=self.start
        )

    def _sign(self, piece: Piece) -> list[Event]:
        """A provider's signature belongs to its block's reasoning, which may be empty (redacted) or closed."""
        reasoning = self.reasoning
        if reasoning is None or piece.slot != self._slot:
            reasoning = self._begin_reasoning(piece.slot)
        events = [] if self._reasoning_started else self._emit_reasoning(reasoning, "")
        self._signature += piece.text
        return events + self._emission.blocks.encrypted(reasoning, self._signature, owner=self.owner)

    def _carry(self, block: Any) -> list[Event]:
        """A block that messages cannot hold travels beside them, bounded."""
        value = {"messageId": self.id, "block": plain(block)}
        return [CustomEvent(name="langgraph.content_block", value=value, **self._emission.tags(self.owner))]

    # ------------------------------------------------------------ tool calls

    def calls(
        self, entries: Iterable[Mapping[str, Any]] | None, extra: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> list[Event]:
        """The entries of a chunk's `tool_call_chunks`, and the signatures of calls in its extra fields."""
        events: list[Event] = []
        for entry in entries or ():
            call = self._calls.add(entry)
            events += self._open(call, meta)
            if call.emitted and call.args and not call.repeated:
                events += self._emission.blocks.args(call.id, call.take_args())
        for piece in pieces("", extra) if extra else ():
            if piece.kind == "call-signature" and piece.slot in self.call_ids:
                events += self._emission.blocks.encrypted(
                    str(piece.slot), piece.text, subtype="tool-call", owner=self.owner
                )
        return events

    def _open(self, call: OpenCall, meta: Mapping[str, Any], *, last: bool = False) -> list[Event]:
        if call.emitted or not ((call.name and call.id) or last):
            return []
        emission = self._emission
        call.emitted = True
        call.id = call.id or f"{self.id}:call:{len(self.call_ids)}"
        if emission.is_shown(call.id) or emission.results.is_taken(call.id, self.owner):
            if self.owner is None:
                call.repeated = True
                emission.results.repeated(call.id)
                return []
            call.id = emission.results.renamed(
                call.id, self.owner
            )  # a subagent's messages are in no snapshot
        emission.results.announced(self.call_ids, call.id, self.owner, self.id)
        start = None if emission.blocks.is_open(self.id) else self.start
        events = emission.blocks.call(
            call.id, call.name, message_id=self.id, owner=self.owner, metadata=start
        )
        predicted = emission.options.predictions(call.name, meta)
        if predicted:
            events.append(CustomEvent(name="PredictState", value=predicted, **emission.tags(self.owner)))
        return events

    # --------------------------------------------------------------- closing

    def close(self, *, broken: str | None = None) -> list[Event]:
        """The message is complete, or `broken` names the reason why it never will be."""
        blocks = self._emission.blocks
        events: list[Event] = []
        for call in self._calls.calls:
            events += self._open(call, {}, last=True)
            if call.repeated:
                continue
            left = call.take_args() or ("" if call.has_args or broken else "{}")
            events += blocks.args(call.id, left)
        if broken is None and not (self.call_ids or self.known or blocks.is_open(self.id)):
            events += self.text("")  # an empty message is one, in the state
        facts = run_metadata(
            finish_reason=self.finish_reason, model=self.model, usage=self.usage, discarded=broken
        )
        return events + blocks.close_message(self.id, metadata=facts)

    def learn(self, message: Any) -> None:
        """Finish reason, model name and usage, from wherever the provider put them."""
        facts = as_mapping(message.response_metadata)
        reason = facts.get("finish_reason") or facts.get("stop_reason") or facts.get("done_reason")
        self.finish_reason = str(reason) if reason else self.finish_reason
        model = facts.get("model_name") or facts.get("model")
        self.model = str(model) if model else self.model
        if message.usage_metadata:
            self.usage = _added(self.usage, message.usage_metadata)


def _added(sums: dict[str, int] | None, usage: Mapping[str, Any]) -> dict[str, int]:
    """Usage in runcast's words. Providers split it over chunks (Anthropic: input first, output last): it adds up."""
    named = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
    before = sums or {}
    return {ours: before.get(ours, 0) + int(usage.get(theirs) or 0) for ours, theirs in named.items()}


def usage_of(message: Any, place: Mapping[str, Any]) -> dict[str, Any]:
    """A final message's usage in the protocol's words; `place` names the model if the message does not."""
    usage, facts = as_mapping(message.usage_metadata), as_mapping(message.response_metadata)
    cached, details = (as_mapping(usage.get(f"{way}_token_details")) for way in ("input", "output"))
    return {
        "provider": facts.get("model_provider") or place.get("provider"),
        "model": facts.get("model_name") or facts.get("model") or place.get("model"),
        **{key: usage.get(key) for key in ("input_tokens", "output_tokens", "total_tokens")},
        "reasoning_tokens": details.get("reasoning"),
        "cached_input_tokens": cached.get("cache_read"),
        "cache_write_input_tokens": cached.get("cache_creation"),
    }
