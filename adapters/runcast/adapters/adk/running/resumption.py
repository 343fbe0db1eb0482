"""An agent whose answer is stored is not asked again when its invocation is resumed.

A resumed sequence or loop runs the agent at its noted place, and a resumed agent calls its model. Where the session has
the answer already, this plugin answers with nothing, so that ADK goes on behind the agent as after the answer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.adk.agents import parallel_agent
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.session import Session
from google.genai import types

from runcast.adapters.adk.capabilities import has_model, tree
from runcast.adapters.adk.intake.session_conversation import live_events
from runcast.adapters.adk.intake.whole_turn import (
    AgentTurn,
    Member,
    begun_again,
    latest_turns,
    member_of,
    names_below,
    places,
    spoken,
)
from runcast.adapters.adk.interrupts import answered
from runcast.adapters.adk.running.runner import overrides
from runcast.adapters.adk.stream.complete_event import is_from_user, is_steered, parts_of

PARALLEL = parallel_agent.ParallelAgent  # pyright: ignore[reportDeprecated]  # people have it
Find = Callable[[Session, Any], Any]
# a state key that is never stored: ADK makes an event of a callback that changes state
CARRIER = "temp:runcast"


class Resumption(BasePlugin):
    """Goes past what is stored of one invocation."""

    def __init__(self, root: Any) -> None:
        super().__init__("runcast-resumption")
        self._root = root
        self._key = member_of(root)
        self._invocation: str | None = None
        self._ended: set[str] = set()
        self._turns: dict[Member, list[AgentTurn]] = {}
        self._answers: dict[Member, LlmResponse] = {}  # instead of the model's
        self._repeated: dict[Member, list[types.Content]] = {}  # stored already, and given again
        self._hidden: dict[Member, tuple[Event, Event]] = {}  # what ADK sees for now, and what is stored
        self._outputs: dict[Member, tuple[str, str]] = {}  # the key of its answer, and what that holds

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
        self._leave_out_branches(context.end_of_agents)
        if context.agent is not None and not has_model(context.agent):
            # ADK gives a team the branch of an agent below it.
            own = (context.invocation_id, context.agent.name)
            notes = (it.branch for it in events if (it.invocation_id, it.author) == own)
            context.branch = next(notes, context.branch)

    def _leave_out_branches(self, ended: Mapping[str, bool]) -> None:
        """ADK does not begin branches that have ended: what is known of them is not for those that a loop begins later."""
        below = names_below(self._root)
        teams = (team for team in tree(self._root) if isinstance(team, PARALLEL))
        over = (one.name for team in teams for one in team.sub_agents if ended.get(one.name))
        gone = {name for one in over for name in below[one]}
        self._ended -= gone
        self._turns = {member: turns for member, turns in self._turns.items() if member[0] not in gone}

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        """ADK calls this before every agent."""
        member = self._member(callback_context)
        if member is None:
            return None
        self._outputs.pop(member, None)
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
        self._keep_output(member, agent, turn.written(agent, _since_answers(invocation)))
        if turn.escalated:  # a loop looks at the events of this run
            callback_context.actions.escalate = True
            callback_context.state[CARRIER] = True
        if turn.is_over(spoken_for=overrides("before_agent_callback", self._users(invocation), [agent])):
            return types.Content(role="model", parts=[])
        if turn.answer is not None and getattr(agent, "mode", None) == "single_turn":
            self._repeat(member, turn.answer, parts_of(turn.answer), invocation.session.events)
        elif turn.answer is not None:
            self._answers[member] = LlmResponse()
        elif turn.code is not None:
            self._repeat(member, turn.code, parts_of(turn.code), invocation.session.events)
        elif calls := turn.owed(invocation.session.events):
            parts = [types.Part(function_call=call) for call in calls]
            self._repeat(member, turn.events[-1], parts, invocation.session.events)
        if turn.structured is not None:
            self._answers[member] = LlmResponse(content=_words(turn.structured))
        return None

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """ADK calls this before every model call."""
        member = self._member(callback_context)
        if member is None:
            return None
        self._show(member, callback_context.session.events)
        return self._answers.pop(member, None)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """ADK calls this for every complete event: one that is stored already is emptied."""
        if event.content is None:
            return None
        member = self._key(event.author, event.branch)
        self._show(member, invocation_context.session.events)
        self._add_output(member, event)
        stored = self._repeated.get(member)
        if not stored or event.content != stored[0]:
            return None
        del stored[0]
        return _empty(event)

    def _keep_output(self, member: Member, agent: BaseAgent, begun: str) -> None:
        if begun:
            self._outputs[member] = str(getattr(agent, "output_key", "")), begun

    def _add_output(self, member: Member, event: Event) -> None:
        """ADK writes all texts of an agent's turn under its key, and begins anew when it resumes."""
        key, begun = self._outputs.get(member, ("", ""))
        value = event.actions.state_delta.get(key)
        if isinstance(value, str):
            event.actions.state_delta[key] = begun + value

    def _repeat(self, member: Member, event: Event, parts: Sequence[types.Part], events: list[Event]) -> None:
        """Let the model say its stored words again, so that ADK does what follows them; they are not stored twice.

        Until then ADK does not see them: behind an open call it would wait, and not ask the model.
        """
        content = types.Content(role="model", parts=list(parts))
        self._answers[member] = LlmResponse(content=content.model_copy(deep=True))
        if member in self._outputs:  # ADK adds these words again
            key, begun = self._outputs[member]
            self._outputs[member] = key, begun.removesuffix(spoken(content))
        self._repeated[member] = [content]
        at = next(at for at, held in enumerate(events) if held is event)
        events[at] = _empty(event)
        self._hidden[member] = (events[at], event)

    def _show(self, member: Member, events: list[Event]) -> None:
        if member in self._hidden:
            empty, event = self._hidden.pop(member)
            events[next(at for at, held in enumerate(events) if held is empty)] = event

    def _users(self, context: InvocationContext) -> list[BasePlugin]:
        return [plugin for plugin in context.plugin_manager.plugins if plugin is not self]

    def _member(self, context: CallbackContext) -> Member | None:
        if context.invocation_id != self._invocation:
            return None
        return self._key(context.agent_name, context.get_invocation_context().branch)


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


def _since_answers(context: InvocationContext) -> list[Event]:
    """The events of the invocation since the user's last message of it: until then ADK wrote another answer."""
    own = [event for event in context.session.events if event.invocation_id == context.invocation_id]
    answers = (at for at in reversed(range(len(own))) if is_from_user(own[at]) and parts_of(own[at]))
    return own[next(answers, 0) :]


def _empty(event: Event) -> Event:
    return event.model_copy(update={"content": None, "long_running_tool_ids": None, "output": None})


def _words(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])
