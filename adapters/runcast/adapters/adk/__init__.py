"""Google ADK runs as AG-UI events: an adapter that runs agents, and a plugin for programs that run their own."""

try:
    import google.adk as _adk
except ImportError as error:
    raise ImportError('runcast.adapters.adk needs google-adk: pip install "runcast[adk]"') from error

from runcast.adapters.adk.adapter import AdkAdapter
from runcast.adapters.adk.intake.messages import contents, events_from_messages
from runcast.adapters.adk.intake.session_conversation import messages_from_events
from runcast.adapters.adk.interrupts import open_interrupts
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.plugin import AdkPlugin
from runcast.adapters.adk.translator import AdkTranslator

del _adk

__all__ = [
    "AdkAdapter",
    "AdkOptions",
    "AdkPlugin",
    "AdkTranslator",
    "contents",
    "events_from_messages",
    "messages_from_events",
    "open_interrupts",
]
