"""A thread, or one run of it, as server-sent events: every one has `epoch:seq` as its id, so a reader can come back.

Knows entries and their order; does not know HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ag_ui.core import RunErrorEvent, RunFinishedEvent

from runcast.app.errors import BadRequest
from runcast.app.follow import entries_of
from runcast.app.run import Run
from runcast.app.wanted import Wanted
from runcast.broadcast import Position
from runcast.slim import Entry, ReaderTooSlow, RunLog, SlimError, encode_sse


async def live(log: RunLog, thread_id: str, after: int, epoch: str | None) -> AsyncGenerator[bytes]:
    """All events behind a position, and every new one, until nobody reads or the host closes."""
    last, known = after, epoch
    while True:
        try:
            async with aclosing(log.attach(thread_id, last, epoch=known)) as entries:
                async for entry in entries:
                    last, known = entry.seq, entry.epoch
                    yield _told(entry)
            return
        except ReaderTooSlow:  # the store has what the reader could not take in time
            continue
        except SlimError:
            return  # the reader comes back with its position, and is told then


async def of_run(run: Run, log: RunLog) -> AsyncGenerator[bytes]:
    """One run from its start to its end; one that is cut short is told so, without an id."""
    ended = False
    try:
        await run.begun()  # at once, but for one that waits for a worker
        async with aclosing(entries_of(run, log)) as entries:
            async for entry in entries:
                if entry.run_id != run.run_id:
                    break
                ended = isinstance(entry.event, RunFinishedEvent | RunErrorEvent)
                yield _told(entry)
    except SlimError:
        pass  # told below
    finally:
        if isinstance(run, Wanted):
            await run.abandon()  # nobody else watches it for this reader
    if not ended:
        yield encode_sse(
            RunErrorEvent(message="the run was cut short here; it can be taken up again", code="truncated")
        )


def position(last_event_id: str) -> Position:
    """What an event's id means."""
    epoch, _, seq = last_event_id.rpartition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) <= 16):
        raise BadRequest("Last-Event-ID must be as it was sent: epoch:seq")
    return Position(epoch, int(seq))


def _told(entry: Entry) -> bytes:
    return encode_sse(entry.event, f"{entry.epoch}:{entry.seq}")
