"""The difference between a client's latest turn and the session, as events, when a run begins.

The session stores complete events only. A message of the latest turn that the session lacks comes from a broken
attempt and is removed; a message that the client holds in part, or not at all, is sent in full. Earlier turns stay as
they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ag_ui.core import (
    AssistantMessage,
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    ToolCallResultEvent,
    ToolMessage,
)
from ag_ui.core import Event as AgEvent

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.adk.intake.plan import Plan
from runcast.adapters.adk.intake.session_conversation import (
    answer_id,
    live_events,
    messages_from_events,
    texts,
)
from runcast.adapters.adk.options import AdkOptions
from runcast.slim.folding.conversation import Conversation
from runcast.slim.folding.retraction import is_partial, retract
from runcast.slim.folding.run_metadata import run_metadata

if TYPE_CHECKING:
    from google.adk.events.event import Event

OUTPUT = frozenset({"assistant", "tool", "reasoning"})


def corrections(
    input: RunAgentInput,
    resume: ResumePoint | None,
    events: Sequence[Event],
    root: str | None,
    options: AdkOptions,
    *,
    fork: Plan | None = None,
    agent_tools: Collection[str] = (),
) -> list[AgEvent]:
    """The events that make the client show the session's messages; none if it does, or if its history is unknown.

    On a `fork` they restate the whole conversation, because a log and its watchers still show the old branch. What agents
    said that run as tools (`agent_tools`) is in no session, and stays once their call has its result.
    """
    shown = list(input.messages if resume is None or resume.history is None else resume.history)
    held = messages_from_events(live_events(events), root=root, options=options)
    answers = {it.tool_call_id for it in held if it.role == "tool"}
    if fork is not None:
        inside = _inside_tools(shown, held, answers, agent_tools)
        return [_forked(_with(shown, inside, held), fork)]
    known = {message.id for message in shown}
    people = [message.id for message in reversed(held) if message.role == "user"]
    asked = next((each for each in people if each in known), None)
    at = next((n for n, message in enumerate(shown) if message.id == asked), None)
    if asked is None or at is None:
        return []  # the client sent only its new messages
    turn = {message.id: message for message in held[[each.id for each in held].index(asked) + 1 :]}
    after = shown[at + 1 :]
    end = next((n for n, message in enumerate(after) if message.role == "user"), len(after))
    output = [message for message in after[:end] if message.role in OUTPUT]
    stays = {it.id for it in held} | _inside_tools(output, held, answers, agent_tools)
    gone = [
        it.id
        for it in output
        if it.id not in stays and not (it.role == "tool" and it.tool_call_id not in answers)
    ]
    broke = resume is not None and bool(resume.framework.get("unfinished"))
    halves = [turn[it.id] for it in output if it.id in turn and _differs(it, turn[it.id], broke=broke)]
    unseen = [it for it in turn.values() if it.id not in known]
    order = list(turn)
    last = max((order.index(it.id) for it in output if it.id in turn), default=-1)
    # a client puts a result behind its call; a snapshot would append it behind what follows
    behind = bool(after[end:])
    own = [it for it in unseen if isinstance(it, ToolMessage)]
    late = [it for it in own if behind and (resume is not None or not _is_answer(it))]
    placed = [it for it in own if it in late or order.index(it.id) < last]
    question = next(it for it in held if it.id == asked)
    halves += [question] if texts(question) != texts(shown[at]) else []  # rewritten by a plugin
    calls = {call for message in shown for call in _calls(message)}
    results: list[AgEvent] = [_result(it) for it in placed if it.tool_call_id in calls]
    if not (gone or halves or len(unseen) > len(placed)):
        return results
    seen = Conversation(shown)
    for result in results:
        seen.feed(result)
    # a result whose call the client lacks stands behind it once the snapshot has brought the call
    later = [_result(it) for it in placed if it.tool_call_id not in calls]
    return results + retract(seen, gone, [*halves, *(it for it in unseen if it not in placed)]) + later


def _forked(held: Sequence[Message], fork: Plan) -> AgEvent:
    """The conversation on its new branch, with the names of what it removes."""
    undone = {
        "messages": [it.id for it in fork.undone if it.role in ("user", "assistant")],
        "reasoning": [it.id for it in fork.undone if it.role == "reasoning"],
    }
    removed = {kind: ids for kind, ids in undone.items() if ids} or None
    return MessagesSnapshotEvent(messages=[*held, *fork.news], metadata=run_metadata(corrects=removed))


def _inside_tools(
    output: Sequence[Message],
    held: Sequence[Message],
    answers: Collection[str],
    agent_tools: Collection[str],
) -> set[str]:
    """The messages of agents that ran as tools, inside calls that have their results."""
    found = set[str]()
    ours = {it.id: it for it in held}
    owners = {None, *(it.subagent_run_id for it in held)}
    calls = {call for it in held for call in _calls(it)}.intersection(answers)
    inside = False
    for message in output:
        if message.id in ours:
            made = _calls(ours[message.id])
            own = inside and message.role == "tool"
            inside = own or any(name in agent_tools and call in answers for call, name in made.items())
        elif message.subagent_run_id not in owners and (
            inside or (message.subagent_run_id or "").partition(":")[2] in calls
        ):
            found.add(message.id)
            calls |= _calls(message).keys()
    return found


def _with(shown: Sequence[Message], inside: Collection[str], held: Sequence[Message]) -> list[Message]:
    """These messages with those inside tools, each behind the one that it follows at the client."""
    found, at = list(held), 0
    for message in shown:
        if message.id in inside:
            found.insert(at, message)
        at = next((n + 1 for n, it in enumerate(found) if it.id == message.id), at)
    return found


def _calls(message: Message) -> dict[str, str]:
    """The names of a message's calls, by id."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else None
    return {call.id: call.function.name for call in calls or ()}


def _result(message: ToolMessage) -> ToolCallResultEvent:
    return ToolCallResultEvent(
        message_id=message.id,
        tool_call_id=message.tool_call_id,
        content=message.content,
        role="tool",
        metadata=message.metadata,
    )


def _is_answer(result: ToolMessage) -> bool:
    """Whether the client gave this result: it may have it though its input leaves it out, and a second would double it."""
    return result.id == answer_id(result.tool_call_id)


def _differs(shown: Message, truth: Message, *, broke: bool) -> bool:
    """Whether the client shows less than the session holds, or what a plugin has rewritten since its run broke."""
    rewritten = broke and truth.role == "assistant" and texts(shown) != texts(truth)
    return rewritten or is_partial(shown, truth)
