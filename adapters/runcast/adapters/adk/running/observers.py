"""What ADK's plugin callbacks show of a run besides the runner's events: model requests, and agents that run as tools.

An `AgentTool` gives its agent a runner of its own with the same plugins. A context variable names the tool call that
the current task carries out, so that the inner run finds its call.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from runcast.adapters.adk.capabilities import tree
from runcast.adapters.adk.stream.parts import InnerPart, InnerRun, ModelCall

# its invocation, agent and id
_call: ContextVar[tuple[str, str, str] | None] = ContextVar("runcast_adk_call", default=None)


class ToolRuns:
    """The runs inside the tool calls of one outer run."""

    def __init__(self, invocation_id: str) -> None:
        self._invocations = {invocation_id}
        self._runs: dict[str, InnerRun] = {}  # open inner runs, by invocation
        # the calls around each open call
        self._before: dict[tuple[str, str, str], tuple[str, str, str] | None] = {}

    def holds(self, invocation_id: str) -> bool:
        """Whether an invocation is the outer run, or a run inside it."""
        return invocation_id in self._invocations

    def is_around(self, context: InvocationContext) -> bool:
        """Whether a run that begins now carries out a tool call of these runs."""
        call = _call.get()
        return call is not None and call[0] in self._invocations

    def enter(self, context: ToolContext) -> None:
        """A tool begins in this task."""
        call = _call_of(context)
        if call[-1]:
            self._before[call] = _call.get()
            _call.set(call)

    def leave(self, context: ToolContext) -> None:
        """A tool ended in this task."""
        call = _call_of(context)
        if call in self._before:
            _call.set(self._before.pop(call))

    def begin(self, context: InvocationContext) -> InnerPart | None:
        """An inner run begins."""
        call = _call.get()
        if call is None or self.holds(context.invocation_id):
            return None
        agent = context.agent
        name, about = getattr(agent, "name", "agent"), getattr(agent, "description", "")
        run = InnerRun(context.invocation_id, call[2], name, about or "", within=call[0], caller=call[1])
        self._invocations.add(run.invocation_id)
        self._runs[run.invocation_id] = run
        return InnerPart(run)

    def event(self, context: InvocationContext, event: Event) -> InnerPart | None:
        """An event of an inner run."""
        run = self._runs.get(context.invocation_id)
        return None if run is None else InnerPart(run, event)

    def end(self, context: InvocationContext, error: BaseException | None = None) -> InnerPart | None:
        """An inner run ends."""
        run = self._runs.pop(context.invocation_id, None)
        return None if run is None else InnerPart(run, ended=True, error=error)


def _call_of(context: ToolContext) -> tuple[str, str, str]:
    return context.invocation_id, context.agent_name, context.function_call_id or ""


def model_call(context: CallbackContext, request: LlmRequest) -> ModelCall:
    """The facts of a request to a model."""
    return ModelCall(
        context.invocation_id, context.agent_name, len(request.contents), tuple(request.tools_dict)
    )


class Observer(BasePlugin):
    """Passes on the model requests of the runs that it knows, and follows their tool calls."""

    @abstractmethod
    def runs_of(self, invocation_id: str) -> ToolRuns | None:
        """The runs that an invocation belongs to, if they are observed."""

    @abstractmethod
    async def observed(self, part: ModelCall | InnerPart) -> None:
        """Take a fact about an observed run."""

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> None:
        """ADK calls this before every model call."""
        if self.runs_of(callback_context.invocation_id) is not None:
            await self.observed(model_call(callback_context, llm_request))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """ADK calls this before every tool."""
        runs = self.runs_of(tool_context.invocation_id)
        if runs is not None:
            runs.enter(tool_context)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """ADK calls this after every tool."""
        runs = self.runs_of(tool_context.invocation_id)
        if runs is not None:
            runs.leave(tool_context)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        """ADK calls this when a tool raised."""
        await self.after_tool_callback(tool=tool, tool_args=tool_args, tool_context=tool_context, result=None)


Put = Callable[[ModelCall | InnerPart | Event], Awaitable[None]]


def straight(take: Callable[[ModelCall | InnerPart | Event], None]) -> Put:
    """Hand a fact straight to the translator: no event comes of it, or only with the next part."""

    async def put(part: ModelCall | InnerPart | Event) -> None:
        take(part)

    return put


class RunObserver(Observer):
    """Observes one run of the adapter."""

    def __init__(self, put: Put) -> None:
        super().__init__("runcast-run-observer")
        self._put = put
        self._runs: ToolRuns | None = None  # known from the outer run's first callback

    def runs_of(self, invocation_id: str) -> ToolRuns | None:
        """The runs of this run."""
        return self._runs

    async def observed(self, part: ModelCall | InnerPart | None) -> None:
        """Pass a fact on."""
        if part is not None:
            await self._put(part)

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """ADK calls this when a run begins."""
        if self._runs is None or not self._runs.is_around(invocation_context):
            self._runs = ToolRuns(invocation_context.invocation_id)
        else:
            await self.observed(self._runs.begin(invocation_context))

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """ADK calls this for every event of an inner run."""
        if self._runs is not None:
            await self.observed(self._runs.event(invocation_context, event))

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """ADK calls this when a run ended by itself."""
        if self._runs is not None:
            await self.observed(self._runs.end(invocation_context))

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """ADK calls this when a run raised."""
        if self._runs is not None:
            await self.observed(self._runs.end(invocation_context, error))


def agent_tools(root: Any) -> frozenset[str]:
    """The names of the agents that agents of the tree have as tools."""
    tools = (tool for one in tree(root) for tool in getattr(one, "tools", None) or ())
    return frozenset(tool.name for tool in tools if isinstance(tool, AgentTool))


async def merged(events: AsyncGenerator[Event, None], box: asyncio.Queue[Any]) -> AsyncGenerator[Any, None]:
    """The runner's events, and what an observer puts into the box meanwhile, in their order."""
    end = object()

    async def pull() -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    await box.put(event)
        finally:
            await box.put(end)

    task = asyncio.create_task(pull(), name="runcast-adk-run")
    try:
        while (part := await box.get()) is not end:
            yield part
        await task
    finally:
        task.cancel()
        while not task.done():
            while not box.empty():  # a full box would hold the runner back from its end
                box.get_nowait()
            await asyncio.wait({task}, timeout=0.01)
