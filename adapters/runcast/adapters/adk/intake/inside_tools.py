"""The messages of agents that ran as tools in earlier runs: the client shows them, and no session of the thread has them.

A snapshot of the session's messages would remove them. Does not know what the current run adds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ag_ui.core import AssistantMessage, Message


@dataclass(frozen=True, slots=True)
class InsideTools:
    """The messages that a client shows, and the ids of those from inside tools."""

    shown: Sequence[Message] = ()
    ids: Collection[str] = ()

    def added_to(self, held: Sequence[Message]) -> list[Message]:
        """The session's messages with those inside tools, each behind the one that it follows at the client."""
        found, at = list(held), 0
        if not self.ids:
            return found
        for message in self.shown:
            if message.id in self.ids:
                found.insert(at, message)
            at = next((n + 1 for n, it in enumerate(found) if it.id == message.id), at)
        return found


def inside_tools(
    shown: Sequence[Message], held: Sequence[Message], agent_tools: Collection[str]
) -> InsideTools:
    """The messages of agents that ran as tools (`agent_tools`), inside calls that have their results in the session."""
    if not agent_tools:
        return InsideTools()
    found = set[str]()
    ours = {it.id: it for it in held}
    owners = {None, *(it.subagent_run_id for it in held)}
    answers = {it.tool_call_id for it in held if it.role == "tool"}
    calls = {call for it in held for call in calls_of(it)}.intersection(answers)
    inside = False
    for message in shown:
        if message.id in ours:
            made = calls_of(ours[message.id])
            own = inside and message.role == "tool"
            inside = own or any(name in agent_tools and call in answers for call, name in made.items())
        elif message.subagent_run_id not in owners and (
            inside or (message.subagent_run_id or "").partition(":")[2] in calls
        ):
            found.add(message.id)
            calls |= calls_of(message).keys()
    return InsideTools(shown, found)


def calls_of(message: Message) -> Mapping[str, str]:
    """The names of a message's calls, by id."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else None
    return {call.id: call.function.name for call in calls or ()}
