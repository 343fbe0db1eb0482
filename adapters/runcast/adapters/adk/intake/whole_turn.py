"""What a dead worker left of an invocation, and whether there is anything to resume.

ADK stores an agent's answer, and after it a note of where its sequence, loop or branch stands. Between the two, a
resumed invocation asks the model again and answers twice. One that waits for the user must not be resumed without the
answer: a sequence goes past the question. Does not know runners and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.capabilities import tree
from runcast.adapters.adk.interrupts import answered, names, open_interrupts
from runcast.adapters.adk.stream.complete_event import QUESTIONS, is_from_user, parts_of
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types
    from google.genai.types import FunctionCall

Member = tuple[str, str | None]  # an agent's name, and its branch if it may be in several
BY_PLUGIN = "model"  # the author of what a plugin says instead of a whole run


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """The stored events of one agent's latest turn."""

    events: list[Event] = field(default_factory=list["Event"])
    answered: set[str] = field(default_factory=set[str])
    """Its calls that the user has answered."""

    @property
    def answer(self) -> Event | None:
        """The event that ended the model's work, if it is stored."""
        return next((event for event in self.events if _is_answer(event)), None)

    def is_over(self, *, spoken_for: bool) -> bool:
        """Whether nothing but ADK's note is missing: a callback has spoken behind the agent, or one may have for it."""
        answer = self.answer
        if answer is None or answer is not self.events[-1]:
            return answer is not None
        return spoken_for and answer is self.events[0] and not _is_models(answer)

    @property
    def structured(self) -> str | None:
        """The answer that the last result is, by an agent with a schema: ADK stores it after its result."""
        given = self.events[-1].actions.set_model_response
        return None if given is None else json.dumps(given, ensure_ascii=False)  # as ADK writes it

    @property
    def code(self) -> Event | None:
        """The last event, if it is code that was not executed: ADK executes it in the turn that wrote it."""
        parts = parts_of(self.events[-1])
        return self.events[-1] if parts and parts[-1].executable_code else None

    def owed(self, events: Sequence[Event]) -> list[FunctionCall]:
        """The calls of the last event that nothing behind it in these events answers."""
        event = self.events[-1]
        begun = event.long_running_tool_ids if self.answered else None
        at = next((at for at, each in enumerate(events) if each.id == event.id), 0)
        done = {call for each in events[at:] for call in answered(each)}.union(begun or ())
        return [call for call in owed(event) if call.id not in done]

    def written(self, agent: Any, among: Sequence[Event]) -> str:
        """What these events have written of the agent's answer under its state key; ADK writes an answer of a schema whole."""
        key = "" if getattr(agent, "output_schema", None) else getattr(agent, "output_key", None) or ""
        ids = {event.id for event in among if spoken(event.content)}
        values = [event.actions.state_delta.get(key) for event in self.events if event.id in ids]
        return next((value for value in reversed(values) if isinstance(value, str)), "")

    @property
    def awaits_a_word(self) -> bool:
        """Whether a callback has not spoken behind the answer."""
        return self.answer is not None and self.answer is self.events[-1]

    @property
    def escalated(self) -> bool:
        """Whether the agent has left its loop."""
        return any(event.actions.escalate for event in self.events)


def member_of(root: Any) -> Callable[[str, str | None], Member]:
    """The member that an agent is in a branch: of agents that are in one branch only, ADK gives some events another one."""
    several = {one.name for one in tree(root) if getattr(one, "mode", None) in ("task", "single_turn")}
    return lambda name, branch: (name, branch if _is_graph(root) or name in several else None)


def latest_turns(events: Sequence[Event], invocation: str, root: Any) -> dict[Member, list[AgentTurn]]:
    """The turns of an invocation's agents that no sequence, loop or branch has left behind, in order."""
    member = member_of(root)
    below = names_below(root)
    turns: dict[Member, list[AgentTurn]] = {}
    for event in events:
        if event.invocation_id != invocation:
            continue
        if is_from_user(event):
            _answer(turns, answered(event))
        elif event.actions.agent_state is not None:
            for left in [each for each in turns if each[0] in below.get(event.author, ())]:
                del turns[left]
        elif (parts_of(event) or event.actions.state_delta) and (event.author in below or _is_graph(root)):
            held = turns.setdefault(member(event.author, event.branch), [])
            if not held or (held[-1].answer is not None and _is_models(event)):
                held.append(AgentTurn())
            held[-1].events.append(event)
    return turns


@dataclass(frozen=True, slots=True)
class Places:
    """Where an invocation's agents stand by the notes that ADK stored; a loop that moves on clears those below it."""

    ended: set[str] = field(default_factory=set[str])
    """Agents that have ended: ADK forgets it with a word behind the note."""
    states: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The last states of those that have not: ADK finds them by paths, and a transfer changes the path."""


def places(events: Sequence[Event], invocation: str, root: Any) -> Places:
    """The standing notes of an invocation."""
    below = names_below(root)
    found = Places()
    for event in events:
        state, author = event.actions.agent_state, event.author
        if event.invocation_id != invocation:
            continue
        if state is not None:
            for name in below.get(author, ()):
                found.ended.discard(name)
                found.states.pop(name, None)
            found.states[author] = state
        elif event.actions.end_of_agent:
            found.ended.add(author)
            found.states.pop(author, None)
        elif parts_of(event) and author in below.keys() - found.ended:
            found.states.setdefault(author, {})  # what ADK itself notes, but not of agents below a transfer
    return found


def begun_again(events: Sequence[Event], invocation: str, root: Any) -> set[str]:
    """The agents that a loop has begun again: ADK clears their notes when it does, and reads them again on resuming."""
    below = names_below(root)
    found: set[str] = set()
    for event in events:
        if event.invocation_id != invocation:
            continue
        if event.actions.agent_state is not None:
            found |= below.get(event.author, set())
        found.discard(event.author)
    return found


def is_whole(
    events: Sequence[Event],
    invocation: str,
    root: str | None,
    *,
    speakers: Collection[str] = (),
    adds: bool = False,
) -> bool:
    """Whether this invocation waits for answers, or has the answer of an LLM agent: `root`, or one it transferred to.

    `speakers` are the agents that continue from their messages alone. `adds`: callbacks may add a word behind an agent's answer.
    """
    events = DistinctCalls().all(events)
    said = [event for event in events if event.invocation_id == invocation and parts_of(event)]
    waiting = open_interrupts(events)
    if waiting:
        last = {(event.author, event.branch): event for event in said}
        owing = {call.id for event in last.values() for call in owed(event)}
        return any(it.id not in owing for it in waiting)
    if said and said[-1].author == BY_PLUGIN:
        return True
    heard = {event.actions.transfer_to_agent for event in events}.intersection(speakers) | {root}
    if root is None or not said or said[-1].author not in heard or not _is_answer(said[-1]):
        return False
    return not adds or not _is_models(said[-1])


def _answer(turns: dict[Member, list[AgentTurn]], calls: Collection[str]) -> None:
    """Note the user's answers: an agent that had gone on without one begins again with it."""
    for member, held in list(turns.items()):
        its = set(calls).intersection(names(held[-1].events))
        held[-1].answered.update(its)
        if its and held[-1].answer is not None:
            del turns[member]


def owed(event: Event) -> list[FunctionCall]:
    """The calls of an event, but for ADK's own questions: whether a long-running tool has begun is not stored."""
    return [call for call in event.get_function_calls() if call.name not in QUESTIONS]


def names_below(agent: Any) -> dict[str, set[str]]:
    """The names of each agent of a tree and of those below it, by its name."""
    found: dict[str, set[str]] = {}
    _collect(agent, found)
    return found


def _collect(agent: Any, found: dict[str, set[str]]) -> dict[str, set[str]]:
    names = found.setdefault(agent.name, {agent.name})
    for one in getattr(agent, "sub_agents", None) or ():
        names |= _collect(one, found)[one.name]
    for node in getattr(getattr(agent, "graph", None), "nodes", None) or ():
        _collect(node, found)  # a workflow's notes clear nothing
    return found


def spoken(content: types.Content | None) -> str:
    """The text of a content, without thoughts."""
    parts = [] if content is None or content.parts is None else content.parts
    return "".join(part.text for part in parts if part.text and not part.thought)


def _is_graph(root: Any) -> bool:
    """Whether this is a workflow: its nodes may run agents that no tree names."""
    return getattr(root, "graph", None) is not None


def _is_models(event: Event) -> bool:
    """Whether a model gave this event, and not a callback."""
    return event.finish_reason is not None


def _is_answer(event: Event) -> bool:
    """Whether an agent's turn ends with this event: code that was written is still executed, a question answered."""
    actions = event.actions
    if actions.requested_tool_confirmations or actions.requested_auth_configs:
        return False
    parts = parts_of(event)
    if not parts or any(part.function_call for part in parts):
        return False
    # A model that executes its code itself writes on behind the result.
    executes = parts[-1].executable_code or parts[-1].code_execution_result
    return not executes and event.is_final_response()
