"""What all commands share: errors as sentences with an exit code, output as JSON, bars for work that takes time.

Knows codes; does not know commands.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import orjson

try:
    import typer
except ImportError as error:
    raise ImportError("for the command line, install runcast[cli]") from error

from runcast.adapters import AdapterError
from runcast.app.errors import AppError, BadRequest, NotFound
from runcast.app.settings import Settings
from runcast.broadcast import BroadcastError
from runcast.slim import RunLog, SlimError, UnknownThread, open_store

P = ParamSpec("P")
T = TypeVar("T")


def guarded(command: Callable[P, T]) -> Callable[P, T]:
    """A command whose mistakes are sentences on standard error, and whose exit code says which kind."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (NotFound, UnknownThread) as error:
            raise _told(error, 3) from error
        except (BadRequest, ValueError) as error:
            raise _told(error, 2) from error
        except (
            BrokenPipeError
        ):  # who reads has seen enough; what is still buffered must not complain at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (AppError, SlimError, BroadcastError, AdapterError, ImportError, OSError) as error:
            raise _told(error, 1) from error
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return run


def _told(error: Exception, code: int) -> typer.Exit:
    print(f"runcast: {error}", file=sys.stderr)
    return typer.Exit(code)


def finish(value: Any) -> None:
    """Print one JSON value."""
    print(json.dumps(value, ensure_ascii=False, indent=None if isinstance(value, str) else 2, default=str))


def line(value: bytes) -> None:
    """Print one line of JSON as it is."""
    sys.stdout.buffer.write(value.rstrip(b"\n") + b"\n")
    sys.stdout.flush()


def compactly(value: Any) -> bytes:
    """One JSON value on one line."""
    return orjson.dumps(value)


@contextmanager
def working(what: str, total: int | None = None) -> Generator[Callable[[], None]]:
    """A bar on standard error while the block works, where that is a terminal; without a total it only moves.

    What it gives is called after each of the total.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def thread_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """How a thread's id may go on, for a shell. Nothing where there is no log: asking must not make one."""
    url = str(ctx.params.get("url") or Settings().url)
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        return []

    async def work() -> list[str]:
        async with opened(url) as log:
            return [each.thread_id for each in await log.threads(limit=1_000)]

    try:
        return [each for each in asyncio.run(work()) if each.startswith(incomplete)]
    except Exception:  # noqa: BLE001  a shell that completes has no place for a complaint
        return []


@asynccontextmanager
async def opened(url: str | None) -> AsyncGenerator[RunLog]:
    """The log behind a URL, or behind the one of the settings."""
    async with RunLog(open_store(url or Settings().url), derive="manual") as log:
        yield log


async def known(log: RunLog, thread_id: str) -> None:
    """Complain about a thread that is not there."""
    if await log.thread(thread_id) is None:
        raise NotFound(f"there is no thread {thread_id!r}; `runcast ls` lists them")


Work = Callable[[RunLog], Coroutine[Any, Any, T]]
