"""Processes that are forked from a server with its imports done, so that fifty of them take seconds.

Knows what they need imported; does not know what they do. One server serves all tests of a process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess

IMPORTED = [
    *("tests.reliability.children", "tests.reliability.nodes", "tests.reliability.graph"),
    *("tests.resume.langgraph_agent", "tests.resume.plain_graph"),
    *("tests.resume.adk_agent", "tests.resume.adk_approval", "tests.adapters.adk.frozen_worker"),
]


def nursery() -> ForkServerContext:
    """Where such processes come from."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def spawn(target: Callable[..., None], *args: object) -> tuple[ForkServerProcess, Connection]:
    """A child, and the pipe on which it says things."""
    context = nursery()
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=target, args=(theirs, *args), daemon=True)
    child.start()
    theirs.close()
    return child, ours


def everything(pipe: Connection) -> list[object]:
    """All that was said before the end."""
    said: list[object] = []
    try:
        while True:
            said.append(pipe.recv())
    except (EOFError, OSError):
        return said
