"""Joining late, at every cut: the view that a client ends with is that of one who was there all the time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunErrorEvent, RunFinishedEvent, RunStartedEvent

import tests.adapters
from runcast.slim.archive.info import Portion
from runcast.slim.errors import UnknownThread
from runcast.slim.folding.conversation import Conversation, fold
from runcast.slim.log.run_log import RunLog
from runcast.slim.protocol.verifier import verify
from runcast.slim.wire.codec import AnyEvent
from runcast.slim.wire.streams import decode_lines
from tests.conftest import LONG, share
from tests.e2e.oracle import Oracle
from tests.slim.logs import THREAD, finished, make_log, started, text, turn
from tests.slim.views import applied, judged, where_it_led
from tests.streams import structured

ENDS = (RunFinishedEvent, RunErrorEvent)


def recorded() -> Iterator[list[AnyEvent]]:
    """What the adapters made of real runs, each once."""
    folder = Path(tests.adapters.__path__[0])
    bodies = {path.read_bytes(): path for path in sorted(folder.glob("*/recordings/*.events"))}
    for body in bodies:
        events = list(decode_lines([body]))
        if events and isinstance(events[-1], ENDS):
            yield own_runs(events)


def own_runs(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """The events with a run id of its own for every run, as a log wants it."""
    seen: set[str] = set()
    out: list[AnyEvent] = []
    run_id = ""
    for event in events:
        if isinstance(event, RunStartedEvent):
            run_id = event.run_id if event.run_id not in seen else f"{event.run_id} ({len(seen)})"
            seen.add(run_id)
        if isinstance(event, RunStartedEvent | RunFinishedEvent):
            event = event.model_copy(update={"run_id": run_id})
        out.append(event)
    return out


async def joined(log: RunLog, last: int, *, at: int | None = None, after: int | None = None) -> list[Portion]:
    """All portions up to the last entry."""
    portions: list[Portion] = []
    async with asyncio.timeout(60), aclosing(log.join(THREAD, at=at, after=after)) as found:
        async for portion in found:
            portions.append(portion)
            if portion.seq >= last:
                break
    return portions


def flat(portions: Sequence[Portion]) -> list[AnyEvent]:
    return [event for portion in portions for event in portion.events]


def seen(conversation: Conversation) -> tuple[Any, ...]:
    record = conversation.runs[-1] if conversation.runs else None
    return (
        conversation.wire_messages(),
        conversation.state,
        conversation.pending_interrupts,
        record and (record.status, record.result, record.usage, record.pending_tool_call_ids),
    )


async def test_every_cut_of_every_recorded_run_leads_to_the_same_view():
    count, step = 0, 1 if LONG else 3
    for number, events in enumerate(recorded()):
        async with make_log("memory://", verify="off") as log:
            entries = await log.append_many(THREAD, events)
            wanted = seen(fold(entry.event for entry in entries))
            last = entries[-1].seq
            for cut in range(number % step, last + 1, step):
                late = flat(await joined(log, last, at=cut))
                assert seen(fold(late)) == wanted, (events[0], cut)
                assert not verify(late, "client"), (events[0], cut)
                count += 1
    assert count > share(2_000)


@pytest.mark.oracle
async def test_the_official_client_agrees(oracle: Oracle):
    rng = random.Random(20)
    requests: list[dict[str, Any]] = []
    while len(requests) < 600:
        events = own_runs(structured(rng))
        if not isinstance(events[-1], ENDS) or not isinstance(events[0], RunStartedEvent):
            continue
        async with make_log("memory://", verify="off") as log:
            last = (await log.append_many(THREAD, events))[-1].seq
            whole = [entry.event for entry in await log.entries(THREAD)]
            for cut in rng.sample(range(last + 1), k=min(4, last)):
                late = flat(await joined(log, last, at=cut))
                requests += [
                    applied(list(whole_events(whole))),
                    applied(whole_events(late)),
                    judged(whole_events(late)),
                ]
    answers = oracle.batch(requests)
    for at in range(0, len(answers), 3):
        led, late_led, valid = answers[at : at + 3]
        assert valid["ok"], (requests[at + 2], valid)
        assert where_it_led(late_led) == where_it_led(led)


def whole_events(events: Sequence[AnyEvent]) -> list[Event]:
    return list(events)  # type: ignore[arg-type]  # the streams have no unknown types


async def test_a_join_while_the_run_writes(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1"))
        events = [started("r2"), *text("m", "the", "answer", "comes", "in", "pieces"), finished("r2")]
        last = 6 + len(events)
        readers: list[asyncio.Task[list[Portion]]] = []
        for event in events:
            await log.append(THREAD, event)
            readers.append(asyncio.ensure_future(joined(log, last)))
            await asyncio.sleep(0.002)
        wanted = seen(fold(entry.event for entry in await log.entries(THREAD)))
        for reader in readers:
            portions = await reader
            assert seen(fold(flat(portions))) == wanted
            assert [portion.seq for portion in portions[1:]] == list(range(portions[0].seq + 1, last + 1))


async def test_a_client_that_joined_can_come_back(store_url: str):
    async with make_log(store_url) as log:
        entries = await log.append_many(THREAD, [*turn("r1"), *turn("r2", "one two three four five")])
        last, cut = entries[-1].seq, 9
        whole = await joined(log, last, at=cut)
        for had in range(cut, last):
            before = [portion for portion in whole if portion.seq <= had]
            rest = await joined(log, last, at=cut, after=had)
            assert [*before, *rest] == whole
            assert all(portion.epoch == entries[0].epoch for portion in rest)


async def test_a_branch_is_joined_without_its_siblings(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1", "Paris"))
        await log.append_many(THREAD, turn("r2", "London"))
        await log.branch(THREAD, "r1", "r3")
        events = turn("r3", "Tokyo at night")
        for event in events[:4]:
            await log.append(THREAD, event)
        reading = asyncio.ensure_future(joined(log, 12 + len(events)))
        await asyncio.sleep(0.02)
        await log.append_many(THREAD, events[4:])
        late = flat(await reading)
        assert [message.content for message in fold(late).messages] == [
            "well?",
            "Paris ",
            "well?",
            "Tokyo at night ",
        ]
        assert not verify(late)


async def test_a_join_begins_at_a_checkpoint_where_there_is_one(store_url: str):
    long = "a long answer that is said again " * 30
    async with make_log(store_url, codec="none") as log:
        for n in range(20):
            await log.append_many(THREAD, turn(f"r{n}", long))
        wanted = seen(fold(entry.event for entry in await log.entries(THREAD)))
        assert (await log.archive.compact(THREAD)).checkpoint_bytes > 0
        last = (await log.entries(THREAD))[-1].seq
        (portion,) = await joined(log, last)
        assert len(portion.events) == 4
        assert seen(fold(portion.events)) == wanted


async def test_a_thread_that_is_not_there_yet_is_joined_from_its_start(store_url: str):
    async with make_log(store_url) as log:
        reading = asyncio.ensure_future(joined(log, 6))
        await asyncio.sleep(0.02)
        entries = await log.append_many(THREAD, turn("r1"))
        first, *rest = await reading
        assert first == Portion(None, 0, [])
        assert flat(rest) == [entry.event for entry in entries]


async def test_places_that_mean_nothing_are_refused():
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        with pytest.raises(UnknownThread, match="ends at seq 6: it cannot be joined at 9"):
            await joined(log, 9, at=9)
        with pytest.raises(UnknownThread, match="read after 2"):
            await joined(log, 6, at=4, after=2)
