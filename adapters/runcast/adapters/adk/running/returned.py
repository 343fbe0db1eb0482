"""Results of tools that returned while a slower one beside them was stopped: ADK has an error for both, and loses them.

ADK stores the results of parallel calls together. When the run is stopped before, it answers every call of them with an
error; here the calls that returned get their results before that event is stored.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from runcast.adapters.adk.stream.complete_event import ABORTED


class Results:
    """What the tools of one run have returned and no event has yet, by call."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], tuple[Any, ToolContext]] = {}  # by agent and call

    def keep(self, context: ToolContext, result: Any) -> None:
        """A tool returned; nothing is kept that a callback of its agent may still change."""
        agent = context._invocation_context.agent  # pyright: ignore[reportPrivateUsage]  # no public name
        changes = getattr(agent, "canonical_after_tool_callbacks", ())
        if context.function_call_id and result is not None and not changes:
            self._waiting[context.agent_name, context.function_call_id] = (result, context)

    def answer(self, event: Event) -> None:
        """An event that is about to be stored: of a stopped run, with what its tools returned."""
        for each in event.get_function_responses():
            kept = self._waiting.pop((event.author, each.id or ""), None)
            if kept is not None and event.error_code == ABORTED:
                result, context = kept
                each.response = result if isinstance(result, dict) else {"result": result}
                event.actions.state_delta.update(context.actions.state_delta)
                event.actions.artifact_delta.update(context.actions.artifact_delta)


class Returning(BasePlugin):
    """Keeps the results; behind the user's plugins, which may change a result, and then it is not called."""

    def __init__(self, results: Results) -> None:
        super().__init__("runcast-returning")
        self._results = results

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """ADK calls this after every tool."""
        self._results.keep(tool_context, result)


class Sealing(BasePlugin):
    """Puts the results into the event that answers the calls of a stopped run."""

    def __init__(self, results: Results) -> None:
        super().__init__("runcast-sealing")
        self._results = results

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """ADK calls this for every event before it is stored."""
        self._results.answer(event)
