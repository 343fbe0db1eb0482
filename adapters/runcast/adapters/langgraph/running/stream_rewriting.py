"""What a graph's middleware rewrites in its streams, as a function of a text; and which graph begins.

LangGraph asks a graph's `stream_transformers` to rewrite the events of its own stream. Those that rewrite the state in
it are asked the same here, with a state of one message. Knows their protocol; does not know what they look for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, MutableMapping
from functools import lru_cache
from inspect import currentframe
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage

from runcast.adapters.langgraph.capabilities import graphs_in
from runcast.adapters.langgraph.stream.event_redaction import AgentRedaction, Rewrite
from runcast.adapters.langgraph.stream.parts import SEPARATOR
from runcast.slim.values.type_guards import as_mapping

logger = logging.getLogger("runcast.adapters.langgraph")

UNNAMED = (None, "", "LangGraph")
REPORTING = ("runcast.", "langchain_core.callbacks")  # modules between a handler's method and the graph's
FOUND: MutableMapping[Any, Rewrite | None] = WeakKeyDictionary()
BLANK = AIMessage("", id="0")  # copied: to make one costs three times as much
REFUSED = "[withheld]"  # for a text that middleware refuses: that must not end the run here


def rewriting(graph: Any) -> Rewrite | None:
    """What rewrites the texts of this graph's stream; None if nothing does. Of one graph it is one function."""
    if graph not in FOUND:
        FOUND[graph] = _rewriting(graph)
    return FOUND[graph]


def _rewriting(graph: Any) -> Rewrite | None:
    transformers = list(_transformers(graph))
    if not transformers:
        return None

    @lru_cache(maxsize=256)
    def rewrite(text: str) -> str:
        for transformer in transformers if text else ():
            text = _asked(transformer, text)
        return text

    return rewrite


def rewriting_inside(graph: Any) -> tuple[dict[str, Rewrite], list[Rewrite]]:
    """The same of the agents that this graph's nodes and tools name: by their names, and of those that have none."""
    named: dict[str, Rewrite] = {}
    unnamed: list[Rewrite] = []
    for each in graphs_in(graph, set()):
        name, rewrite = getattr(each, "name", None), None if each is graph else rewriting(each)
        if rewrite is not None and name in UNNAMED:
            unnamed.append(rewrite)
        elif rewrite is not None:
            named[str(name)] = rewrite
    return named, unnamed


def beginning(redaction: AgentRedaction, metadata: Mapping[str, Any] | None) -> None:
    """Called where LangChain reports that something begins: a graph inside that rewrites is one of the `redaction`'s."""
    graph = beginning_graph()
    rewrite = None if graph is None else rewriting(graph)
    if rewrite is not None:
        place = str(as_mapping(metadata).get("langgraph_checkpoint_ns") or "")
        redaction.begins(tuple(place.split(SEPARATOR)) if place else (), rewrite)


def beginning_graph() -> Any:
    """The graph whose beginning LangChain reports to the callback handler that calls this; None if it is no graph.

    A callback is not given it: it is found where LangGraph's own method made the report.
    """
    frame = currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(REPORTING):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name not in ("stream", "astream"):
        return None
    found = frame.f_locals.get("self")
    return found if hasattr(found, "stream_transformers") else None


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
        "data": {"messages": [BLANK.model_copy(update={"content": text})]},
    }
    try:
        transformer.process({"type": "event", "seq": 0, "method": "values", "params": params})
        return str(params["data"]["messages"][0].content)
    except Exception as error:  # noqa: BLE001  a strategy that blocks; the graph's own hooks end the run
        logger.debug("a text was withheld: %s", type(error).__name__)
        return REFUSED
