"""Which checkpoints a run needs to compare the displayed conversation with its graph.

Reads nothing itself: `wanted` lists the checkpoints (none in an ordinary turn), `add` takes them, and `corrections`
compares. Knows LangGraph's states and stored checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ag_ui.core import Message, RunAgentInput

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.langgraph.content.plain_values import plain
from runcast.adapters.langgraph.intake.callback_parts import messages_in
from runcast.adapters.langgraph.intake.corrections import (
    Corrections,
    copied,
    corrections,
    doubtful,
    replayed_corrections,
    rewritten,
    unkept,
    withheld,
)
from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.intake.plan import Ask
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.stream.event_redaction import Rewrite, rewritten_messages
from runcast.adapters.langgraph.stream.event_redaction import rewritten as rewritten_value
from runcast.adapters.langgraph.stream.parts import messages_of, source_of
from runcast.adapters.langgraph.stream.positions import Level, level_of, stops
from runcast.slim.values.type_guards import as_mapping

TURN = "runcast_turn"  # in a checkpoint's metadata: the user message its turn began with
RETURNED = "__end__"  # the channel of a functional graph's last value


class Review:
    """The review of one run: `wanted` once, `add` for each, then `corrections`."""

    def __init__(
        self,
        input: RunAgentInput,
        resume: ResumePoint | None,
        replayed: ResumePoint | None,
        state: Any,
        options: LangGraphOptions,
        *,
        rewrite: Rewrite | None = None,
    ) -> None:
        """`rewrite`: what the client was shown instead of a text of the graph."""
        self._rewrite = rewrite
        history = None if resume is None else resume.history
        self._shown = list(input.messages if history is None else history)
        self._replayed = replayed if history is not None else None
        self._replays = history is not None
        self._input = input
        self._values = getattr(state, "values", None) if resume is None else resume.state
        self.turn: str | None = as_mapping(getattr(state, "metadata", None)).get(TURN)
        self._withholds = bool(options.hold_text_of)
        self._corrects = options.snapshot_on_rewrite
        # what a client shows may be redacted on its way, as v3's events are: only a broken run is compared by content
        self._as_stored = self._replays and options.stream != "v3"
        key = options.messages_key
        held = None if state is None else messages_of(state.values, key)
        self._whole = held is not None and bool(getattr(state, "metadata", None)) and self._is_whole(held)
        self._held: list[Any] = held or []
        self._stored: list[Any] | None = None
        self._key = key
        returned = [each for each in getattr(state, "tasks", ()) if getattr(each, "result", None) is not None]
        self._given_some = bool(returned)
        # what a cancelled task had written by then counts as all that it had to write: its edges would not be followed
        self.half_written = bool(returned) and all(getattr(each, "error", None) for each in returned)
        self._levels: dict[str, Level] = {}
        self._given: list[Any] = []
        if self._whole and state is not None:
            self._levels[""] = level_of(state.metadata, ())
        aliases = {} if resume is None else dict(resume.framework.get("aliases") or {})
        self._public_ids: dict[str, str] = {raw: public for public, raw in aliases.items()}

    def _is_whole(self, held: Sequence[Any]) -> bool:
        """Whether the client sent its whole history and not only new messages."""
        first = next(
            (each.id for each in held if each.type == "human" and not source_of(each.additional_kwargs)), None
        )
        emptied = self._replays and not self._shown
        return first is None or emptied or any(message.id == first for message in self._shown)

    def wanted(self, ask: Ask) -> list[str]:
        """The namespaces of graphs whose checkpoints show which tasks of an unfinished step are done.

        A run that starts over drops the step, whatever is done of it: it needs the root's checkpoint alone.
        """
        root = [""] if self._given_some else []
        if not self._whole or ask == "fork":
            return root if ask == "start" else []
        places = doubtful(self._shown, self._ids(), self._levels[""]).values()
        wanted = [graph for place in places for graph, _, _ in stops(place)]
        wanted = wanted if ask in ("continue", "resume") else []
        return list(dict.fromkeys([*root, *wanted]))

    def add(self, namespace: str, found: Any) -> None:
        """A stored checkpoint, or None."""
        if found is None:
            return
        writes = found.pending_writes or ()
        self._levels[namespace] = level_of(found.metadata, writes)
        self._given += [message for _, _, value in writes for message in messages_in(value)]
        values = found.checkpoint["channel_values"]
        if not namespace:
            self._stored = messages_of(values, self._key)
            if (
                self._key not in found.checkpoint["channel_versions"]
            ):  # a functional graph keeps what it returned
                self._stored = messages_of(values.get(RETURNED), self._key) or []
        else:  # its finished tasks do not speak again
            held = {each.id for each in self._held}
            self._given += [each for each in messages_in(values) if each.id not in held]

    @property
    def stored(self) -> list[Any]:
        """The graph's messages, without what tasks of an unfinished step returned: new input drops it."""
        return self._held if self._stored is None else self._stored

    def corrections(self, ask: Ask, given: Sequence[Message] = ()) -> Corrections:
        """What the run corrects; the messages that the graph is `given` now count as held by it."""
        if self._replayed is not None:
            return replayed_corrections(self._shown, self._replayed.messages)
        if not self._whole or ask == "fork":
            return Corrections(None if self._held else self._input.messages)
        stored = self.stored
        returned = self._given
        if ask == "start" or self.half_written:
            self._held, returned = stored, []
            self._levels[""].done.clear()
        last = self._begins(stored)
        held = self._ids().union(message.id for message in given)
        found = corrections(
            self._shown, held, self._public(stored[last:]), self._public(returned), self._levels
        )
        found = replace(found, aliases=copied(self._shown, held, self._public(stored[last:])))
        if self._corrects:
            gone = unkept(self._shown, held, self._public(stored), self._levels[""])
            instead = rewritten(self._shown, self._public(stored[last:])) if self._as_stored else ()
            found = found.with_more(gone, instead)
        return withheld(found, later=ask != "start") if self._withholds else found

    def _begins(self, stored: Sequence[Any]) -> int:
        """Where the latest turn begins that the client shows. A run that took messages while it ran began before them."""
        shown = {each.id for each in self._shown}
        people = [at for at, each in enumerate(stored) if each.type == "human"]
        last = [at for at in people if self._name(stored[at].id) in shown] or people or [0]
        began = [at for at in people if stored[at].id == self.turn]
        return min(last[-1:] + began)

    def taken(self) -> list[Message]:
        """The newest messages of the input that the graph took while it ran: the log of the run that broke off may lack them."""
        said = list(
            takewhile(
                lambda each: each.role == "user" and each.id != self.turn, reversed(self._input.messages)
            )
        )
        return said[::-1] if self.turn is not None else []

    def changes(self, key: str, value: Any) -> bool:
        """Whether the state would be another with this value."""
        held = as_mapping(self._values)
        if key == self._key or key not in held:
            return True
        stored = plain(held[key])
        return value not in (
            stored,
            stored if self._rewrite is None else rewritten_value(self._rewrite, stored),
        )

    def _ids(self) -> set[str]:
        return {self._name(message.id) for message in self._held}

    def _public(self, messages: Sequence[Any]) -> dict[str, Message]:
        """Under the ids the client knows, without those that middleware made for itself."""
        found: dict[str, Message] = {}
        for message in to_agui([each for each in messages if source_of(each.additional_kwargs) is None]):
            message.id = self._name(message.id)
            found[message.id] = message
        if self._rewrite is None:
            return found
        return dict(zip(found, rewritten_messages(self._rewrite, list(found.values())), strict=True))

    def _name(self, raw: str | None) -> str:
        return self._public_ids.get(raw or "", raw or "")
