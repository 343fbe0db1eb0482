"""LangGraph runs as AG-UI events: an adapter, a drop-in callback handler, and their pure translator."""

try:
    import langgraph.graph as _langgraph
except ImportError as _missing:
    raise ImportError(
        'runcast.adapters.langgraph needs LangGraph: pip install "runcast[langgraph]"'
    ) from _missing

from runcast.adapters.langgraph.adapter import LangGraphAdapter
from runcast.adapters.langgraph.callbacks import LangGraphCallbacks
from runcast.adapters.langgraph.intake.messages import to_agui, to_langchain
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.stream.custom_events import activity, activity_patch
from runcast.adapters.langgraph.translator import CHECKPOINTS, STREAM_MODES, LangGraphTranslator

del _langgraph

__all__ = [
    "CHECKPOINTS",
    "STREAM_MODES",
    "LangGraphAdapter",
    "LangGraphCallbacks",
    "LangGraphOptions",
    "LangGraphTranslator",
    "activity",
    "activity_patch",
    "to_agui",
    "to_langchain",
]
