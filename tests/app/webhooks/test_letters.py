"""What a webhook says of a run: its own end, whatever comes behind it in the thread."""

from __future__ import annotations

import orjson
import pytest

from runcast.app import Cast
from runcast.app.webhooks.letters import LAST, message, told_of
from tests.app.agents import asker, parrot
from tests.app.test_telemetry import broken


async def test_a_run_is_told_without_the_end_of_the_next_one() -> None:
    async with Cast.open("memory://", agents=[parrot, asker, broken], watch=False) as cast:
        for name in ("parrot", "broken"):
            await (await cast.say("t1", "a word", agent=name)).result()
        first, second = await cast.log.runs("t1")
        assert second.last_seq - first.first_seq < LAST, "one page holds both"
        told = await told_of(cast, "t1", first)
        assert (told["agent"], told["status"], told["seq"]) == ("parrot", "completed", first.last_seq)
        assert told.keys().isdisjoint({"error", "interrupts", "tenant"})
        assert "no more" in (await told_of(cast, "t1", second))["error"]["message"]


async def test_the_end_of_a_long_run_is_found() -> None:
    async with Cast.open("memory://", agents=[parrot, asker], watch=False) as cast:
        await (await cast.say("t1", "word " * 2 * LAST, agent="parrot")).result()
        await (await cast.say("t1", "go", agent="asker")).result()
        long, asked = await cast.log.runs("t1")
        assert "interrupts" not in await told_of(cast, "t1", long)
        assert [each["id"] for each in (await told_of(cast, "t1", asked))["interrupts"]] == ["q1"]


@pytest.mark.parametrize("tenant", ["", "acme"])
async def test_the_tenant_is_named_where_there_is_one(tenant: str) -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as host:
        cast = host.for_tenant(tenant)
        await (await cast.say("t1", "a word")).result()
        (run,) = await cast.log.runs("t1")
        assert (await told_of(cast, "t1", run)).get("tenant", "") == tenant


def test_a_time_is_one_of_milliseconds_in_utc() -> None:
    body = orjson.loads(message("failed", {"a": 1}, at_ms=1_700_000_000_123))
    assert body == {
        "type": "run.failed",
        "timestamp": "2023-11-14T22:13:20.123+00:00",
        "data": {"a": 1},
    }
