"""Decides which displayed messages the graph's state confirms, will produce again, or lacks.

Decides by the graph's own record: the messages in its state, and which tasks are done (`positions`). A message without a
place stays: it may be the application's own. A message that the client shows in part, or not at all, is replaced by the
graph's. Reads nothing: state and levels are arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ag_ui.core import AssistantMessage, Message, UserMessage

from runcast.adapters.langgraph.content.answer import answer_of
from runcast.adapters.langgraph.stream.positions import Level, is_done, place_of, stops
from runcast.slim.folding.retraction import is_partial

REASONING = ":reasoning:"  # in the id of reasoning, behind its message's


@dataclass(frozen=True, slots=True)
class Corrections:
    """What is shown, what of it is taken back, and what replaces it."""

    shown: Sequence[Message] | None = None  # None: unknown
    gone: Sequence[str] = ()
    instead: Sequence[Message] = field(default_factory=list[Message])
    order: Sequence[str] = ()  # ids of the graph's latest turn
    held: Sequence[str] = ()  # ids of the graph's messages that are shown when it has rewritten them
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])  # shown -> the graph's id of its copy

    def with_more(self, gone: Sequence[str], instead: Sequence[Message]) -> Corrections:
        """And these, each once."""
        known = {each.id for each in self.instead}
        return replace(
            self,
            gone=list(dict.fromkeys((*self.gone, *gone))),
            instead=[*self.instead, *(each for each in instead if each.id not in known)],
        )


def doubtful(shown: Sequence[Message], held: Collection[str], root: Level) -> dict[str, str]:
    """The shown messages that the state does not hold and whose task is not known to be done, with their places."""
    placed = {message.id: place_of(message) for message in shown if message.id not in held}
    return {
        key: place
        for key, place in placed.items()
        if place is not None and not is_done(stops(place)[:1], {"": root})
    }


def corrections(
    shown: Sequence[Message],
    held: Collection[str],
    turn: Mapping[str, Message],
    given: Mapping[str, Message],
    levels: Mapping[str, Level],
) -> Corrections:
    """Compare what is shown with the graph.

    `held` are the ids of the messages in the state, `turn` the messages of its latest turn, and `given` those that
    finished tasks of an unfinished step returned.
    """
    known = {message.id for message in shown}
    gone = [
        key
        for key, place in doubtful(shown, held, levels[""]).items()
        if key not in given and not is_done(stops(place), levels)
    ]
    truth = {**given, **turn}
    halves = [
        _whole(each, truth[each.id])
        for each in shown
        if each.id in truth and is_partial(each, truth[each.id])
    ]
    unseen = _unseen(shown, list(turn.values()), known)
    return Corrections(shown, gone, [*halves, *unseen], list(turn))


def unkept(
    shown: Sequence[Message], held: Collection[str], turn: Mapping[str, Message], root: Level
) -> list[str]:
    """What the latest turn shows of root steps that are over and that the state does not hold, perhaps under another id."""
    if "" in held:
        return []  # a reducer that gives no ids: nothing can be found in the state
    found: list[Message] = []
    for message in reversed(shown):
        place = place_of(message)
        if message.role == "user" and place is None:  # one with a place is a node's
            break
        if place is None or message.id in held or getattr(message, "subagent_run_id", None) is not None:
            continue
        if any(step <= root.step for _, step, _ in stops(place)[:1]):
            found.append(message)
    known = {message.id for message in shown}
    renamed = {_content(message) for key, message in turn.items() if key not in known}
    gone = [each for each in found if each.role != "reasoning" and _content(each) not in renamed]
    left = {each.id for each in gone}
    return [each.id for each in found if each.id in left or each.id.partition(REASONING)[0] in left]


def copied(shown: Sequence[Message], held: Collection[str], turn: Mapping[str, Message]) -> dict[str, str]:
    """Answers of the latest turn that the state holds as copies with ids of their own: the ids of these, in order."""
    known = {message.id for message in shown}
    copies: dict[Any, list[str]] = {}
    for key, message in turn.items():
        if key not in known:
            copies.setdefault(_content(message), []).append(key)
    answers = [
        each
        for each in shown
        if isinstance(each, AssistantMessage)
        and each.id not in held
        and each.subagent_run_id is None
        and place_of(each) is not None
    ]
    return {each.id: same.pop(0) for each in answers if (same := copies.get(_content(each)))}


def rewritten(shown: Sequence[Message], turn: Mapping[str, Message]) -> list[Message]:
    """The latest turn's message of the user and answers of the root agent that the state holds otherwise than the client
    shows them."""
    pairs = ((each, turn.get(each.id)) for each in shown if getattr(each, "subagent_run_id", None) is None)
    return [_whole(each, truth) for each, truth in pairs if truth is not None and _differ(each, truth)]


def _differ(shown: Message, truth: Message) -> bool:
    if isinstance(shown, AssistantMessage):
        return isinstance(truth, AssistantMessage) and answer_of(shown) != answer_of(truth)
    texts = (isinstance(each, UserMessage) and isinstance(each.content, str) for each in (shown, truth))
    return all(texts) and shown.content != truth.content


def _whole(half: Message, whole: Message) -> Message:
    """The whole message where its half was shown: of the same agent, at the same place."""
    of_half = {"metadata", "subagent_run_id"} & half.model_fields_set
    return whole.model_copy(update={name: getattr(half, name) for name in of_half})


def withheld(found: Corrections, *, later: bool) -> Corrections:
    """Without messages that the client has never seen: the graph has not rewritten them yet. Perhaps shown `later`."""
    known = {message.id for message in found.shown or ()}
    unseen = [message.id for message in found.instead if message.id not in known]
    seen = [message for message in found.instead if message.id in known]
    return replace(found, instead=seen, order=(), held=unseen if later else ())


def _unseen(shown: Sequence[Message], turn: Sequence[Message], known: set[str]) -> list[Message]:
    """What the graph holds of the latest turn that the client shows, and the client lacks: the log failed before.

    A client that shows nothing was torn while its messages were put in order.
    """
    if not turn or turn[0].role != "user" or (shown and turn[0].id not in known):
        return []
    displayed = {_content(message) for message in shown}
    return [
        message
        for message in turn
        if message.id not in known
        and message.role in ("user", "assistant", "tool")
        and (message.role == "user" or _content(message) not in displayed)
    ]


def _content(message: Message) -> Any:
    calls: Sequence[Any] = getattr(message, "tool_calls", None) or ()
    return message.role, str(message.content or ""), tuple(call.id for call in calls)


def replayed_corrections(history: Sequence[Message], messages: Sequence[Message]) -> Corrections:
    """For a graph without a checkpoint of the thread: displayed messages that are not replayed to it are taken back."""
    replayed = {message.id: message for message in messages}
    shown = [message for message in history if message.role in ("assistant", "tool")]
    gone = [message.id for message in shown if message.id not in replayed]
    instead = [replayed[each.id] for each in shown if replayed.get(each.id, each) != each]
    return Corrections(history, gone, instead)
