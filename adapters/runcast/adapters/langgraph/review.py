"""What a run that begins has to look up, to know what of a shown conversation its graph stands by.

Reads nothing itself: it says which checkpoints it wants to see (none in an ordinary turn), is given them, and has
`standing` judge. Knows states and stored checkpoints as LangGraph hands them over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ag_ui.core import Message, RunAgentInput

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.langgraph.history import Ask
from runcast.adapters.langgraph.messages import to_agui
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.parts import messages_of
from runcast.adapters.langgraph.places import Level, level_of, stops
from runcast.adapters.langgraph.replays import messages_in
from runcast.adapters.langgraph.standing import Standing, doubtful, recalled_anew, standing


class Review:
    """One run's: `wanted` once, `add` for each, then `standing`."""

    def __init__(
        self,
        input: RunAgentInput,
        resume: ResumePoint | None,
        recalled: ResumePoint | None,
        state: Any,
        options: LangGraphOptions,
    ) -> None:
        history: Sequence[Message] | None = getattr(resume, "history", None)
        self._shown = list(input.messages if history is None else history)
        self._recalled = recalled if history is not None else None
        self._input = input
        key = options.messages_key
        held = None if state is None else messages_of(state.values, key)
        self._whole = held is not None and bool(getattr(state, "metadata", None)) and self._is_whole(held)
        self._held = held or []
        self._stored: list[Any] | None = None  # without what tasks of an unfinished step gave
        self._key = key
        self._given_some = any(
            task.result is not None for task in getattr(state, "tasks", ()) if hasattr(task, "result")
        )
        self._levels: dict[str, Level] = {}
        self._given: list[Any] = []
        if self._whole and state is not None:
            self._levels[""] = level_of(state.metadata, ())
        aliases = {} if resume is None else dict(resume.framework.get("aliases") or {})
        self._public: dict[str, str] = {raw: public for public, raw in aliases.items()}

    def _is_whole(self, held: Sequence[Any]) -> bool:
        """Whether the client tells all it shows, as far as one can see: its news alone say nothing of the rest."""
        first = next((message.id for message in held if message.type == "human"), None)
        return first is None or any(message.id == first for message in self._shown)

    def wanted(self, ask: Ask) -> list[str]:
        """The namespaces of graphs whose checkpoints tell what is done of an unfinished step.

        A run that begins anew lets go of the step, whatever was done of it: it needs to know the root's alone.
        """
        if not self._whole or ask == "fork":
            return []
        places = doubtful(self._shown, self._ids(), self._levels[""]).values()
        wanted = [graph for place in places for graph, _, _ in stops(place)]
        wanted = wanted if ask in ("continue", "resume") else []
        return list(dict.fromkeys(["", *wanted] if self._given_some else wanted))

    def add(self, namespace: str, found: Any) -> None:
        """A stored checkpoint, or None."""
        if found is None:
            return
        writes = found.pending_writes or ()
        self._levels[namespace] = level_of(found.metadata, writes)
        if not namespace:
            self._given = [message for _, _, value in writes for message in messages_in(value)]
            self._stored = messages_of(found.checkpoint["channel_values"], self._key)

    def standing(self, ask: Ask, handed: Sequence[Message] = ()) -> Standing:
        """The judgement; what is `handed` to the graph now is its own from here on."""
        if self._recalled is not None:
            return recalled_anew(self._shown, self._recalled.messages)
        if not self._whole or ask == "fork":
            return Standing(None if self._held else self._input.messages)
        stored = self._held if self._stored is None else self._stored
        given = self._given
        if ask == "start":
            self._held, given = stored, []
            self._levels[""].done.clear()
        last = max((at for at, each in enumerate(stored) if each.type == "human"), default=0)
        held = self._ids().union(message.id for message in handed)
        return standing(self._shown, held, self._said(stored[last:]), self._said(given), self._levels)

    def _ids(self) -> set[str]:
        return {self._name(message.id) for message in self._held}

    def _said(self, messages: Sequence[Any]) -> dict[str, Message]:
        """Under the ids the client knows."""
        found: dict[str, Message] = {}
        for message in to_agui(messages):
            message.id = self._name(message.id)
            found[message.id] = message
        return found

    def _name(self, raw: str | None) -> str:
        return self._public.get(raw or "", raw or "")
