"""A graph as LangGraph's server runs it: with a checkpointer and a store, and with the client's context and configuration.

What the graph was compiled with stays. Does not know the host's log, only its URL.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore

from runcast.adapters.frameworks import Hosting
from runcast.adapters.langgraph.adapter import LangGraphAdapter
from runcast.adapters.langgraph.options import LangGraphOptions

UNNAMED = ("", "LangGraph")  # LangGraph's name for a graph that was compiled without one
SETUP = 7_823_401_966_143  # any number, the same in every process: one of them prepares LangGraph's tables at a time
TRY_LOCK, UNLOCK = f"SELECT pg_try_advisory_lock({SETUP}) AS free", f"SELECT pg_advisory_unlock({SETUP})"
PAUSE = 0.1  # seconds between two tries
SQLITE, POSTGRES = "sqlite:///", ("postgres://", "postgresql://")


@asynccontextmanager
async def hosted(graph: Any, hosting: Hosting) -> AsyncGenerator[LangGraphAdapter]:
    """The graph behind its adapter, for as long as the block runs."""
    async with AsyncExitStack() as stack:
        if hasattr(graph, "compile"):  # a builder
            graph = graph.compile()
        if isinstance(graph, Pregel):
            graph = await _complete(graph, hosting.url, stack)
        own = getattr(graph, "name", None)
        name = hosting.name or (hosting.fallback if own in (None, *UNNAMED) else str(own))
        options = LangGraphOptions(client_config=True)
        context = hosting.context or None
        yield LangGraphAdapter(graph, name=name, config=hosting.config, context=context, options=options)


async def _complete(graph: Any, url: str, stack: AsyncExitStack) -> Any:
    missing = [name for name in ("checkpointer", "store") if getattr(graph, name) is None]
    if not missing:
        return graph
    saver, store = await _persistence(url, stack)
    defaults = {"checkpointer": saver, "store": store}
    return graph.copy(update={name: defaults[name] for name in missing})


async def _persistence(url: str, stack: AsyncExitStack) -> tuple[Any, Any]:
    """A checkpointer and a store in the log's database; in memory without LangGraph's package for that database."""
    try:
        if url.startswith(SQLITE):
            saver, store = await _in_sqlite(url.removeprefix(SQLITE).partition("?")[0], stack)
        elif url.startswith(POSTGRES):
            saver, store = await _in_postgres(url, stack)
        else:
            return InMemorySaver(), InMemoryStore()
    except ImportError:
        return InMemorySaver(), InMemoryStore()
    return saver, store


async def _in_sqlite(path: str, stack: AsyncExitStack) -> tuple[Any, Any]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(path))
    store = await stack.enter_async_context(AsyncSqliteStore.from_conn_string(path))
    await saver.setup()
    await store.setup()
    return saver, store


async def _in_postgres(url: str, stack: AsyncExitStack) -> tuple[Any, Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    given = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    check = AsyncConnectionPool.check_connection  # a restarted server costs a run nothing
    pool: Any = AsyncConnectionPool(url, min_size=1, max_size=4, open=False, kwargs=given, check=check)
    await stack.enter_async_context(pool)
    saver, store = AsyncPostgresSaver(pool), AsyncPostgresStore(pool)
    async with pool.connection() as connection:
        # LangGraph's migrations fail beside another process's. Its CREATE INDEX CONCURRENTLY waits for every open statement,
        # so the lock is polled: a wait for it would be one.
        while not (await (await connection.execute(TRY_LOCK)).fetchone())["free"]:  # noqa: ASYNC110  another process's
            await asyncio.sleep(PAUSE)
        try:
            await saver.setup()
            await store.setup()
        finally:
            await connection.execute(UNLOCK)
    return saver, store
