"""Commands that remove: forget a thread, prune what is old.

Knows the log and the settings; does not serve.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from runcast.app.cli.common import guarded, known, opened, working
from runcast.app.cli.printing import finish, say
from runcast.app.cli.thread_commands import Json, Thread, Url, print_numbers
from runcast.app.errors import BadRequest

if TYPE_CHECKING:
    from runcast.slim import Pruned
    from runcast.slim.archive.pruning import What

KINDS: dict[str, What] = {"raw": "raw", "derived": "derived", "threads": "threads"}


@guarded
def rm(
    thread: Thread,
    url: Url = None,
    reuse: Annotated[
        bool,
        typer.Option("--reuse", help="Delete the tombstone of a forgotten thread: its id may be used again."),
    ] = False,
    json: Json = False,
) -> None:
    """Forget a thread: stop its run, delete all that is kept of it, and refuse its id from then on."""
    from runcast.app.cli.settings import Settings
    from runcast.app.host.cast import Cast

    settings = Settings()

    async def work() -> str:
        async with opened(url) as log:
            forgotten = await log.archive.is_forgotten(thread)
            if reuse:
                if not forgotten:
                    raise BadRequest(f"thread {thread!r} was not forgotten: `runcast rm` forgets it")
                await log.archive.delete(thread)
                return "free"
            if not forgotten:
                await known(log, thread)
        place = url or settings.url
        async with Cast.open(place, watch=False, work=False, redis=settings.redis) as host:
            return await host.forget(thread)

    status = asyncio.run(work())
    if json:
        finish({"thread_id": thread, "status": status})
    else:
        texts = {
            "forgotten": "forgotten",
            "forgetting": "gone from the log; workers delete what the agents' frameworks keep",
            "free": "its id may be used again",
        }
        say(f"{thread}: {texts[status]}")


@guarded
def prune(
    older_than: Annotated[str | None, typer.Option(help="30d, 12h, 90m or 60s.")] = None,
    keep_bytes: Annotated[int | None, typer.Option(help="The bytes of raw events that may stay.")] = None,
    what: Annotated[str, typer.Option(help="raw, derived or threads.")] = "raw",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    url: Url = None,
    json: Json = False,
) -> None:
    """Delete old raw events (their compacted form stays), derived data, or whole threads.

    Without --older-than and --keep-bytes it deletes nothing: it counts what a host with RUNCAST_KEEP and RUNCAST_KEEP_RAW
    would remove now.
    """
    from runcast.app.cli.serving import ages
    from runcast.app.cli.settings import Settings
    from runcast.app.host.cast import Cast
    from runcast.app.keeping.ages import age_of

    kind = KINDS.get(what)
    if kind is None:
        raise BadRequest("--what is raw, derived or threads")
    planned = older_than is None and keep_bytes is None
    settings = ages(Settings())
    if planned and not any(settings.values()):
        raise BadRequest(
            "give --older-than or --keep-bytes, or set RUNCAST_KEEP or RUNCAST_KEEP_RAW to see what a host removes"
        )

    async def work() -> Pruned:
        async with opened(url) as log:
            if planned:
                return await Cast(log, work=False, **settings).retention.plan()
            age = None if older_than is None else age_of(older_than)
            with working("pruning"):
                return await log.archive.prune(
                    older_than=age, keep_bytes=keep_bytes, what=kind, dry_run=dry_run
                )

    gone = asyncio.run(work())
    print_numbers({name: getattr(gone, name) for name in ("runs", "threads", "events", "bytes")}, json)
