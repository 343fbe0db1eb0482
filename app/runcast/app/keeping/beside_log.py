"""Imports what an archive has beside a thread's log: the snapshot, messages that wait, and what agents' frameworks keep.

An imported thread starts nothing: its messages wait on only where that is asked for, and letters are never sent, because
the host that was left still owes them. Rows of frameworks are read by their adapters, which run nothing that they hold.

The log's importer calls this while it holds the thread's lease. A kill undoes nothing, so what is about to be stored is
noted first, in the box `import`: the same import again removes that, or completes it. The notes go with the thread. Knows the
cast; does not know the lines of a log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson

from runcast.adapters import AdapterError, Forgetting, Portable
from runcast.app.errors import BadRequest
from runcast.app.nodes.handover import RunRequest, note_id
from runcast.app.nodes.waiting import to_wait
from runcast.slim import Note, SlimError, SnapshotError, UnknownThread
from runcast.slim.values.identifiers import identifier

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

BOX = "import"
WAITING, AGENT = b"waiting", b"agent "  # the bodies of its notes
Row = dict[str, Any]
Messages = list[tuple[str, RunRequest]]


class BesideLog:
    """The lines beside one thread's log."""

    def __init__(self, cast: Cast, lines: Sequence[bytes], *, waiting: bool) -> None:
        self._cast = cast
        self._lines = lines  # complete when the log is
        self._waiting = waiting
        self.left = Counter[str]()  # what is left out, by what it is

    async def clear(self, thread_id: str) -> None:
        """Have the frameworks forget what a killed import has stored in them."""
        for note in await self._notes(thread_id):
            if note.body.startswith(AGENT):
                name = note.body.removeprefix(AGENT).decode()
                adapter: object = self._cast.agents.get(name)
                if not isinstance(adapter, Forgetting):
                    raise BadRequest(
                        f"an import of thread {thread_id!r} was killed: repeat it with its agent {name!r}"
                    )
                await adapter.forget(thread_id)

    async def store(self, thread_id: str) -> None:
        """Store it all, but for the messages that wait: those begin to wait when the thread is free."""
        stored = list[str]()
        try:
            messages, rows, snapshot, left = _read(self._lines)
            if snapshot is not None:
                self._cast.serializer.deserialize(snapshot["data"])
                await self._cast.log.save_snapshot(thread_id, snapshot["data"], run_id=snapshot["run_id"])
            for name, own in rows.items():
                adapter: object = self._cast.agents.get(name)
                if isinstance(adapter, Portable):
                    stored.append(name)
                    await self._store_rows(thread_id, name, adapter, own)
                else:
                    left[f"what the framework of agent {name!r} keeps"] += len(own)
            if not self._waiting:
                left["messages that wait"] += len(messages)
            elif messages:
                await self._note(thread_id, WAITING)
        except (AdapterError, BadRequest, SnapshotError, UnknownThread) as error:
            await self._undo(thread_id, stored[:-1] if isinstance(error, AdapterError) else stored)
            raise BadRequest(f"thread {thread_id!r} is not imported: {error}") from error
        except BaseException:
            await self._undo(thread_id, stored)
            raise
        self.left = +left

    async def _store_rows(self, thread_id: str, name: str, adapter: Portable, rows: Sequence[Row]) -> None:
        found: Any = adapter.kept.rows(thread_id)
        async with aclosing(found) as here:
            if await anext(here, None) is None:  # else `store` refuses, and the rows here are not ours
                await self._note(thread_id, AGENT + name.encode())
        await adapter.kept.store(thread_id, rows)

    async def _undo(self, thread_id: str, stored: Sequence[str]) -> None:
        for name in stored:
            adapter: Any = self._cast.agents[name]
            await adapter.forget(thread_id)

    async def finish(self, thread_id: str) -> None:
        """Let the messages wait, and drop the notes of this import, or of one that was killed after its log."""
        notes = await self._notes(thread_id)
        messages = _read(self._lines)[0] if any(each.body == WAITING for each in notes) else []
        if self._waiting:
            await self._let_wait(thread_id, messages)
        for note in notes:
            await self._cast.log.notes.take(note)
        if self._waiting and messages:
            await self._cast.queue.changed(thread_id)

    async def _let_wait(self, thread_id: str, messages: Messages) -> None:
        at = 0
        for run_id, request in messages:
            note = await self._cast.log.notes.leave(
                note_id("queue", self._cast.tenant, thread_id, run_id),
                box=f"queue {request.agent}",
                body=request.encode(),
                thread_id=thread_id,
                run_id=run_id,
                after=at,
            )
            at = at if note is None else note.at

    async def _notes(self, thread_id: str) -> list[Note]:
        return [each for each in await self._cast.log.notes.of_thread(thread_id) if each.box == BOX]

    async def _note(self, thread_id: str, body: bytes) -> None:
        name = note_id(BOX, self._cast.tenant, thread_id, body.decode())
        await self._cast.log.notes.leave(name, box=BOX, body=body, thread_id=thread_id)


def _read(
    lines: Sequence[bytes],
) -> tuple[list[tuple[str, RunRequest]], dict[str, list[Row]], Row | None, Counter[str]]:
    """The messages that wait, the rows of each agent, the snapshot, and what is never imported."""
    snapshot: Row | None = None
    messages, rows, left = list[tuple[str, RunRequest]](), dict[str, list[Row]](), Counter[str]()
    try:
        for line in lines:
            given: Row = orjson.loads(line)
            match given["beside"]:
                case "waiting":
                    request = RunRequest.decode(given["body"].encode())
                    plain = RunRequest(identifier("an agent's name", request.agent), request.input)
                    messages.append(
                        (identifier("a run's id", given["run_id"]), to_wait(plain, "queue", None))
                    )
                case "agent":
                    rows.setdefault(identifier("an agent's name", given["name"]), []).append(
                        dict(given["row"])
                    )
                case "snapshot":
                    run_id = identifier("a run's id", given["run_id"])
                    snapshot = {"run_id": run_id, "data": dict(given["data"])}
                case _:
                    left["webhooks' letters"] += 1
    except (KeyError, TypeError, ValueError, AttributeError, SlimError) as error:
        raise BadRequest(f"a line beside its log cannot be read: {error}") from error
    return messages, rows, snapshot, left
