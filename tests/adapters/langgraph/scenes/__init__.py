"""Scenes: what can happen in a LangGraph run, by number. Each is played live, recorded, cut and replayed."""

from tests.adapters.langgraph.scenes import (
    agents,
    approvals,
    for_agui,
    forms,
    graphs,
    interrupts,
    middleware,
    reasoning,
    speech,
    state,
    stateful,
    tools,
)
from tests.adapters.langgraph.scenes.book import SCENES, Scene

__all__ = [
    "SCENES",
    "Scene",
    "agents",
    "approvals",
    "for_agui",
    "forms",
    "graphs",
    "interrupts",
    "middleware",
    "reasoning",
    "speech",
    "state",
    "stateful",
    "tools",
]
