"""A message that waits: a run request in the mailbox `queue AGENT`, and its place among the others of its thread.

Pure; does not know when a message begins (`queue.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ag_ui.core import Message, TextInputContent, UserMessage

from runcast.app.errors import BadRequest
from runcast.app.nodes.handover import OnBusy, RunRequest, new_messages
from runcast.slim import Note, RunInfo

QUEUED = "runcast.queued"  # the CUSTOM event that lists what waits
EXCERPT = 200  # characters of a message in that event


@dataclass(frozen=True, slots=True)
class Waiting:
    """One message that waits for its thread."""

    note: Note
    request: RunRequest

    @property
    def run_id(self) -> str:
        """The id of the run that it will begin."""
        return self.note.run_id

    @property
    def message(self) -> Message | None:
        """The user's last message of the request."""
        given = self.request.input
        return next((each for each in reversed(given.messages if given else []) if each.role == "user"), None)

    @property
    def text(self) -> str:
        """Its words."""
        return "" if self.message is None else words_of(self.message)

    @property
    def ahead(self) -> bool:
        """Whether it goes before messages that only wait their turn."""
        return self.request.on_busy in ("interrupt", "rollback")

    def for_run(self, agent: str, history: Sequence[Message]) -> list[UserMessage]:
        """What a running agent can be handed of it, now that the thread holds this history: new texts alone."""
        given = self.request.input
        if given is None or not is_plain(self.request) or self.request.agent != agent:
            return []
        new = new_messages(given.messages, history)
        said = [each for each in new if isinstance(each, UserMessage) and isinstance(each.content, str)]
        return said if len(said) == len(new) else []

    def row(self, most: int | None = None) -> dict[str, Any]:
        """It as JSON, with at most so many characters of its words."""
        return {
            "run_id": self.run_id,
            "text": self.text[:most],
            "on_busy": self.request.on_busy,
            "agent": self.request.agent,
            "at": self.note.at,
            "files": 0 if self.message is None else len(files_of(self.message)),
        }

    def edited(self, text: str) -> bytes:
        """The body of its note with other words in its last user message, whose files stay; raises when it has none."""
        given = self.request.input
        messages = list(given.messages if given else [])
        at = next((n for n in reversed(range(len(messages))) if messages[n].role == "user"), None)
        if given is None or at is None:
            raise BadRequest("this request has no user message that could be edited")
        files = files_of(messages[at])
        content: Any = [TextInputContent(text=text), *files] if files else text
        messages[at] = UserMessage(id=messages[at].id, content=content)
        return replace(self.request, input=given.model_copy(update={"messages": messages})).encode()

    def begun(self) -> bytes:
        """The body of its note while a worker starts it."""
        return replace(self.request, begins=True).encode()


def is_plain(request: RunRequest) -> bool:
    """Whether the request is to be handed to the active run, and its last message can be."""
    given = request.input
    last = given.messages[-1] if given is not None and given.messages else None
    texts = isinstance(last, UserMessage) and isinstance(last.content, str)
    return request.on_busy == "steer" and request.edge == "continue" and texts


def words_of(message: Message) -> str:
    """A message's text; other parts of it have none."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    return " ".join(each.text for each in content or () if getattr(each, "type", "") == "text")


def files_of(message: Message) -> list[Any]:
    """The parts of a message that are no text."""
    content: Any = [] if isinstance(message.content, str) else message.content or []
    return [each for each in content if each.type != "text"]


def in_order(notes: Iterable[Note]) -> list[Waiting]:
    """The messages that wait in a thread, the next one first; other notes are left out."""
    waiting = [Waiting(note, RunRequest.decode(note.body)) for note in notes if note.box.startswith("queue ")]
    return sorted(
        waiting, key=lambda each: (not each.request.begins, not each.ahead, each.note.at, each.note.id)
    )


def to_wait(request: RunRequest, on_busy: OnBusy, over: str | None) -> RunRequest:
    """The request as it waits: it continues from whatever is newest when it begins."""
    if request.edge == "branch":
        return replace(request, on_busy=on_busy, over=over, append=True)
    return replace(request, on_busy=on_busy, over=over, append=True, edge="continue", parent=None)


def to_begin(request: RunRequest, runs: Sequence[RunInfo]) -> RunRequest:
    """The request as it begins: one that takes a run back starts where the thread was before that run."""
    newest = runs[-1] if runs else None
    if request.on_busy != "rollback" or newest is None or newest.run_id != request.over:
        return request
    edge: Literal["branch"] = "branch"
    return replace(request, edge=edge, parent=before(newest, runs))


def before(run: RunInfo, runs: Sequence[RunInfo]) -> str | None:
    """The run before this one and before the attempts that it continues; None at the thread's beginning."""
    known = {each.run_id: each for each in runs}
    parent = known.get(run.parent or "")
    while parent is not None and run.edge == "resume" and parent.status == "truncated":
        run, parent = parent, known.get(parent.parent or "")
    return None if parent is None else parent.run_id


def heads(notes: Iterable[Note]) -> list[Note]:
    """One waiting note of each thread."""
    return list({note.key: note for note in notes}.values())
