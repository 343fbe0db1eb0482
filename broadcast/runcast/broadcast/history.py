"""Past envelopes from the log, for the hub's and the HTTP API's `after`.

Nothing is stored twice: a run's entries are mapped again from its start, which gives the same envelopes as the first
time. Knows the log and the mapper; does not know sockets or HTTP.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runcast.broadcast.config import Choice, chosen
from runcast.broadcast.envelopes.budget import Budget
from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.envelopes.mapper import EnvelopeMapper
from runcast.broadcast.envelopes.rollup import Stretches
from runcast.broadcast.hub.memory.ring import Replay
from runcast.broadcast.hub.signatures import Position
from runcast.slim.errors import UnknownThread

if TYPE_CHECKING:
    from runcast.slim import RunLog

_READ = 1_000  # entries read at once
_LONGEST = 10_000  # entries that are read for one answer whose texts are joined
_PLACES = 256  # mappers kept for readers that continue from there


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some envelopes after a position; `more`: the thread has later ones."""

    recovered: bool
    epoch: str
    head: int
    envelopes: Sequence[Envelope] = ()
    more: bool = False
    mark: str = ""  # of the run that holds the head


class LogHistory:
    """Maps a thread's log for readers that were away. One for any number of threads."""

    def __init__(self, log: RunLog, *, config: Choice | None = None, budget: Budget | None = None) -> None:
        self._log = log
        self._config = config
        self._budget = budget
        self._places: OrderedDict[tuple[str, str], tuple[int, str, EnvelopeMapper]] = OrderedDict()

    async def __call__(self, session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        """All envelopes after a position, for the hub; not recovered when there are more than `most`."""
        stretch = await self.read(session_id, position, most=most, until=until)
        if not stretch.recovered or stretch.more:
            return Replay(False, stretch.epoch, stretch.head, mark=stretch.mark)
        return Replay(True, stretch.epoch, stretch.head, stretch.envelopes, stretch.mark)

    async def read(
        self,
        session_id: str,
        position: Position,
        *,
        most: int,
        until: int | None = None,
        joined: bool = False,
    ) -> Stretch:
        """At most about `most` envelopes after a position, the first one chained to it; whole entries only.

        `joined` makes one envelope of neighbouring pieces of a text, as a reader receives that is behind.
        """
        thread = await self._log.thread(session_id)
        if thread is None:
            return Stretch(position.offset == 0 and not position.epoch, "", 0)
        epoch, head = thread.epoch, thread.last_seq
        elsewhere = Stretch(False, epoch, head, mark=thread.mark)
        if position.epoch not in ("", epoch) or position.offset > head:
            return elsewhere
        end = head if until is None else min(until, head)
        try:
            if position.mark:
                await self._log.entries(session_id, position.offset, 0, epoch=position.history)
            found, seq = await self._map(session_id, epoch, position.offset, end, most, joined)
        except UnknownThread:  # another history, or the events of that run are pruned
            return elsewhere
        return Stretch(True, epoch, head, _chained(found, position.offset), seq < end, thread.mark)

    async def _map(
        self, session_id: str, epoch: str, after: int, end: int, most: int, joined: bool
    ) -> tuple[list[Envelope], int]:
        """Envelopes of the entries in `after < seq <= end`, until there are `most`; and the last seq that was read."""
        seq, history, mapper = self._places.pop((session_id, epoch), (after + 1, epoch, None))
        if mapper is None or seq > after:
            seq, history, known = await self._start(session_id, after), epoch, False
            mapper = EnvelopeMapper(chosen(self._config, session_id), budget=self._budget)
        else:
            known = True
        found = Stretches(mapper.config.max_envelope_bytes if joined else 0)
        while seq < end and len(found) < most and not (joined and found and seq - after >= _LONGEST):
            try:
                entries = await self._log.entries(session_id, seq, _READ, epoch=history)
            except UnknownThread:
                if known:  # the kept mapper is of another history
                    return await self._map(session_id, epoch, after, end, most, joined)
                raise
            if not entries:
                break
            await asyncio.sleep(0)  # a long run must not hold up those who watch others
            for entry in entries:
                if entry.seq > end or len(found) >= most:
                    break
                envelopes = mapper.feed(entry)
                seq, history = entry.seq, entry.history
                if seq > after:
                    for envelope in envelopes:
                        found.add(envelope)
        self._places[session_id, epoch] = (seq, history, mapper)
        while len(self._places) > _PLACES:
            self._places.popitem(last=False)
        return found.envelopes(), seq

    async def _start(self, session_id: str, after: int) -> int:
        """The seq before the run of the first requested entry: a mapper needs a run from its first event.

        Inside a pruned run it cannot continue: its entries are folded, and would repeat earlier envelopes.
        """
        runs = await self._log.runs(session_id)
        if any(run.pruned and run.first_seq <= after < run.last_seq for run in runs):
            raise UnknownThread(
                f"thread {session_id!r} is pruned around {after}: start over from its snapshot"
            )
        return max((run.first_seq - 1 for run in runs if run.first_seq <= after + 1), default=0)


def _chained(envelopes: list[Envelope], after: int) -> list[Envelope]:
    """The same, with the requested seq as `prev` of the first entry's envelopes."""
    first = envelopes[0].seq if envelopes else 0
    return [replace(each, prev=after) if each.seq == first else each for each in envelopes]
