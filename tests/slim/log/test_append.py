"""Appending: places without holes, what is durable when, what is refused, and what never gets in."""

from __future__ import annotations

import asyncio
import logging

import pytest
from ag_ui.core import (
    CustomEvent,
    Interrupt,
    RawEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedInterruptOutcome,
    TextMessageContentEvent,
    TextMessageStartEvent,
    TokenUsage,
)

from runcast.slim.entry import Entry
from runcast.slim.errors import Conflict, InvalidStream, LineageError, StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.stores import open_store
from runcast.slim.tasks import HEAVY
from runcast.slim.wire.codec import AnyEvent, UnknownEvent, encode
from tests.slim.logs import NOW, THREAD, Clock, Gate, contents, finished, make_log, seqs, started, text, turn


def custom(value: object) -> CustomEvent:
    return CustomEvent(name="n", value=value)


async def test_entries_count_from_one_and_come_back_as_they_were(store_url: str):
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        events = turn("r1", "one two three")[1:]
        given = [await log.append(THREAD, started("r1"))]
        for event in events:
            clock.pass_ms(5)
            given.append(await log.append(THREAD, event))
        kept = await log.entries(THREAD)
        assert kept == given
        assert seqs(kept) == list(range(1, len(events) + 2))
        assert [entry.event for entry in kept] == [started("r1"), *events]
        assert [entry.at for entry in kept] == [NOW + 5 * n for n in range(len(kept))]
        assert {(entry.thread_id, entry.run_id) for entry in kept} == {(THREAD, "r1")}
        assert len({entry.epoch for entry in kept}) == 1
        assert seqs(await log.entries(THREAD, after=4, limit=2)) == [5, 6]
        assert await log.entries("elsewhere") == []


async def test_what_is_durable_when(store_url: str):
    store, writes = open_store(store_url), Gate()
    writes.guard(store)
    log = RunLog(store, flush_events=4, derive="manual")

    async def durable() -> int:
        thread = await log.thread(THREAD)
        return thread.last_seq if thread else 0

    await log.append(THREAD, started())
    assert await durable() == 1, "the first event of a run, at once"
    await log.append(THREAD, custom(0))
    await writes.passed()
    assert await durable() == 2, "another at once, while the store is idle"
    with writes.closed():
        await log.append(THREAD, custom(1))
        await writes.reached()
        for n in range(3):
            await log.append(THREAD, custom(n))
        assert await durable() == 2, "the next ones wait for the write under way"
        assert log.stats().unflushed == 4
        full = asyncio.ensure_future(log.append(THREAD, custom(3)))
        await asyncio.sleep(0.02)
        assert not full.done(), "and at most `flush_events` of them"
    await full
    assert await durable() == 7
    await log.append(THREAD, custom(4))
    await log.flush(THREAD)
    assert await durable() == 8, "flush"
    await log.append_many(THREAD, [custom(5), custom(6)])
    assert await durable() == 10, "append_many"
    await log.append(THREAD, custom(7))
    await log.append(THREAD, finished())
    assert await durable() == 12, "the end of a run"
    await log.append(THREAD, started("r2"))
    asks = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="input")])
    await log.append(THREAD, custom(8))
    await log.append(THREAD, finished("r2", outcome=asks))
    assert await durable() == 15, "an interrupt"
    stats = log.stats()
    assert (stats.appended, stats.flushed, stats.unflushed) == (15, 15, 0)
    await log.append(THREAD, started("r3"))
    await log.append(THREAD, custom(9))
    await log.close()
    assert (await store.events((await store.threads("", limit=1))[0].key, after=0)).last_seq == 17, "close"
    await store.close()


async def test_an_event_within_a_run_flows_where_nothing_has_to_be_waited_for(store_url: str):
    shown: list[Entry] = []

    def show(entry: Entry) -> None:
        shown.append(entry)

    async with make_log(store_url) as log:
        start, *words, end = text("m", "one ", "two")
        flow = log.live.flow(THREAD, show)
        assert not flow(words[0])  # there is no run yet
        await log.append(THREAD, started("r1"))
        within = [start, *words, end]
        assert [flow(each) for each in within] == [True] * 4
        heavy, raw = "x" * 70_000, object()
        for waits in (
            started("r2"),
            finished(),
            [*text("n", heavy)][1],
            start.model_copy(update={"raw_event": raw}),
        ):
            assert not flow(waits)
        await log.flush()
        assert shown == (await log.entries(THREAD))[1:]
        assert [entry.event for entry in shown] == within


async def test_what_waits_is_written_after_some_milliseconds(store_url: str):
    async with make_log(store_url, flush_ms=20) as log:
        await log.append(THREAD, started())
        await log.append(THREAD, custom(1))
        assert log.stats().unflushed == 1
        async with asyncio.timeout(60):
            async for entry in log.attach(THREAD, after=1):
                assert entry.seq == 2
                break


async def test_appends_from_many_tasks_take_turns(store_url: str):
    async with make_log(store_url, flush_events=7) as log:
        await log.append(THREAD, started())
        entries = await asyncio.gather(*(log.append(THREAD, custom(n)) for n in range(50)))
        await log.flush()
        assert [entry.seq for entry in entries if entry] == list(range(2, 52))
        kept = await log.entries(THREAD, after=1)
        assert [entry.event for entry in kept] == [custom(n) for n in range(50)]


async def test_a_delta_does_not_overtake_a_large_event_that_is_being_redacted(store_url: str):
    async with make_log(store_url, redactor=Redactor()) as log:
        opened, delta, end = text("m", "small")
        large = custom("password=hunter2 " * (HEAVY // 10))
        for event in (started(), opened):
            await log.append(THREAD, event)
        await asyncio.gather(log.append(THREAD, large), log.append(THREAD, delta))
        await log.append(THREAD, end)  # the redactor holds no more text
        await log.flush()
        kinds = [entry.event.type for entry in await log.entries(THREAD, after=2)]
        assert kinds == ["CUSTOM", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]


async def test_the_same_event_at_the_same_place_is_one_event(store_url: str):
    async with make_log(store_url) as log:
        first = await log.append(THREAD, started("r"), seq=1)
        assert await log.append(THREAD, started("r"), seq=1) == first
        second = await log.append(THREAD, custom(1), seq=2)
        assert await log.append(THREAD, custom(1), seq=2) == second
        with pytest.raises(Conflict, match="taken by another event"):
            await log.append(THREAD, custom(2), seq=2)
        with pytest.raises(Conflict, match="continues at seq 3, not at 9"):
            await log.append(THREAD, custom(2), seq=9)
        end = await log.append(THREAD, finished("r"), seq=3)
        assert await log.append(THREAD, finished("r"), seq=3) == end, "also when the lease is gone"
        with pytest.raises(Conflict):
            await log.append(THREAD, RunErrorEvent(message="broke"), seq=3)
        with pytest.raises(Conflict, match="continues at seq 1, not at 2"):
            await log.append("elsewhere", started("r"), seq=2)
        assert seqs(await log.entries(THREAD)) == [1, 2, 3]
        assert len(await log.runs(THREAD)) == 1


async def test_the_run_is_told_how_it_ended(store_url: str):
    usage = [TokenUsage(model="m", input_tokens=3, output_tokens=4)]
    ends: list[tuple[AnyEvent, str]] = [
        (finished("0", usage=usage), "completed"),
        (finished("1", outcome=RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="x")])), "interrupted"),
        (finished("2", outcome=RunFinishedCancelledOutcome()), "cancelled"),
        (RunErrorEvent(message="broke", usage=usage), "failed"),
    ]  # fmt: skip
    async with make_log(store_url) as log:
        for n, (end, _) in enumerate(ends):
            await log.append(THREAD, started(str(n)))
            await log.append(THREAD, end)
        runs = await log.runs(THREAD)
        assert [run.status for run in runs] == [status for _, status in ends]
        assert [run.terminal for run in runs] == ["RUN_FINISHED"] * 3 + ["RUN_ERROR"]
        assert [run.usage for run in runs] == [tuple(usage), None, None, tuple(usage)]
        assert [(run.first_seq, run.last_seq) for run in runs] == [(1, 2), (3, 4), (5, 6), (7, 8)]


async def test_an_error_after_the_end_turns_the_run_failed(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1"))
        late = await log.append(THREAD, RunErrorEvent(message="the bill was not paid"))
        assert late is not None
        assert late.run_id == "r1"
        (run,) = await log.runs(THREAD)
        assert (run.status, run.terminal, run.last_seq) == ("failed", "RUN_ERROR", late.seq)


async def test_a_word_after_the_end_belongs_to_the_run_and_changes_nothing_about_it(store_url: str):
    async with make_log(store_url, verify="off") as log:
        await log.append_many(THREAD, turn("r1"))
        await log.append(THREAD, custom("late"))
        await log.append(THREAD, custom("later"))
        await log.append_many(THREAD, turn("r2"))
        assert [(run.run_id, run.status) for run in await log.runs(THREAD)] == [
            ("r1", "completed"),
            ("r2", "completed"),
        ]
        assert seqs(await log.entries(THREAD)) == list(range(1, 15))


async def test_events_that_nobody_announced_have_a_run_too(store_url: str):
    async with make_log(store_url, verify="off") as log:
        first = await log.append(THREAD, custom(1))
        second = await log.append(THREAD, custom(2))
        assert first is not None
        assert second is not None
        assert first.run_id == second.run_id
        assert first.run_id.startswith("unannounced-")
        await log.append(THREAD, RunErrorEvent(message="broke"))
        assert [run.status for run in await log.runs(THREAD)] == ["failed"]


async def test_a_run_that_begins_inside_another_one_cuts_that_short(store_url: str):
    async with make_log(store_url, verify="off") as log:
        await log.append(THREAD, started("r1"))
        await log.append(THREAD, custom(1))
        await log.append_many(THREAD, turn("r2"))
        runs = await log.runs(THREAD)
        assert [(run.run_id, run.status, run.terminal) for run in runs] == [
            ("r1", "truncated", None),
            ("r2", "completed", "RUN_FINISHED"),
        ]
        types = [entry.event.type for entry in await log.entries(THREAD)]
        assert types.count("RUN_FINISHED") == 1


async def test_a_run_id_is_used_once(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1"))
        with pytest.raises(Conflict, match="give every run an id of its own"):
            await log.append(THREAD, started("r1"))
        with pytest.raises(Conflict):
            await log.append(THREAD, custom("the same run goes on"))
        await log.append_many(THREAD, turn("r2"))
        assert [run.run_id for run in await log.runs(THREAD)] == ["r1", "r2"]
        assert seqs(await log.entries(THREAD)) == list(range(1, 13))


@pytest.mark.parametrize("bad", ["nul\0", "half \ud83d"])
async def test_ids_that_a_database_cannot_hold_are_refused_at_the_door(bad: str):
    async with make_log("memory://") as log:
        with pytest.raises(StoreError, match="a thread id must be text"):
            await log.append(bad, started())
        with pytest.raises(StoreError, match="a run id must be text"):
            await log.append(THREAD, started(bad))
        with pytest.raises(StoreError, match="parentRunId"):
            await log.append(THREAD, started("r", parent_run_id=bad))
        with pytest.raises(StoreError, match="a run id must be text"):
            await log.start_run(THREAD, bad)
        await log.append(THREAD, started("é 🙂"))


async def test_hostile_payloads_come_back_exactly(store_url: str):
    hostile = [
        custom({"nul": "\0", "half": "\ud83d", "zwj": "👩\u200d🔬"}),
        custom({"big": 2**53 + 1, "float": 0.1, "zero": -0.0, "null": None}),
        custom(None),
        CustomEvent(name="n", value=1, metadata={"a": None}, somethingNew={"b": [None]}),  # type: ignore[call-arg]  # fields that 1.0 does not have survive
        UnknownEvent(type="FUTURE_EVENT\0", what={"x": None}),
        *text("m", "split \ud83d", "\ude42 pair"),
    ]
    async with make_log(store_url, verify="off") as log:
        await log.append_many(THREAD, [started(), *hostile])
        kept = [entry.event for entry in await log.entries(THREAD, after=1)]
        assert [encode(event) for event in kept] == [encode(event) for event in hostile]
        assert contents(await log.restore(THREAD)) == ["split 🙂 pair"]


async def test_an_event_that_breaks_a_rule_is_told_and_kept(caplog: pytest.LogCaptureFixture):
    async with make_log("memory://") as log:
        await log.append(THREAD, started())
        for _ in range(3):
            await log.append(THREAD, TextMessageContentEvent(message_id="nowhere", delta="x"))
        await log.append(THREAD, TextMessageContentEvent(message_id="elsewhere", delta="x"))
        await log.flush()
        assert log.stats().violations == 4
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 2, "the same mistake is told once"
        assert "TEXT_MESSAGE_CONTENT" in told[0]
        assert "'nowhere'" in told[0]
        assert "run 'r'" in told[0]
        assert len(await log.entries(THREAD)) == 5


async def test_or_refused(store_url: str):
    async with make_log(store_url, verify="reject") as log:
        with pytest.raises(InvalidStream, match="RUN_STARTED"):
            await log.append(THREAD, custom("too early"))
        await log.append(THREAD, started())
        await log.append(THREAD, TextMessageStartEvent(message_id="m", role="assistant"))
        with pytest.raises(InvalidStream, match="'m'"):
            await log.append(THREAD, finished())
        await log.append_many(THREAD, [*list(text("m", "x"))[1:], finished()])
        assert contents(await log.restore(THREAD)) == ["x"]
        assert [run.status for run in await log.runs(THREAD)] == ["completed"]


async def test_or_nobody_looks(caplog: pytest.LogCaptureFixture):
    async with make_log("memory://", verify="off") as log:
        await log.append(THREAD, TextMessageContentEvent(message_id="nowhere", delta="x"))
        assert log.stats().violations == 0
        assert not caplog.records


async def test_raw_parts_are_dropped(store_url: str):
    async with make_log(store_url) as log:
        await log.append(THREAD, started(raw_event={"secret": 1}))
        assert await log.append(THREAD, RawEvent(event={"secret": 2})) is None
        await log.append(THREAD, finished())
        assert [entry.event for entry in await log.entries(THREAD)] == [started(), finished()]
        assert await log.archive.raws(THREAD) == []
        assert log.stats().raw_dropped == 2


async def test_or_kept_apart(store_url: str):
    async with make_log(store_url, raw="keep") as log:
        await log.append(THREAD, started(raw_event={"n": 1}))
        await log.append(THREAD, RawEvent(event={"n": 2}, source="graph"))
        await log.append(THREAD, custom("x"))
        await log.append(THREAD, finished())
        assert [entry.event for entry in await log.entries(THREAD)] == [started(), custom("x"), finished()]
        raws = await log.archive.raws(THREAD)
        assert [raw.seq for raw in raws] == [1, 2]
        assert [raw.event for raw in raws] == [
            RawEvent(event={"n": 1}),
            RawEvent(event={"n": 2}, source="graph"),
        ]
        assert {raw.run_id for raw in raws} == {"r"}
        assert [raw.seq for raw in await log.archive.raws(THREAD, after=1, limit=5)] == [2]
        assert await log.archive.raws("elsewhere") == []
        size = await log.archive.size(THREAD)
        assert size.entries == 3
        assert size.raw > 0


async def test_secrets_are_gone_before_anything_is_written(store_url: str):
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    async with make_log(store_url, redactor=Redactor(), raw="keep") as log:
        events = [
            started(),
            custom({"password": secret}),
            *text("m", "the key is ", secret[:9], secret[9:], " and that is all"),
            RawEvent(event={"authorization": f"Bearer {secret}"}),
            finished(),
        ]
        for event in events:
            await log.append(THREAD, event)
        kept = [entry.event for entry in [*await log.entries(THREAD), *await log.archive.raws(THREAD)]]
        assert not any(part.encode() in encode(event) for event in kept for part in (secret, secret[9:]))
        (content,) = contents(await log.restore(THREAD))
        assert content.startswith("the key is ")
        assert content.endswith("[redacted] and that is all")
        assert seqs(await log.entries(THREAD)) == list(range(1, len(await log.entries(THREAD)) + 1))


async def test_what_a_redactor_still_holds_is_written_when_the_log_closes(shared_url: str):
    log = make_log(shared_url, redactor=Redactor())
    await log.append(THREAD, started())
    await log.append(THREAD, TextMessageStartEvent(message_id="m", role="assistant"))
    held = await log.append(THREAD, TextMessageContentEvent(message_id="m", delta="tail Bear"))
    assert held is None or isinstance(held.event, TextMessageContentEvent)
    await log.close()
    async with make_log(shared_url) as again:
        assert contents(await again.restore(THREAD)) == ["tail Bear"]


async def test_a_plain_callable_redacts_too(store_url: str):
    def hide(event: AnyEvent) -> AnyEvent | None:
        if isinstance(event, CustomEvent):
            return None if event.value == "drop" else event.model_copy(update={"value": "hidden"})
        return event

    async with make_log(store_url, redactor=hide) as log:
        await log.append(THREAD, started())
        assert await log.append(THREAD, custom("drop")) is None
        await log.append(THREAD, custom("secret"))
        await log.append(THREAD, finished())
        assert [entry.event for entry in await log.entries(THREAD)] == [
            started(),
            custom("hidden"),
            finished(),
        ]
        again = await log.append(THREAD, custom("secret"), seq=2)
        assert again is not None
        assert again.seq == 2


def test_a_redactor_has_to_be_one():
    with pytest.raises(StoreError, match="a redactor is a callable"):
        make_log("memory://", redactor=3)


async def test_a_parent_that_is_not_there_is_refused(store_url: str):
    async with make_log(store_url) as log:
        await log.start_run(THREAD, "r1", parent="nobody")
        with pytest.raises(LineageError, match="nobody"):
            await log.append(THREAD, started("r1"))
        with pytest.raises(LineageError, match="nobody"):
            await log.append(THREAD, custom("it goes on all the same"))
        await log.append_many(THREAD, turn("r2"))
        assert [run.run_id for run in await log.runs(THREAD)] == ["r2"]


async def test_quiet_when_all_is_well(caplog: pytest.LogCaptureFixture, store_url: str):
    caplog.set_level(logging.WARNING)
    async with make_log(store_url, derive="auto") as log:
        await log.append_many(THREAD, turn("r1"))
    assert not caplog.records


async def test_an_aside_is_a_whole_run():
    async with RunLog(open_store("memory://")) as log:
        for events in (turn("r1")[1:], turn("r1")[:-1]):
            with pytest.raises(InvalidStream, match="begins with RUN_STARTED and ends"):
                await log.archive.aside(THREAD, events)
        assert await log.entries(THREAD) == []
        assert seqs(await log.archive.aside(THREAD, turn("r1"))) == list(range(1, len(turn("r1")) + 1))


async def test_an_aside_is_redacted_is_no_parent_and_leaves_no_lease(store_url: str):
    async with make_log(store_url, redactor=Redactor()) as log:
        await log.append_many(THREAD, turn("r1"))
        (_, written, _) = await log.archive.aside(
            THREAD, [started("a1"), custom({"password": "hunter22!"}), finished("a1")]
        )
        assert isinstance(written.event, CustomEvent)
        assert written.event.value == {"password": "[redacted]"}
        thread = await log.thread(THREAD)
        assert thread is not None
        assert thread.owner is None
        await log.append_many(THREAD, turn("r2"))
        assert {run.run_id: (run.parent, run.edge) for run in await log.runs(THREAD)} == {
            "r1": (None, "continue"),
            "r2": ("r1", "continue"),
        }


async def test_nothing_of_a_deleted_thread_is_kept_in_memory():
    async with RunLog(open_store("memory://")) as log:
        await log.append_many(THREAD, turn("r1"))
        assert log.stats().writers == 1
        await log.archive.delete(THREAD)
        assert log.stats().writers == 0
