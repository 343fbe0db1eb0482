"""One way through the pipe in a process of its own, as a user's process runs it.

Run as `python -m benchmarks._pipe_ways FOLDER TOKENS RUNS`. For each line with the name of a way it does one round of it and answers
with a line of JSON: CPU seconds of the process, of them those by thread and those in the collector. Nothing is frozen, and the
collector runs as it comes. What a run leaves to do in the background is waited for and is in its figure. The graph alone has
another process: in one with it, a collection of the whole heap falls to either of them.

    alone     the graph streaming by itself
    adapted   the graph by the adapter          recorded   the events of such a run into the log, no graph beside them
    by_hand   … encoded, and bare inserts       shown      its entries to a hub with one watcher, no graph, no log
    logged    … into the log                    whole      a `Cast`: log, redaction, hub, snapshots, compaction
    clean     … redacted                        frozen     the same, its start left out of collections, as `serve` does it
    driven    a `Cast` whose agent gives such events again, watched: all that comes behind the adapter, no graph
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

from ag_ui.core import Event, RunAgentInput, UserMessage

from benchmarks._hub_peer import LIMITS
from benchmarks._langgraph_load import raw, talking
from benchmarks.hub import started
from runcast.adapters.langgraph import LangGraphAdapter
from runcast.app import Cast
from runcast.app.serve import freeze
from runcast.broadcast import Broadcaster, Hub
from runcast.slim import LogOptions, Redactor, RunLog, encode, open_store
from runcast.slim.entry import Entry
from runcast.slim.log.live_feed import PORTION

Way = Callable[[str], Awaitable[None]]
TABLE = "CREATE TABLE events (thread TEXT, seq INTEGER, at INTEGER, type TEXT, payload BLOB, PRIMARY KEY (thread, seq))"


def asks(thread: str) -> RunAgentInput:
    message = UserMessage(id=f"u-{thread}", content="hi")
    return RunAgentInput(thread_id=thread, run_id=f"run-{thread}", messages=[message])


class Clock:
    """CPU of this process, by thread, and the part of it that the collector takes."""

    def __init__(self) -> None:
        self.collected = 0.0
        self._since = 0.0
        gc.callbacks.append(self._collects)

    def _collects(self, phase: str, _: object) -> None:
        now = time.thread_time()
        if phase == "start":
            self._since = now
        else:
            self.collected += now - self._since

    def threads(self) -> Counter[str]:
        """Seconds by name of thread: Linux's own count, as far as there is one."""
        taken: Counter[str] = Counter()
        for each in threading.enumerate():
            try:
                ran = Path(f"/proc/self/task/{each.native_id}/schedstat").read_text().split()[0]
            except (OSError, IndexError):
                continue
            taken[each.name.rstrip("0123456789").rstrip("_-")] += int(ran) / 1e9
        return taken


async def round_of(way: Way, thread: str, clock: Clock) -> dict[str, Any]:
    """What one round takes."""
    before, collected = clock.threads(), clock.collected
    began = time.process_time()
    await way(thread)
    spent = time.process_time() - began
    threads = clock.threads()
    threads.subtract(before)
    return {"spent": spent, "collected": clock.collected - collected, "threads": threads}


class Again(LangGraphAdapter):
    """Gives the events of an earlier run again, without its graph. The event loop's turns are the graph's: a few are made."""

    def __init__(self, graph: Any, events: list[Event]) -> None:
        super().__init__(graph)
        self._events = events

    async def run(self, input: RunAgentInput, *, resume: object = None) -> AsyncIterator[Event]:
        own = {"thread_id": input.thread_id, "run_id": input.run_id}
        for at, event in enumerate(self._events):
            named = event.type in ("RUN_STARTED", "RUN_FINISHED")
            yield event.model_copy(update=own) if named else event
            if at % 8 == 0:
                await asyncio.sleep(0)


class Ways:
    """What each way needs, made when it is asked for."""

    def __init__(self, stack: AsyncExitStack, home: Path, tokens: int, runs: int) -> None:
        self._stack = stack
        self._home = home
        self._runs = runs
        self._graph = talking(tokens)
        self._agent = LangGraphAdapter(self._graph)  # made once, as the agents of a `Cast` are

    async def _alone(self) -> Way:
        async def alone(thread: str) -> None:
            await raw(self._graph, thread)

        return self._each(alone)

    async def made(self, name: str) -> Way:
        return await getattr(self, f"_{name}")()

    def _each(self, way: Way) -> Way:
        async def all_runs(thread: str) -> None:
            for at in range(self._runs):
                await way(f"{thread}-{at}")

        return all_runs

    async def _adapted(self) -> Way:
        async def adapted(thread: str) -> None:
            async for _ in self._agent.run(asks(thread)):
                pass

        return self._each(adapted)

    async def _by_hand(self) -> Way:
        """The least that could keep a run: each event encoded and inserted, the start and the end waited for; no lease,
        no readers, no redaction, nothing checked. Inserts gather for as long as the log's do under load."""
        table = self._stack.enter_context(
            closing(sqlite3.connect(self._home / "hand.db", check_same_thread=False, isolation_level=None))
        )
        for line in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", TABLE):
            table.execute(line)
        thread = self._stack.enter_context(ThreadPoolExecutor(1))
        loop, gathering = asyncio.get_running_loop(), LogOptions().flush_ms / 1_000

        async def by_hand(name: str) -> None:
            rows: list[tuple[object, ...]] = []
            writing: asyncio.Future[None] | None = None
            seq, due = 0, 0.0
            async for event in self._agent.run(asks(name)):
                seq += 1
                rows.append((name, seq, time.time_ns() // 1_000_000, event.type.value, encode(event)))
                if loop.time() >= due and (writing is None or writing.done()):
                    writing = loop.run_in_executor(thread, insert, table, rows)
                    rows, due = [], loop.time() + gathering
                    if seq == 1:
                        await writing
            if writing is not None:
                await writing
            await loop.run_in_executor(thread, insert, table, rows)

        return self._each(by_hand)

    async def _log(self, redactor: Redactor | None) -> RunLog:
        log = RunLog(open_store(f"sqlite:///{self._home}/log.db"), derive="manual", redactor=redactor)
        return await self._stack.enter_async_context(log)

    async def _logged(self, redactor: Redactor | None = None) -> Way:
        log = await self._log(redactor)

        async def logged(thread: str) -> None:
            async for event in self._agent.run(asks(thread)):
                await log.append(thread, event)

        return self._each(logged)

    async def _clean(self) -> Way:
        return await self._logged(Redactor())

    async def _recorded(self) -> Way:
        log = await self._log(Redactor())
        events = [event async for event in self._agent.run(asks("recorded"))]

        async def recorded(thread: str) -> None:
            for event in events:
                named = event.type in ("RUN_STARTED", "RUN_FINISHED")
                own = {"thread_id": thread, "run_id": f"run-{thread}"}
                await log.append(thread, event.model_copy(update=own) if named else event)
                await asyncio.sleep(0)  # as the graph's loop turns for every token

        return self._each(recorded)

    async def _served(self) -> tuple[Hub, Callable[[str], Awaitable[object]]]:
        """A hub that listens, and how its watcher, a process of its own, comes to a thread."""
        hub = Hub("1001", "app-key", "app-secret", public=True, prefix="agent.", limits=LIMITS)
        server = await self._stack.enter_async_context(hub.serve())
        watcher = self._stack.enter_context(started("benchmarks._hub_load"))

        def watching(thread: str) -> Awaitable[object]:
            hello = f"open 127.0.0.1 {server.port} /ws?channel=agent.{thread} 1"
            return asyncio.to_thread(watcher.ask, hello)

        return hub, watching

    async def _shown(self) -> Way:
        log = await self._log(Redactor())
        hub, watching = await self._served()
        async for event in self._agent.run(asks("shown")):
            await log.append("shown", event)
        await log.flush()
        entries = await log.entries("shown")
        broadcaster = Broadcaster(hub, prefix="agent.")

        async def shown(thread: str) -> None:
            await watching("shown")
            for at in range(0, len(entries), PORTION):  # as a log under load hands them over
                ids = (thread, f"run-{thread}")
                broadcaster.put_all(
                    [
                        Entry(thread, each.seq, *ids, each.at, each.event)
                        for each in entries[at : at + PORTION]
                    ]
                )
                await asyncio.sleep(0)
            await broadcaster.flush()

        return self._each(shown)

    async def _cast(self, hub: Hub | None = None) -> Cast:
        """A host that knows its agent from the start: describing it to other nodes is no run's cost."""
        url = f"sqlite:///{self._home}/cast.db"
        return await self._stack.enter_async_context(Cast.open(url, agents=[self._agent], hub=hub))

    async def _whole(self) -> Way:
        hub, watching = await self._served()
        cast = await self._cast(hub)

        async def whole(thread: str) -> None:
            await watching(thread)
            run = await cast.start(self._agent, asks(thread))
            await until_shown(hub, thread, (await run.result()).last_seq)

        return self._resting(cast, whole)

    async def _driven(self) -> Way:
        hub, watching = await self._served()
        agent = Again(self._graph, [event async for event in self._agent.run(asks("driven"))])
        cast = await self._cast(hub)

        async def driven(thread: str) -> None:
            await watching(thread)
            run = await cast.start(agent, asks(thread))
            await until_shown(hub, thread, (await run.result()).last_seq)

        return self._resting(cast, driven)

    async def _frozen(self) -> Way:
        return await self._whole()

    async def _unwatched(self) -> Way:
        cast = await self._cast()

        async def unwatched(thread: str) -> None:
            await (await cast.start(self._agent, asks(thread))).result()

        return self._resting(cast, unwatched)

    def _resting(self, cast: Cast, way: Way) -> Way:
        every = self._each(way)

        async def rested(thread: str) -> None:
            await every(thread)
            await cast.log._core.rest()  # compaction

        return rested


def insert(table: sqlite3.Connection, rows: list[tuple[object, ...]]) -> None:
    table.execute("BEGIN IMMEDIATE")
    table.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
    table.execute("COMMIT")


async def until_shown(hub: Hub, thread: str, last: int) -> None:
    async with asyncio.timeout(60):
        while hub.position(f"agent.{thread}").offset < last:  # noqa: ASYNC110  a place is all the hub has
            await asyncio.sleep(0.005)


async def main(home: Path, tokens: int, runs: int) -> None:
    """Rounds as they are asked for. A way is made and warmed up when its name comes for the first time."""
    logging.disable(logging.WARNING)
    clock, made = Clock(), dict[str, Way]()
    async with AsyncExitStack() as stack:
        for at in count():
            name = (await asyncio.to_thread(sys.stdin.readline)).strip()
            if not name:
                return
            if name not in made:
                (folder := home / name).mkdir()
                made[name] = await Ways(stack, folder, tokens, runs).made(name)
                await made[name](f"warm-{name}")
                if name == "frozen":
                    freeze()
            print(json.dumps(await round_of(made[name], f"way-{name}-{at}", clock)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:4])))
