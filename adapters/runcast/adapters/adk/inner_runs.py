"""Agents that run as tools of another agent, as subagents of the run.

Their events are not in the session: only the tool's result is. So the translator keeps them until the run ends, to
restate them beside the session's messages. Does not know runners.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ag_ui.core import AssistantMessage, Message
from ag_ui.core import Event as AgEvent

from runcast.adapters.adk.agent_events import AgentEvents, RunContext
from runcast.adapters.adk.intake.session_conversation import messages_from_events
from runcast.adapters.adk.plain_values import plain
from runcast.adapters.adk.stream.parts import InnerPart, InnerRun
from runcast.adapters.adk.stream.subagents import Entry
from runcast.adapters.errors import failure

if TYPE_CHECKING:
    from google.adk.events.event import Event


class InnerRuns:
    """The inner runs of one run, by invocation."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._open: dict[str, tuple[Entry, AgentEvents]] = {}
        self._kept: dict[str, tuple[InnerRun, str, Entry, list[Event]]] = {}

    def events_of(self, invocation_id: str, own: AgentEvents) -> AgentEvents:
        """The translation that an invocation belongs to: an inner run's, or the run's own."""
        found = self._open.get(invocation_id)
        return own if found is None else found[1]

    def feed(self, part: InnerPart, own: AgentEvents) -> list[AgEvent]:
        """The start of an inner run, one of its events, or its end."""
        held = self._open.get(part.run.invocation_id)
        if held is None:
            return [] if part.ended else self._begin(part.run, own)
        entry, events = held
        if part.ended:
            return self._end(part, entry)
        if part.event is None:
            return []
        if not part.event.partial:
            self._kept[part.run.invocation_id][-1].append(part.event)
        return events.feed(part.event)

    def _begin(self, run: InnerRun, own: AgentEvents) -> list[AgEvent]:
        call_id, owner = self._call_of(run, own)
        entry = Entry(f"{run.agent}:{call_id}", run.agent, owner)
        self._open[run.invocation_id] = entry, AgentEvents(self._context, run.agent, base=entry)
        self._kept[run.invocation_id] = run, call_id, entry, []
        return self._context.blocks.subagent_started(
            entry.id,
            entry.name,
            description=run.description or None,
            parent=entry.parent,
            tool_call_id=call_id,
        )

    def _call_of(self, run: InnerRun, own: AgentEvents) -> tuple[str, str | None]:
        """The id under which the call is shown, and the subagent that made it."""
        around = self._open.get(run.within)
        callers = [own, *(events for _, events in self._open.values())] if around is None else [around[1]]
        for events in callers:
            call_id = events.calls.made_by(run.caller, run.call_id)
            if call_id in events.executing:
                return call_id, events.executing[call_id]
        return run.call_id, None

    def _end(self, part: InnerPart, entry: Entry) -> list[AgEvent]:
        _, events = self._open.pop(part.run.invocation_id)
        self._context.steps.forget(entry.id)
        blocks = self._context.blocks
        if part.error is not None:
            fault = failure(part.error)
            return blocks.subagent_failed(entry.id, fault.message, code=fault.code)
        if events.error is not None:
            return blocks.subagent_failed(entry.id, events.error.message, code=events.error.code)
        return blocks.subagent_finished(entry.id, result=plain(events.result))

    def added_to(self, messages: Sequence[Message]) -> list[Message]:
        """These messages of the session, with those of inner runs behind the call that each carried out."""
        found = list(messages)
        for run, call_id, entry, events in self._kept.values():
            at = next((n for n, message in enumerate(found) if call_id in _calls(message)), None)
            if at is not None:
                at += 1
                while at < len(found) and found[at].role == "tool":
                    at += 1
                inner = messages_from_events(
                    events, root=run.agent, options=self._context.options, base=entry
                )
                found[at:at] = [message for message in inner if message.role != "user"]
        return found


def _calls(message: Message) -> list[str]:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else None
    return [call.id for call in calls or ()]
