"""Threads with all that is kept of them as one archive, and back: the log, what waits, webhooks' letters, and what the
agents' frameworks keep.

A thread's log is lines of slim's export; the lines after them begin with `{"beside":`. What is derived from the log alone is
made again. An imported thread starts nothing: its messages wait on only where that is asked for, and
letters are never sent, because the host that was left still owes them. Rows of frameworks are read by their adapters,
which run nothing that they hold. Knows the cast and its log; does not know files or the command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from runcast.adapters import AdapterError, Kept, Portable
from runcast.app.errors import BadRequest
from runcast.app.nodes.handover import RunRequest, note_id
from runcast.app.nodes.waiting import to_wait
from runcast.slim import SlimError, SnapshotError, UnknownThread
from runcast.slim.archive.transfer import BESIDE
from runcast.slim.values.identifiers import identifier

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast

PAGE = 100  # threads
MOST_BESIDE = 512 << 20  # bytes of one thread, held in memory until its log is there
HEADER = b'{"runcast":'
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought, and how much of the archive it left out."""

    threads: list[str]
    left: Mapping[str, int] = field(default_factory=dict[str, int])  # by what it is, for a sentence


class ThreadArchives:
    """Exports and imports of one cast, as `Cast.archives`."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast

    async def export(self, thread_id: str | None = None) -> AsyncGenerator[bytes]:
        """The lines of a thread, or of all threads, each with its line break."""
        async for each in self._threads() if thread_id is None else _one(thread_id):
            async for line in self._cast.log.archive.export_lines(each):
                yield line
            async for row in self._beside(each):
                yield orjson.dumps(row) + b"\n"

    async def _threads(self) -> AsyncIterator[str]:
        after = ""
        while page := await self._cast.log.threads(limit=PAGE, after=after):
            for each in page:
                yield each.thread_id
            after = page[-1].thread_id

    async def _beside(self, thread_id: str) -> AsyncIterator[Row]:
        log = self._cast.log
        runs, kept = await log.runs(thread_id), await log.snapshot(thread_id)
        ends = {run.run_id: run.last_seq for run in runs}
        if kept is not None and kept.seq == ends.get(kept.run_id) and not any(run.pruned for run in runs):
            yield {"beside": "snapshot", "run_id": kept.run_id, "data": kept.data}
        for each in await self._cast.queue.waiting(thread_id):
            yield {"beside": "waiting", "run_id": each.run_id, "body": _text(each.note.body)}
        for note in await log.notes.of_thread(thread_id):
            if note.box.startswith("webhook "):
                yield {"beside": "letter", "box": note.box, "run_id": note.run_id, "body": _text(note.body)}
        done: list[Kept] = []
        for name, adapter in self._cast.agents.items():
            if isinstance(adapter, Portable) and adapter.kept not in done:  # agents may share a checkpointer
                done.append(adapter.kept)
                async for row in adapter.kept.rows(thread_id):
                    yield {"beside": "agent", "name": name, "row": row}

    async def import_all(self, lines: AsyncIterator[bytes], *, waiting: bool = False) -> Imported:
        """Import an archive of any number of threads; with `waiting`, the messages that wait in them begin here.

        A thread that was imported before and is unchanged stays as it is. Of a thread that cannot be imported nothing stays;
        those before it are whole, and stay.
        """
        threads, left = list[str](), Counter[str]()
        first = await anext(lines, None)
        while first is not None:
            part = _Part(first, lines)
            new = await self._is_new(first)
            (thread_id,) = await self._cast.log.archive.import_all(part.log())
            threads.append(thread_id)
            if new:
                left.update(await self._import(thread_id, part.beside, waiting=waiting))
            first = part.next
        if not threads:
            raise BadRequest("the archive has no thread")
        return Imported(threads, left)

    async def _is_new(self, header: bytes) -> bool:
        try:
            thread_id: object = orjson.loads(header)["thread_id"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return True  # the log refuses it
        thread = await self._cast.log.thread(thread_id) if isinstance(thread_id, str) else None
        return thread is None or thread.last_seq == 0

    async def _import(self, thread_id: str, lines: Sequence[bytes], *, waiting: bool) -> Counter[str]:
        stored = list[str]()
        try:
            messages, rows, snapshot, left = _read(lines)
            if snapshot is not None:
                self._cast.serializer.deserialize(snapshot["data"])
                await self._cast.log.save_snapshot(thread_id, snapshot["data"], run_id=snapshot["run_id"])
            for name, own in rows.items():
                adapter: object = self._cast.agents.get(name)
                if isinstance(adapter, Portable):
                    stored.append(name)
                    await adapter.kept.store(thread_id, own)
                else:
                    left[f"what the framework of agent {name!r} keeps"] += len(own)
            if not waiting:
                left["messages that wait"] += len(messages)
            if waiting:
                await self._let_wait(thread_id, messages)
        except (AdapterError, BadRequest, SnapshotError, UnknownThread) as error:
            await self._undo(thread_id, stored[:-1] if isinstance(error, AdapterError) else stored)
            raise BadRequest(f"thread {thread_id!r} is not imported: {error}") from error
        except BaseException:
            await self._undo(thread_id, stored)
            raise
        if waiting and messages:
            await self._cast.queue.changed(thread_id)
        return +left

    async def _let_wait(self, thread_id: str, messages: Sequence[tuple[str, RunRequest]]) -> None:
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

    async def _undo(self, thread_id: str, stored: Sequence[str]) -> None:
        for name in stored:
            adapter: Any = self._cast.agents[name]
            await adapter.forget(thread_id)
        await self._cast.log.archive.delete(thread_id)


class _Part:
    """The lines of one thread: those of its log are handed on, those beside it are kept."""

    def __init__(self, first: bytes, lines: AsyncIterator[bytes]) -> None:
        self._first, self._lines = first, lines
        self.beside: list[bytes] = []
        self._bytes = 0
        self.next: bytes | None = None  # the first line of another thread

    async def log(self) -> AsyncGenerator[bytes]:
        yield self._first
        async for line in self._lines:
            if line.startswith(HEADER):
                self.next = line
                return
            if line.startswith(BESIDE):
                self._bytes += len(line)
                if self._bytes > MOST_BESIDE:
                    raise BadRequest(f"a thread has more than {MOST_BESIDE} bytes beside its log")
                self.beside.append(line)
            else:
                yield line


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


async def _one(thread_id: str) -> AsyncIterator[str]:
    yield thread_id


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
