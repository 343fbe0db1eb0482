"""Plugins: `AdkPlugin` for people who run their agents themselves, and the client's side of an adapter's run.

They await callbacks of ADK's runner and hand its events to a translator; what the events mean is decided there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ag_ui.core import Event as AgEvent
from ag_ui.core import RunAgentInput, Tool
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from runcast.adapters.adk.abilities import descriptions
from runcast.adapters.adk.conversation import live_events, messages_from_events
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.reading import HIDDEN, Answer, parts_of, result_text, said_by_user
from runcast.adapters.adk.translator import AdkTranslator
from runcast.adapters.adk.values import visible
from runcast.adapters.delivery import Delivery, Sink
from runcast.adapters.frame import RunIds

LAST_MOMENT = 5.0  # seconds that `close` gives a slow sink


class AdkPlugin(BasePlugin):
    """`App(plugins=[AdkPlugin(sink)])`: every run of the app as AG-UI events, whoever runs it.

    Thread id = session id; run id = invocation id, with `:2`, `:3`, … when ADK goes on with an invocation after an
    answer. The sink may be a function or a coroutine function; it is called in order, one event at a time, by a thread
    of its own, so that a slow or broken one costs the run nothing; `aflush` waits for it. ADK stops asking plugins once one of them replaces an event: put this one
    first. It then shows events as they were before the others changed them. A run whose task is cancelled is told
    as cancelled when the next run of its session begins, or at `close`.
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
        self._runs: dict[tuple[str, str, str], _Watched] = {}  # (app, user, session) -> its run

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        """ADK calls this when a run begins."""
        context = invocation_context
        key = _key(context)
        self._end(key, lambda it: it.cancel())
        events = live_events(context.session.events)
        ids = RunIds(context.session.id, _run_id(context, events))
        root = _root(context)
        asked = events[-1] if events and said_by_user(events[-1]) else None
        translator = AdkTranslator(
            ids,
            root=None if root is None else root.name,
            options=self._options,
            input=_said(ids, asked),
            clock=_clock,
            session=lambda: context.session.events,
            state=visible(context.session.state, self._options) or None,
            answers=[] if asked is None else _answers(asked),
            agents={} if root is None else descriptions(root),
            place={"app_name": key[0], "user_id": key[1], "session_id": key[2]},
        )
        self._runs[key] = watched = _Watched(context.invocation_id, translator)
        self._send(watched, translator.start())
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """ADK calls this for every event of a run."""
        watched = self._runs.get(_key(invocation_context))
        if watched is not None and watched.invocation_id == invocation_context.invocation_id:
            self._send(watched, watched.translator.feed(event))
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """ADK calls this when a run ended by itself, or its reader left."""
        self._end(_key(invocation_context), lambda it: it.finish())

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """ADK calls this when a run broke."""
        self._end(_key(invocation_context), lambda it: it.fail(error))

    async def close(self) -> None:
        """Tell unfinished runs as cancelled, and give the sink a moment to take what waits for it."""
        for key in list(self._runs):
            self._end(key, lambda it: it.cancel())
        await self.aflush(LAST_MOMENT)

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until the sink has got everything; False when time ran out. Not for the loop a sink runs on."""
        return self._delivery.flush(seconds)

    async def aflush(self, seconds: float | None = None) -> bool:
        """The same, without keeping the loop from a coroutine sink."""
        return await self._delivery.aflush(seconds)

    def stats(self) -> dict[str, int]:
        """What became of the events."""
        return self._delivery.stats()

    def _end(self, key: tuple[str, str, str], how: Callable[[AdkTranslator], list[AgEvent]]) -> None:
        watched = self._runs.pop(key, None)
        if watched is not None:
            self._send(watched, how(watched.translator))

    def _send(self, watched: _Watched, events: Sequence[AgEvent]) -> None:
        """Events with a gap are not worth showing: what follows a dropped one is dropped too."""
        for event in events:
            if watched.cut:
                self._delivery.dropped += 1
            else:
                watched.cut = not self._delivery.send(event)


class ClientSide(BasePlugin):
    """What a client brings to one run: tools that it carries out itself, and instructions where they are allowed."""

    def __init__(self, tools: Sequence[Tool], instructions: Sequence[str], agents: Collection[str]) -> None:
        super().__init__("runcast-client-side")
        self._tools = [_ClientTool(tool) for tool in tools]
        self._instructions = list(instructions)
        self._agents = agents

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """ADK calls this before every model call. A tool of the agent's own keeps its name."""
        if callback_context.agent_name in self._agents:
            llm_request.append_tools([it for it in self._tools if it.name not in llm_request.tools_dict])
            if self._instructions:
                llm_request.append_instructions(self._instructions)
        return None


class _ClientTool(BaseTool):
    """A tool that runs in the client: calling it here only pauses the agent."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description, is_long_running=True)
        self._parameters = tool.parameters

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return None


class _Watched:
    """A run that the plugin follows."""

    def __init__(self, invocation_id: str, translator: AdkTranslator) -> None:
        self.invocation_id = invocation_id
        self.translator = translator
        self.cut = False  # the sink was too slow for this run: the rest of it is dropped


def _key(context: InvocationContext) -> tuple[str, str, str]:
    session = context.session
    return (session.app_name, session.user_id, session.id)


def _run_id(context: InvocationContext, events: Sequence[Event]) -> str:
    own = context.invocation_id
    turns = sum(
        said_by_user(event) and bool(parts_of(event)) for event in events if event.invocation_id == own
    )
    return own if turns < 2 else f"{own}:{turns}"


def _root(context: InvocationContext) -> BaseAgent | None:
    """The root agent; a workflow is no agent, and its name is learned from the first event."""
    agent = context.agent
    return agent.root_agent if isinstance(agent, BaseAgent) else None


def _said(ids: RunIds, asked: Event | None) -> RunAgentInput | None:
    """What started the run, so that a client that only watches sees the question too."""
    messages = [] if asked is None else messages_from_events([asked])
    spoken = [message for message in messages if message.role == "user"]
    if not spoken:
        return None
    return RunAgentInput(thread_id=ids.thread_id, run_id=ids.run_id, messages=list(spoken))


def _answers(asked: Event) -> list[Answer]:
    found = (part.function_response for part in parts_of(asked))
    return [
        Answer(
            it.id, it.id, it.name, result_text(it.response), bool(it.response and it.response.get("error"))
        )
        for it in found
        if it is not None and it.id and it.name not in HIDDEN
    ]


def _clock() -> int:
    return time.time_ns() // 1_000_000
