"""The log's store goes away under runs: a restart, a line that stalls, cuts and swallows, a disk that is full.

What is documented (docs/design.md, rule 8): whatever was acknowledged is there; a run waits for its store within a
bound and goes on; beyond the bound it is cut short, its thread is free, and it can be taken up.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from runcast.app import Cast
from runcast.app.host.outlets import own_hub
from runcast.slim import RunLog, StoreError
from runcast.slim.stores.postgres import PostgresDatabase
from runcast.slim.stores.records import Key
from runcast.slim.stores.sql.database import Query, Script
from runcast.slim.stores.sql.sql_store import SqlStore
from tests.reliability.counting import Counter
from tests.reliability.engines import Postgres
from tests.reliability.ledger import Ledger
from tests.reliability.network import Network, misbehave, port_of
from tests.reliability.scenes import begin, hosting, open_access, over, settle, watching
from tests.servers import own_schema

LOCK = "UPDATE runcast_threads SET updated_at = updated_at RETURNING id"


async def test_postgres_crashes_and_comes_back_during_runs(
    ledger: Ledger, http: httpx.AsyncClient, mortal_postgres: Postgres, tmp_path: Path, long: bool
) -> None:
    restarts, size = (6, 400) if long else (1, 60)
    cast = Cast.open(mortal_postgres.url, agents=[Counter(tmp_path / "effects")])
    async with hosting(cast) as address:
        threads = [f"t{n}" for n in range(6)]
        for thread in threads:
            await begin(cast, ledger, thread, 3, size, 0.02)
        async with watching(ledger, http, lambda: address):
            for _ in range(restarts):
                await asyncio.sleep(0.7)
                await mortal_postgres.restart(0.5)
            for thread in threads:
                await over(cast.log, thread)
        await settle(ledger, cast.log, tmp_path / "effects")


async def test_postgres_stays_away_longer_than_runs_wait(
    ledger: Ledger, http: httpx.AsyncClient, mortal_postgres: Postgres, tmp_path: Path
) -> None:
    log = RunLog(SqlStore(PostgresDatabase(mortal_postgres.url, timeout_ms=2_000)), patience_ms=200)
    hub = own_hub(log, None, open_access())
    cast = Cast(log, hub=hub, agents=[Counter(tmp_path / "effects")])
    async with hosting(cast) as address:
        for thread in ("t0", "t1"):  # long: one that ends before its first error would be complete in memory
            await begin(cast, ledger, thread, 3, 150, 0.02)
        async with watching(ledger, http, lambda: address):
            await asyncio.sleep(0.5)
            runs = cast.active
            mortal_postgres.crash()
            for run in runs:
                assert (await run.result()).code == "store_error"
            mortal_postgres.start()
            for thread in ledger.threads:
                await over(log, thread, "truncated")
                await cast.resume(thread)
            for thread in ledger.threads:
                await over(log, thread)
        await settle(ledger, log, tmp_path / "effects")


async def test_a_line_to_postgres_that_stalls_cuts_and_delays(
    ledger: Ledger, http: httpx.AsyncClient, postgres_server: str, tmp_path: Path, long: bool
) -> None:
    url = own_schema(postgres_server)
    async with Network(port_of(url)) as line:
        cast = Cast.open(
            url.replace(f":{port_of(url)}", f":{line.port}"), agents=[Counter(tmp_path / "effects")]
        )
        async with hosting(cast) as address:
            threads = [f"t{n}" for n in range(4)]
            for thread in threads:
                await begin(cast, ledger, thread, 3, 600 if long else 80, 0.02)
            async with watching(ledger, http, lambda: address):
                for turn in range(8 if long else 1):
                    await misbehave(line, turn)
                for thread in threads:
                    await over(cast.log, thread)
            await settle(ledger, cast.log, tmp_path / "effects")
            ledger.note("cuts", line.cuts)


async def test_a_line_to_postgres_that_swallows(
    ledger: Ledger, http: httpx.AsyncClient, postgres_server: str, tmp_path: Path
) -> None:
    """The line is dead and nobody is told: what waits for an answer gives up by itself, and asks on a new one."""
    url = own_schema(postgres_server)
    async with Network(port_of(url)) as line:
        through = url.replace(f":{port_of(url)}", f":{line.port}")
        log = RunLog(SqlStore(PostgresDatabase(through, timeout_ms=500)), patience_ms=60_000)
        cast = Cast(log, hub=own_hub(log, None, open_access()), agents=[Counter(tmp_path / "effects")])
        async with hosting(cast) as address:
            for thread in ("t0", "t1"):
                await begin(cast, ledger, thread, 2, 60, 0.02)
            async with watching(ledger, http, lambda: address):
                await asyncio.sleep(0.5)
                line.swallowing = True
                await asyncio.sleep(1)
                line.swallow_no_more()
                for thread in ledger.threads:
                    await over(log, thread)
            await settle(ledger, log, tmp_path / "effects")


async def test_a_transaction_whose_client_vanished_holds_its_thread_no_longer_than_an_answer_may_take(
    postgres_server: str,
) -> None:
    """Its server hears nothing of it: without a bound of its own, the lock would outlive every attempt."""
    url = own_schema(postgres_server)
    async with Network(port_of(url)) as line:
        database = PostgresDatabase(url.replace(f":{port_of(url)}", f":{line.port}"), timeout_ms=300)
        store = SqlStore(database)
        key = Key("", "t")
        await store.acquire(key, owner="w", now=0, until=1, epoch="e")

        def vanishing() -> Script[None]:
            yield Query(LOCK)
            line.swallowing = True
            yield Query(LOCK)

        with pytest.raises(StoreError, match="connection"):
            await database.run(vanishing())
        line.swallow_no_more()
        taken = None
        async with asyncio.timeout(60):
            while taken is None:
                with suppress(StoreError):
                    taken = await store.acquire(key, owner="w", now=2, until=3, epoch="e")
        assert taken.token == 2
        await store.close()
