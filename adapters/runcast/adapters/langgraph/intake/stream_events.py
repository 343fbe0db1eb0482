"""LangGraph's event stream (`astream_events(version="v3")`) as the parts that `astream` would have had.

Knows the envelope of an event, and the content blocks in which a model's message comes: start, deltas and finish of each
block, under one id. Each becomes a `Chunk`, so that the translator does not know which stream it reads. Three facts that
the event stream lacks are put back: tool results (from the task that returned them), the tokens of a model that a node
streams itself (from `Probe`), and what a block holds besides its text (from the block's finish).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from runcast.adapters.langgraph.intake.callback_parts import messages_in
from runcast.adapters.langgraph.stream.parts import RUN_MARK, SEPARATOR, TOKEN, Aside, Chunk, Part
from runcast.slim.values.type_guards import as_mapping

READ = frozenset(("messages", "updates", "tasks", "custom", "values", "checkpoints", "tools"))
REASONING = ("reasoning_content", "reasoning")  # extra fields of which the blocks have the same
CALLS = frozenset(("tool_call_chunk", "tool_call", "invalid_tool_call"))
TEXTS = {"text": "text", "reasoning": "reasoning"}  # kind of block -> its field


class _Streamed:
    """What came of one model's message."""

    __slots__ = ("id", "length", "reasons", "start")

    def __init__(self, id: str, start: Mapping[str, Any]) -> None:
        self.id = id
        self.start = start  # provider and model
        self.length: dict[int, int] = {}  # block -> how much of its text or arguments came
        self.reasons = False  # some block was reasoning


class StreamEvents:
    """The events of one run. Without `subgraphs`, those of the root graph alone."""

    def __init__(self, *, subgraphs: bool = True) -> None:
        self._subgraphs = subgraphs
        self._messages: dict[str, _Streamed] = {}  # model run -> its message
        self._first: dict[str, Part | None] = {}  # model run -> its first token; None when more came
        self._seen: set[str] = set()  # ids of tool results that are history, or have their part
        self._steps: dict[Any, int] = {}  # namespace -> its latest checkpoint's step

    def parts(self, event: Mapping[str, Any]) -> list[Part]:
        """The parts of one event; none for what is not read."""
        method, params = event["method"], event["params"]
        ns = tuple(params["namespace"])
        if method not in READ or (ns and not self._subgraphs):
            return []
        data = params["data"]
        part = {"type": method, "ns": ns, "data": data}
        match method:
            case "messages":
                return self._message(part)
            case "tasks":
                return self._task(part)
            case "custom" if isinstance(data, Aside):
                return self._aside(part, data)
            case "tools" if data["event"] != "tool-output-delta":
                return []  # `Probe` reports it
            case "checkpoints":
                self._steps[ns] = int(data["metadata"]["step"])
            case _:
                pass
        return [part]

    # ---------------------------------------------------------------- models

    def _message(self, part: Part) -> list[Part]:
        message, meta = part["data"]
        if isinstance(message, Mapping):
            chunk = self._chunk(as_mapping(message), meta)
            return [] if chunk is None else [{**part, "data": (chunk, meta)}]
        if message is None or (message.type == "AIMessageChunk" and RUN_MARK in meta):
            return []  # left out by a transformer of the agent's own; or all that `Probe` has reported
        return [part]

    def _chunk(self, event: Mapping[str, Any], meta: Mapping[str, Any]) -> Chunk | None:
        run = str(meta.get("run_id"))
        if event["event"] == "message-start":
            self._first.pop(run, None)
            if event.get("role", "ai") == "ai":
                self._messages[run] = _Streamed(str(event.get("id")), as_mapping(event.get("metadata")))
            return None
        it = self._messages.get(run)
        if it is None:
            return None
        match event["event"]:
            case "content-block-delta":
                return _delta(it, int(event["index"]), event["delta"])
            case "content-block-start":
                return _begun(it, int(event["index"]), event["content"])
            case "content-block-finish":
                return _finished(it, int(event["index"]), event["content"])
            case "message-finish":
                del self._messages[run]
                return _over(it, event)
            case _:
                return None

    def _aside(self, part: Part, aside: Aside) -> list[Part]:
        """A report of `Probe`. A token is dropped if its model's message comes as events: they begin after the first."""
        run = str(aside.data.get("run_id") or as_mapping(aside.data.get("metadata")).get(RUN_MARK))
        if aside.type != TOKEN:
            first = self._first.pop(run, None) if aside.type in ("llm_end", "llm_error") else None
            return [part] if first is None else [first, part]
        if run in self._messages:
            return []
        token: Part = {**part, "type": "messages", "data": (aside.data["chunk"], aside.data["metadata"])}
        if run not in self._first:
            self._first[run] = token
            return []
        first, self._first[run] = self._first[run], None
        return [token] if first is None else [first, token]

    # ----------------------------------------------------------------- tasks

    def _task(self, part: Part) -> list[Part]:
        data = part["data"]
        if "result" not in data:
            self._seen.update(
                each.id for each in messages_in(data.get("input")) if each.type == "tool" and each.id
            )
            return [part]
        place = SEPARATOR.join((*part["ns"], f"{data['name']}:{data['id']}"))
        meta = {"langgraph_node": data["name"], "langgraph_checkpoint_ns": place}
        if part["ns"] in self._steps:
            meta["langgraph_step"] = self._steps[part["ns"]] + 1
        parts: list[Part] = []
        for message in messages_in(data["result"]):
            if message.type == "tool" and message.id not in self._seen:
                # a reducer may give no ids: `astream` gives one here, to the very message that is stored
                message.id = message.id or _made_up(data["id"], message.tool_call_id)
                self._seen.add(message.id)
                parts.append({"type": "messages", "ns": part["ns"], "data": (message, meta)})
        return [*parts, part]


def _delta(it: _Streamed, index: int, delta: Mapping[str, Any]) -> Chunk | None:
    match delta["type"]:
        case "text-delta":
            text = str(delta.get("text") or "")
            it.length[index] = it.length.get(index, 0) + len(text)
            return Chunk(it.id, text)
        case "reasoning-delta":
            text = str(delta.get("reasoning") or "")
            it.length[index], it.reasons = it.length.get(index, 0) + len(text), True
            return Chunk(it.id, [{"type": "reasoning", "reasoning": text, "index": index}])
        case "tool-call-delta":
            text = str(delta.get("args") or "")
            it.length[index] = it.length.get(index, 0) + len(text)
            return Chunk(it.id, tool_call_chunks=({"index": index, "args": text},))
        case _:  # media: its block's finish has all of it
            return None


def _begun(it: _Streamed, index: int, block: Mapping[str, Any]) -> Chunk | None:
    kind = block.get("type")
    if kind in CALLS and (block.get("id") or block.get("name")):
        entry = {"index": index, "id": block.get("id"), "name": block.get("name")}
        return Chunk(it.id, tool_call_chunks=(entry,))
    it.reasons = it.reasons or kind == "reasoning"
    return None


def _finished(it: _Streamed, index: int, block: Mapping[str, Any]) -> Chunk | None:
    """What a block holds that no delta brought: late ids, signatures, citations, media, and text of a whole block."""
    kind, came = str(block.get("type")), it.length.get(index, 0)
    if kind in CALLS:
        args = block.get("args")
        text = args if isinstance(args, str) else "" if came or not args else json.dumps(args)
        entry = {"index": index, "id": block.get("id"), "name": block.get("name"), "args": text[came:]}
        return Chunk(it.id, tool_call_chunks=(entry,))
    field = TEXTS.get(kind)
    if field is None:
        return Chunk(it.id, [dict(block)])
    return Chunk(it.id, [{**block, field: str(block.get(field) or "")[came:], "index": index}])


def _over(it: _Streamed, event: Mapping[str, Any]) -> Chunk:
    facts = {"model_provider": it.start.get("provider"), "model_name": it.start.get("model")}
    known = {key: value for key, value in facts.items() if value}
    beside = as_mapping(event.get("additional_kwargs"))
    extra = {key: value for key, value in beside.items() if not (it.reasons and key in REASONING)}
    return Chunk(
        it.id,
        "",
        extra,
        usage=event.get("usage"),
        facts={**known, **as_mapping(event.get("metadata"))},
        last=True,
    )


def _made_up(task: str, call: str) -> str:
    """The id of a call's result that has none, the same whenever it is asked for."""
    return blake2b(f"{task}:{call}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
