"""Processes that are forked from a server with its imports done, so that fifty of them take seconds.

Knows what they need imported; does not know what they do. One server serves all tests of a process.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

IMPORTED = [
    *("tests.reliability.children", "tests.reliability.nodes", "tests.reliability.graph"),
    *("tests.resume.langgraph_agent", "tests.resume.plain_graph"),
    *("tests.resume.adk_agent", "tests.resume.adk_approval"),
]


def nursery() -> ForkServerContext:
    """Where such processes come from."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context
