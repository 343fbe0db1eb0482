"""The seam between the SQL store and a driver.

Knows reads and transactions; does not know what is stored. A transaction is a *script*: a generator that yields its
steps and receives their rows, so that one driver can await each step and another run all of them in its thread. A driver
takes `?` for an argument and turns its own errors into `StoreError`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from runcast.slim.stores.base import Watch

Row = tuple[Any, ...]  # the statement decides the type of each column
T = TypeVar("T")


class Query(NamedTuple):
    """One statement; the script receives its rows."""

    sql: str
    args: Sequence[object] = ()


class Insert(NamedTuple):
    """Many rows for one table; `columns` maps a name to its SQL type."""

    table: str
    columns: dict[str, str]
    rows: Sequence[Row]


class Wake(NamedTuple):
    """Wake the watchers of these topics once the transaction is committed."""

    topics: Sequence[str]


Script = Generator[Query | Insert | Wake, list[Row], T]


def once(sql: str, args: Sequence[object] = ()) -> Script[list[Row]]:
    """A transaction of one statement; returns its rows."""
    return (yield Query(sql, args))


class Database(Protocol):
    """A driver that opens itself when needed and raises `StoreError`."""

    skip_locked: str  # the clause of a SELECT that locks its rows, and skips those locked by another session

    async def open(self) -> None:
        """Connect and migrate."""
        ...

    def apart(self) -> AbstractAsyncContextManager[Database]:
        """The open database for the event loop of another thread."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Read, outside any transaction."""
        ...

    async def run(self, script: Script[T]) -> T:
        """Run a script in a transaction: commit at its end, or roll back on any exception."""
        ...

    async def watch(self, *topics: str) -> Watch:
        """A watcher of these topics."""
        ...
