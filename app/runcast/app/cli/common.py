"""Shared by all commands: errors as one sentence and an exit code, bars for long work.

Knows codes; does not know commands. What only a running command needs is imported when it runs, here and in the commands:
help and completion are quick.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer

from runcast.app.cli.printing import complain
from runcast.app.errors import AppError, BadRequest, NotFound
from runcast.broadcast.errors import BroadcastError
from runcast.slim.errors import SlimError, UnknownThread

if TYPE_CHECKING:
    from runcast.slim import RunLog

SQLITE = "sqlite:///"
HARMLESS = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*", re.ASCII)  # in any shell
PATIENCE = 3.0  # seconds for a store to answer

P = ParamSpec("P")
T = TypeVar("T")


def guarded(command: Callable[P, T]) -> Callable[P, T]:
    """The command, with its errors as one sentence on standard error and an exit code by their kind."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (NotFound, UnknownThread) as error:
            raise _failed(error, 3) from error
        except (BadRequest, ValueError) as error:
            raise _failed(_understood(error), 2) from error
        except BrokenPipeError:  # the reader closed the pipe: the buffered rest must not raise at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except _refusals() as error:
            raise _failed(error, 1) from error
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return run


def _refusals() -> tuple[type[Exception], ...]:
    from runcast.adapters import AdapterError

    return AppError, SlimError, BroadcastError, AdapterError, ImportError, OSError


def _understood(error: Exception) -> Exception:
    """For an invalid setting, its name and where it may be set."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return error
    first = error.errors()[0]
    name = ".".join(str(each) for each in first["loc"])
    return BadRequest(
        f"{name} cannot be {first['input']!r}: {first['msg']}; set --{name.replace('_', '-')} or RUNCAST_{name.upper()}"
    )


def _failed(error: Exception, code: int) -> typer.Exit:
    complain(str(error))
    return typer.Exit(code)


def compactly(value: Any) -> bytes:
    """One JSON value on one line."""
    import orjson

    return orjson.dumps(value)


@contextmanager
def working(what: str, total: int | None = None) -> Generator[Callable[[], None]]:
    """A bar on standard error during the block, if that is a terminal; call the result after each of `total` pieces."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def thread_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Thread ids for a shell's completion; none without a log, since completing must not create one.

    A shell would run what it is handed: only ids that mean nothing to it.
    """
    from runcast.app.cli.settings import Settings

    url = str(ctx.params.get("url") or Settings().url)

    async def work() -> list[str]:
        async with opened(url) as log:
            return [each.thread_id for each in await log.threads(limit=1_000)]

    try:
        return [
            each for each in asyncio.run(work()) if each.startswith(incomplete) and HARMLESS.fullmatch(each)
        ]
    except Exception:  # noqa: BLE001  a completing shell cannot show an error
        return []


@asynccontextmanager
async def opened(url: str | None, *, new: bool = False) -> AsyncGenerator[RunLog]:
    """The log at a URL, or at the one of the settings; only a `new` one may be created by this.

    A store that does not answer is one error after a few seconds, instead of its driver's retries.
    """
    from runcast.app.cli.settings import Settings
    from runcast.slim import RunLog, open_store
    from runcast.slim.outage import place_of

    url = url or Settings().url
    if not new and _is_missing(url):
        raise NotFound(f"there is no log at {url}: check --url or RUNCAST_URL")
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # it reports every retry
    log = RunLog(open_store(url), derive="manual")
    try:
        async with asyncio.timeout(PATIENCE):
            await log.__aenter__()
    except TimeoutError:
        place = place_of(url)
        where = f" at {place}" if place else ""
        raise AppError(
            f"the store{where} does not answer: check --url, and that its server is running"
        ) from None
    try:
        yield log
    finally:
        await log.close()


def _is_missing(url: str) -> bool:
    """Whether the URL names a file that does not exist, which opening it would create."""
    return url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE).partition("?")[0]).exists()


async def known(log: RunLog, thread_id: str) -> None:
    """Raise `NotFound` for a thread that does not exist."""
    if await log.thread(thread_id) is None:
        raise NotFound(f"there is no thread {thread_id!r}; `runcast ls` lists them")
