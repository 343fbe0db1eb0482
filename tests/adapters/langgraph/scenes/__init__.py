"""Scenes: what can happen in a LangGraph run, by number. Each is played live, recorded, cut and replayed."""

from tests.adapters.langgraph.scenes import forms, graphs, interrupts, reasoning, speech, state, tools
from tests.adapters.langgraph.scenes.book import SCENES, Scene

__all__ = ["SCENES", "Scene", "forms", "graphs", "interrupts", "reasoning", "speech", "state", "tools"]
