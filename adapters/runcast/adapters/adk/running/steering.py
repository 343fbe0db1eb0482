"""A user's message for an agent that is running: appended to the session before a model call, and to that call.

The message has an invocation of its own. So ADK resumes the run's invocation as if the message had come before it, and
rewinds to the message as to any other.
"""

from __future__ import annotations

from google.adk.agents.callback_context import CallbackContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types

from runcast.adapters.adk.capabilities import reads
from runcast.adapters.adk.intake.messages import user_parts
from runcast.adapters.adk.intake.session_conversation import MARK, user_invocations
from runcast.adapters.adk.running.active_runs import ActiveRun
from runcast.adapters.adk.running.observers import Put
from runcast.adapters.adk.stream.complete_event import STEERED


class Steering(BasePlugin):
    """Hands messages to the agents of one session that read its conversation."""

    def __init__(self, run: ActiveRun, service: BaseSessionService, put: Put) -> None:
        super().__init__("runcast-steering")
        self._run = run
        self._service = service
        self._put = put

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """ADK calls this before every model call: the session has a result for every call then."""
        # The context alone has the agent and the session's service.
        context = callback_context._invocation_context  # pyright: ignore[reportPrivateUsage]  # no public name
        session = context.session
        take = self._run.take
        if take is None or session.id != self._run.input.thread_id or not reads(context.agent):
            return None
        self._run.take = None
        known = user_invocations(session.events)
        for message in [each for each in await take() if each.id not in known]:
            parts, mark = user_parts([message])
            event = Event(
                author="user",
                invocation_id=STEERED + message.id,
                content=types.Content(role="user", parts=parts),
                custom_metadata={MARK: mark},
            )
            await self._service.append_event(session, event)
            llm_request.contents.append(types.Content(role="user", parts=parts))
            await self._put(event)
        return None
