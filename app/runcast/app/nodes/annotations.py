"""Annotations: what people note on a thread without a run, such as a thumb on a message, a tag or a new title.

An annotation is the META event of AG-UI's draft, written as a CUSTOM event until the protocol has it. It is an entry of
the log, so every watcher receives it in its place, and it is exported and forgotten with its thread. While a run is active,
its worker writes it into that run; otherwise it is an aside, a run that no agent has and that is no history. It is written
at least once: its `id` makes a second one harmless. Knows the log, notes and followers; does not know HTTP.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NotRequired
from typing import cast as typed

import orjson
from ag_ui.core import CustomEvent, Event, RunFinishedEvent, RunStartedEvent
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from runcast.app.errors import AppError, BadRequest, Busy, NotFound
from runcast.app.nodes.handover import note_id
from runcast.app.nodes.requests import HOUR_MS
from runcast.app.runs.newest import Newest
from runcast.slim import Conflict, Forgotten, Note, UnknownThread
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.values.type_guards import is_object

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast
    from runcast.slim import Entry

NAME = "runcast.annotation"
MARK = b"annotation"  # begins the body of a note to a worker
LONGEST_TYPE = 64  # characters
LARGEST = 4_000  # bytes of a payload as JSON, so that no envelope has to cut it
PATIENCE, PAUSE = 20.0, 0.05  # seconds that a run's worker is waited for, and between two looks
MOST = 2_000  # that stand in one thread: they are one answer
KEPT = 10 * MOST  # that are held in memory, of the threads asked for last
_PAGE = 1_000  # entries read at once


class Annotation(TypedDict):
    """What was noted; where it is read, with its place in the log, and `at` in milliseconds since the Unix epoch."""

    id: str
    metaType: str
    by: NotRequired[str]
    payload: dict[str, Any] | None
    at: NotRequired[int]
    seq: NotRequired[int]


@dataclass(slots=True)
class Aside:
    """A run that is over when it is written, as followers see one."""

    thread_id: str
    run_id: str
    first_seq: int = 0
    last_seq: int = 0
    epoch: str = ""
    active: bool = True

    async def over(self) -> None:
        """Return at once."""


@dataclass(slots=True)
class Standing:
    """The annotations of a thread up to a position."""

    after: int = 0
    history: str | None = None  # that the position was taken from
    by_id: dict[str, Annotation] = field(default_factory=dict[str, Annotation])

    def feed(self, entry: Entry) -> None:
        """Read one entry: the newest of an id stands, unless it is taken back."""
        self.after, self.history = entry.seq, entry.history
        value: Any = entry.event.value if isinstance(entry.event, CustomEvent) else None
        if is_object(value) and getattr(entry.event, "name", "") == NAME:
            id = str(value.get("id"))
            self.by_id.pop(id, None)
            if value.get("payload") is not None:
                self.by_id[id] = typed("Annotation", {**value, "at": entry.at, "seq": entry.seq})


class Annotations:
    """The annotations of the threads of one cast, as `Cast.annotations`."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._read: Newest[Standing] = Newest(KEPT)  # by thread

    async def of(self, thread_id: str) -> list[Annotation]:
        """The thread's annotations as they stand, oldest first: the newest of each id, without those taken back."""
        return list((await self._standing(thread_id)).by_id.values())

    async def _standing(self, thread_id: str) -> Standing:
        """The thread's annotations; of what was read before, nothing is read again."""
        found = self._read.take(thread_id) or Standing()
        try:
            await self._read_on(thread_id, found)
        except UnknownThread:  # its history is another one now, or what stood here is pruned
            found = Standing()
            await self._read_on(thread_id, found)
        self._read.put(thread_id, found, len(found.by_id) + 1)
        return found

    def forget(self, thread_id: str) -> None:
        """Hold nothing of a thread."""
        self._read.take(thread_id)

    async def _read_on(self, thread_id: str, found: Standing) -> None:
        while entries := await self._cast.log.entries(thread_id, found.after, _PAGE, epoch=found.history):
            for entry in entries:
                found.feed(entry)

    async def add(
        self,
        thread_id: str,
        meta_type: str,
        payload: dict[str, Any] | None,
        *,
        id: str | None = None,
        by: str | None = None,
    ) -> Annotation:
        """Note something on a thread; durable when this returns. The same `id` again replaces it, and a payload of None
        takes it back. `by` names its author."""
        if not 0 < len(meta_type) <= LONGEST_TYPE:
            raise BadRequest(f"metaType must be 1 to {LONGEST_TYPE} characters")
        if payload is not None and _size(payload) > LARGEST:
            raise BadRequest(f"payload must be at most {LARGEST} bytes of JSON")
        known = await self._standing(thread_id)
        if payload is not None and id not in known.by_id and len(known.by_id) >= MOST:
            raise BadRequest(
                f"{MOST} annotations stand in this thread: take some back, with a payload of null"
            )
        value = Annotation(id=id or self._cast.options.new_id(), metaType=meta_type, payload=payload)
        if by is not None:
            value["by"] = by
        deadline = time.monotonic() + PATIENCE
        while not (await self.write(thread_id, value) or await self._handed_over(thread_id, value, deadline)):
            if time.monotonic() > deadline:
                raise Busy("the worker of this thread's run took no annotation; ask again")
        return value

    async def write(self, thread_id: str, value: Annotation) -> bool:
        """Write it from here, into the active run or aside; False while the thread is written elsewhere."""
        cast = self._cast
        event = CustomEvent(name=NAME, value=value, timestamp=time.time_ns() // 1_000_000)
        run = cast.slots.in_thread(cast.tenant, thread_id)
        try:
            if run is not None:
                return await run.announce(event)
            await self._write_aside(thread_id, event)
        except (Conflict, AppError) as error:
            if isinstance(error, NotFound):
                raise
            return False
        return True

    async def _write_aside(self, thread_id: str, event: CustomEvent) -> None:
        cast = self._cast
        if await cast.log.thread(thread_id) is None:
            raise NotFound(f"there is no thread {thread_id!r}")
        # The aside ends as the thread stands: a client that follows it keeps the questions that are open.
        ends = [each for each in await self._past(thread_id) if isinstance(each, RunFinishedEvent)]
        aside = Aside(thread_id, f"aside-{cast.options.new_id()}")
        ids: Any = {"thread_id": thread_id, "run_id": aside.run_id, "timestamp": event.timestamp}
        marks: Any = {"metadata": run_metadata(aside=True)}
        outcome = ends[-1].outcome if ends else None
        events: list[Event] = [
            RunStartedEvent(**ids, **marks),
            event,
            RunFinishedEvent(**ids, **marks, outcome=outcome),
        ]
        cast.followers.expect(aside)
        try:
            entries = await cast.log.archive.aside(thread_id, events)
        except Forgotten as error:
            cast.followers.dismiss(aside)
            raise NotFound(f"there is no thread {thread_id!r}") from error
        except BaseException:
            cast.followers.dismiss(aside)
            raise
        aside.first_seq, aside.last_seq, aside.epoch = entries[0].seq, entries[-1].seq, entries[0].epoch
        aside.active = False
        cast.followers.follow(aside)

    async def _past(self, thread_id: str) -> list[Any]:
        try:
            return await self._cast.log.restore(thread_id)
        except UnknownThread:  # no agent has run in it
            return []

    async def _handed_over(self, thread_id: str, value: Annotation, deadline: float) -> bool:
        """Leave it to the worker of the active run; False when that is gone, or did not take it in time."""
        cast, notes = self._cast, self._cast.log.notes
        thread = await cast.log.thread(thread_id)
        owner = None if thread is None else thread.owner
        await asyncio.sleep(PAUSE)
        if owner is None or owner == cast.log.owner:
            return False
        note = await notes.leave(
            note_id("annotation", cast.tenant, thread_id, value["id"]),
            box=f"stop {owner}",
            body=MARK + orjson.dumps(value),
            thread_id=thread_id,
            lasting_ms=HOUR_MS,
            replace=True,
        )
        while note is not None and note.id in {each.id for each in await notes.of_thread(thread_id)}:
            now = await cast.log.thread(thread_id)
            if now is None or now.owner != owner or time.monotonic() > deadline:
                return not await notes.take(note)
            await asyncio.sleep(PAUSE)
        return True

    async def deliver(self, note: Note) -> bool:
        """Write what another process left for the run that is active here; False to be asked again."""
        try:
            written = await self.write(note.key.thread_id, orjson.loads(note.body[len(MARK) :]))
        except NotFound:
            written = True
        if written:
            await self._cast.log.notes.take(note)
        return written


def _size(payload: dict[str, Any]) -> int:
    try:
        return len(orjson.dumps(payload))
    except TypeError as error:
        raise BadRequest(f"payload must be JSON that is not nested deeper than 250 times: {error}") from None
