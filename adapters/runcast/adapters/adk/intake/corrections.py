"""The difference between a client's latest turn and the session, as events, when a run begins.

The session stores complete events only. A message of the latest turn that the session lacks comes from a broken
attempt and is removed; a message that the client holds in part, or not at all, is sent in full. Earlier turns stay as
they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ag_ui.core import Event as AgEvent
from ag_ui.core import (
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    ToolCallResultEvent,
    ToolMessage,
)

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.adk.intake.inside_tools import InsideTools, calls_of
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
    plan: Plan | None = None,
    inside: InsideTools = InsideTools(),  # noqa: B008  # frozen
) -> list[AgEvent]:
    """The events that make the client show the session's messages; none if it does, or if its history is unknown.

    When the `plan` is a fork they restate the whole conversation, because a log and its watchers still show the old
    branch. What stands `inside` tools stays.
    """
    shown = at_client(input, resume, () if plan is None else plan.news)
    held = messages_from_events(live_events(events), root=root, options=options)
    answers = {it.tool_call_id for it in held if it.role == "tool"}
    if plan is not None and plan.before is not None:
        return [_forked(inside.added_to(held), plan)]
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
    stays = {it.id for it in held}.union(inside.ids)
    out = (it for it in output if it.id not in stays)
    gone = [it.id for it in out if it.role != "tool" or it.tool_call_id in answers]
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
    calls = {call for message in shown for call in calls_of(message)}
    results: list[AgEvent] = [_result(it) for it in placed if it.tool_call_id in calls]
    if not (gone or halves or len(unseen) > len(placed)):
        return results
    brought = [it for it in unseen if it not in placed]
    # a snapshot adds at the end what the client lacks: it has to come before what followed the turn
    later = after[end:] if behind and brought else []
    seen = Conversation(shown[: len(shown) - len(later)])
    for result in results:
        seen.feed(result)
    # a result whose call the client lacks stands behind it once the snapshot has brought the call
    rest = retract(seen, gone, [*halves, *brought])
    rest += [_result(it) for it in placed if it.tool_call_id not in calls]
    return [*results, *rest, *([_added_again(seen, rest, later)] if later else [])]


def at_client(
    input: RunAgentInput, resume: ResumePoint | None, news: Sequence[Message] = ()
) -> list[Message]:
    """The messages that the client shows when the run begins: its own, or those of its log with the new ones."""
    if resume is None or resume.history is None:
        return list(input.messages)
    known = {message.id for message in resume.history}
    return [*resume.history, *(it for it in news if it.id not in known and it.role != "tool")]


def _forked(held: Sequence[Message], fork: Plan) -> AgEvent:
    """The conversation on its new branch, with the names of what it removes."""
    undone = {
        "messages": [it.id for it in fork.undone if it.role in ("user", "assistant")],
        "reasoning": [it.id for it in fork.undone if it.role == "reasoning"],
    }
    removed = {kind: ids for kind, ids in undone.items() if ids} or None
    return MessagesSnapshotEvent(messages=[*held, *fork.news], metadata=run_metadata(corrects=removed))


def _result(message: ToolMessage) -> ToolCallResultEvent:
    owner: dict[str, Any] = (
        {} if message.subagent_run_id is None else {"subagent_run_id": message.subagent_run_id}
    )
    return ToolCallResultEvent(
        message_id=message.id,
        tool_call_id=message.tool_call_id,
        content=message.content,
        role="tool",
        metadata=message.metadata,
        **owner,
    )


def _added_again(seen: Conversation, events: Sequence[AgEvent], later: Sequence[Message]) -> AgEvent:
    """What adds these messages again behind a turn: the snapshot that restates the turn has removed them."""
    for event in events:
        seen.feed(event)
    return MessagesSnapshotEvent(messages=[it for it in (*seen.messages, *later) if it.role != "activity"])


def _is_answer(result: ToolMessage) -> bool:
    """Whether the client gave this result: it may have it though its input leaves it out, and a second would double it."""
    return result.id == answer_id(result.tool_call_id)


def _differs(shown: Message, truth: Message, *, broke: bool) -> bool:
    """Whether the client shows less than the session holds, or what a plugin has rewritten since its run broke."""
    rewritten = broke and truth.role == "assistant" and texts(shown) != texts(truth)
    return rewritten or is_partial(shown, truth)
