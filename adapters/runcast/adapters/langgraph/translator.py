"""One LangGraph run as AG-UI events.

Reads the parts of a single `graph.astream(stream_mode=STREAM_MODES, subgraphs=True, version="v2")`, and the asides of
the callbacks that go with it. Pure: no waiting, no clock, no ids of its own. It decides which object a part is for:
`ModelOutput` (models), `Conversations` (messages in states), `Results` (tools), `Steps` (tasks), `Scopes` (subagents),
`StateView` (channels), `Pending` (interrupts), `CustomEvents` (the application's own), `OpenBlocks` (what is open).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, ClassVar, Unpack

from ag_ui.core import Event, RawEvent, RunAgentInput

from runcast.adapters.errors import Unanswerable, failure
from runcast.adapters.langgraph.content.plain_values import Encoder, listed, plain
from runcast.adapters.langgraph.interrupts import Pending
from runcast.adapters.langgraph.options import ClientFields, ClientView, LangGraphOptions
from runcast.adapters.langgraph.stream.custom_events import CustomEvents
from runcast.adapters.langgraph.stream.graph_messages import Conversations, ToMessages
from runcast.adapters.langgraph.stream.graph_state import StateView, as_state
from runcast.adapters.langgraph.stream.model_output import ModelOutput
from runcast.adapters.langgraph.stream.open_message import Emission, usage_of
from runcast.adapters.langgraph.stream.parts import Aside, Namespace, Namespaces, decode, error_of, task_of
from runcast.adapters.langgraph.stream.positions import UNKNOWN, Progress
from runcast.adapters.langgraph.stream.shown_messages import ShownMessages, Unsettled
from runcast.adapters.langgraph.stream.steps import Steps, decision
from runcast.adapters.langgraph.stream.subagents import Scopes
from runcast.adapters.langgraph.stream.tool_results import Results
from runcast.adapters.open_blocks import Clock, OpenBlocks
from runcast.adapters.run_frame import RunFrame, RunIds
from runcast.adapters.untranslated import Guard, Report
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.values.type_guards import as_mapping, is_object

STREAM_MODES = ("messages", "tools", "updates", "tasks", "custom", "values")  # what to ask `astream` for
CHECKPOINTS = "checkpoints"  # and beside them, if the graph has a checkpointer

CODES: Mapping[str, str] = {
    "GraphRecursionError": "recursion_limit",
    "NodeTimeoutError": "timeout",
    "NodeCancelledError": "cancelled",
    "InvalidUpdateError": "graph_error",
    "EmptyInputError": "invalid_input",
    "UnknownInterruptError": "invalid_input",
}


class LangGraphTranslator:
    """One run's translation. The keyword arguments of `client` are the fields of `ClientView`."""

    def __init__(
        self,
        ids: RunIds,
        *,
        agent: str = "agent",
        input: RunAgentInput | None = None,
        options: LangGraphOptions | None = None,
        state_keys: Collection[str] | None = None,
        raw: bool = False,
        to_messages: ToMessages | None = None,
        clock: Clock | None = None,
        **client: Unpack[ClientFields],
    ) -> None:
        options = options or LangGraphOptions()
        self.asides: list[Aside] = []  # reported outside the stream; translated before the next part
        self._agent = agent
        self._client = ClientView(**client)
        self._raw = Encoder(max_nodes=options.max_raw_nodes) if raw else None
        self._frame = RunFrame(ids, input=input, clock=clock)
        self._blocks = OpenBlocks(clock=clock)
        self._guard = Guard(self._blocks, clock=clock)
        self._results = Results(self._blocks, answered=self._client.known)
        self._shown = ShownMessages(self._client.shown, self._results, clock, settled=self._client.settled)
        self._emission = Emission(
            self._blocks, self._results, options, clock, is_shown=self._shown.holds_call
        )
        self._progress = Progress()
        self._namespaces = Namespaces()
        self._output = ModelOutput(
            self._emission,
            known=self._client.known,
            aliases=self._client.aliases,
            run_id=ids.run_id,
            progress=self._progress,
            namespaces=self._namespaces,
            take_back=self._shown.take_back,
        )
        self._output.held.update(self._client.held)
        stays = [each for each in self._client.shown or () if each.id not in self._client.gone]
        self._output.begins(stays)
        self._results.begins(stays)
        self._conversations = Conversations(self._emission, self._output, to_messages, self._namespaces)
        self._conversations.opens(stays, input.messages if input else ())
        self._steps = Steps(
            self._blocks,
            messages_key=options.messages_key,
            hooks=options.middleware_steps,
            tools=options.available_tools,
        )
        self._scopes = Scopes(
            self._blocks, self._results, subagents=options.subagents, namespaces=self._namespaces
        )
        self._custom = CustomEvents(self._emission, self._scopes)
        client_has = bool(input and input.state)
        without = (options.messages_key,)
        self._state = StateView(keys=state_keys, without=without, client_has_state=client_has, clock=clock)
        self._pending = Pending()
        self._checkpoint: str | None = None
        self._result: Any = None

    def start(self) -> list[Event]:
        """RUN_STARTED, and what takes back the messages of a failed attempt."""
        events = self._frame.started(
            metadata=run_metadata(
                framework="langgraph", agent=self._agent, resumed_from=self._client.resumed_from
            )
        )
        if self._client.gone or self._client.instead:
            events += self._shown.retracted(self._client.gone, self._client.instead)
        for (
            result
        ) in self._client.results:  # a client puts a result behind its call, and a message at the end
            events += self._blocks.result(result.id, result.tool_call_id, result.content)
        events = self._shown.feed(events)
        return events + self._shown.settled(Unsettled(order=self._client.order))

    @property
    def handed(self) -> set[str]:
        """The ids of messages that people give the run while it runs; who gives them adds them."""
        return self._output.handed

    def feed(self, part: Any) -> list[Event]:
        """One part of the stream, or one aside."""
        if self.asides:
            return self._take_asides() + self.feed(part)
        self._blocks.latest.clear()
        try:
            token = self._token(part)
            if token is not None:
                self._shown.show(token)
                return [token]
            events = self._translated(part)
        except Exception as error:  # noqa: BLE001  reported
            self._state.lost()
            events = self._guard.kept(part, error)
        self._shown.feed(events)
        return events if self._conversations.unsettled is None else events + self._settled()

    def _token(self, part: Any) -> Event | None:
        """The short way of nearly every part, a piece of text that only grows its message; None sends the part the long way,
        which gives the same event."""
        if not is_object(part) or part["type"] != "messages" or self._raw is not None:
            return None
        ns = part["ns"]
        return None if ns and self._scopes.scope(ns).hidden else self._output.token(part["data"][0])

    def _settled(self) -> list[Event]:
        """Correct the client's view, where the last step of the root asks for it."""
        unsettled, self._conversations.unsettled = self._conversations.unsettled, None
        if unsettled is None:
            return []
        events = self._shown.feed(self._output.taken_back(unsettled.gone))
        return events + self._shown.settled(unsettled)

    def finish(self) -> list[Event]:
        """The graph ended, or waits for answers."""
        events = self._take_asides()
        if self._pending:
            return events + self._interrupted()
        events += self._shown.feed(self._conversations.over(self._scopes))
        events += self._settled()
        events += self._steps.decided((), stop_reason="completed")
        events += self._blocks.close_all()
        return events + self._frame.succeeded(
            pending=self._unanswered(),
            derived=self._blocks.unanswered,
            result=self._result,
            metadata=self._facts(self._steps.decision),
        )

    def fail(self, error: BaseException) -> list[Event]:
        """The graph raised."""
        if type(error).__name__ == "GraphDrained":  # a soft stop: no failure
            return self.cancel()
        named = failure(error, codes=CODES)
        events = self._steps.decided((), stop_reason="error")
        events += self._blocks.close_all(
            error=named.message, code=named.code, metadata=run_metadata(discarded="error")
        )
        return events + self._frame.failed(named, metadata=self._facts(decision("error", named.code)))

    def cancel(self) -> list[Event]:
        """The run was stopped."""
        events = self._steps.decided((), stop_reason="cancelled")
        events += self._blocks.close_all(metadata=run_metadata(discarded="cancelled"))
        decided = decision("cancelled") | {"resolved_by": "user"}
        return events + self._frame.cancelled(metadata=self._facts(decided))

    def report_to(self, report: Report) -> None:
        """Report each part that cannot be translated, with the error; a shell logs them."""
        self._guard.report = report

    def _translated(self, part: Any) -> list[Event]:
        part = decode(part)
        feed = self._feeds.get(part["type"])
        events = [] if feed is None else feed(self, part["data"], part["ns"])
        if self._raw is not None:
            raw = RawEvent(event=self._raw(dict(part)), source="langgraph", **self._emission.tags(None))
            return [*events, raw]
        return events

    def _take_asides(self) -> list[Event]:
        """Apply asides one by one: a retraction needs all earlier ones applied to the view."""
        asides, self.asides[:] = list(self.asides), []
        return [
            event
            for aside in asides
            for event in self._shown.feed(
                self._guard.run(aside, partial(self._feeds[aside.type], self, aside.data, ()))
            )
        ]

    # -------------------------------------------------------------------- end

    def _interrupted(self) -> list[Event]:
        if not self._client.answerable:
            return self.fail(Unanswerable())
        interrupts = self._pending.interrupts(self._checkpoint, self._conversations.root.open_calls())
        asked = [each.reason for each in interrupts]
        events = self._steps.decided((), stop_reason="interrupted", waiting=asked) + self._blocks.close_all()
        decided = decision("interrupted", interrupt=asked) | {"resolved_by": "interrupt"}
        return events + self._frame.interrupted(interrupts, metadata=self._facts(decided))

    def _unanswered(self) -> list[str]:
        """Calls for the client to answer: those the state holds unanswered. Without a conversation, all."""
        if self._conversations.root.messages is None:
            return self._results.open()
        calls = [str(call["id"]) for call in self._conversations.root.open_calls()]
        return [call_id for call_id in calls if self._shown.waits(call_id)]

    def _facts(self, continuation: Mapping[str, Any] | None) -> dict[str, Any] | None:
        framework = {"checkpoint_id": self._checkpoint, "aliases": self._output.aliases or None}
        kept = {key: value for key, value in framework.items() if value is not None}
        return run_metadata(step_count=self._steps.count, framework=kept, continuation=continuation)

    # ------------------------------------------------------------------ parts

    def _messages(self, data: Any, ns: Namespace) -> list[Event]:
        message, meta = data
        owner = None
        if ns:
            scope = self._scopes.scope(ns)
            if scope.hidden:
                self._output.hide(message.id)
                return []
            owner = scope.owner
        if message.type == "AIMessageChunk":
            return self._output.chunk(message, meta, owner)
        if message.type == "tool" and message.status == "error":
            self._steps.failed_tool(task_of(str(meta.get("langgraph_checkpoint_ns", ""))))
        if message.type == "remove":
            return []  # the next root values show it gone
        return self._output.whole(message, meta, owner)

    def _tasks(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        if "triggers" in data or "input" in data:
            return self._task_started(data, ns)
        return self._task_ended(data, ns)

    def _task_started(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        self._namespaces.started(ns, str(data["name"]), str(data["id"]))
        if self._client.breakpoints and not ns:
            self._pending.running.add(str(data["id"]))
        rewritten = self._conversations.rewritten(ns, str(data["name"]))
        events = self._conversations.release(ns, self._scopes) if rewritten else []
        events += self._scopes.task_started(data, ns)
        scope = self._scopes.scope(ns)
        self._conversations.begins(ns, data.get("input"))
        if ns and not scope.begun:
            return events  # a subgraph's inner nodes are no steps of the run
        return events + self._steps.started(data, scope.owner)

    def _task_ended(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        task_id = str(data["id"])
        self._pending.running.discard(task_id)
        error = data.get("error")
        interrupts = [str(each["id"]) for each in data.get("interrupts") or ()]
        whole = error is None and not interrupts
        self._pending.raised_in(
            interrupts, call_id=self._scopes.call_of(task_id), owner=self._scopes.scope(ns).owner
        )
        events = self._conversations.release_inside(task_id, self._scopes) if whole else []
        events += self._output.task_over(task_id, whole=whole)
        events += self._scopes.task_over(task_id, error=error_of(error), interrupts=interrupts)
        self._conversations.task_over(task_id, root=whole and not ns)
        if whole:
            self._conversations.rewrites(ns, str(data["name"]), self._scopes.scope(ns).agent)
            self._progress.done(ns, task_id)
        return events + self._steps.finished(task_id, str(data["name"]), failed=error is not None)

    def _updates(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        if ns:
            return []
        if "__interrupt__" in data:
            self._pending.asked(data["__interrupt__"])
            return []
        events: list[Event] = []
        cached = bool(as_mapping(data.get("__metadata__")).get("cached"))
        for node, update in data.items():
            if node == "__metadata__":
                continue
            for each in listed(update) or [update]:
                self._state.written(each)
                events += self._conversations.written(each, cached=cached)
            events += self._steps.cached(node) if cached else []
        return events

    def _values(self, data: Any, ns: Namespace) -> list[Event]:
        if ns:
            return self._conversations.inner_values(data, ns, self._scopes.scope(ns))
        if as_state(data) is None:
            self._result = plain(data)  # a functional graph's return value
            return []
        events = self._conversations.root_values(data, waiting=bool(self._pending))
        return events + self._state.values(data)

    def _checkpoints(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        self._progress.checkpoint(ns, int(as_mapping(data.get("metadata")).get("step", UNKNOWN)))
        written = str(data["config"]["configurable"]["checkpoint_id"])
        if ns:
            self._pending.inside = written
            return []
        self._checkpoint, self._pending.inside = written, None
        following = [str(node) for node in data.get("next") or ()]
        self._pending.over = not following
        return self._steps.decided(following) if following and not self._pending else []

    # ----------------------------------------------------------------- asides

    def _llm_end(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        message, place = data["message"], str(data.get("checkpoint_ns") or "")
        if message.usage_metadata:
            self._frame.usage.add(**usage_of(message, data))
        if self._scopes.scope(ns).hidden:
            self._output.hide(message.id)
            return []
        if data.get("silent"):
            return []
        if data.get("source") is not None:
            self._output.hide(message.id)
            return self._custom.internal(data, message)
        self._output.ended(str(data["run_id"]), message, place)
        self._steps.model_ended(task_of(place), message)
        if message.id not in self._output.held:
            self._conversations.root.streamed(message.id, message)
        return []

    def _llm_error(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        return self._output.failed(str(data["run_id"]), "model_error")

    def _manual_message(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        """A node shows a message itself, as a model would: its node returns it too, perhaps under another id."""
        message, meta, scope = data["message"], data["metadata"], self._scopes.scope(ns)
        if scope.hidden:
            return []
        events = self._output.whole(message, meta, scope.owner)
        self._output.ended(message.id, message, str(meta.get("langgraph_checkpoint_ns", "")))
        return events

    def _manual_state(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        return [] if self._scopes.scope(ns).hidden else self._state.intermediate(data)

    def _retry(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        task_id = str(data["task_id"])
        self._conversations.task_over(task_id)
        events = self._output.task_over(task_id, whole=False)
        return (
            events + self._output.taken_back(self._output.emitted_in(task_id)) + self._steps.retried(task_id)
        )

    # By the type of a part or an aside; of the class, so that a translator holds no reference to itself.
    _feeds: ClassVar[Mapping[str, Callable[[Any, Any, Namespace], list[Event]]]] = {
        "messages": _messages,
        "tasks": _tasks,
        "updates": _updates,
        "values": _values,
        "custom": lambda self, data, ns: self._custom.written(data, ns),
        "tools": lambda self, data, ns: self._custom.tool(data, ns),
        "checkpoints": _checkpoints,
        "llm_end": _llm_end,
        "llm_error": _llm_error,
        "retry": _retry,
        "custom_event": lambda self, data, ns: self._custom.dispatched(data, ns),
        "manual_message": _manual_message,
        "manual_state": _manual_state,
    }
