"""The messages of a run's models and nodes: which chunk belongs to which message, and under which id.

A run may have many messages open at once (branches, fan-out, two models in one node). They never mix, because a chunk's
message is found by the model run that the chunk belongs to. Rules:

1. Every content block and every entry of `tool_call_chunks` is read, in the first and the last chunk too;
   `finish_reason` decides nothing.
2. The first id of a message is its public id for good. The provider's id may come later: it is an alias.
3. A message ends with `chunk_position == "last"`, when its model run fails, or when its task is over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ag_ui.core import Event, Message

from runcast.adapters.langgraph.content.answer import answer_of
from runcast.adapters.langgraph.content.message_content import streamed_calls
from runcast.adapters.langgraph.stream.open_message import Emission, OpenMessage
from runcast.adapters.langgraph.stream.parts import RUN_MARK, SEPARATOR, Namespaces, is_withheld, source_of
from runcast.adapters.langgraph.stream.positions import UNKNOWN, Progress, place_of
from runcast.adapters.open_blocks import Meta
from runcast.adapters.usage import counted
from runcast.slim.folding.run_metadata import PLACE_KEY

RUN_PREFIX = "lc_run--"  # LangChain's id for a message that has none of its provider (yet)
ROLES: Mapping[str, Any] = {
    "ai": "assistant",
    "human": "user",
    "system": "system",
    "developer": "developer",
    "assistant": "assistant",
    "user": "user",
}


class ModelOutput:
    """Messages of one run. `aliases` maps a public id to the id in the graph's state."""

    def __init__(
        self,
        emission: Emission,
        *,
        known: Collection[str] = (),
        aliases: Mapping[str, str] | None = None,
        run_id: str = "",
        progress: Progress | None = None,
        namespaces: Namespaces | None = None,
        take_back: Callable[[Collection[str]], list[Event]] = lambda gone: [],
    ) -> None:
        """`take_back` returns the events that remove messages from the client's view, if it is known."""
        self.aliases: dict[str, str] = {}
        self._emission = emission
        self._run_id = run_id  # names messages that have no id
        self._unnamed = 0
        self._open: dict[str, OpenMessage] = {}  # every raw id and run id seen -> its message
        self._public: dict[str, str] = {
            each: each for each in known
        }  # raw id -> public id, of emitted messages
        self._public.update((raw, public) for public, raw in (aliases or {}).items())
        self._finals: dict[
            str, list[tuple[str, Any]]
        ] = {}  # task -> (public id, final message) of its models
        self._ended: dict[
            str, list[tuple[str, Any]]
        ] = {}  # the same of tasks that ended, by graph, for a step
        self._hidden: set[str | None] = set()  # ids of messages that must not be emitted
        self._take_back = take_back
        self._failed: dict[str, list[str]] = {}  # task -> ids of what its failed model runs emitted
        self.held: set[str | None] = set()  # ids of messages that wait until the graph has rewritten them
        self._progress = progress or Progress()
        self._namespaces = namespaces or Namespaces()
        self.handed: set[str] = set()  # ids of messages that people gave the run while it ran
        self._places: dict[str, str] = {}  # public id of what this run emitted -> the place that emitted it
        # the root agent's messages that no state of the root has held yet -> their reasoning
        self._loose: dict[str, list[str]] = {}

    # ---------------------------------------------------------------- chunks

    def token(self, message: Any) -> Event | None:
        """The event of a chunk that only adds text to the open text of a message; None for any other."""
        if message.type != "AIMessageChunk":
            return None
        fields = message.__dict__  # a token has seven fields to look at: this is the cheapest way to them
        it, text = self._open.get(fields["id"]), fields["content"]
        if it is None or type(text) is not str or not text:
            return None
        if fields["chunk_position"] is not None or fields["additional_kwargs"] or fields["tool_call_chunks"]:
            return None
        if fields["usage_metadata"] or fields["response_metadata"]:
            return None
        return self._emission.blocks.growth(it.id, text)

    def chunk(self, message: Any, meta: Mapping[str, Any], owner: str | None) -> list[Event]:
        """One AIMessageChunk."""
        it = self._open.get(message.id)
        if it is None:
            return self._first_chunk(message, meta, owner)
        events = it.content(message.content, message.additional_kwargs)
        events += it.calls(message.tool_call_chunks, message.additional_kwargs, meta)
        if message.usage_metadata or message.response_metadata:
            it.learn(message)
            events = counted(events, (it.usage or {}).get("completion"))
        if message.chunk_position == "last":
            events = events + self._close(it)
        return events

    def _first_chunk(self, message: Any, meta: Mapping[str, Any], owner: str | None) -> list[Event]:
        """A chunk with a new id. Models that middleware calls for itself are not shown."""
        if source_of(meta) is not None:
            self.hide(message.id)
            return []
        if is_withheld(meta):
            return []  # shown when the state holds it
        if self._waits(meta):
            self.held.update((message.id, RUN_PREFIX + str(meta.get(RUN_MARK))))
            return []
        events = self._superseded(self._task(meta))
        self._message_of(message.id, message, meta, owner)
        return events + self.chunk(message, meta, owner)

    def _waits(self, meta: Mapping[str, Any]) -> bool:
        """Whether this node's messages are held until the graph has rewritten them."""
        node, held = meta.get("langgraph_node"), self._emission.options.hold_text_of
        return bool(held) and (node in held or f"{meta.get('lc_agent_name')}/{node}" in held)

    def _message_of(self, raw: str, message: Any, meta: Mapping[str, Any], owner: str | None) -> OpenMessage:
        """The message of a chunk with a new id, or a new one."""
        own = raw.removeprefix(RUN_PREFIX) if raw.startswith(RUN_PREFIX) else None
        mark = own or meta.get(RUN_MARK)
        task = self._task(meta)
        found = self._open.get(RUN_PREFIX + mark) if mark else None
        if found is None and RUN_MARK not in meta:
            found = self._drifted(task, own)
        if found is None:
            found = self._new(raw, meta, owner, mark=mark, task=task, name=_name_of(message, meta))
        elif own is None:
            self.aliases[found.id] = raw
        if mark:
            found.mark = mark
            self._open[RUN_PREFIX + mark] = found
            self._public[RUN_PREFIX + mark] = found.id
        self._open[raw] = found
        self._public[raw] = self._public[found.id] = found.id
        return found

    def _new(self, raw: str, meta: Mapping[str, Any], owner: str | None, **fields: Any) -> OpenMessage:
        made = OpenMessage(self._emission, raw, owner=owner, known=raw in self._public, **fields)
        made.start = self._note_place(raw, meta, owner)
        return made

    def _task(self, meta: Mapping[str, Any]) -> str:
        """The full path of the node that a message belongs to."""
        return self._namespaces.full_place(str(meta.get("langgraph_checkpoint_ns", "")))

    def _drifted(self, task: str, own: str | None) -> OpenMessage | None:
        """An unmarked chunk with a new id: the task's only message whose id may have drifted to it.

        The provider's id comes on the first chunk and LangChain's own after it, or the other way round.
        """
        near = {id(each): each for each in self._open.values() if each.task == task}
        drifting = [each for each in near.values() if (each.mark is None) == (own is not None)]
        return drifting[0] if len(drifting) == len(near) == 1 else None

    # ---------------------------------------------------------------- places

    def begins(self, shown: Sequence[Message]) -> None:
        """What the client shows at the start: of its latest turn, an interrupted step may not have been stored."""
        for message in reversed(shown):
            place = place_of(message)
            if message.role == "user" and place is None:  # one with a place is a node's
                break
            if place is not None and getattr(message, "subagent_run_id", None) is None:
                self._loose[message.id] = []

    def _note_place(self, message_id: str, meta: Mapping[str, Any], owner: str | None) -> Meta | None:
        """Remember which place emits a message; as metadata, if the place means something after the run."""
        namespace = self._task(meta)
        if ":" not in namespace or message_id in self.handed:
            return None
        place = self._progress.place(namespace, meta.get("langgraph_step", UNKNOWN))
        self._places[message_id] = place
        if owner is None:
            self._loose[message_id] = []
        return {PLACE_KEY: place} if self._progress.stored else None

    def emitted_in(self, task_id: str) -> list[str]:
        """Ids of messages, reasoning and results of a task's failed attempt, which the next attempt repeats."""
        return [key for key, place in self._places.items() if self._progress.again(place, task_id)]

    def unkept(self, news: Sequence[Any], state: Sequence[Any]) -> list[str]:
        """What the root agent emitted in the steps so far and the root's state does not hold, with its reasoning."""
        if not self._loose:
            return []
        held: set[str | None] = {self.public_id(each.id) for each in news}
        if self._loose.keys() - held:
            held.update(self.public_id(each.id) for each in state)
        gone = [
            key for found, reasons in self._loose.items() if found not in held for key in (*reasons, found)
        ]
        self._loose.clear()
        return [] if None in held else gone  # a reducer that gives no ids: nothing can be found in the state

    def taken_back(self, gone: Collection[str]) -> list[Event]:
        """Take messages back, if the client's view is known: under the same ids they are new."""
        events = self._take_back(gone) if gone else []
        if events:
            self._forget(gone)
        return events

    def _forget(self, gone: Collection[str]) -> None:
        for key in gone:
            self._places.pop(key, None)
            self._loose.pop(key, None)
        for task, failed in self._failed.items():
            self._failed[task] = [key for key in failed if key not in gone]
        for raw in [raw for raw, public in self._public.items() if public in gone]:
            del self._public[raw]

    # --------------------------------------------------------------- closing

    def _close(self, it: OpenMessage, *, broken: str | None = None) -> list[Event]:
        if it.reasoning is not None:
            self._places.update(dict.fromkeys(it.reasoning_ids(), self._places.get(it.id, "")))
            if it.id in self._loose:
                self._loose[it.id] = it.reasoning_ids()
        for raw in [raw for raw, held in self._open.items() if held is it]:
            del self._open[raw]
        return it.close(broken=broken)

    def failed(self, run_id: str, reason: str) -> list[Event]:
        """A model run raised: its message is marked as discarded, and taken back if the task goes on without it."""
        it = self._open.get(RUN_PREFIX + run_id)
        if it is None:
            return []
        self._failed.setdefault(it.task, []).extend((it.id, *it.reasoning_ids()))
        return self._close(it, broken=reason)

    def _superseded(self, task: str) -> list[Event]:
        """Take back what failed model runs of this task emitted: the next attempt emits its own."""
        gone = self._failed.pop(task, None)
        return [] if gone is None else self.taken_back(gone)

    def ended(self, run_id: str, message: Any, task: str) -> None:
        """A model run returned its final message, which has the id that the state will hold."""
        if RUN_PREFIX + run_id in self.held:
            self.held.add(message.id)
        task = self._namespaces.full_place(task)
        public = self._public.get(RUN_PREFIX + run_id) or self._public.get(message.id)
        self._finals.setdefault(task, []).append((public or message.id, message))
        if public is None:
            return
        self._public[message.id] = public
        if message.id != public:
            self.aliases[public] = message.id

    def task_over(self, task: str, *, whole: bool = True) -> list[Event]:
        """No model of this task emits any more; `whole` if the task was not interrupted and did not fail."""
        events: list[Event] = []
        for it in {id(each): each for each in self._open.values() if task in each.task}.values():
            events += self._close(it, broken=None if whole else "interrupted")
        for place in [place for place in self._failed if task in place]:
            events += self._superseded(place) if whole else []
        for place in [place for place in self._ended if task in place]:
            del self._ended[place]
        for key in [key for key in self._finals if task in key]:
            finals, place = self._finals.pop(key), key.rpartition(SEPARATOR)[0]
            if whole and task not in place:
                self._ended.setdefault(place, []).extend(finals)
        return events

    # -------------------------------------------------------- whole messages

    def whole(self, message: Any, meta: Mapping[str, Any], owner: str | None) -> list[Event]:
        """A message in one piece: of a model that does not stream, of a node itself, or a tool's result."""
        kind = message.type
        if kind in ("tool", "function"):
            if self.held and not self._emission.results.knows(str(message.tool_call_id), owner):
                return []  # of a call that waits with its message: the state's values bring both
            if message.id not in self._places and self._emission.results.is_shown(message.id):
                return []  # by an earlier run, as its agent's
            if owner is None and SEPARATOR in str(meta.get("langgraph_checkpoint_ns", "")):
                owner = self._emission.results.maker(message)  # a graph inside answers for its agents
            return self._emission.results.add(message, owner, self._note_place(message.id, meta, owner))
        if kind == "ai":
            return self._answer(message, meta, owner)
        role = ROLES.get(kind if kind != "chat" else str(message.role), "assistant")
        if message.id in self._public or not self.is_shown(message):
            return []
        it = self._new(message.id, meta, owner)
        self._public[message.id] = message.id
        blocks = self._emission.blocks
        events = blocks.text(it.id, "", role=role, name=message.name, owner=owner, metadata=it.start)
        events += it.content(message.content, {})
        return events + blocks.close_text(it.id)

    def _answer(self, message: Any, meta: Mapping[str, Any], owner: str | None) -> list[Event]:
        if message.id in self._public:
            return []
        if source_of(meta) is not None:
            self.hide(message.id)
            return []
        if is_withheld(meta):
            return []
        if self._waits(meta):
            self.held.add(message.id)
            return []
        task = self._task(meta)
        if self._kept_as(message, self._finals.get(task, ())):
            return []
        mark = meta.get(RUN_MARK)
        superseded = self._superseded(task)
        it = self._new(message.id, meta, owner, mark=mark, task=task, name=_name_of(message, meta))
        self._public[message.id] = it.id
        if mark:
            self._public[RUN_PREFIX + mark] = it.id
        it.learn(message)
        events = superseded + it.content(message.content, message.additional_kwargs)
        events += it.calls(streamed_calls(message), message.additional_kwargs, meta)
        return events + self._close(it)

    def catch_up(
        self, messages: Sequence[Any], place: str, owner: str | None, *, commit: bool = False
    ) -> list[Event]:
        """Messages that a graph's state holds after a step and that no part has shown.

        LangGraph streams the message objects that a node returns. What a node returns in another form (a string, a
        pair, a dict) becomes a message, and gets its id, in the reducer. `place` is the graph's namespace; `commit`
        emits waiting results before the messages that follow them.
        """
        finals = self._ended.pop(place, [])
        if not messages:
            return []
        ids = {message.id for message in messages}
        twins = [(public, final) for public, final in finals if final.id not in ids]
        events: list[Event] = []
        meta = self._progress.committed(place)
        for message in messages:
            if commit and message.type not in ("tool", "function"):
                events += self._emission.results.commit()
            if message.id in self._public or message.id in self._hidden:
                continue
            if message.type == "ai" and self._kept_as(message, twins):
                continue
            named = self._named(message)
            events += [] if named is None else self.whole(named, meta, owner)
        return events

    def _named(self, message: Any) -> Any:
        """The message under an id. A custom reducer may give none: the agent's messages are emitted all the same."""
        if message.id is not None or message.type != "ai":
            return None if message.id is None else message
        self._unnamed += 1
        return message.model_copy(update={"id": f"{self._run_id}:said:{self._unnamed}"})

    def is_shown(self, message: Any) -> bool:
        """Whether a message of a state is for clients: prompts and middleware's own messages are not."""
        if source_of(message.additional_kwargs) is not None:
            return False
        return self._emission.options.system_messages or (
            message.type != "system" and (message.type != "chat" or message.role != "system")
        )

    def hide(self, raw: str | None) -> None:
        """This message must not be emitted, though a state may come to hold it."""
        self._hidden.add(raw)

    def _kept_as(self, message: Any, finals: Iterable[tuple[str, Any]]) -> bool:
        """Whether the state keeps an emitted message as this one, under another id: same text, same calls."""
        for public, final in finals:
            emitted = self._public.get(public) == public
            if (
                emitted
                and message.id
                and public not in self.aliases
                and answer_of(final) == answer_of(message)
            ):
                self.aliases[public] = message.id
                self._public[message.id] = public
                return True
        return False

    def public_id(self, raw: str) -> str:
        """The id by which the client knows this message."""
        return self._public.get(raw, raw)

    def loose_id(self, public: str) -> str | None:
        """The graph's id of a message that no state of the root has held yet; None of any other."""
        known = (raw for raw, held in self._public.items() if held == public != raw)
        return next(known, public) if public in self._loose else None


def _name_of(message: Any, meta: Mapping[str, Any]) -> Any:
    """The name that the state's message will have: langchain's agents give their own to what their model emits."""
    return message.name or (meta.get("lc_agent_name") if meta.get("langgraph_node") == "model" else None)
