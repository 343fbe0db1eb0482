"""A thread, or one run of it, as server-sent events. Each has `history:seq` as its id, so that a reader can reconnect.

Knows entries and their order; does not know HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

from ag_ui.core import (
    CustomEvent,
    Event,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
)

from runcast.app.errors import BadRequest, Gone, Over
from runcast.app.host.followers import entries_of
from runcast.app.nodes.handover import STEERED, RemoteRun
from runcast.app.runs.run import Run
from runcast.app.skins.earlier_clients import Form
from runcast.broadcast import Position
from runcast.slim import Entry, ReaderTooSlow, RunLog, SlimError, UnknownThread, encode_sse
from runcast.slim.wire.codec import AnyEvent


async def live(
    log: RunLog, thread_id: str, after: int, epoch: str | None, form: Form | None = None
) -> AsyncGenerator[bytes]:
    """All events behind a position and every new one, until the reader leaves or the host closes, in the client's `form`."""
    last, known = after, epoch
    while True:
        try:
            async with aclosing(log.attach(thread_id, last, epoch=known)) as entries:
                async for entry in entries:
                    last, known = entry.seq, entry.history
                    for frame in _frames([entry.event], _place(entry), form):
                        yield frame
            return
        except ReaderTooSlow:  # the store still has what the reader missed
            continue
        except SlimError:
            return  # the reader reconnects with its position, and gets the error then


async def joined(
    log: RunLog, thread_id: str, last: str | None, form: Form | None = None
) -> AsyncGenerator[bytes]:
    """For an empty client that comes late: all it needs of the past, then the rest; `last` goes on after a cut.

    Raises `Gone` for an old position.

    A position holds once all events before it are applied, so only the last event of a portion has an id; the past of
    a thread without events is an id alone.
    """
    at, after, history = await _joined_place(log, thread_id, last) if last else (None, None, None)
    return _portions(log, thread_id, at, after, history, form)


async def past_of(log: RunLog, thread_id: str) -> tuple[dict[str, str | int], list[AnyEvent]]:
    """Where the thread is now, and what an empty client needs to be there."""
    async with aclosing(log.join(thread_id)) as portions:
        past = await anext(portions)
    mark = {"mark": past.mark} if past.mark else {}
    return {"epoch": past.epoch or "", "head": past.seq, **mark}, past.events


async def _portions(
    log: RunLog, thread_id: str, at: int | None, after: int | None, history: str | None, form: Form | None
) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(log.join(thread_id, at=at, after=after, epoch=history)) as portions:
            async for portion in portions:
                at = portion.seq if at is None else at
                place = f"{portion.history or ''}:{at}.{portion.seq}"
                for frame in _frames(portion.events, place, form):
                    yield frame
    except SlimError:
        return  # the reader comes back with its position: a slow one goes on, others get the error then


async def of_run(run: Run, log: RunLog, form: Form | None = None) -> AsyncGenerator[bytes]:
    """One run from its start to its end, in the client's `form`; one that is cut short ends with an error event without an id."""
    ended = False
    try:
        await run.begun()  # immediate, unless the run waits for a worker
        if isinstance(run, RemoteRun) and run.into is not None:
            for event in handed(run, run.into):
                yield encode_sse(event)
            return
        async with aclosing(entries_of(run, log)) as entries:
            async for entry in entries:
                if entry.run_id != run.run_id:
                    break
                ended = isinstance(entry.event, RunFinishedEvent | RunErrorEvent)
                for frame in _frames([entry.event], _place(entry), form):
                    yield frame
    except (Over, SlimError):  # `Over`: a message that waited was taken back
        pass  # reported below
    finally:
        if isinstance(run, RemoteRun):
            await run.abandon()  # this reader was its only watcher
    if not ended:
        yield encode_sse(
            RunErrorEvent(message="the run was cut short here; resume it to continue", code="truncated")
        )


def handed(run: RemoteRun, into: str) -> list[Event]:
    """The whole run of a message that the active run was handed: its answer is in that run."""
    return [
        RunStartedEvent(thread_id=run.thread_id, run_id=run.run_id),
        CustomEvent(name=STEERED, value={"run_id": run.run_id, "into": into}),
        RunFinishedEvent(
            thread_id=run.thread_id, run_id=run.run_id, outcome=RunFinishedSuccessOutcome(type="success")
        ),
    ]


def position(last_event_id: str) -> Position:
    """The position in an event's id."""
    history, _, seq = last_event_id.rpartition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) <= 16):
        raise BadRequest("send Last-Event-ID as it was received")
    return Position.of(history, int(seq))


async def holds(log: RunLog, thread_id: str, wanted: Position) -> bool:
    """Whether the log has the history that a bound position was taken from."""
    try:
        await log.entries(thread_id, wanted.offset, 0, epoch=wanted.history)
    except UnknownThread:
        return False
    return True


async def _joined_place(log: RunLog, thread_id: str, last_event_id: str) -> tuple[int, int, str]:
    """Where a thread was joined, the last seq received and its history, by an event's id; raises `Gone` for an old one."""
    history, _, places = last_event_id.rpartition(":")
    at, _, seq = places.partition(".")
    if not all(each.isascii() and each.isdigit() and len(each) <= 16 for each in (at, seq)):
        raise BadRequest("send Last-Event-ID as it was received: epoch~mark:joined.seq")
    thread = await log.thread(thread_id)
    known, head = ("", 0) if thread is None else (thread.epoch, thread.last_seq)
    pruned = any(
        each.pruned and each.first_seq <= int(at) < each.last_seq for each in await log.runs(thread_id)
    )
    wanted = Position.of(history, int(seq))
    fits = wanted.epoch in ("", known) and int(at) <= int(seq) <= head
    if pruned or not fits or not await holds(log, thread_id, wanted):
        raise Gone("this position is no longer valid: join anew, without Last-Event-ID")
    return int(at), int(seq), history


def _frames(events: Sequence[AnyEvent], place: str, form: Form | None) -> Iterator[bytes]:
    """Events in the client's form. A position holds once all of its events are applied: only the last has it."""
    shown = events if form is None else [each for event in events for each in form(event)]
    yield from map(encode_sse, shown[:-1])
    yield encode_sse(shown[-1], place) if shown else f"id: {place}\n\n".encode()


def _place(entry: Entry) -> str:
    return f"{entry.history}:{entry.seq}"
