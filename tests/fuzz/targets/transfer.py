"""An exported thread from anywhere: taken whole, or refused with a typed error and nothing of it left behind.

Of an archive, the threads before the refused one are whole, and stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from runcast.slim import RunLog, SlimError, open_store

TOKENS = (
    *(
        b'{"runcast":1,"thread_id":"t","whole":true,"epoch":"e","last_seq":2}\n',
        b'"thread_id":',
        b'"epoch":',
        b"null",
    ),
    *(
        b'{"run":{"run_id":"r","edge":"continue","started_at":5,"status":"completed"}}\n',
        b'"parent":"r"',
        b'"ended_at":',
    ),
    *(
        b'{"seq":1,"at":5,"event":{"type":"CUSTOM","name":"n","value":1}}\n',
        b'"edge":"branch"',
        b'"edge":"resume"',
    ),
    *(
        b'"edge":"spawn"',
        b'"wire_parent":"w"',
        b'"usage":[',
        b'"terminal":',
        b'"status":"failed"',
        b"-1",
        b"1e308",
    ),
    *(
        b"9223372036854775808",
        b',"event":',
        b"\\u0000",
        b"\\ud800",
        b'"run_id":',
        b'"started_at":',
        b"[",
        b"]",
        b"\n",
    ),
    *(b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}', b'{"type":"TEXT_MESSAGE_START","messageId":"m"}'),
)
LOOP = asyncio.new_event_loop()


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    LOOP.run_until_complete(_check(data.splitlines(keepends=True)))


async def _check(lines: list[bytes]) -> None:
    async with _log() as log, _log() as there:
        try:
            thread_id = await log.archive.import_lines(_each(lines))
        except SlimError:
            named = 1 + sum(line.startswith(b'{"runcast":') for line in lines[1:])
            left = await log.threads()
            assert len(left) < named, "nothing of the last one is here"
            assert all(thread.owner is None for thread in left), "those before it are whole"
            return
        if await log.thread(thread_id) is None:
            return
        assert all(run.ended_at is not None for run in await log.runs(thread_id)), "nobody writes it"
        told = [line async for line in log.archive.export_lines(thread_id)]
        await there.archive.import_lines(_each(told))
        assert await there.entries(thread_id) == await log.entries(thread_id)
        assert [line async for line in there.archive.export_lines(thread_id)] == told


def _log() -> RunLog:
    return RunLog(open_store("memory://"), flush_ms=1, derive="manual")


async def _each(lines: list[bytes]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line
