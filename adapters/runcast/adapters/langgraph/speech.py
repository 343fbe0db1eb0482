"""What the models of a run say: their messages, reasoning and tool calls, chunk by chunk or whole.

Knows how LangChain streams a message and where its id drifts. A *lane* is one message in the making; a run may
have many at once (branches, fan-out, two models in one node), and they never mix, because a lane is found by the
model run a chunk belongs to. Rules:

1. Every block of a chunk and every entry of `tool_call_chunks` is read, the first and the last chunk's too;
   `finish_reason` decides nothing.
2. The first id a message shows is its public id from then on. The provider's may come later: it is an alias.
3. A lane closes on `chunk_position == "last"`, when its model run breaks, or when its task is over.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ag_ui.core import CustomEvent, Event

from runcast.adapters.blocks import Clock, Meta, OpenBlocks
from runcast.adapters.frame import note
from runcast.adapters.langgraph.chunks import Piece, pieces
from runcast.adapters.langgraph.content import text_of
from runcast.adapters.langgraph.encode import plain
from runcast.adapters.langgraph.lanes import Call, Lane
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.parts import RUN_MARK, SEPARATOR
from runcast.adapters.langgraph.places import PLACE, UNKNOWN, Progress
from runcast.adapters.langgraph.tools import Results

RUN_PREFIX = "lc_run--"  # LangChain's id for a message whose provider gave none (yet)
ROLES: Mapping[str, Any] = {
    "ai": "assistant",
    "human": "user",
    "system": "system",
    "developer": "developer",
    "assistant": "assistant",
    "user": "user",
}


class Speech:
    """Messages of one run. `aliases` maps a public id to the id the graph's state came to hold."""

    def __init__(
        self,
        blocks: OpenBlocks,
        results: Results,
        options: LangGraphOptions,
        *,
        known: Collection[str] = (),
        aliases: Mapping[str, str] | None = None,
        run_id: str = "",
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.aliases: dict[str, str] = {}
        self._blocks = blocks
        self._results = results
        self._options = options
        self._run_id = run_id  # names messages to which nobody gave an id
        self._nameless = 0
        self._clock = clock
        self._lanes: dict[str, Lane] = {}  # every raw id and run id seen -> the lane it means
        self._public: dict[str, str] = {each: each for each in known}  # raw id -> public id, of messages told
        self._public.update((raw, public) for public, raw in (aliases or {}).items())
        self._finals: dict[
            str, list[tuple[str, Any]]
        ] = {}  # task -> (public id, final message) of its model runs
        self._over: dict[
            str, list[tuple[str, Any]]
        ] = {}  # the same of tasks that ended, by graph, for a step
        self._hushed: set[str | None] = set()  # ids of messages that are not to be told
        self._progress = progress or Progress()
        self._places: dict[str, str] = {}  # public ids of what this run said -> where

    # ---------------------------------------------------------------- chunks

    def chunk(self, message: Any, meta: Mapping[str, Any], owner: str | None) -> list[Event]:
        """One AIMessageChunk."""
        held = message.__dict__  # a token has eight fields to look at: this is the cheapest way to them
        lane = self._lanes.get(held["id"])
        if lane is None:
            lane = self._lane(held["id"], meta, owner)
        content, extra, entries = held["content"], held["additional_kwargs"], held["tool_call_chunks"]
        if type(content) is str and not extra and not entries:
            events = (
                self._blocks.text(lane.id, content, owner=lane.owner, metadata=lane.noted) if content else []
            )
        else:
            events = self._pieces(lane, content, extra)
            events += self._calls(lane, entries, meta)
            events += self._seals(lane, extra)
        if held["usage_metadata"] or held["response_metadata"]:
            lane.learn(message)
        if held["chunk_position"] == "last":
            events = events + self.close(lane)
        return events

    def _lane(self, raw: str, meta: Mapping[str, Any], owner: str | None) -> Lane:
        """Find the lane of a chunk whose id is new, or begin one."""
        own = raw.removeprefix(RUN_PREFIX) if raw.startswith(RUN_PREFIX) else None
        mark = own or meta.get(RUN_MARK)
        task = str(meta.get("langgraph_checkpoint_ns", ""))
        lane = self._lanes.get(RUN_PREFIX + mark) if mark else None
        if lane is None and RUN_MARK not in meta:
            lane = self._adopt(task, own)
        if lane is None:
            lane = Lane(raw, mark, task, owner, again=raw in self._public)
            lane.noted = self._said_at(raw, meta)
        elif own is None:
            self.aliases[lane.id] = raw
        if mark:
            lane.mark = mark
            self._lanes[RUN_PREFIX + mark] = lane
            self._public[RUN_PREFIX + mark] = lane.id
        self._lanes[raw] = lane
        self._public[raw] = self._public[lane.id] = lane.id
        return lane

    def _said_at(self, message_id: str, meta: Mapping[str, Any]) -> Meta | None:
        """Remember where a message is said; the note of it, where that means something later."""
        namespace = str(meta.get("langgraph_checkpoint_ns", ""))
        if ":" not in namespace:
            return None
        place = self._progress.place(namespace, meta.get("langgraph_step", UNKNOWN))
        self._places[message_id] = place
        return {PLACE: place} if self._progress.stored else None

    def said_in(self, task_id: str) -> list[str]:
        """What was said in a task's broken attempt, and will be said again: ids of messages, thoughts and results."""
        return [key for key, place in self._places.items() if self._progress.again(place, task_id)]

    def forget(self, gone: Collection[str]) -> None:
        """These were taken back: under the same ids they are new."""
        for key in gone:
            self._places.pop(key, None)
        for raw in [raw for raw, public in self._public.items() if public in gone]:
            del self._public[raw]

    def _adopt(self, task: str, own: str | None) -> Lane | None:
        """An unmarked chunk with a new id: the task's only message that may have drifted to it.

        The provider's id comes on the first chunk and LangChain's own after it, or the other way round.
        """
        near = {id(lane): lane for lane in self._lanes.values() if lane.task == task}
        drifting = [lane for lane in near.values() if (lane.mark is None) == (own is not None)]
        return drifting[0] if len(drifting) == len(near) == 1 else None

    def _pieces(self, lane: Lane, content: Any, extra: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        for piece in pieces(content, extra):
            match piece.kind:
                case "text":
                    events += self._blocks.text(lane.id, piece.text, owner=lane.owner, metadata=lane.noted)
                case "thought":
                    events += self._think(lane, piece)
                case "sealed":
                    events += self._seal(lane, piece)
                case "sealed-text":
                    events += self._blocks.text(lane.id, "", owner=lane.owner, metadata=lane.noted)
                    events += self._blocks.encrypted(lane.id, piece.text, owner=lane.owner)
                case "other":
                    events += self._carry(lane, piece.block)
                case _:
                    pass  # sealed calls wait until the calls are told
        return events

    def _think(self, lane: Lane, piece: Piece) -> list[Event]:
        if not piece.text:
            return []
        events: list[Event] = []
        thought = lane.thought
        if (
            thought is None
            or piece.slot != lane.slot
            or (lane.begun and not self._blocks.is_open_reasoning(thought))
        ):
            events += [] if thought is None else self._blocks.close_reasoning(thought)
            thought = lane.begin_thought(piece.slot)
        lane.begun = True
        return events + self._thought(lane, thought, piece.text)

    def _thought(self, lane: Lane, thought: str, text: str) -> list[Event]:
        self._places[thought] = self._places.get(lane.id, "")
        return self._blocks.reasoning(
            thought, text, message_id=lane.id, owner=lane.owner, metadata=lane.noted
        )

    def _seal(self, lane: Lane, piece: Piece) -> list[Event]:
        """A provider's signature belongs to the thought of its block, which may be empty (redacted) or over."""
        thought = lane.thought
        if thought is None or piece.slot != lane.slot:
            thought = lane.begin_thought(piece.slot)
        events: list[Event] = []
        if not lane.begun:
            lane.begun = True
            events += self._thought(lane, thought, "")
        lane.sealed += piece.text
        return events + self._blocks.encrypted(thought, lane.sealed, owner=lane.owner)

    def _seals(self, lane: Lane, extra: Mapping[str, Any]) -> list[Event]:
        if not extra:
            return []
        return [
            event
            for piece in pieces("", extra)
            if piece.kind == "sealed-call" and piece.slot in lane.calls
            for event in self._blocks.encrypted(
                str(piece.slot), piece.text, subtype="tool-call", owner=lane.owner
            )
        ]

    def _carry(self, lane: Lane, block: Any) -> list[Event]:
        """A block that messages cannot hold travels beside them, bounded."""
        value = {"messageId": lane.id, "block": plain(block)}
        return [CustomEvent(name="langgraph.content_block", value=value, **self._tags(lane.owner))]

    # ------------------------------------------------------------ tool calls

    def _calls(self, lane: Lane, entries: Any, meta: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        for entry in entries or ():
            call = lane.call_for(entry)
            events += self._open_call(lane, call, meta)
            if call.told and call.held:
                events += self._blocks.args(call.id, call.take())
        return events

    def _open_call(
        self, lane: Lane, call: Call, meta: Mapping[str, Any], *, last: bool = False
    ) -> list[Event]:
        if call.told or not ((call.name and call.id) or last):
            return []
        call.told = True
        call.id = call.id or f"{lane.id}:call:{len(lane.calls)}"
        self._results.announced(lane.calls, call.id)
        noted = None if self._blocks.is_open(lane.id) else lane.noted
        events = self._blocks.call(call.id, call.name, message_id=lane.id, owner=lane.owner, metadata=noted)
        predicted = self._options.predictions(call.name, meta)
        if predicted:
            events.append(CustomEvent(name="PredictState", value=predicted, **self._tags(lane.owner)))
        return events

    # --------------------------------------------------------------- closing

    def close(self, lane: Lane, *, broken: str | None = None) -> list[Event]:
        """The model is done with this message (or broke: `broken` names why)."""
        events: list[Event] = []
        for call in lane.open_calls():
            events += self._open_call(lane, call, {}, last=True)
            left = call.take() or ("" if call.spoke else "{}")
            events += self._blocks.args(call.id, left)
        if broken is None and not (lane.calls or lane.again or self._blocks.is_open(lane.id)):
            # an empty message is one, in the state
            events += self._blocks.text(lane.id, "", owner=lane.owner, metadata=lane.noted)
        facts = note(finish_reason=lane.finish_reason, model=lane.model, usage=lane.usage, discarded=broken)
        events += self._blocks.close_message(lane.id, metadata=facts)
        for raw in [raw for raw, held in self._lanes.items() if held is lane]:
            del self._lanes[raw]
        return events

    def broke(self, run_id: str, reason: str) -> list[Event]:
        """A model run raised: what it said so far stays, marked, and is not in the graph's state."""
        lane = self._lanes.get(RUN_PREFIX + run_id)
        return [] if lane is None else self.close(lane, broken=reason)

    def ended(self, run_id: str, message: Any, task: str) -> None:
        """A model run gave its final message, whose id the state will hold."""
        public = self._public.get(RUN_PREFIX + run_id) or self._public.get(message.id)
        self._finals.setdefault(task, []).append((public or message.id, message))
        if public is None:
            return
        self._public[message.id] = public
        if message.id != public:
            self.aliases[public] = message.id

    def task_over(self, task: str, *, whole: bool = True) -> list[Event]:
        """No model of this task says any more; `whole` tells whether the task came to its own end."""
        events: list[Event] = []
        for lane in {id(lane): lane for lane in self._lanes.values() if task in lane.task}.values():
            events += self.close(lane, broken=None if whole else "interrupted")
        for place in [place for place in self._over if task in place]:
            del self._over[place]
        for key in [key for key in self._finals if task in key]:
            finals, place = self._finals.pop(key), key.rpartition(SEPARATOR)[0]
            if whole and task not in place:
                self._over.setdefault(place, []).extend(finals)
        return events

    # -------------------------------------------------------- whole messages

    def whole(self, message: Any, meta: Mapping[str, Any], owner: str | None) -> list[Event]:
        """A message that came in one: a model that does not stream, a node's own, a tool's answer."""
        kind = message.type
        if kind in ("tool", "function"):
            return self._results.add(message, owner, self._said_at(message.id, meta))
        if kind == "ai":
            return self._spoken(message, meta, owner)
        role = ROLES.get(kind if kind != "chat" else str(message.role), "assistant")
        if message.id in self._public or (role == "system" and not self._options.system_messages):
            return []
        self._public[message.id] = message.id
        lane = Lane(message.id, None, "", owner)
        lane.noted = self._said_at(message.id, meta)
        events = self._blocks.text(
            lane.id, "", role=role, name=message.name, owner=owner, metadata=lane.noted
        )
        events += self._pieces(lane, message.content, {})
        return events + self._blocks.close_text(lane.id)

    def catch_up(
        self, messages: Sequence[Any], place: str, owner: str | None, *, commit: bool = False
    ) -> list[Event]:
        """Messages that a graph's state came to hold after a step, so far as no part told of them.

        LangGraph streams the message objects a node gives back; what it gives in another form (a string, a pair, a
        dict) becomes a message, and gets its id, in the reducer. `place` is the graph's namespace; `commit` lets
        waiting results out before whatever follows them.
        """
        finals = self._over.pop(place, [])
        if not messages:
            return []
        held = {message.id for message in messages}
        twins = [(public, final) for public, final in finals if final.id not in held]
        events: list[Event] = []
        for message in messages:
            if commit and message.type not in ("tool", "function"):
                events += self._results.commit()
            if message.id in self._public or message.id in self._hushed:
                continue
            if message.type == "ai" and self._kept_as(message, twins):
                continue
            named = self._named(message)
            events += [] if named is None else self.whole(named, {}, owner)
        return events

    def _named(self, message: Any) -> Any:
        """The message under an id. A reducer of one's own may give none: what the agent says is told all the same."""
        if message.id is not None or message.type != "ai":
            return None if message.id is None else message
        self._nameless += 1
        return message.model_copy(update={"id": f"{self._run_id}:said:{self._nameless}"})

    def hush(self, raw: str | None) -> None:
        """This message is not to be told, though a state may come to hold it."""
        self._hushed.add(raw)

    def _spoken(self, message: Any, meta: Mapping[str, Any], owner: str | None) -> list[Event]:
        if message.id in self._public:
            return []
        task = str(meta.get("langgraph_checkpoint_ns", ""))
        if self._kept_as(message, self._finals.get(task, ())):
            return []
        mark = meta.get(RUN_MARK)
        lane = Lane(message.id, mark, task, owner)
        lane.noted = self._said_at(message.id, meta)
        self._public[message.id] = lane.id
        if mark:
            self._public[RUN_PREFIX + mark] = lane.id
        lane.learn(message)
        events = self._pieces(lane, message.content, message.additional_kwargs)
        events += self._calls(lane, _entries(message), meta)
        events += self._seals(lane, message.additional_kwargs)
        return events + self.close(lane)

    def _kept_as(self, message: Any, finals: Iterable[tuple[str, Any]]) -> bool:
        """Whether a told message was kept as this one, under another id: same words, same calls."""
        for public, final in finals:
            told = self._public.get(public) == public
            if told and message.id and public not in self.aliases and same_words(final, message):
                self.aliases[public] = message.id
                self._public[message.id] = public
                return True
        return False

    def public_id(self, raw: str) -> str:
        """The id the client knows this message by."""
        return self._public.get(raw, raw)

    def _tags(self, owner: str | None) -> dict[str, Any]:
        tags: dict[str, Any] = {} if owner is None else {"subagent_run_id": owner}
        if self._clock is not None:
            tags["timestamp"] = self._clock()
        return tags


def same_words(one: Any, other: Any) -> bool:
    """Whether two AIMessages say and ask the same."""
    return text_of(one.content) == text_of(other.content) and one.tool_calls == other.tool_calls


def _entries(message: Any) -> list[dict[str, Any]]:
    """A whole message's calls as if they had been streamed in one chunk."""
    calls = [(call, json.dumps(plain(call["args"]), ensure_ascii=False)) for call in message.tool_calls]
    calls += [(call, call["args"] or "") for call in message.invalid_tool_calls]
    return [
        {"name": call["name"], "args": args, "id": call["id"], "index": at}
        for at, (call, args) in enumerate(calls)
    ]
