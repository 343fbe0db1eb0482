"""The client's part of a run: tools that the client carries out, and its instructions where they are allowed.

An agent written for AG-UI's own ADK server asks for the client's tools by a placeholder among its own, `AGUIToolset`. That
server replaces it; anywhere else it raises when ADK lists the agent's tools.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ag_ui.core import RunAgentInput, Tool
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from runcast.adapters.adk.capabilities import tree
from runcast.adapters.adk.intake.plan import instructions
from runcast.adapters.adk.options import AdkOptions

PLACEHOLDER = "ag_ui_adk.agui_toolset.AGUIToolset"


class ClientSide(BasePlugin):
    """Adds the client's tools and instructions to the model calls of these agents."""

    def __init__(self, tools: Sequence[Tool], instructions: Sequence[str], agents: Collection[str]) -> None:
        super().__init__("runcast-client-side")
        self._tools = [_ClientTool(tool) for tool in tools]
        self._instructions = list(instructions)
        self._agents = agents

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """ADK calls this before every model call. A tool of the agent keeps its name."""
        if callback_context.agent_name in self._agents:
            llm_request.append_tools([it for it in self._tools if it.name not in llm_request.tools_dict])
            if self._instructions:
                llm_request.append_instructions(self._instructions)
        return None


def client_side(input: RunAgentInput, options: AdkOptions, asking: Collection[str]) -> list[ClientSide]:
    """The client's tools and instructions, when it sent some; for the agents that are `asking`, unless options name others."""
    texts = instructions(input) if options.client_instructions else []
    if not input.tools and not texts:
        return []
    agents = asking if options.frontend_agents is None else options.frontend_agents
    return [ClientSide(input.tools or [], texts, agents)]


def asking(root: Any) -> Collection[str]:
    """The agents that get the client's tools: those with AG-UI's placeholder, which is silenced; without any, the root."""
    found: set[str] = set()
    for agent in tree(root):
        for placeholder in filter(_is_placeholder, getattr(agent, "tools", None) or ()):
            found.add(agent.name)
            placeholder.get_tools = _no_tools
    return found or {root.name}


def _is_placeholder(tool: Any) -> bool:
    return any(f"{kind.__module__}.{kind.__name__}" == PLACEHOLDER for kind in type(tool).__mro__)


async def _no_tools(readonly_context: Any = None) -> list[BaseTool]:
    return []


class _ClientTool(BaseTool):
    """A tool that runs in the client: a call here only pauses the agent."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description, is_long_running=True)
        self._parameters = tool.parameters

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return None
