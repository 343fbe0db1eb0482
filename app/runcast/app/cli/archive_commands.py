"""Commands that move threads: to a file, as evidence or text, and from a file into another store.

Knows the log and archives; does not serve.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runcast.app.cli.common import compactly, guarded, known, opened, thread_ids, working
from runcast.app.cli.printing import finish, line, plain
from runcast.app.cli.run_commands import TARGET
from runcast.app.cli.thread_commands import Json, Tenant, Url, screen
from runcast.app.errors import BadRequest

if TYPE_CHECKING:
    from runcast.app.keeping.thread_archives import Imported, ThreadArchives
    from runcast.slim import RunLog

Agents = Annotated[list[str] | None, typer.Option("--agent", help=TARGET)]


@guarded
def export(
    thread: Annotated[
        str | None, typer.Argument(help="One thread; --all for all of them.", autocompletion=thread_ids)
    ] = None,
    url: Url = None,
    every: Annotated[bool, typer.Option("--all", help="All threads, in one archive.")] = False,
    tenant: Tenant = "",
    agent: Agents = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; .gz compresses.")] = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Write an evidence artifact of one run.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write the conversation as text.")] = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Write everything, for `import` (the default).")
    ] = False,
    run: Annotated[str | None, typer.Option(help="The run for --evidence; by default the newest.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON what was written to --output.")] = False,
) -> None:
    """Write a thread to a file: as JSON Lines, as evidence, or as text; or all threads of a tenant as JSON Lines.

    With --agent, JSON Lines have what the agent's framework keeps too (checkpoints, sessions), so that the thread goes on elsewhere.
    """
    if (thread is None) is not every:
        raise BadRequest("name a thread, or give --all")
    if evidence + markdown + jsonl + (every and (evidence or markdown)) > 1:
        raise BadRequest("choose one of --evidence, --jsonl and --markdown")
    if json and output is None:
        raise BadRequest("--json describes the file that was written: give --output")
    from runcast.slim import export_evidence
    from runcast.slim.archive.line_files import write_file

    async def work() -> None:
        async with opened(url) as whole:
            log = whole.for_tenant(tenant) if tenant else whole
            if thread is not None:
                await known(log, thread)
            if evidence and thread is not None:
                name = run or (await log.runs(thread))[-1].run_id
                artifact = export_evidence(await log.entries(thread), run_id=name, projection="fold")
                _write(output, compactly(artifact))
            elif markdown and thread is not None:
                _write(output, plain(await _markdown(log, thread)).encode())
            else:
                async with _archives(whole, tenant, url, agent) as archives:
                    if output is None:
                        async for each in archives.export(thread):
                            line(each)
                        return
                    with working(f"writing {output.name}"):
                        await write_file(output, archives.export(thread))

    asyncio.run(work())
    if output is not None and json:
        finish({"thread_id": thread, "file": str(output), "bytes": output.stat().st_size})


async def _markdown(log: RunLog, thread: str) -> str:
    from runcast.slim import fold

    parts = [f"# {thread}\n"]
    for message in fold(await log.restore(thread)).messages:
        if message.role == "activity":
            continue
        calls = [
            f"`{call.function.name}({call.function.arguments})`"
            for call in getattr(message, "tool_calls", None) or ()
        ]
        text = "" if message.content is None else str(message.content)
        parts.append(f"**{message.role}**\n\n" + "\n\n".join(filter(None, [text, *calls])) + "\n")
    return "\n".join(parts)


def _write(output: Path | None, data: bytes) -> None:
    if output is None:
        line(data)
    else:
        output.write_bytes(data.rstrip(b"\n") + b"\n")


@guarded
def import_(
    file: Annotated[Path, typer.Argument(help="A file that `export` wrote; - is standard input.")],
    url: Url = None,
    tenant: Tenant = "",
    agent: Agents = None,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Messages that wait in the archive begin here.")
    ] = False,
    json: Json = False,
) -> None:
    """Import exported threads; with --agent, what the agent's framework kept of them goes into its own store."""
    from runcast.slim.archive.line_files import read_file

    async def work() -> Imported:
        async with opened(url, new=True) as log, _archives(log, tenant, url, agent) as archives:
            with working(f"reading {file.name}"):
                lines = _stdin() if str(file) == "-" else read_file(file)
                return await archives.import_all(lines, waiting=waiting)

    done = asyncio.run(work())
    if json:
        finish({"thread_id": done.threads[-1], "threads": done.threads, "left_out": dict(done.left)})
        return
    for thread in done.threads:
        screen.print(f"imported thread {thread}")
    for what, count in done.left.items():
        screen.print(f"left out: {what} ({count})")


@asynccontextmanager
async def _archives(
    log: RunLog, tenant: str, url: str | None, agents: list[str] | None
) -> AsyncGenerator[ThreadArchives]:
    """The archives of a cast that serves nothing, with these agents."""
    from runcast.adapters.frameworks import Hosting
    from runcast.app.cli.serving import Served, adapters_of
    from runcast.app.cli.settings import Settings
    from runcast.app.host.cast import Cast

    async with AsyncExitStack() as stack:
        served = Served(agents or [], Hosting(url or Settings().url))
        cast = Cast(log, agents=await adapters_of(served, stack), work=False)
        yield cast.for_tenant(tenant).archives


async def _stdin() -> AsyncIterator[bytes]:
    from runcast.slim.archive.line_files import LONGEST, PIECE
    from runcast.slim.wire.splitters import LineSplitter

    splitter = LineSplitter(LONGEST)
    while piece := await asyncio.to_thread(sys.stdin.buffer.read, PIECE):
        for _, each in splitter.feed(piece):
            yield each
    for _, each in splitter.finish():
        yield each
