"""Threads age: what is older than `keep` is forgotten, what is older than `keep_raw` is folded, by one node, in slices."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.app import BadRequest, Cast
from runcast.app.host.prometheus import numbers as exposed
from runcast.app.keeping import retention
from runcast.app.keeping.ages import age_of, kept_for
from runcast.app.nodes.note_lease import NoteLease
from runcast.slim import RunLog, SlimError, open_store
from tests.app.agents import Gated, parrot
from tests.app.nodes.conftest import postgres_server, url
from tests.app.nodes.stage import until

__all__ = ["postgres_server", "url"]

DAY_MS = 86_400_000


async def write(url: str, days: float, *threads: str, tenant: str = "") -> None:
    """Threads whose run ended so many days ago."""
    then = time.time_ns() // 1_000_000 - round(days * DAY_MS)
    log = RunLog(open_store(url), clock=lambda: then)
    async with Cast(log, agents=[parrot]) as cast:
        view = cast.for_tenant(tenant)
        for thread in threads:
            await (await view.say(thread, "a word")).result()


def keep(tenant: str, thread_id: str) -> str | None:
    """A host's rule by tenant and thread."""
    if thread_id == "held":
        return None
    return "5d" if tenant == "acme" else "90d"


async def test_what_is_too_old_goes_by_cast_tenant_and_thread(url: str) -> None:
    await write(url, 100, "old", "held")
    await write(url, 10, "older", tenant="acme")
    await write(url, 1, "new", tenant="acme")
    await write(url, 10, "raw")
    async with Cast.open(url, agents=[parrot], keep=keep, keep_raw="7d") as cast:
        acme = cast.for_tenant("acme")

        async def once() -> bool:
            return bool(cast.stats()["retention"]["rounds"])

        await until(once)
        assert [each.thread_id for each in await cast.log.threads()] == ["held", "raw"]
        assert [each.thread_id for each in await acme.log.threads()] == ["new"]
        assert await cast.log.archive.is_forgotten("old")
        assert await acme.log.archive.is_forgotten("older")
        assert [run.pruned for run in await cast.log.runs("raw")] == [True]
        assert [run.pruned for run in await acme.log.runs("new")] == [False]
        numbers = cast.stats()["retention"]
        assert (numbers["threads"], numbers["runs"], numbers["failures"]) == (2, 2, 0)
        assert numbers["holds"] == 1
        text = exposed(cast.stats())
        assert "runcast_retention_threads_total 2" in text
        assert "runcast_retention_runs_total 2" in text


async def test_a_thread_that_is_being_written_stays_however_long_it_is_silent() -> None:
    gated = Gated()
    async with Cast.open("memory://", agents=[gated], keep="0h") as cast:
        run = await cast.say("t1", "a word")
        assert (await cast.retention.plan()).threads == 0
        gated.open()
        await run.result()
        assert (await cast.retention.plan()).threads == 1


@pytest.mark.parametrize("when", ["a", "b"])
async def test_a_thread_that_is_written_to_again_stays(url: str, when: str) -> None:
    """Also where that happens behind the look that found it too old."""
    await write(url, 100, "a", "b")
    written = list[str]()

    def keeping(tenant: str, thread_id: str) -> str:
        if thread_id == when and not written:
            written.append(thread_id)
            with ThreadPoolExecutor() as other:
                other.submit(lambda: asyncio.run(write(url, 0, "b"))).result()
        return "90d"

    async with RunLog(open_store(url)) as log:
        cast = Cast(log, keep=keeping, work=False)
        await cast.retention.apply()
        assert [each.thread_id for each in await cast.log.threads()] == ["b"]
        assert [run.status for run in await cast.log.runs("b")] == ["completed"] * 2
        assert cast.retention.stats()["threads"] == 1
        assert await cast.log.notes.read("forget") == []


async def test_the_plan_is_what_a_round_removes_and_removes_nothing(url: str) -> None:
    await write(url, 100, "old")
    await write(url, 10, "raw")
    async with Cast.open(url, keep="90d", keep_raw="7d", recover="off") as cast:
        first = await cast.retention.plan()
    log = RunLog(open_store(url))
    async with Cast(log, keep="90d", keep_raw="7d", work=False) as cast:
        await cast.retention.apply()  # once more than the host's own round
        after = await cast.retention.plan()
    assert (after.threads, after.runs) == (0, 0)
    assert first.threads <= 1


async def test_of_several_nodes_one_holds_the_job_and_another_takes_it_over(url: str) -> None:
    async with RunLog(open_store(url)) as one, RunLog(open_store(url)) as other:
        first, second = (NoteLease(log.notes, "job", lasting_ms=60_000) for log in (one, other))
        assert [await first.hold(), await second.hold(), await first.hold()] == [True, False, True]
        await first.release()
        assert [await second.hold(), await first.hold()] == [True, False]
        short = NoteLease(one.notes, "other job", lasting_ms=-1)  # it is over at once
        late = NoteLease(other.notes, "other job", lasting_ms=60_000)
        assert [await short.hold(), await late.hold(), await short.hold()] == [True, True, False]


async def test_a_host_that_closes_gives_the_job_to_the_next_one(url: str) -> None:
    """A deployment does not put a round off by a whole `keep_every`."""
    for _ in range(2):
        async with Cast.open(url, agents=[parrot], keep="5d", keep_every=3_600) as cast:

            async def once(cast: Cast = cast) -> bool:
                return bool(cast.stats()["retention"]["rounds"])

            await until(once)


async def test_a_node_that_lost_the_job_removes_no_more(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SLICE", 1)
    await write(url, 10, "a", "b", "c")
    async with Cast.open(url, agents=[parrot], watch=False) as other, RunLog(open_store(url)) as log:
        cast = Cast(log, keep="5d", work=False)
        lease = NoteLease(other.log.notes, "retention", lasting_ms=60_000)
        assert await lease.hold()
        await cast.retention.apply()
        assert [each.thread_id for each in await log.threads()] == ["b", "c"]
        assert cast.stats()["retention"]["rounds"] == 0


async def test_many_that_reach_for_the_job_at_once_get_it_once(url: str) -> None:
    async with RunLog(open_store(url)) as log:
        leases = [NoteLease(log.notes, "job", lasting_ms=60_000) for _ in range(8)]
        assert sum(await asyncio.gather(*(each.hold() for each in leases))) == 1


async def test_a_thread_that_cannot_be_pruned_is_counted_and_stops_no_round(url: str) -> None:
    def keep(tenant: str, thread_id: str) -> str:
        return "nonsense" if thread_id == "a" else "5d"

    await write(url, 10, "a", "b")
    async with Cast.open(url, agents=[parrot], keep=keep, watch=False) as cast:

        async def once() -> bool:
            return bool(cast.stats()["retention"]["rounds"])

        await until(once)
        numbers = cast.stats()["retention"]
        assert (numbers["failures"], numbers["threads"]) == (1, 1)
        assert [each.thread_id for each in await cast.log.threads()] == ["a"]


async def test_a_tenants_log_lists_no_threads_of_others() -> None:
    async with RunLog(open_store("memory://")) as log:
        with pytest.raises(SlimError, match="of others"):
            await log.for_tenant("acme").archive.every(limit=1)


@given(st.integers(0, 10**9 - 1), st.sampled_from("smhd"))
def test_an_age_is_a_number_and_a_unit(number: int, unit: str) -> None:
    seconds = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[unit]
    assert age_of(f"{number}{unit}") == timedelta(seconds=number * seconds)
    assert kept_for(f"{number}{unit}", "", "t") == age_of(f"{number}{unit}")
    assert kept_for(None, "", "t") is None
    assert kept_for(lambda tenant, thread: None, "", "t") is None


@pytest.mark.parametrize("text", ["", "d", "90", "-1d", "1.5d", "٣d", "1y", "1" * 10 + "d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="as 30d"):
        age_of(text)
