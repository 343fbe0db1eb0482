"""What a graph's middleware rewrites in its streams, as a function of a text.

LangGraph asks a graph's `stream_transformers` to rewrite the events of its own stream. Those that rewrite the state in
it are asked the same here, with a state of one message. Knows their protocol; does not know what they look for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage

from runcast.adapters.langgraph.capabilities import graphs_in

logger = logging.getLogger("runcast.adapters.langgraph")

UNNAMED = (None, "", "LangGraph")
REFUSED = "[withheld]"  # for a text that middleware refuses: that must not end the run here


def rewriting(graph: Any) -> Callable[[str], str] | None:
    """What rewrites the texts of this graph's stream; None if nothing does."""
    transformers = list(_transformers(graph))
    if not transformers:
        return None

    @lru_cache(maxsize=256)
    def rewrite(text: str) -> str:
        for transformer in transformers if text else ():
            text = _asked(transformer, text)
        return text

    return rewrite


def rewriting_inside(graph: Any) -> dict[str, Callable[[str], str]]:
    """The same of the agents that this graph's nodes and tools name, by their names."""
    inside = [(getattr(each, "name", None), each) for each in graphs_in(graph, set()) if each is not graph]
    found = {name: rewriting(each) for name, each in inside if name not in UNNAMED}
    return {name: rewrite for name, rewrite in found.items() if rewrite is not None}


def _transformers(graph: Any) -> Iterator[Any]:
    """Those that rewrite states before anything else reads them. Each is our own: it may count what it is asked."""
    for factory in getattr(graph, "stream_transformers", None) or ():
        made = factory(())
        if getattr(made, "before_builtins", False) and "values" in getattr(made, "required_stream_modes", ()):
            made.init()
            yield made


def _asked(transformer: Any, text: str) -> str:
    params: dict[str, Any] = {
        "namespace": [],
        "timestamp": 0,
        "data": {"messages": [AIMessage(text, id="0")]},
    }
    try:
        transformer.process({"type": "event", "seq": 0, "method": "values", "params": params})
        return str(params["data"]["messages"][0].content)
    except Exception as error:  # noqa: BLE001  a strategy that blocks; the graph's own hooks end the run
        logger.debug("a text was withheld: %s", type(error).__name__)
        return REFUSED
