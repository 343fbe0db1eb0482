"""Restoring: what is derived saves time and changes nothing; what a run left pending is still pending."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.archive.segments import worth_keeping
from runcast.slim.compaction.compactor import compact
from runcast.slim.folding.conversation import Conversation, fold
from runcast.slim.log.run_log import RunLog
from runcast.slim.protocol.verifier import verify
from runcast.slim.stores import open_store
from runcast.slim.stores.blob_codec import Codec
from runcast.slim.stores.records import BlobKind, Key
from runcast.slim.wire.codec import encode
from tests.slim.logs import THREAD, contents, finished, make_log, started, text, turn, user

LONG = "a rather long answer that says the same thing over and over " * 20


async def talk(log: RunLog, runs: int, *, answer: str = LONG) -> None:
    for n in range(1, runs + 1):
        await log.append_many(THREAD, turn(f"r{n}", f"{answer} {n}"))


def told(conversation: Conversation) -> tuple[Any, ...]:
    """What a client can see of it."""
    return (
        conversation.messages,
        conversation.state,
        conversation.pending_interrupts,
        conversation.pending_tool_call_ids,
    )


async def test_a_thread_is_restored_in_a_handful_of_events(store_url: str):
    async with make_log(store_url) as log:
        await talk(log, 5, answer="ok")
        stream = await log.restore(THREAD)
        assert [event.type for event in stream] == [
            "RUN_STARTED",
            "MESSAGES_SNAPSHOT",
            "STATE_SNAPSHOT",
            "RUN_FINISHED",
        ]
        assert verify(stream) == []
        whole = await log.restore(THREAD, compacted=False)
        assert len(whole) == 5 * 7
        assert told(fold(stream)) == told(fold(whole))
        assert verify(whole) == []


async def test_what_is_derived_changes_no_restore(store_url: str):
    async with make_log(store_url) as log:
        await talk(log, 12)
        before = {f"r{n}": await log.restore(THREAD, f"r{n}") for n in range(1, 13)}
        done = await log.archive.compact(THREAD)
        assert (done.runs, done.events) == (12, sum(len(turn("r", f"{LONG} {n}")) for n in range(1, 13)))
        assert done.kept == 12 * 6
        assert done.segment_bytes < done.raw_bytes / 20
        assert {run_id: await log.restore(THREAD, run_id) for run_id in before} == before
        again = await log.archive.compact(THREAD)
        assert (again.runs, again.checkpoint_bytes) == (0, 0)
        assert (await log.archive.prune(what="derived")).runs == 12
        size = await log.archive.size(THREAD)
        assert (size.segments, size.checkpoints) == (0, 0)
        assert {run_id: await log.restore(THREAD, run_id) for run_id in before} == before


async def test_checkpoints_come_as_much_as_they_save_and_old_ones_go(store_url: str):
    store = open_store(store_url)
    log = RunLog(store, derive="manual", codec="none")
    key = Key("", THREAD)
    counts: list[int] = []
    for n in range(1, 61):
        await log.append_many(THREAD, turn(f"r{n}", f"{LONG} {n}"))
        await log.archive.compact(THREAD)
        counts.append(len(await store.blob_index(key, "checkpoint")))
    assert counts[1] == 0, "little is folded as quickly"
    assert 1 <= counts[-1] <= 8
    index = await store.blob_index(key, "checkpoint")
    weight = sum(info.size for info in index)
    size = await log.archive.size(THREAD)
    assert size.checkpoints == weight
    assert weight < 3 * size.segments
    wanted = fold(await log.restore(THREAD, compacted=False))
    assert told(fold(await log.restore(THREAD))) == told(wanted)
    await log.close()


def test_of_old_checkpoints_one_stays_for_every_doubling():
    assert worth_keeping([]) == {0}
    assert worth_keeping([7]) == {7}
    kept = worth_keeping(range(1, 1_001))
    assert kept == {1, 489, 745, 873, 937, 969, 985, 993, 997, 999, 1000}
    assert worth_keeping(sorted(kept)) == kept


async def test_runs_are_compacted_when_they_end(store_url: str):
    async with RunLog(open_store(store_url)) as log:
        await log.append_many(THREAD, turn("r1", LONG))
        while not (await log.archive.size(THREAD)).segments:  # noqa: ASYNC110  # nobody is told when it is done
            await asyncio.sleep(0.01)
        assert contents(await log.restore(THREAD)) == ["well?", LONG + " "]
        assert log.stats().derive_errors == 0


async def test_a_late_error_makes_what_was_derived_stale(store_url: str):
    async with make_log(store_url) as log:
        await talk(log, 3)
        await log.archive.compact(THREAD)
        await log.append(THREAD, RunErrorEvent(message="the bill was not paid"))
        stream = await log.restore(THREAD)
        assert stream[-2:] == [finished("r3"), RunErrorEvent(message="the bill was not paid")]
        assert fold(stream).runs[-1].status == "failed"
        assert (await log.archive.compact(THREAD)).runs == 1
        assert await log.restore(THREAD) == stream


@pytest.mark.parametrize("kind", ["segment", "checkpoint"])
async def test_a_damaged_part_is_passed_over(tmp_path: Path, kind: BlobKind):
    async with make_log(f"sqlite:///{tmp_path}/runs.db") as log:
        await talk(log, 30)
        before = await log.restore(THREAD)
        assert (await log.archive.compact(THREAD)).checkpoint_bytes > 0
        with sqlite3.connect(tmp_path / "runs.db") as connection:
            changed = connection.execute(
                "UPDATE runcast_blobs SET body = zeroblob(length(body)) WHERE kind = ?", (kind,)
            ).rowcount
        connection.close()
        assert changed >= 1
        assert await log.restore(THREAD) == before
        if kind == "segment":
            assert (await log.archive.prune(keep_bytes=0)).runs == 0, (
                "nothing is pruned whose segment is damaged"
            )


@pytest.mark.parametrize("name", ["xz", "gzip", "zstd", "none"])
async def test_all_codecs_say_the_same(store_url: str, name: Codec):
    async with make_log(store_url, codec=name) as log:
        await talk(log, 4)
        before = await log.restore(THREAD)
        await log.archive.compact(THREAD)
        assert await log.restore(THREAD) == before
        stored = await log.save_snapshot(THREAD, {"codec": name})
        assert (await log.snapshot(THREAD)) == stored


async def test_what_was_packed_elsewhere_is_made_anew_here(shared_url: str, request: pytest.FixtureRequest):
    async with make_log(shared_url, codec="zstd") as log:
        await talk(log, 12)
        await log.archive.compact(THREAD)
        before = await log.restore(THREAD)
    request.getfixturevalue("bare_python")
    async with make_log(shared_url) as log:
        assert await log.restore(THREAD) == before


async def test_a_run_that_was_cut_short_has_no_end(shared_url: str):
    log = make_log(shared_url)
    await log.append_many(THREAD, turn("r1"))
    await log.append(THREAD, started("r2"))
    await log.append_many(THREAD, list(text("m", "half"))[:-1])
    live = await log.restore(THREAD)
    assert [event.type for event in live] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]
    await log.close()
    async with make_log(shared_url) as again:
        assert await again.restore(THREAD) == live
        await again.archive.compact(THREAD)
        assert await again.restore(THREAD) == live
        await again.append_many(THREAD, turn("r3"))
        for compacted in (True, False):
            stream = await again.restore(THREAD, compacted=compacted)
            assert contents(stream) == ["well?", "yes ", "half", "well?", "yes "]
            assert [found.rule for found in verify(stream)] == []
        errors = [event for event in stream if isinstance(event, RunErrorEvent)]
        assert [error.code for error in errors] == ["truncated"], "in the stream, for a client has to be told"
        assert not any(isinstance(entry.event, RunErrorEvent) for entry in await again.entries(THREAD))


def calling(*call_ids: str) -> list[Any]:
    return [
        event
        for key in call_ids
        for event in (
            ToolCallStartEvent(tool_call_id=key, tool_call_name="search", parent_message_id="m"),
            ToolCallArgsEvent(tool_call_id=key, delta="{}"),
            ToolCallEndEvent(tool_call_id=key),
        )
    ]


async def test_what_is_pending_is_still_pending_after_a_restore(store_url: str):
    asks = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i1", reason="approve")])
    async with make_log(store_url) as log:
        await log.append_many(THREAD, [started("r1"), *calling("c1", "c2"), finished("r1")])
        await log.archive.compact(THREAD)
        assert fold(await log.restore(THREAD)).pending_tool_call_ids == ["c1", "c2"]
        await log.append_many(THREAD, [started("r2"), *calling("c3"), finished("r2", outcome=asks)])
        assert [each.id for each in fold(await log.restore(THREAD)).pending_interrupts] == ["i1"]
        await log.append_many(THREAD, [started("r3"), RunErrorEvent(message="broke")])
        await log.archive.compact(THREAD)
        restored = await log.restore(THREAD)
        assert [each.id for each in fold(restored).pending_interrupts] == ["i1"], "an error answers nothing"
        assert told(fold(restored)) == told(fold(await log.restore(THREAD, compacted=False)))
        await log.append_many(THREAD, turn("r4"))
        assert fold(await log.restore(THREAD)).pending_interrupts == []


async def test_two_messages_of_one_id_stay_two(store_url: str):
    result = ToolCallResultEvent(message_id="same", tool_call_id="c1", content="one")
    async with make_log(store_url) as log:
        again = result.model_copy(update={"content": "two"})
        await log.append_many(THREAD, [started("r1"), *calling("c1"), result, again, finished("r1")])
        await log.append_many(THREAD, turn("r2", LONG))
        wanted = fold(await log.restore(THREAD, compacted=False)).messages
        assert [message.id for message in wanted][:3] == ["m", "same", "same"]
        assert fold(await log.restore(THREAD)).messages == wanted
        await log.archive.compact(THREAD)
        assert fold(await log.restore(THREAD)).messages == wanted


async def test_what_no_snapshot_can_say_comes_as_its_compacted_events(store_url: str):
    async with make_log(store_url, codec="none") as log:
        await log.append_many(
            THREAD,
            [
                started("r1"),
                *text("m", *[LONG] * 20),
                ActivitySnapshotEvent(message_id="a", activity_type="PLAN", content={"steps": []}),
                ActivityDeltaEvent(
                    message_id="a", activity_type="PLAN", patch=[{"op": "replace", "path": "", "value": [1]}]
                ),
                finished("r1"),
            ],
        )
        done = await log.archive.compact(THREAD)
        assert (done.runs, done.checkpoint_bytes) == (1, 0)
        stream = await log.restore(THREAD)
        whole = await log.restore(THREAD, compacted=False)
        assert len(stream) < len(whole)
        assert fold(stream).wire_messages() == fold(whole).wire_messages()


async def test_restoring_goes_on_from_the_nearest_checkpoint(store_url: str):
    store = open_store(store_url)
    async with RunLog(store, derive="manual", codec="none") as log:
        await talk(log, 10)
        await log.archive.compact(THREAD)
        await log.archive.prune(what="derived")
        await log.append_many(THREAD, turn("r11", LONG * 20))
        await log.archive.compact(THREAD)
        (info,) = await store.blob_index(Key("", THREAD), "checkpoint")
        await log.append_many(THREAD, turn("r12"))
        await store.drop_blobs(
            Key("", THREAD), "segment", [x.seq for x in await store.blob_index(Key("", THREAD), "segment")]
        )
        events = store.events
        asked: list[int] = []

        async def counting(key: Key, **stretch: Any) -> Any:
            asked.append(stretch["after"])
            return await events(key, **stretch)

        store.events = counting  # type: ignore[method-assign]  # to see what is read
        stream = await log.restore(THREAD)
        assert asked == [info.seq], "the newest run alone"
        assert contents(stream)[-2:] == ["well?", "yes "]


async def test_a_heavy_thread_is_restored_beside_the_event_loop(store_url: str):
    async with make_log(store_url) as log:
        deltas = [f"{n} " for n in range(4_000)]
        snapshot = MessagesSnapshotEvent(messages=[user("u", "before")])
        state = [
            StateSnapshotEvent(snapshot={"n": 0}),
            StateDeltaEvent(delta=[{"op": "remove", "path": "/n"}]),
        ]
        await log.append_many(THREAD, [started("r1"), snapshot, *text("m", *deltas), *state, finished("r1")])
        before = await log.restore(THREAD)
        assert contents(before) == ["before", "".join(deltas)]
        await log.archive.compact(THREAD)
        assert await log.restore(THREAD) == before
        assert isinstance(before[0], RunStartedEvent)


async def test_segments_keep_the_times_of_what_they_fold(tmp_path: Path):
    from runcast.slim.archive.segments import fold_rows, from_bytes

    run = [
        (10, started()),
        (20, TextMessageStartEvent(message_id="a", role="assistant")),
        (30, TextMessageStartEvent(message_id="b", role="assistant")),
        (40, TextMessageContentEvent(message_id="a", delta="1")),
        (50, TextMessageContentEvent(message_id="b", delta="2")),
        (60, TextMessageContentEvent(message_id="a", delta="3")),
        (70, TextMessageContentEvent(message_id="b", delta="4")),
        (80, RunErrorEvent(message="x")),
    ]
    kept, body = fold_rows([at for at, _ in run], [encode(event) for _, event in run])
    folded = from_bytes(body)
    assert [at for at, _ in folded] == [10, 20, 30, 40, 50, 80]
    assert [event for _, event in folded] == compact([event for _, event in run])
    assert kept == 6


async def test_a_thread_with_a_patch_that_doubles_is_kept_and_restored(store_url: str):
    bomb = [{"op": "copy", "from": "/a", "path": f"/a/x{n}"} for n in range(60)]
    async with make_log(store_url) as log:
        await log.append_many(
            THREAD,
            [
                started("r1"),
                StateSnapshotEvent(snapshot={"a": {"b": "x" * 100}}),
                StateDeltaEvent.model_validate({"delta": bomb}),
                finished("r1"),
                *turn("r2"),
            ],
        )
        for compacted in (False, True):
            conversation = fold(await log.restore(THREAD, compacted=compacted))
            assert conversation.state == {"a": {"b": "x" * 100}, "r2": "yes"}
