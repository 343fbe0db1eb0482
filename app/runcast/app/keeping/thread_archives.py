"""Threads with all that is kept of them as one archive, and back: the log, what waits, webhooks' letters, and what the
agents' frameworks keep.

A thread's log is lines of slim's export; the lines after them begin with `{"beside":`. What is derived from the log alone is
made again. `beside_log.py` imports those lines. Knows the cast and its log; does not know files or the command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from runcast.adapters import Kept, Portable
from runcast.app.errors import BadRequest
from runcast.app.keeping.beside_log import BesideLog
from runcast.slim import Conflict
from runcast.slim.archive.transfer import BESIDE, together

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

        A thread that was imported before stays as it is, however far it went on; what a killed import has left is completed.
        Of a thread that cannot be imported nothing stays; those before it are whole, and stay. One whose place is taken keeps
        no other from its own: its `Conflict` is raised when all others are imported.
        """
        threads, left, refused = list[str](), Counter[str](), list[Conflict]()
        first = await anext(lines, None)
        while first is not None:
            part = _Part(first, lines)
            beside = BesideLog(self._cast, part.beside, waiting=waiting)
            try:
                (thread_id,) = await self._cast.log.archive.import_all(part.log(), beside=beside)
            except Conflict as error:
                refused.append(error)
            else:
                await beside.finish(thread_id)
                threads.append(thread_id)
                left.update(beside.left)
            first = part.next
        if refused:
            raise together(refused)
        if not threads:
            raise BadRequest("the archive has no thread")
        return Imported(threads, left)


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


async def _one(thread_id: str) -> AsyncIterator[str]:
    yield thread_id


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
