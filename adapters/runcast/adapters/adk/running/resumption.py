"""An agent whose answer is stored is not asked again when its invocation is resumed.

A resumed sequence or loop runs the agent at its noted place, and a resumed agent calls its model. Where the session has
the answer already, this plugin answers with nothing, so that ADK goes on behind the agent as after the answer itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.flows.llm_flows.functions import handle_function_call_list_async
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.session import Session
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.genai import types

from runcast.adapters.adk.capabilities import has_model, tree
from runcast.adapters.adk.intake.session_conversation import live_events
from runcast.adapters.adk.intake.whole_turn import AgentTurn, Member, begun_again, latest_turns, places
from runcast.adapters.adk.interrupts import answered, unasked
from runcast.adapters.adk.running.observers import Put
from runcast.adapters.adk.running.runner import ReadOnce, overrides
from runcast.adapters.adk.stream.complete_event import is_from_user, is_steered

Find = Callable[[Session, Any], Any]
# a state key that is never stored: ADK makes an event of a callback that changes state
CARRIER = "temp:runcast"


class Resumption(BasePlugin):
    """Goes past what is stored of one invocation."""

    def __init__(self, root: Any, service: ReadOnce, put: Put) -> None:
        super().__init__("runcast-resumption")
        self._root = root
        self._service = service
        self._put = put
        self._invocation: str | None = None
        self._ended: set[str] = set()
        self._turns: dict[Member, list[AgentTurn]] = {}
        self._answers: dict[Member, LlmResponse] = {}  # instead of the model's
        self._repeated: dict[Member, list[types.Content]] = {}  # stored already, and given again

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """ADK calls this when a run begins; the first is the outer run."""
        if self._invocation is not None:
            return
        self._invocation = invocation_context.invocation_id
        if not invocation_context.is_resumable:
            return
        events = live_events(invocation_context.session.events)
        self._turns = latest_turns(events, self._invocation, self._root)
        if isinstance(self._root, BaseAgent):
            self._place(invocation_context, events)
        else:  # a workflow keeps the answers of its nodes, and may run one again
            open_turns = ((member, held[-1:]) for member, held in self._turns.items())
            self._turns = {member: last for member, last in open_turns if last[0].answer is None}

    def _place(self, context: InvocationContext, events: list[Event]) -> None:
        """Correct what ADK reads of its own notes."""
        held = places(events, context.invocation_id, self._root)
        self._ended = held.ended
        again = begun_again(events, context.invocation_id, self._root)
        if overrides("after_agent_callback", self._users(context), tree(self._root)):
            again |= {name for (name, _), turns in self._turns.items() if turns[-1].awaits_a_word}
        for name in again:
            context.set_agent_state(name)
        for name, state in held.states.items():
            context.agent_states.setdefault(name, state)

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        """ADK calls this before every agent."""
        member = self._member(callback_context)
        if member is None:
            return None
        if agent.name in self._ended and not has_model(agent):
            self._ended.remove(agent.name)
            return types.Content(role="model", parts=[])
        if not self._turns.get(member):
            return None
        if not has_model(agent):  # it begins again
            events = [event for turn in self._turns.pop(member) for event in turn.events]
            self._repeated[member] = [event.content for event in events if event.content is not None]
            return None
        turn, invocation = self._turns[member].pop(0), callback_context.get_invocation_context()
        _before(turn, invocation.session.events)
        if turn.escalated:  # a loop looks at the events of this run
            callback_context.actions.escalate = True
            callback_context.state[CARRIER] = True
        if turn.is_over(spoken_for=overrides("before_agent_callback", self._users(invocation), [agent])):
            return types.Content(role="model", parts=[])
        if turn.answer is not None:
            self._answers[member] = LlmResponse()
        elif turn.code is not None and turn.code.content is not None:
            self._answers[member] = LlmResponse(content=turn.code.content.model_copy(deep=True))
            self._repeated[member] = [turn.code.content]
        elif calls := turn.owed(last=self._last(invocation.session.events)):
            turn.events.extend(await self._execute(calls, turn.events[-1], agent, callback_context))
        if turn.structured is not None:
            self._answers[member] = LlmResponse(content=_words(turn.structured))
        return None

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """ADK calls this before every model call."""
        member = self._member(callback_context)
        return None if member is None else self._answers.pop(member, None)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """ADK calls this for every complete event: one that is stored already is emptied."""
        stored = self._repeated.get((event.author, event.branch))
        if not stored or event.content != stored[0]:
            return None
        del stored[0]
        return event.model_copy(update={"content": None})

    async def _execute(
        self, calls: list[types.FunctionCall], origin: Event, agent: BaseAgent, context: CallbackContext
    ) -> list[Event]:
        """Carry out calls of this event, store their results and show them."""
        if not isinstance(agent, LlmAgent):
            return []
        invocation = context.get_invocation_context()
        tools = {tool.name: tool for tool in await agent.canonical_tools(context)}
        if agent.output_schema is not None:
            answering = SetModelResponseTool(agent.output_schema)
            tools.setdefault(answering.name, answering)
        own = [call for call in calls if call.name in tools]
        results = await handle_function_call_list_async(invocation, own, tools) if own else None
        if results is None:
            return []
        results.node_info, results.isolation_scope = origin.node_info.model_copy(), origin.isolation_scope
        questions = unasked([*invocation.session.events, results], invocation.invocation_id)
        for event in [results, *questions]:
            await self._service.append_event(invocation.session, event)
            await self._put(event)
        return [results]

    def _last(self, events: list[Event]) -> Event | None:
        """The event whose calls ADK carries out by itself: the last one, and not in a workflow, which puts a note behind it."""
        if not isinstance(self._root, BaseAgent):
            return None
        last = next(event for event in reversed(events) if event.content is not None)
        self._service.keep_last(last, events)
        return last

    def _users(self, context: InvocationContext) -> list[BasePlugin]:
        return [plugin for plugin in context.plugin_manager.plugins if plugin is not self]

    def _member(self, context: CallbackContext) -> Member | None:
        if context.invocation_id != self._invocation:
            return None
        return context.agent_name, context.get_invocation_context().branch


def entry(find: Find) -> Find:
    """Where ADK enters a torn run again, in place of `find`, its own rule for where a run begins.

    By that rule a stored result is a turn of the agent that called, and the team around it would not go on. A run that
    the user's answer began runs the agent that asked, and no team.
    """

    def again(session: Session, root: Any) -> Any:
        events = live_events(session.events)
        team = _team(root.find_agent(events[-1].author)) if events else None
        if team is None:
            return find(session, root)
        began = next(it for it in reversed(events) if is_from_user(it) and not is_steered(it))
        if not answered(began):
            return team
        return find(session.model_copy(update={"events": events[: events.index(began) + 1]}), root)

    return again


def _team(agent: Any) -> Any:
    """The outermost team without a model around an agent."""
    team = None
    while agent is not None:
        team = team if has_model(agent) else agent
        agent = agent.parent_agent
    return team


def _before(turn: AgentTurn, events: list[Event]) -> None:
    """A workflow gives a node its input behind what the node had said, and its model reads from there: put it before."""
    given = events[-1]
    if is_from_user(given) and not given.invocation_id:  # never stored
        at = next(at for at, event in enumerate(events) if event.id == turn.events[0].id)
        events.insert(at, events.pop())


def _words(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])
