"""`AdkPlugin`: AG-UI events for programs that run their agents themselves.

Passes the events of ADK's plugin callbacks to a translator and its AG-UI events to a sink; `translator` decides
which events are sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ag_ui.core import Event as AgEvent
from ag_ui.core import RunAgentInput
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.genai import types

from runcast.adapters.adk.capabilities import descriptions
from runcast.adapters.adk.intake.session_conversation import live_events, messages_from_events
from runcast.adapters.adk.options import AdkOptions, RunStart
from runcast.adapters.adk.plain_values import visible
from runcast.adapters.adk.running.observers import Observer, ToolRuns
from runcast.adapters.adk.stream.complete_event import answers_in, is_from_user, parts_of
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.adapters.adk.stream.parts import InnerPart, ModelCall
from runcast.adapters.adk.translator import AdkTranslator
from runcast.adapters.driving.fault_log import log_untranslated
from runcast.adapters.driving.sink_thread import Delivery, Sink
from runcast.adapters.run_frame import RunIds

LAST_MOMENT = 5.0  # seconds that `close` gives a slow sink


class AdkPlugin(Observer):
    """`App(plugins=[AdkPlugin(sink)])`: every run of the app as AG-UI events.

    The thread id is the session id. The run id is the invocation id, with `:2`, `:3`, … when ADK continues an
    invocation after an answer. The sink may be a function or a coroutine function; a thread calls it with one event
    at a time, in order, so that a slow or broken sink does not delay the run. `aflush` waits for it.

    ADK stops asking plugins once one of them replaces an event: put this one first. It then shows events as they
    were before the other plugins, and what those made of texts and state when the run ends. A run with a cancelled
    task ends as cancelled when the next run of its session begins, or at `close`.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        options: AdkOptions = AdkOptions(),  # noqa: B008  # frozen
        name: str = "runcast",
        max_waiting: int = 10_000,
    ) -> None:
        super().__init__(name)
        self._delivery = Delivery(sink, limit=max_waiting)
        self._options = options
        self._runs: dict[tuple[str, str, str], _Observed] = {}  # (app, user, session) -> its run

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        """ADK calls this when a run begins."""
        around = next((run for run in self._runs.values() if run.tools.is_around(invocation_context)), None)
        if around is not None:
            self._feed(around, around.tools.begin(invocation_context))
            return None
        key = _key(invocation_context)
        self._end(key, lambda it: it.cancel())
        run = _Observed(invocation_context.invocation_id, self._translator(invocation_context, key))
        self._runs[key] = run
        self._send(run, run.translator.start())
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """ADK calls this for every event of a run."""
        run = self._run_of(invocation_context.invocation_id)
        if run is not None:
            self._feed(run, run.tools.event(invocation_context, event) or event)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """ADK calls this when a run ended by itself, or its reader left."""
        run = self._run_of(invocation_context.invocation_id)
        inner = None if run is None else run.tools.end(invocation_context)
        if run is None or inner is None:
            self._end(_key(invocation_context), lambda it: it.finish())
        else:
            self._feed(run, inner)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """ADK calls this when a run raised."""
        run = self._run_of(invocation_context.invocation_id)
        inner = None if run is None else run.tools.end(invocation_context, error)
        if run is None or inner is None:
            self._end(_key(invocation_context), lambda it: it.fail(error))
        else:
            self._feed(run, inner)

    def runs_of(self, invocation_id: str) -> ToolRuns | None:
        """The runs that an invocation belongs to, if the plugin follows them."""
        run = self._run_of(invocation_id)
        return None if run is None else run.tools

    async def observed(self, part: ModelCall | InnerPart) -> None:
        """Translate a request to a model."""
        if isinstance(part, ModelCall):
            run = self._run_of(part.invocation_id)
            if run is not None:
                self._feed(run, part)

    async def close(self) -> None:
        """End unfinished runs as cancelled, and wait a moment for the sink."""
        for key in list(self._runs):
            self._end(key, lambda it: it.cancel())
        await self.aflush(LAST_MOMENT)

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until the sink has every event; False after this many seconds. Not for the loop of a coroutine sink."""
        return self._delivery.flush(seconds)

    async def aflush(self, seconds: float | None = None) -> bool:
        """As `flush`, without blocking the loop of a coroutine sink."""
        return await self._delivery.aflush(seconds)

    def stats(self) -> dict[str, int]:
        """Counters of delivered, failed, dropped and waiting events."""
        return self._delivery.stats()

    def _translator(self, context: InvocationContext, key: tuple[str, str, str]) -> AdkTranslator:
        events = DistinctCalls().all(live_events(context.session.events))
        ids = RunIds(context.session.id, _run_id(context, events))
        root = _root(context)
        asked = events[-1] if events and is_from_user(events[-1]) else None
        return AdkTranslator(
            ids,
            root=None if root is None else root.name,
            options=self._options,
            clock=_clock,
            report=log_untranslated,
            session=lambda: context.session.events,
            start=RunStart(
                input=_input(ids, asked),
                state=visible(context.session.state, self._options) or None,
                answers=[] if asked is None else answers_in(asked),
                agents={} if root is None else descriptions(root),
                place={"app_name": key[0], "user_id": key[1], "session_id": key[2]},
                observed=True,
            ),
        )

    def _run_of(self, invocation_id: str) -> _Observed | None:
        """The run that an invocation is, or belongs to."""
        return next((run for run in self._runs.values() if run.tools.holds(invocation_id)), None)

    def _feed(self, run: _Observed, part: Event | ModelCall | InnerPart | None) -> None:
        if part is not None:
            self._send(run, run.translator.feed(part))

    def _end(self, key: tuple[str, str, str], how: Callable[[AdkTranslator], list[AgEvent]]) -> None:
        run = self._runs.pop(key, None)
        if run is not None:
            self._send(run, how(run.translator))

    def _send(self, run: _Observed, events: Sequence[AgEvent]) -> None:
        """A stream with a gap is useless: after the first dropped event the rest of the run is dropped too."""
        for event in events:
            if run.cut:
                self._delivery.dropped += 1
            else:
                run.cut = not self._delivery.send(event)


class _Observed:
    """A run that the plugin follows."""

    def __init__(self, invocation_id: str, translator: AdkTranslator) -> None:
        self.tools = ToolRuns(invocation_id)  # the run, and those of agents that run as its tools
        self.translator = translator
        self.cut = False  # the sink was too slow: the rest of the run is dropped


def _key(context: InvocationContext) -> tuple[str, str, str]:
    session = context.session
    return (session.app_name, session.user_id, session.id)


def _run_id(context: InvocationContext, events: Sequence[Event]) -> str:
    own = context.invocation_id
    turns = sum(
        is_from_user(event) and bool(parts_of(event)) for event in events if event.invocation_id == own
    )
    return own if turns < 2 else f"{own}:{turns}"


def _root(context: InvocationContext) -> BaseAgent | None:
    """The root agent. A workflow is no agent: its name comes from the first event."""
    agent = context.agent
    return agent.root_agent if isinstance(agent, BaseAgent) else None


def _input(ids: RunIds, asked: Event | None) -> RunAgentInput | None:
    """The user's message that started the run, for a client that only watches."""
    messages = [] if asked is None else messages_from_events([asked])
    from_user = [message for message in messages if message.role == "user"]
    if not from_user:
        return None
    return RunAgentInput(thread_id=ids.thread_id, run_id=ids.run_id, messages=list(from_user))


def _clock() -> int:
    return time.time_ns() // 1_000_000
