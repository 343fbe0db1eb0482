"""One LangGraph run as AG-UI events.

Reads the parts of a single `graph.astream(stream_mode=STREAM_MODES, subgraphs=True, version="v2")`, and the asides
of the callbacks that ride along. Pure: no waiting, no clock, no ids of its own. It decides what a part means and
leaves each matter to the object that knows it: `Speech` (models), `Results` (tools), `Steps` (tasks), `Scopes`
(subagents), `StateView` (channels), `Pending` (interrupts), `OpenBlocks` (what is open).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ag_ui.core import (
    CustomEvent,
    Event,
    Message,
    MessagesSnapshotEvent,
    RawEvent,
    RunAgentInput,
    ToolCallResultEvent,
)

from runcast.adapters.blocks import Clock, OpenBlocks
from runcast.adapters.errors import failure
from runcast.adapters.frame import RunFrame, RunIds, note
from runcast.adapters.langgraph.activity import activity_event
from runcast.adapters.langgraph.encode import Encoder, is_dict, listed, mapped, plain
from runcast.adapters.langgraph.interrupts import Pending
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.parts import (
    SEPARATOR,
    Aside,
    Namespace,
    decode,
    messages_of,
    named_in,
    path_of,
    task_of,
)
from runcast.adapters.langgraph.places import UNKNOWN, Progress
from runcast.adapters.langgraph.speech import Speech
from runcast.adapters.langgraph.state import StateView, as_mapping
from runcast.adapters.langgraph.steps import Steps, decision
from runcast.adapters.langgraph.subagents import Scopes
from runcast.adapters.langgraph.tools import Results
from runcast.adapters.langgraph.transcript import Transcript
from runcast.adapters.shown import Shown

# What to ask `astream` for; `checkpoints` beside them where the graph has a checkpointer.
STREAM_MODES = ("messages", "tools", "updates", "tasks", "custom", "values")
CHECKPOINTS = "checkpoints"  # asked for beside them where the graph has a checkpointer

CODES: Mapping[str, str] = {
    "GraphRecursionError": "recursion_limit",
    "NodeTimeoutError": "timeout",
    "NodeCancelledError": "cancelled",
    "InvalidUpdateError": "graph_error",
    "EmptyInputError": "invalid_input",
    "UnknownInterruptError": "invalid_input",
}


class LangGraphTranslator:
    """One run's translation. `known` and `aliases` say which messages the client already holds, and under which ids."""

    def __init__(
        self,
        ids: RunIds,
        *,
        agent: str = "agent",
        input: RunAgentInput | None = None,
        options: LangGraphOptions | None = None,
        state_keys: Collection[str] | None = None,
        raw: bool = False,
        known: Collection[str] = (),
        aliases: Mapping[str, str] | None = None,
        resumed_from: str | None = None,
        to_messages: Callable[[Sequence[Any]], list[Message]] | None = None,
        clock: Clock | None = None,
        shown: Sequence[Message] | None = None,
        gone: Collection[str] = (),
        instead: Sequence[Message] = (),
    ) -> None:
        """`shown` is what a client shows when the run begins (None: nobody knows), of which `gone` is taken back.

        `instead` are messages as the graph has them: of what is shown in part, or not at all.
        """
        self._options = options or LangGraphOptions()
        self._shown = None if shown is None else Shown(shown)
        self._corrections = (gone, instead)
        self.asides: list[Aside] = []  # told outside the stream: taken up with the next part
        self._agent = agent
        self._raw = Encoder(max_nodes=self._options.max_raw_nodes) if raw else None
        self._resumed_from = resumed_from
        self._to_messages = to_messages
        self._clock = clock
        key = self._options.messages_key
        self._blocks = OpenBlocks(clock=clock)
        self._frame = RunFrame(ids, input=input, clock=clock)
        self._results = Results(self._blocks, answered=known)
        self._progress = Progress()
        self._speech = Speech(
            self._blocks,
            self._results,
            self._options,
            known=known,
            aliases=aliases,
            run_id=ids.run_id,
            clock=clock,
            progress=self._progress,
        )
        self._steps = Steps(self._blocks, messages_key=key)
        self._scopes = Scopes(self._blocks, subagents=self._options.subagents)
        self._state = StateView(
            keys=state_keys, without=(key,), client_has_state=bool(input and input.state), clock=clock
        )
        self._pending = Pending()
        self._transcript = Transcript()
        self._inner: dict[Namespace, Transcript] = {}  # the conversations of graphs inside this one
        self._named: set[str] = (
            set()
        )  # ids that nodes gave to messages they wrote as dicts, since the last values
        self._checkpoint: str | None = None
        self._result: Any = None
        self._feeds = self._by_type()

    def _by_type(self) -> Mapping[str, Callable[[Any, Namespace], list[Event]]]:
        return {
            "messages": self._messages,
            "tasks": self._tasks,
            "updates": self._updates,
            "values": self._values,
            "custom": self._custom,
            "tools": self._tools,
            "checkpoints": self._checkpoints,
            "llm_end": self._llm_end,
            "llm_error": self._llm_error,
            "retry": self._retry,
            "custom_event": self._custom_event,
        }

    # ------------------------------------------------------------- Translator

    def start(self) -> list[Event]:
        """RUN_STARTED, and what an attempt that broke off must not leave standing."""
        events = self._frame.started(
            metadata=note(framework="langgraph", agent=self._agent, resumed_from=self._resumed_from)
        )
        gone, instead = self._corrections
        if self._shown is not None and (gone or instead):
            events += self._restated(self._shown, gone, instead)
        return self._showing(events)

    def feed(self, part: Any) -> list[Event]:
        """One part of the stream, or one aside."""
        if self.asides:
            return self._take_asides() + self.feed(part)
        if is_dict(part) and part["type"] == "messages" and self._raw is None:  # nearly every part
            events = self._messages(part["data"], part["ns"])
        else:
            events = self._translated(part)
        if self._shown is not None:
            self._shown.feed(events)
        return events

    def _showing(self, events: list[Event]) -> list[Event]:
        """These go to the client next."""
        if self._shown is not None:
            self._shown.feed(events)
        return events

    def _restated(self, shown: Shown, gone: Collection[str], instead: Sequence[Message] = ()) -> list[Event]:
        """Take back what a broken attempt said."""
        now = self._tags(None)
        events = shown.restate(gone, instead)
        return [event.model_copy(update=now) for event in events] if now else events

    def _translated(self, part: Any) -> list[Event]:
        events: list[Event] = []
        part = decode(part)
        feed = self._feeds.get(part["type"])
        if feed is not None:
            events += feed(part["data"], part["ns"])
        if self._raw is not None:
            events.append(RawEvent(event=self._raw(dict(part)), source="langgraph", **self._tags(None)))
        return events

    def _take_asides(self) -> list[Event]:
        """Each is told before the next: one that takes back has to know all that was said before it."""
        asides, self.asides[:] = list(self.asides), []
        return [event for aside in asides for event in self._showing(self._feeds[aside.type](aside.data, ()))]

    def finish(self) -> list[Event]:
        """The graph ended, or waits for answers."""
        events = self._take_asides()
        if self._pending:
            return events + self._interrupted()
        events += self._results.commit()
        events += self._steps.decided((), stop_reason="completed")
        events += self._blocks.close_all()
        return events + self._frame.succeeded(
            pending=self._unanswered(), result=self._result, metadata=self._facts(self._steps.decision)
        )

    def fail(self, error: BaseException) -> list[Event]:
        """The graph raised."""
        told = failure(error, codes=CODES)
        if type(error).__name__ == "GraphDrained":  # a soft stop came through: that is no failure
            return self.cancel()
        events = self._steps.decided((), stop_reason="error")
        torn = note(discarded="error")
        events += self._blocks.close_all(error=told.message, code=told.code, metadata=torn)
        return events + self._frame.failed(told, metadata=self._facts(decision(False, "error")))

    def cancel(self) -> list[Event]:
        """Somebody stopped the run."""
        events = self._steps.decided((), stop_reason="cancelled")
        events += self._blocks.close_all(metadata=note(discarded="cancelled"))
        said = decision(False, "cancelled") | {"resolved_by": "user"}
        return events + self._frame.cancelled(metadata=self._facts(said))

    def _interrupted(self) -> list[Event]:
        interrupts = self._pending.interrupts(self._checkpoint, self._transcript.open_calls())
        events = self._steps.decided((), stop_reason="interrupted")
        events += self._blocks.close_all()
        said = decision(False, "interrupted") | {"resolved_by": "interrupt"}
        return events + self._frame.interrupted(interrupts, metadata=self._facts(said))

    def _unanswered(self) -> list[str]:
        """Calls for the client to answer: those the state holds unanswered. Without a conversation, all."""
        if self._transcript.messages is None:
            return self._results.open()
        return [str(call["id"]) for call in self._transcript.open_calls()]

    def _facts(self, said: Mapping[str, Any] | None) -> dict[str, Any] | None:
        framework = {"checkpoint_id": self._checkpoint, "aliases": self._speech.aliases or None}
        kept = {key: value for key, value in framework.items() if value is not None}
        return note(step_count=self._steps.count, framework=kept, continuation=said)

    # ------------------------------------------------------------------ parts

    def _messages(self, data: Any, ns: Namespace) -> list[Event]:
        message, meta = data
        if not ns:
            owner = None
        else:
            scope = self._scopes.scope(ns)
            if scope.hidden:
                self._speech.hush(message.id)
                return []
            owner = scope.owner
        if message.type == "AIMessageChunk":
            return self._speech.chunk(message, meta, owner)
        if message.type == "tool" and message.status == "error":
            self._steps.erred(task_of(str(meta.get("langgraph_checkpoint_ns", ""))))
        if message.type == "remove":
            return []  # the next root values show it gone
        return self._speech.whole(message, meta, owner)

    def _tasks(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        if "triggers" in data or "input" in data:
            return self._task_started(data, ns)
        return self._task_ended(data, ns)

    def _task_started(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        events = self._scopes.task_started(data, ns)
        scope = self._scopes.scope(ns)
        self._conversation_of(ns).begins(messages_of(data.get("input"), self._options.messages_key))
        if ns and not scope.begun:
            return events  # a subgraph's inner nodes are no steps of the run
        return events + self._steps.started(data, scope.owner)

    def _task_ended(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        task_id = str(data["id"])
        error = data.get("error")
        interrupts = [str(each["id"]) for each in data.get("interrupts") or ()]
        self._pending.raised_in(
            interrupts, call_id=self._scopes.call_of(task_id), owner=self._scopes.scope(ns).owner
        )
        events = self._speech.task_over(task_id, whole=error is None and not interrupts)
        events += self._scopes.task_over(task_id, error=_as_error(error), interrupts=interrupts)
        self._forget_inside(task_id)
        if error is None and not interrupts:
            self._progress.done(ns, task_id)
        return events + self._steps.finished(task_id, str(data["name"]), failed=error is not None)

    def _conversation_of(self, ns: Namespace) -> Transcript:
        return self._inner.setdefault(ns, Transcript()) if ns else self._transcript

    def _forget_inside(self, task_id: str) -> None:
        for ns in [ns for ns in self._inner if task_id in path_of(ns)[0]]:
            del self._inner[ns]

    def _updates(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        if ns:
            return []
        if "__interrupt__" in data:
            self._pending.asked(data["__interrupt__"])
            return []
        events: list[Event] = []
        cached = bool(mapped(data.get("__metadata__")).get("cached"))
        for node, update in data.items():
            if node == "__metadata__":
                continue
            for each in listed(update) or [update]:
                self._state.written(each)
                self._named |= named_in((as_mapping(each) or {}).get(self._options.messages_key))
                events += self._from_before(each) if cached else []
            events += self._steps.cached(node) if cached else []
        return events

    def _from_before(self, update: Any) -> list[Event]:
        """Messages of a task that had finished before the run was interrupted: its results were held back then."""
        written = (as_mapping(update) or {}).get(self._options.messages_key)
        return [
            event
            for message in listed(written) or [written]
            if hasattr(message, "type") and message.type != "remove"
            for event in self._speech.whole(message, {}, None)
        ]

    def _values(self, data: Any, ns: Namespace) -> list[Event]:
        if ns:
            return self._inner_values(data, ns)
        state = as_mapping(data)
        if state is None:
            self._result = plain(data)  # a functional graph's own return value
            return []
        events: list[Event] = []
        messages = messages_of(data, self._options.messages_key)
        if messages is not None:
            events += self._conversation(messages)
        else:
            self._transcript.begins([] if state.get(self._options.messages_key) is None else None)
            events += [] if self._pending else self._results.commit()
        if not self._pending:  # else the step is shown again, with what its other tasks gave
            self._named.clear()
        return events + self._state.values(data)

    def _inner_values(self, data: Any, ns: Namespace) -> list[Event]:
        """A graph inside this one made a step. Its state is not shown; what its nodes said is."""
        messages = messages_of(data, self._options.messages_key)
        if messages is None:
            return []
        conversation, scope = self._conversation_of(ns), self._scopes.scope(ns)
        conversation.values(messages)
        if scope.hidden:
            for message in conversation.news:
                self._speech.hush(message.id)
            return []
        return self._speech.catch_up(conversation.news, SEPARATOR.join(ns), scope.owner)

    def _conversation(self, messages: list[Any]) -> list[Event]:
        first = self._transcript.messages is None
        rewritten = self._transcript.values(messages)
        if first:
            self._results.seed(str(call["id"]) for call in self._transcript.open_calls())
        events = self._caught_up(self._transcript.news)
        if first:
            return events
        events += [] if self._pending else self._results.commit()
        if rewritten and self._to_messages is not None and self._options.snapshot_on_rewrite:
            events.append(self._messages_snapshot(messages))
        return events

    def _caught_up(self, news: list[Any]) -> list[Event]:
        """What a step left untold. Of one that asks, only what nodes gave ids to: the others get new ones later."""
        if self._pending:
            return self._speech.catch_up([each for each in news if each.id in self._named], "", None)
        return self._speech.catch_up(news, "", None, commit=True)

    def _messages_snapshot(self, messages: list[Any]) -> Event:
        assert self._to_messages is not None
        shown: list[Message] = []
        for message in self._to_messages(messages):
            message.id = self._speech.public_id(message.id)
            if message.role != "system" or self._options.system_messages:
                shown.append(message)
        return MessagesSnapshotEvent(messages=shown, **self._tags(None))

    def _checkpoints(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        self._progress.checkpoint(ns, int(mapped(data.get("metadata")).get("step", UNKNOWN)))
        if ns:
            return []
        self._checkpoint = str(data["config"]["configurable"]["checkpoint_id"])
        following = [str(node) for node in data.get("next") or ()]
        return self._steps.decided(following) if following and not self._pending else []

    def _tools(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        scope = self._scopes.scope(ns)
        call_id = str(data["tool_call_id"])
        event = data["event"]
        if scope.hidden or (event != "tool-output-delta" and self._model_asked(call_id)):
            return []  # the model's call and the ToolMessage tell it
        told = {
            key: plain(value) for key, value in data.items() if key not in ("event", "tool_call_id", "output")
        }
        value = {"toolCallId": call_id, **told}
        return [CustomEvent(name=f"langgraph.{event}", value=value, **self._tags(scope.owner))]

    def _model_asked(self, call_id: str) -> bool:
        """A model's call: its start and its ToolMessage tell the tool's life already."""
        return self._results.knows(call_id) or self._scopes.works_for(call_id)

    # ---------------------------------------------------------------- customs

    def _custom(self, data: Any, ns: Namespace) -> list[Event]:
        named = mapped(data)
        if isinstance(named.get("name"), str) and "value" in named:
            return self._told(named["name"], named["value"], ns)
        return self._told("langgraph.custom", data, ns)

    def _custom_event(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        return self._told(str(data["name"]), data["data"], ns)

    def _told(self, name: str, value: Any, ns: Namespace) -> list[Event]:
        scope = self._scopes.scope(ns)
        if scope.hidden:
            return []
        tags = self._tags(scope.owner)
        activity = activity_event(value, tags)
        return [activity or CustomEvent(name=name, value=plain(value), **tags)]

    # ----------------------------------------------------------------- asides

    def _llm_end(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        message, place = data["message"], str(data.get("checkpoint_ns") or "")
        self._count(message, data)
        if self._scopes.scope(ns).hidden:
            self._speech.hush(message.id)
            return []
        if data.get("silent"):
            return []
        self._speech.ended(str(data["run_id"]), message, place)
        self._steps.heard(task_of(place), message)
        if not ns:
            self._transcript.told(message)
        return []

    def _count(self, message: Any, data: Mapping[str, Any]) -> None:
        usage, facts = mapped(message.usage_metadata), mapped(message.response_metadata)
        if not usage:
            return
        into, out = mapped(usage.get("input_token_details")), mapped(usage.get("output_token_details"))
        self._frame.usage.add(
            provider=facts.get("model_provider") or data.get("provider"),
            model=facts.get("model_name") or facts.get("model") or data.get("model"),
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            total_tokens=usage.get("total_tokens"),
            reasoning_tokens=out.get("reasoning"),
            cached_input_tokens=into.get("cache_read"),
            cache_write_input_tokens=into.get("cache_creation"),
        )

    def _llm_error(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        return self._speech.broke(str(data["run_id"]), "model_error")

    def _retry(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        task_id = str(data["task_id"])
        self._forget_inside(task_id)
        events = self._speech.task_over(task_id, whole=False)
        gone = self._speech.said_in(task_id)
        if gone and self._shown is not None:
            events += self._restated(self._shown, gone)
            calls = [event.tool_call_id for event in events if isinstance(event, ToolCallResultEvent)]
            self._results.forget(gone, calls)
            self._speech.forget(gone)
        return events + self._steps.retried(task_id)

    def _tags(self, owner: str | None) -> dict[str, Any]:
        tags: dict[str, Any] = {} if owner is None else {"subagent_run_id": owner}
        if self._clock is not None:
            tags["timestamp"] = self._clock()
        return tags


def _as_error(error: Any) -> BaseException | None:
    """A failed task's error: the exception itself, or its text where the graph ran elsewhere."""
    if error is None or isinstance(error, BaseException):
        return error
    return RuntimeError(str(error))
