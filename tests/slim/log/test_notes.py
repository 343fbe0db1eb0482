"""Notes between logs over one store, runs found by name, and the stranded found by whoever lives."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from ag_ui.core import CustomEvent

from runcast.slim import Conflict, Note, RunLog, StoreError, Watch, open_store
from tests.slim.logs import THREAD, Clock, make_log, started, turn


async def test_a_note_is_left_heard_read_and_taken_off_by_one(shared_url: str):
    async with RunLog(open_store(shared_url)) as here, RunLog(open_store(shared_url)) as there:
        ear: Watch = await there.notes.listen("to there")
        acme = here.for_tenant("acme")
        left = await acme.notes.leave(
            "stop r1", box="to there", thread_id="t1", run_id="r1", body=b"now", lasting_ms=60_000
        )
        assert isinstance(left, Note)
        async with asyncio.timeout(60):
            await ear.wait()
        ear.close()
        (note,) = await there.notes.read("to there")
        assert (note.key.tenant, note.key.thread_id, note.run_id, note.body) == ("acme", "t1", "r1", b"now")
        assert await acme.notes.leave("stop r1", box="to there", body=b"x") is None
        assert await acme.notes.about("r1") == [note]
        assert await here.notes.about("r1") == [], "the run of another tenant"
        assert sorted([await there.notes.take(note), await acme.notes.take(note)]) == [False, True]


@pytest.mark.parametrize("lasting", [0, 10])
async def test_a_note_lasts_exactly_as_long_as_it_says(lasting: int):
    clock = Clock()
    async with RunLog(open_store("memory://"), clock=clock) as log:
        note = await log.notes.leave("n", box="b", body=b"", lasting_ms=lasting)
        assert note is not None
        clock.pass_ms(lasting)
        assert (log.notes.is_over(note), await log.notes.sweep()) == (False, 0)
        clock.pass_ms(1)
        assert (log.notes.is_over(note), await log.notes.sweep()) == (True, 1)


async def test_notes_that_mean_nothing_any_more_are_swept():
    now = 1_000
    async with RunLog(open_store("memory://"), clock=lambda: now) as log:
        note = await log.notes.leave("n", box="b", body=b"", lasting_ms=10)
        assert note is not None
        assert not log.notes.is_over(note)
        now += 11
        assert log.notes.is_over(note)
        assert await log.notes.sweep(spare_ms=5) == 0
        assert await log.notes.sweep() == 1
        assert await log.notes.read("b") == []


async def test_a_tenants_log_opens_no_box():
    async with RunLog(open_store("memory://")) as log:
        mine, theirs = log.for_tenant("mine"), log.for_tenant("theirs")
        note = await theirs.notes.leave("n", box="b", body=b"secret")
        assert note is not None
        for refused in (
            mine.notes.read("b"),
            mine.notes.listen("b"),
            mine.notes.sweep(),
            mine.notes.take(note),
            mine.notes.exchange(note, b"other"),
        ):
            with pytest.raises(StoreError, match="ask the log it was made from"):
                await refused


async def test_a_run_is_found_by_its_name_with_who_has_it(shared_url: str):
    async with RunLog(open_store(shared_url)) as here, RunLog(open_store(shared_url)) as there:
        await here.append("t1", started("r1", thread_id="t1"))
        await here.append_many("t2", turn("r2"))
        ((thread, run),) = await there.find("r1")
        assert (thread.thread_id, thread.owner, run.status) == ("t1", here.owner, "in_progress")
        ((thread, run),) = await there.find("r2")
        assert (thread.owner, run.status) == (None, "completed")
        assert await there.find("r3") == []
        assert await there.for_tenant("acme").find("r1") == []


async def test_the_stranded_of_all_tenants_are_seen_and_of_many_one_is_told(shared_url: str):
    dead = RunLog(open_store(shared_url), lease_ms=1, clock=lambda: 1_000)
    await dead.append("t", started("r", thread_id="t"))
    await dead.for_tenant("acme").append("t", started("r", thread_id="t"))
    assert await dead.recovery.orphaned_runs() == [], "its own"
    logs = [RunLog(open_store(shared_url)) for _ in range(4)]
    assert await logs[0].recovery.orphaned_runs() == [("", "t", "r"), ("acme", "t", "r")]
    assert await logs[0].for_tenant("acme").recovery.orphaned_runs() == [("acme", "t", "r")]
    told = await asyncio.gather(*(log.for_tenant("acme").recovery.mark_truncated("t") for log in logs))
    assert [run.run_id for runs in told for run in runs] == ["r"]
    assert await logs[0].recovery.orphaned_runs() == [("", "t", "r")]
    assert [thread for thread, _ in await logs[0].recovery.recover()] == ["t"]
    for log in logs:
        await log.close()
    with pytest.raises(Conflict):
        await dead.append_many("t", [CustomEvent(name="n", value=1)])
    with suppress(Conflict):  # unless the renewal has noticed
        await dead.close()


async def test_an_id_that_was_used_does_not_keep_the_thread(shared_url: str):
    async with RunLog(open_store(shared_url)) as here, RunLog(open_store(shared_url)) as there:
        await here.append_many("t", turn("r1"))
        with pytest.raises(Conflict, match="is already in thread"):
            await there.start_run("t", "r1")
        await here.append_many("elsewhere", turn("r2"))
        await here.start_run("t", "r2")  # an id is one thread's


async def test_a_note_gets_its_next_body_from_one_of_several(shared_url: str):
    async with make_log(shared_url) as log:
        note = await log.notes.leave("n", box="b", body=b"1", thread_id=THREAD)
        assert note is not None
        both = await asyncio.gather(log.notes.exchange(note, b"2"), log.notes.exchange(note, b"3"))
        (won,) = [each for each in both if each is not None]
        assert await log.notes.read("b") == [won]
        assert not await log.notes.take(note)
        assert await log.notes.take(won)
        assert await log.notes.exchange(won, b"4") is None
