"""From what a framework does to AG-UI 1.0 events.

One folder a framework (`runcast.adapters.langgraph`, `runcast.adapters.adk`), imported by path so that nobody
pays for the other; here stand the seams they share, for home-made agents too.
"""

from runcast.adapters.adapter import Adapter, ResumePoint
from runcast.adapters.blocks import OpenBlocks
from runcast.adapters.errors import (
    AdapterError,
    Failure,
    InvalidInput,
    ThreadBusy,
    UnknownRun,
    failure,
    scrub,
)
from runcast.adapters.frame import RunFrame, RunIds
from runcast.adapters.translator import Translator, translate, translate_sync
from runcast.adapters.usage import UsageTally

__all__ = [
    "Adapter",
    "AdapterError",
    "Failure",
    "InvalidInput",
    "OpenBlocks",
    "ResumePoint",
    "RunFrame",
    "RunIds",
    "ThreadBusy",
    "Translator",
    "UnknownRun",
    "UsageTally",
    "failure",
    "scrub",
    "translate",
    "translate_sync",
]
