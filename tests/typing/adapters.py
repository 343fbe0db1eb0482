"""The adapters and their translators fit the seams they are for, as type checkers see it. Checked, not run."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, assert_type

from ag_ui.core import Event, RunAgentInput
from google.adk.agents import BaseAgent

from runcast.adapters import Adapter, ResumePoint, Translator, translate, translate_sync
from runcast.adapters.adk import AdkAdapter, AdkTranslator
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphTranslator
from runcast.slim import AgentState


def adapters(graph: Any, agent: BaseAgent, state: AgentState, asked: RunAgentInput) -> None:
    """What a host drives, and the picture of a thread it goes on from, though neither house knows the other."""
    run(LangGraphAdapter(graph), asked, state)
    run(AdkAdapter(agent), asked, state)


def run(adapter: Adapter, asked: RunAgentInput, point: ResumePoint) -> AsyncIterator[Event]:
    """A host's part."""
    return adapter.run(asked, resume=point)


def translators(of_langgraph: LangGraphTranslator, of_adk: AdkTranslator) -> list[Translator[Any]]:
    """What a driver drives."""
    return [of_langgraph, of_adk]


def drivers(parts: AsyncIterable[str], more: Iterable[str], translator: Translator[str]) -> None:
    """One driver for what is awaited, one for what is not."""
    assert_type(translate(parts, translator), AsyncIterator[Event])
    assert_type(translate_sync(more, translator), Iterator[Event])
