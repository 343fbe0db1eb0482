"""Imports threads from the lines that `thread_lines` writes into another store.

Several threads are imported one after the other: each is stored whole, or not at all. One whose place is taken keeps no other
from its own: the lines of all are read before that is an error.

An importer gives the lease of a thread back when all of it is stored. So a thread that an importer's expired lease holds is
what a killed import has left: the next import removes it and begins again. A thread that is here counts as imported when it
has the archive's runs first, by their ids and marks, however far it went on since. Does not know files or compression.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from textwrap import shorten
from typing import Protocol, get_args

import orjson

from runcast.slim.archive.run_end import type_of, usage_of
from runcast.slim.archive.thread_lines import FORMAT, MARK, PAGE, RAW, WITH_RAWS, Line
from runcast.slim.entry import is_mark
from runcast.slim.errors import Conflict, WireError
from runcast.slim.stores import Store
from runcast.slim.stores.records import (
    IMPORTER,
    Batch,
    Edge,
    Key,
    Lease,
    NewEvent,
    NewRun,
    RunEnd,
    RunStatus,
    StoredRun,
    StoredThread,
)
from runcast.slim.values.identifiers import identifier
from runcast.slim.wire.codec import decode, encode

EDGES: tuple[Edge, ...] = get_args(Edge)
ENDS: tuple[RunStatus, ...] = ("completed", "failed", "interrupted", "cancelled", "truncated")
LONGEST_EPOCH = 64  # as readers bring it back
LONGEST_RUN_ID = 4_096  # a subagent's id holds its parents' ids
LATEST = 2**53  # milliseconds that every store and every reader can hold
LONGEST_TITLE, LONGEST_REASON = 1_000, 240  # characters; a reason is one line, whatever it quotes
MOST_NAMED = 3  # threads in one error
BESIDE = b'{"beside":'  # begins a line of what is kept outside the log; a host imports it


class Beside(Protocol):
    """What belongs to imported threads and is kept outside the log."""

    async def clear(self, thread_id: str) -> None:
        """Remove what a killed import has stored beside this thread's log, which is removed next."""
        ...

    async def store(self, thread_id: str) -> None:
        """Store it: the log is whole, and its lease is held. When this raises, the log is removed."""
        ...


class Importer:
    """Writes the lines of a thread into a store, run by run."""

    def __init__(
        self,
        store: Store,
        tenant: str,
        *,
        owner: str,
        clock: Callable[[], int],
        lease_ms: int,
        new_id: Callable[[], str],
        beside: Beside | None = None,
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._owner = IMPORTER + owner
        self._clock = clock
        self._now = clock()
        self._lease_ms = lease_ms
        self._new_id = new_id
        self._beside = beside
        self._lease: Lease | None = None
        self._next = 1
        self._run: Line | None = None
        self._number = 0
        self._events: list[NewEvent] = []
        self._raws: list[NewEvent] = []
        self._header: Line = {}
        self._here: _RunsHere | None = None  # of a thread that is here already
        self._passes = False  # over the lines of a thread that cannot be imported
        self._refused: list[Conflict] = []
        self.threads: list[str] = []

    @property
    def leases(self) -> list[Lease]:
        """The lease of the thread that is being written, for its renewal."""
        return [] if self._lease is None else [self._lease]

    async def read(self, lines: AsyncIterator[bytes]) -> list[str]:
        """Import all lines; returns the ids of their threads. After an error the caller calls `undo`.

        A thread whose place is taken is passed over, and the `Conflict` is raised when the others are whole."""
        number = 0
        async for line in lines:
            number += 1
            if not self.threads or line.startswith(b'{"runcast":'):
                await self._close()
                header = _header(line)
                self.threads.append(str(header["thread_id"]))
                with self._passing():
                    self._here = await self._find(header)
                    if self._here is None:
                        await self._open(header)
            elif not self._passes and not line.startswith(BESIDE):
                await self._take(line, number)
        if not self.threads:
            raise WireError("no lines", expected="a thread as export writes it")
        await self._close()
        if self._refused:
            raise together(self._refused)
        return self.threads

    @contextmanager
    def _passing(self) -> Generator[None]:
        """Pass over the thread's lines when it cannot be imported."""
        self._passes = False
        try:
            yield
        except Conflict as error:
            self._passes = True
            self._refused.append(error)

    async def _close(self) -> None:
        """The thread is whole: give its lease back."""
        if self._lease is not None:
            await self._end_run()
            if (held := self._next - 1) != (told := self._header["last_seq"]):
                raise WireError(
                    f"the thread has {held} entries of {told}: the export was cut, or changed",
                    expected="all of its lines",
                )
            if "title" in self._header:
                await self._store.rename(self._lease.key, self._header["title"])
            if self._beside is not None:
                await self._beside.store(self._lease.key.thread_id)
            await self._append(self._lease, until=None)
            self._lease, self._next = None, 1

    async def undo(self) -> None:
        """Remove the thread that is not whole, unless it was lost to another owner. No other may renew its lease now."""
        if self._lease is not None:
            await self._remove(self._lease)

    async def _remove(self, lease: Lease) -> bool:
        """Delete the thread while its lease is held: released first, half a thread would look whole."""
        until = self._until()
        if await self._store.renew([lease], until=until):
            return False
        return await self._store.delete(lease.key, now=until + 1)

    def _until(self) -> int:
        return self._clock() + self._lease_ms

    def _key(self, header: Line) -> Key:
        return Key(self._tenant, str(header["thread_id"]))

    async def _find(self, header: Line) -> _RunsHere | None:
        """The runs of the thread, if it is here already, perhaps with later ones."""
        key = self._key(header)
        thread = await self._store.thread(key)
        if thread is None or thread.last_seq == 0 or self._is_left(thread):
            return None
        if _is_importers(thread):
            raise Conflict(f"thread {key.thread_id!r} is being imported: try again when that has ended")
        if header.get("epoch") != thread.epoch or header["last_seq"] > thread.last_seq:
            raise _other(key.thread_id)
        return _RunsHere(await self._store.runs(key))

    def _is_left(self, thread: StoredThread) -> bool:
        """Whether a killed import has left the thread as it is."""
        return _is_importers(thread) and (thread.until or 0) < self._clock()

    async def _open(self, header: Line) -> None:
        key, self._header = self._key(header), header
        thread = await self._store.thread(key)
        if thread is not None and self._is_left(thread):
            left = await self._acquire(key, thread.epoch)  # of several imports one goes on
            if self._beside is not None:
                await self._beside.clear(key.thread_id)
            await self._remove(left)
        self._lease = await self._acquire(key, str(header.get("epoch") or self._new_id()))

    async def _acquire(self, key: Key, epoch: str) -> Lease:
        """The lease; a thread without entries, which any caller may have made, gets the epoch too."""
        now, until = self._clock(), self._until()
        return await self._store.acquire(key, owner=self._owner, now=now, until=until, epoch=epoch, anew=True)

    async def _take(self, line: bytes, number: int) -> None:
        try:
            if self._here is not None:
                with self._passing():
                    if not self._here.has(line):
                        raise _other(self.threads[-1])
                return
            head, mark, payload = line.rstrip().partition(MARK)
            if RAW in head and not line.startswith(b'{"run":'):  # its payload may hold a mark
                self._take_raw(line)
                return
            fields: Line = orjson.loads(head + b"}" if mark else line)
            if not mark:
                await self._end_run()
                self._run = _run(fields["run"], self._next, self._now)
                return
            event = decode(payload[:-1], legacy=False)
            self._events.append(
                NewEvent(self._next, _time(fields, "at", self._now), type_of(event), encode(event))
            )
        except (KeyError, TypeError, ValueError, WireError) as error:
            why = shorten(str(error), LONGEST_REASON)
            raise WireError(f"line {number} is not a line of an exported thread ({why})") from error
        if self._run is None:
            raise WireError(f"line {number}: an entry before any run")
        self._next += 1
        if len(self._events) >= PAGE:
            await self._write()

    def _take_raw(self, line: bytes) -> None:
        head, _, payload = line.rstrip().partition(RAW)
        fields: Line = orjson.loads(head + b"}")
        orjson.loads(payload[:-1])
        seq, kind = max(1, self._next - 1), identifier("a raw part's type", fields["type"])
        if self._run is None:
            raise WireError("a raw part before any run")
        self._raws.append(NewEvent(seq, _time(fields, "at", self._now), kind, payload[:-1]))

    async def _end_run(self) -> None:
        run, lease = self._run, self._lease
        if run is not None and lease is not None:
            if self._events or self._raws or not self._number:
                await self._write()
            now = int(run.get("ended_at") or run["started_at"])
            # ended before this thread was made: no host resumes it by itself
            if run["status"] == "truncated":
                now = min(now, self._now - 1)
            await self._append(lease, end=_end(run), now=now)
        self._run, self._number = None, 0

    async def _write(self) -> None:
        if self._lease is not None and self._run is not None:
            self._number = await self._append(self._lease, now=int(self._run["started_at"]))

    async def _append(
        self, lease: Lease, *, end: RunEnd | None = None, now: int | None = None, until: int | None = -1
    ) -> int:
        run, events, raws = self._run, tuple(self._events), tuple(self._raws)
        self._events, self._raws = [], []
        place: NewRun | int = self._number
        if run is not None and not self._number:
            names = (run["run_id"], run.get("parent"), run["edge"], run.get("wire_parent"))
            place = NewRun(*names, run.get("mark", ""))
        batch = Batch(
            lease.key,
            lease.owner,
            lease.token,
            batch_id=self._new_id(),
            first_seq=self._next - len(events),
            run=place,
            events=events,
            raws=raws,
            end=end,
            until=self._until() if until == -1 else until,
            now=self._now if now is None else now,
        )
        return await self._store.append(batch)


class _RunsHere:
    """The runs of a thread that is here already, and how far an archive's lines are the same."""

    def __init__(self, runs: Sequence[StoredRun]) -> None:
        self._runs = iter(runs)
        self._run: StoredRun | None = None
        self._next = 1

    def has(self, line: bytes) -> bool:
        """Whether the next line is about what is here: the same run, or one more entry of it."""
        if line.startswith(b'{"run":'):
            given: Line = orjson.loads(line)["run"]
            run = self._run = next(self._runs, None)
            return (
                run is not None
                and (run.run_id, run.first_seq) == (given["run_id"], self._next)
                and given.get("mark", run.mark) == run.mark
            )
        head, mark, _ = line.partition(MARK)
        self._next += bool(mark and RAW not in head)
        return self._run is not None and self._run.last_seq >= self._next - 1


def together(refused: Sequence[Conflict]) -> Conflict:
    """One error for the threads of an archive that were not imported."""
    if len(refused) == 1:
        return refused[0]
    first = "; ".join(map(str, refused[:MOST_NAMED]))
    return Conflict(f"{len(refused)} threads are not imported, all others are: {first}")


def _other(thread_id: str) -> Conflict:
    return Conflict(f"thread {thread_id!r} exists already with other entries: delete it first")


def _is_importers(thread: StoredThread) -> bool:
    return (thread.owner or "").startswith(IMPORTER)


def _header(line: bytes) -> Line:
    try:
        header: Line = orjson.loads(line)
        if header["runcast"] not in (FORMAT, WITH_RAWS):
            raise WireError("an export of another format", expected=f"format {FORMAT}")
        identifier("the header's thread_id", header["thread_id"])
        _whole_number(header, "last_seq")
        if header.get("epoch"):
            identifier("the header's epoch", header["epoch"], longest=LONGEST_EPOCH)
        if "title" in header:
            identifier("the header's title", header["title"], longest=LONGEST_TITLE)
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(
            f"no exported thread ({shorten(str(error), LONGEST_REASON)})",
            expected="the lines that export writes",
        ) from error
    return header


def _run(line: Line, first_seq: int, now: int) -> Line:
    """The line about a run that begins at this seq, if its fields are valid."""
    if line["edge"] not in EDGES or line["status"] not in ENDS:
        raise ValueError(f"edge {line['edge']!r}, status {line['status']!r}")
    for name in ("run_id", *(name for name in ("parent", "wire_parent", "terminal") if name in line)):
        identifier(name, line[name], longest=LONGEST_RUN_ID)
    usage_of(orjson.dumps(line.get("usage", [])))  # raises when it is not valid
    mark = line.get("mark")
    if mark is not None and not (is_mark(mark) and mark.startswith(f"{first_seq}.")):
        raise ValueError(f"mark is {mark!r:.40}, of a run that begins at {first_seq}")
    times = {name: _time(line, name, now) for name in ("started_at", "ended_at") if name in line}
    return line | {"started_at": times["started_at"], **times}


def _time(line: Line, name: str, now: int) -> int:
    """Milliseconds, never of the future: what claims so would outlive every retention."""
    return min(now, _whole_number(line, name))


def _whole_number(line: Line, name: str) -> int:
    value = line[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LATEST:
        raise ValueError(f"{name} is {value!r:.40}, not a whole number from 0 to 2**53")
    return value


def _end(run: Line) -> RunEnd:
    usage = run.get("usage")
    return RunEnd(run["status"], run.get("terminal"), None if usage is None else orjson.dumps(usage))
