"""Agent frameworks as AG-UI 1.0 events.

Each framework has a folder (`runcast.adapters.langgraph`, `runcast.adapters.adk`), imported by its path, so that a program
loads only the one it uses. This package holds what they share, for agents of one's own too.
"""

from runcast.adapters.adapter import (
    Adapter,
    Anchored,
    Drawable,
    Drawing,
    DrawnEdge,
    DrawnNode,
    Forgetting,
    Kept,
    Portable,
    ResumePoint,
    Steerable,
    can_steer,
    drawing_of,
)
from runcast.adapters.client_schemas import AgentSchemas, Askable, ClientSchema, Described
from runcast.adapters.errors import (
    AdapterError,
    Failure,
    InvalidInput,
    ThreadBusy,
    Unanswerable,
    UnknownRun,
    failure,
    scrub,
)
from runcast.adapters.open_blocks import OpenBlocks
from runcast.adapters.run_frame import RunFrame, RunIds
from runcast.adapters.translator import Translator, translate, translate_sync
from runcast.adapters.usage import UsageTally

__all__ = [
    "Adapter",
    "AdapterError",
    "AgentSchemas",
    "Anchored",
    "Askable",
    "ClientSchema",
    "Described",
    "Drawable",
    "Drawing",
    "DrawnEdge",
    "DrawnNode",
    "Failure",
    "Forgetting",
    "InvalidInput",
    "Kept",
    "OpenBlocks",
    "Portable",
    "ResumePoint",
    "RunFrame",
    "RunIds",
    "Steerable",
    "ThreadBusy",
    "Translator",
    "Unanswerable",
    "UnknownRun",
    "UsageTally",
    "can_steer",
    "drawing_of",
    "failure",
    "scrub",
    "translate",
    "translate_sync",
]
