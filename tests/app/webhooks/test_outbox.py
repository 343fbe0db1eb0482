"""Which notes an outbox leaves, turns into letters, repeats and gives up, and when; nothing listens at the other end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from runcast.app import Cast, Webhook
from runcast.app.webhooks.outbox import ARMED, DEAD, DEAD_MS, DUE, OVER, PATIENCE_MS
from runcast.app.webhooks.webhook import GAPS
from runcast.slim import MemoryStore, Note, RunLog
from tests.app.agents import Gated, asker, parrot
from tests.app.mortal import behind
from tests.app.nodes.stage import ended, until
from tests.app.webhooks.test_webhook import NEW

NOWHERE = "http://127.0.0.1:9/"


def now() -> int:
    return time.time_ns() // 1_000_000


def hook(*events: Any, **more: Any) -> Webhook:
    return Webhook(NOWHERE, (NEW,), private=True, **({"events": events} if events else {}), **more)


@asynccontextmanager
async def host(*hooks: Webhook, store: MemoryStore | None = None, **options: Any) -> AsyncIterator[Cast]:
    """A host whose outbox looks when the test has it look."""
    log = RunLog(store or MemoryStore(), clock=options.pop("clock", now))
    async with Cast(log, agents=[parrot, asker], webhooks=hooks, **{"recover": "off", **options}) as cast:
        await cast.node.close()
        yield cast


async def notes(cast: Cast, *boxes: str) -> list[Note]:
    return await cast.log.notes.read(*boxes)


def head_of(note: Note) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(note.body.partition(b"\n")[0])
    return found


@pytest.mark.parametrize(
    ("events", "armed"),
    [(("completed",), 1), (("failed",), 1), (("interrupted",), 1), ((), 1), (("queued",), 0)],
)
async def test_a_run_is_armed_where_its_end_is_wanted(events: tuple[Any, ...], armed: int) -> None:
    async with host(hook(*events)) as cast:
        await cast.outbox.arm("t1", "r1")
        assert [(each.key.thread_id, each.run_id) for each in await notes(cast, ARMED)] == [
            ("t1", "r1")
        ] * armed


async def test_only_webhooks_of_the_thread_and_the_tenant_count() -> None:
    async with host(hook(thread_id="t1", tenant="acme")) as cast:
        acme = cast.for_tenant("acme")
        for view, thread in ((cast, "t1"), (acme, "t2"), (acme, "t1")):
            await view.outbox.arm(thread, "r1")
            await view.outbox.arm_queued(thread, "r2", {"agent": "parrot"})
        found = [(*each.key, each.run_id, bool(each.body)) for each in await notes(cast, ARMED)]
        assert sorted(found) == [("acme", "t1", "r1", False), ("acme", "t1", "r2", True)]


async def test_without_webhooks_nothing_is_noted() -> None:
    async with host() as cast:
        await cast.outbox.arm("t1", "r1")
        await cast.outbox.arm_queued("t1", "r1", {})
        cast.outbox.ring("t1", "r1")
        assert await notes(cast, ARMED, OVER) == []


@pytest.mark.parametrize(("agent", "happening"), [("parrot", "completed"), ("asker", "interrupted")])
async def test_an_end_becomes_a_letter_for_each_webhook_that_wants_it(agent: str, happening: str) -> None:
    async with host(hook(happening), hook(thread_id="t1"), hook("failed", tenant="acme")) as cast:
        await (await cast.say("t1", "a", agent=agent)).result()
        (armed,) = await notes(cast, ARMED)
        before = now()
        await cast.outbox.look()
        due = await notes(cast, DUE)
        assert await notes(cast, ARMED, OVER) == []
        assert len({each.id for each in due}) == len({head_of(each)["hook"] for each in due}) == 2
        for each in due:
            assert (each.key, each.run_id) == (armed.key, armed.run_id)
            assert head_of(each)["attempt"] == 0
            assert before <= head_of(each)["due"] <= now()
            assert orjson.loads(each.body.partition(b"\n")[2])["type"] == f"run.{happening}"
        assert cast.outbox.stats()["waiting"] == 2


async def test_a_run_that_is_not_over_waits_and_one_that_was_stopped_has_failed() -> None:
    async with host(hook()) as cast:
        cast.register(Gated(1), name="gated")
        run = await cast.say("t1", "a", agent="gated")
        await cast.outbox.look()
        assert (len(await notes(cast, ARMED)), await notes(cast, DUE)) == (1, [])
        await cast.stop(run.run_id, hard=True)
        await run.result()
        await cast.outbox.look()
        (told,) = [orjson.loads(each.body.partition(b"\n")[2]) for each in await notes(cast, DUE)]
        assert (told["type"], told["data"]["error"]["code"]) == ("run.failed", "cancelled")


@pytest.mark.parametrize(("age", "left"), [(PATIENCE_MS // 2, 1), (PATIENCE_MS + 60_000, 0)])
async def test_a_note_about_a_run_that_never_was_goes_in_time(age: int, left: int) -> None:
    store = MemoryStore()
    async with host(hook(), store=store, clock=lambda: now() - age) as cast:
        await cast.outbox.arm("t1", "r1")
    async with host(hook(), store=store) as cast:
        await cast.outbox.look()
        assert (len(await notes(cast, ARMED)), await notes(cast, DUE)) == (left, [])


@pytest.mark.parametrize(
    ("recover", "clock", "told"),
    [("off", now, True), ("report", now, True), ("continue", now, False), ("continue", behind, True)],
)
async def test_a_run_that_may_be_resumed_is_not_told_yet(
    recover: str, clock: Callable[[], int], told: bool
) -> None:
    store = MemoryStore()
    async with host(hook(), store=store, clock=clock) as cast:
        cast.register(Gated(1), name="gated")
        run = await cast.say("t1", "a", agent="gated")
        await cast.run(run.run_id).abandon()
        await cast.log.recovery.abandon("t1")
    async with host(hook(), store=store, recover=recover) as cast:
        await cast.outbox.look()
        due, armed = await notes(cast, DUE), await notes(cast, ARMED)
        assert (len(due), len(armed)) == ((1, 0) if told else (0, 1))
        if told:
            assert orjson.loads(due[0].body.partition(b"\n")[2])["type"] == "run.failed"


async def letter(cast: Cast, attempt: int, *, due: int = 0, key: str | None = None) -> Note:
    """A letter that was tried so many times."""
    name = key or cast.options.webhooks[0].key  # type: ignore[index]
    head = {"hook": name, "id": "msg_1", "attempt": attempt, "due": due}
    note = await cast.log.notes.leave(
        "webhook due 1", box=DUE, body=orjson.dumps(head) + b"\n{}", thread_id="t1", run_id="r1"
    )
    assert note is not None
    return note


async def tried(cast: Cast, note: Note) -> Note:
    """The letter after the next attempt."""

    async def changed() -> Note | None:
        found = [each for each in await notes(cast, DUE, DEAD) if each.id == note.id]
        return found[0] if found[0].body != note.body else None

    await cast.outbox.look()
    found: Note = await until(changed)
    return found


@pytest.mark.parametrize("attempt", [0, 1, len(GAPS) - 1])
async def test_what_fails_is_tried_again_after_a_gap_that_grows(attempt: int) -> None:
    async with host(hook()) as cast:
        before = now()
        again = await tried(cast, await letter(cast, attempt))
        assert (again.box, head_of(again)["attempt"], again.until) == (DUE, attempt + 1, None)
        gap = GAPS[attempt] * 1_000
        assert before + 0.9 * gap - 1 <= head_of(again)["due"] <= now() + 1.1 * gap + 1
        assert head_of(again)["why"].startswith("no answer")
        assert again.body.endswith(b"\n{}"), "its text stays"
        assert cast.outbox.stats()["failures"] == 1
        await cast.outbox.look()
        assert [each.body for each in await notes(cast, DUE)] == [again.body], "it is not due"


async def test_after_the_last_gap_it_is_a_dead_letter_for_a_month() -> None:
    async with host(hook()) as cast:
        before = now()
        dead = await tried(cast, await letter(cast, len(GAPS)))
        assert dead.box == DEAD
        assert dead.until is not None
        assert before + DEAD_MS <= dead.until <= now() + DEAD_MS
        await cast.outbox.look()
        stats = cast.outbox.stats()
        assert {name: stats[name] for name in ("given_up", "failures", "waiting", "dead")} == {
            "given_up": 1,
            "failures": 1,
            "waiting": 0,
            "dead": 1,
        }


async def test_a_letter_for_a_webhook_that_is_gone_says_so() -> None:
    async with host(hook()) as cast:
        again = await tried(cast, await letter(cast, 0, key="another"))
        assert "no such webhook" in head_of(again)["why"]


async def test_what_is_not_due_waits() -> None:
    async with host(hook()) as cast:
        kept = await letter(cast, 0, due=now() + 60_000)
        await cast.outbox.look()
        assert [each.body for each in await notes(cast, DUE)] == [kept.body]
        assert cast.outbox.stats()["waiting"] == 1
        assert cast.outbox._sending == {}  # pyright: ignore[reportPrivateUsage]


async def test_of_two_hosts_one_has_the_job_until_it_leaves() -> None:
    store = MemoryStore()
    async with host(hook(), store=store) as one, host(hook(), store=store) as other:
        await one.outbox.look()
        await (await other.say("t1", "a", agent="parrot")).result()
        await other.outbox.look()
        assert len(await notes(other, ARMED)) == 1
        await one.outbox.look()
        assert await notes(other, ARMED) == []


async def test_a_ring_about_a_run_lasts_an_hour() -> None:
    async with host(hook()) as cast:
        await (await cast.say("t1", "a", agent="parrot")).result()
        run = (await cast.log.runs("t1"))[0]
        await ended(cast, run.run_id)

        async def rung() -> list[Note]:
            return await notes(cast, OVER)

        (over,) = await until(rung)
        assert over.until is not None
        assert 3_500_000 < over.until - now() <= 3_600_000
