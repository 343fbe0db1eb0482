"""Routes that care for a thread: what waits in it, its title, its end; and threads, runs and messages as JSON.

Knows `Cast`; does not know paths and permissions (`route_table.py`).
"""

from __future__ import annotations

from typing import Annotated, Any

from ag_ui.core import ContentPart, Message, UserMessage
from pydantic import FailFast, TypeAdapter, ValidationError

from runcast.app.errors import BadRequest, NotFound
from runcast.app.http.http_messages import Answer, ApiRequest, identifier, only, optional
from runcast.app.http.json_shapes import (
    LONGEST_MESSAGE,
    LONGEST_TITLE,
    Annotate,
    AnnotationList,
    Edit,
    Forgot,
    QueueList,
    Rename,
    RunRow,
    ThreadRow,
    Titled,
)
from runcast.slim import RunInfo, ThreadInfo, UnknownThread
from runcast.slim.values.truncation import clean
from runcast.slim.wire.encoders import write_thoroughly

# one error is raised; a million are not collected
_PARTS = TypeAdapter(Annotated[list[ContentPart], FailFast()])


async def queue(request: ApiRequest, thread_id: str) -> Answer:
    """The messages that wait in a thread, the next one first."""
    await request.allow_thread(thread_id)
    rows: Any = [each.row() for each in await request.cast.queue.waiting(thread_id)]
    return Answer(QueueList(messages=rows))


async def edit(request: ApiRequest, thread_id: str, run_id: str) -> Answer:
    """Change the words of a message that waits."""
    await request.allow_thread(thread_id)
    given = message_of(only(await request.json(), Edit).get("message"), "")
    if not isinstance(given, str):
        raise BadRequest("a message that waits is edited in its words alone: send a text")
    await request.cast.queue.edit(thread_id, run_id, given)
    return await queue(request, thread_id)


async def withdraw(request: ApiRequest, thread_id: str, run_id: str) -> Answer:
    """Take back a message that waits."""
    await request.allow_thread(thread_id)
    await request.cast.queue.withdraw(thread_id, run_id)
    return await queue(request, thread_id)


async def noted(request: ApiRequest, thread_id: str) -> Answer:
    """What is noted on the thread and its messages: the newest of each id, without what was taken back."""
    await request.allow_thread(thread_id)
    found: Any = await request.cast.annotations.of(thread_id)
    return Answer(AnnotationList(annotations=found))


async def annotate(request: ApiRequest, thread_id: str) -> Answer:
    """Note something on the thread or a message without a run: a thumb, a tag, a remark. Every watcher receives it."""
    await request.allow_thread(thread_id)
    given = only(await request.json(), Annotate)
    kind, payload = given.get("metaType"), given.get("payload")
    if not isinstance(kind, str) or not isinstance(payload, dict | None):
        raise BadRequest("metaType must be a text, and payload an object or null")
    return Answer(
        await request.cast.annotations.add(
            thread_id,
            kind,
            payload,  # pyright: ignore[reportUnknownArgumentType]  # checked above
            id=optional(given, "id"),
            by=_author(request),
        )
    )


def _author(request: ApiRequest) -> str | None:
    """The user, where `identify` gives a text."""
    return request.user if isinstance(request.user, str) else None


async def rename(request: ApiRequest, thread_id: str) -> Answer:
    """Give the thread a title that everybody sees who may see the thread, at once; null takes it away."""
    await request.allow_thread(thread_id)
    title = only(await request.json(), Rename).get("title")
    if title is not None and not (isinstance(title, str) and 0 < len(title.strip()) <= LONGEST_TITLE):
        raise BadRequest(f"title must be 1 to {LONGEST_TITLE} characters, or null")
    title = None if title is None else clean(" ".join(title.split()))
    try:
        await request.cast.log.archive.rename(thread_id, title)
    except UnknownThread as error:
        raise NotFound(str(error)) from error
    renamed = None if title is None else {"title": title}
    await request.cast.annotations.add(thread_id, "rename", renamed, id="title", by=_author(request))
    return Answer(Titled(title=title))


async def message(request: ApiRequest, thread_id: str, message_id: str) -> Answer:
    """One message, whole: an activity that an envelope or a snapshot refers to. As the newest run has it, or `run`."""
    await request.allow_thread(thread_id)
    run = request.query.get("run")
    found = await request.cast.threads.message(thread_id, message_id, run and identifier("run", run))
    return Answer(b'{"message":%s}' % write_thoroughly(found))


async def forget(request: ApiRequest, thread_id: str) -> Answer:
    """Forget a thread: stop its run, delete all that is kept of it on every node, and refuse its id from then on."""
    await request.allow_thread(thread_id)
    status = await request.cast.forget(thread_id)
    return Answer(Forgot(thread_id=thread_id, status=status), 200 if status == "forgotten" else 202)


def run_row(run: RunInfo) -> RunRow:
    """A run as JSON."""
    return {
        "run_id": run.run_id,
        "parent": run.parent,
        "edge": run.edge,
        "attempt": run.attempt,
        "status": run.status,
        "first_seq": run.first_seq,
        "last_seq": run.last_seq,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "terminal": run.terminal,
        "usage": [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in run.usage or ()],
        "pruned": run.pruned,
    }


def thread_row(thread: ThreadInfo) -> ThreadRow:
    """A thread as JSON."""
    return {
        "thread_id": thread.thread_id,
        "last_seq": thread.last_seq,
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "active": thread.owner is not None,
        "title": thread.title,
        "status": thread.status,
    }


def message_of(given: Any, id: str) -> str | list[Message]:
    """A message as a page sends it: a text, or parts of which some may be files."""
    if isinstance(given, list) and given:
        try:
            return [UserMessage(id=id, content=_PARTS.validate_python(given))]
        except ValidationError as error:
            raise BadRequest(
                f"message has a part that AG-UI 1.0 does not know: {error.errors()[0]['msg']}"
            ) from None
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST_MESSAGE:
        raise BadRequest(f"message must be 1 to {LONGEST_MESSAGE} characters, or a list of content parts")
    return given
