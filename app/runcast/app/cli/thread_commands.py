"""Commands for stored threads: list, show, read, compact.

Knows the log; does not serve.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from runcast.app.cli.common import guarded, known, opened, thread_ids, working
from runcast.app.cli.printing import Screen, finish, line
from runcast.app.errors import BadRequest

if TYPE_CHECKING:
    from runcast.slim import Entry, RunLog

Url = Annotated[str | None, typer.Option(help="The log's store; by default sqlite:///runcast.db, here.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Thread = Annotated[str, typer.Argument(help="The thread's id.", autocompletion=thread_ids)]
Limit = Annotated[int, typer.Option(help="The most to list.", min=1)]
Tenant = Annotated[str, typer.Option(help="The tenant, of a host that has tenants.")]
Speed = Annotated[float, typer.Option(help="2 is twice as fast, 0 does not wait.", min=0)]
After = Annotated[int, typer.Option(help="Begin after this seq.", min=0)]
UntilEnd = Annotated[bool, typer.Option("--until-end", help="Stop when a run has ended.")]
PAGE = 500  # entries read at once
LAST = 5  # messages that `show` prints
screen = Screen()


@guarded
def ls(url: Url = None, limit: Limit = 100, json: Json = False) -> None:
    """List threads."""

    async def work() -> None:
        async with opened(url) as log:
            found = await log.threads(limit=limit)
        rows = [
            {"thread_id": each.thread_id, "events": each.last_seq, "active": each.owner is not None, "updated_at": each.updated_at}
            for each in found
        ]  # fmt: skip
        if json:
            finish(rows)
            return
        table = Table("thread", "events", "active")
        for row in rows:
            table.add_row(str(row["thread_id"]), str(row["events"]), "yes" if row["active"] else "")
        screen.print(table)

    asyncio.run(work())


@guarded
def show(thread: Thread, url: Url = None, json: Json = False) -> None:
    """A thread's runs, its size and its last messages."""
    from runcast.app.host.thread_reader import Threads
    from runcast.app.http.thread_routes import run_row
    from runcast.slim import SlimSerializer

    async def work() -> None:
        async with opened(url) as log:
            await known(log, thread)
            threads = Threads(log, SlimSerializer())
            shown: dict[str, Any] = {
                "thread_id": thread,
                "runs": [run_row(each) for each in await log.runs(thread)],
                "size": await threads.size(thread),
                "snapshot": await threads.snapshot(thread),
            }
        if json:
            finish(shown)
            return
        table = Table("run", "continues", "attempt", "status", "events")
        for row in shown["runs"]:
            events = f"{row['first_seq']}–{row['last_seq']}"  # noqa: RUF001
            table.add_row(row["run_id"], row["parent"] or "", str(row["attempt"]), row["status"], events)
        screen.print(table)
        screen.print("   ".join(f"{name} {value}" for name, value in shown["size"].items()))
        messages = shown["snapshot"]["messages"]
        if len(messages) > LAST:
            screen.print(f"… {len(messages) - LAST} earlier messages: `runcast export --markdown` has all")
        for message in messages[-LAST:]:
            screen.print(f"{message['role']}: {str(message['content'])[:300]}")

    asyncio.run(work())


@guarded
def replay(thread: Thread, url: Url = None, speed: Speed = 1.0, json: Json = False) -> None:
    """Print a thread's events again, at the speed they happened; a speed of 0 does not wait."""

    async def work() -> None:
        async with opened(url) as log:
            await known(log, thread)
            before: int | None = None
            async for entry in _entries(log, thread):
                if before is not None and speed > 0:
                    await asyncio.sleep(min(max(entry.at - before, 0) / 1000 / speed, 60))
                before = entry.at
                _print(entry.seq, entry.event, json)

    asyncio.run(work())


async def _entries(log: RunLog, thread: str) -> AsyncIterator[Entry]:
    """A thread's entries, a page at a time, so that a long thread is printed from its start at once."""
    after = 0
    while page := await log.entries(thread, after, PAGE):
        for entry in page:
            yield entry
        after = page[-1].seq


@guarded
def tail(
    thread: Thread, url: Url = None, after: After = 0, until_end: UntilEnd = False, json: Json = False
) -> None:
    """Print a thread's events as they come, from any process."""

    async def work() -> None:
        async with opened(url) as log, aclosing(log.attach(thread, after)) as entries:
            async for entry in entries:
                _print(entry.seq, entry.event, json)
                if until_end and entry.event.type in ("RUN_FINISHED", "RUN_ERROR"):
                    return

    asyncio.run(work())


def _print(seq: int, event: Any, as_json: bool) -> None:
    from runcast.slim import encode

    if as_json:
        line(b'{"seq":%d,"event":%s}' % (seq, encode(event)))
        return
    words = ("delta", "step_name", "tool_call_name", "content", "message", "name")
    text = next((str(getattr(event, word)) for word in words if getattr(event, word, None)), "")
    screen.print(f"{seq:>6}  {getattr(event.type, 'value', event.type)!s:<26} {text[:160]!r}")


@guarded
def compact(
    thread: Annotated[
        str | None, typer.Argument(help="One thread; by default all.", autocompletion=thread_ids)
    ] = None,
    url: Url = None,
    json: Json = False,
) -> None:
    """Compact ended runs, as a host does when they end."""

    async def work() -> dict[str, int]:
        total = {"threads": 0, "runs": 0, "raw_bytes": 0, "segment_bytes": 0}
        async with opened(url) as log:
            if thread is not None:
                await known(log, thread)
            names = [thread] if thread is not None else [each.thread_id async for each in _all(log)]
            with working("compacting", len(names)) as advance:
                for name in names:
                    done = await log.archive.compact(name)
                    advance()
                    total["threads"] += 1
                    for field in ("runs", "raw_bytes", "segment_bytes"):
                        total[field] += getattr(done, field)
        return total

    print_numbers(asyncio.run(work()), json)


async def _all(log: RunLog) -> AsyncIterator[Any]:
    after = ""
    while found := await log.threads(limit=500, after=after):
        for each in found:
            yield each
        after = found[-1].thread_id


@guarded
def anew(
    thread: Annotated[str | None, typer.Argument(help="The thread; all of them with --all.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every thread of the store.")] = False,
    url: Url = None,
    json: Json = False,
) -> None:
    """Give a thread a new epoch: readers drop what they have and start over, as after a restored copy."""
    if (thread is None) != everything:
        raise BadRequest("name a thread, or say --all")

    async def work() -> dict[str, int]:
        async with opened(url) as log:
            if thread is not None:
                await known(log, thread)
            names = [each.thread_id async for each in _all(log)] if thread is None else [thread]
            for name in names:
                await log.archive.begin_anew(name)
        return {"threads": len(names)}

    print_numbers(asyncio.run(work()), json)


def print_numbers(numbers: dict[str, int], as_json: bool) -> None:
    """Print numbers with their names."""
    if as_json:
        finish(numbers)
    else:
        screen.print("   ".join(f"{name} {value}" for name, value in numbers.items()))
