"""A stage for scenes: a real graph behind the adapter, and the official client in the audience.

`Stage.send` plays one run the way a client would: it sends what it holds, and applies what comes. Afterwards the
stage asks the three questions every scene must answer: is each stream valid, does the client hold the graph's
messages, and does it hold the graph's state?
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from ag_ui.core import Event, Message, ResumeEntry, RunAgentInput, UserMessage
from pydantic import TypeAdapter

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.langgraph.content.plain_values import plain
from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.options import Stream
from runcast.slim.protocol.verifier import verify
from tests.adapters.harness import AdapterStage
from tests.adapters.langgraph.recordings import freeze, trimmed

STREAMS: tuple[Stream, ...] = ("v2", "v3")
MADE_UP = re.compile(r"(lc_run--)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
TIMES = re.compile(r'"timestamp": \d+|\d{4}-\d\d-\d\dT[\d:.]+')
over_both_streams = pytest.mark.parametrize("stream", STREAMS)
MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


class Stage(AdapterStage):
    """One thread of one graph, played run by run."""

    adapter: LangGraphAdapter
    thread = "t"

    def __init__(self, oracle: Any = None, *, stream: Stream = "auto") -> None:
        super().__init__()
        self.oracle = oracle
        self.stream: Stream = stream
        self.graph: Any = None
        self.settings: dict[str, Any] = {}
        self.tapes: list[dict[str, Any]] = []  # native parts of each run that came to the graph, as they came
        self.view: dict[str, Any] = {"messages": [], "state": {}}  # what the client holds
        self.checks = True
        self.in_order = True  # parallel branches: the state orders by task, the client by who spoke first

        self.told: dict[int, dict[str, Any]] = {}  # translator -> what it was given besides parts
        self.kept: list[Any] = []  # translators, so that their ids stay theirs

    def play(self, graph: Any, *, options: LangGraphOptions | None = None, **settings: Any) -> Stage:
        """Set the graph up."""
        self.graph, self.settings = graph, {"options": options, **settings}
        options = replace(options or LangGraphOptions(), stream=self.stream)
        self.adapter = LangGraphAdapter(graph, options=options, **settings)
        prepared, original = self.adapter._prepare, graph.astream
        waiting: list[Any] = []

        async def preparing(input: Any, resume: Any, job: Any) -> Any:
            translator = await prepared(input, resume, job)
            waiting.append(translator)
            return translator

        async def recorded(*given: Any, **named: Any) -> Any:
            if not waiting:  # somebody else runs the graph
                async for part in original(*given, **named):
                    yield part
                return
            tape: dict[str, Any] = {"told": waiting.pop(), "parts": [], "error": None}
            self.tapes.append(tape)
            try:
                async with aclosing(original(*given, **named)) as parts:
                    async for part in parts:
                        tape["parts"].append(freeze(trimmed(part)))
                        yield part
            except Exception as error:
                tape["error"] = freeze(error)
                raise

        made = self.adapter._translator

        def telling(input: RunAgentInput, **given: Any) -> Any:
            translator = made(input, **given)
            self.told[id(translator)] = {
                "input": input.model_dump(mode="json", by_alias=True),
                "known": sorted(given.get("known", ())),
                "aliases": dict(given.get("aliases") or {}),
                "held": sorted(given.get("held", ())),
                "shown": [],
                "state_keys": sorted(self._shown_keys()),
            }
            self.kept.append(translator)
            return translator

        graph.astream = recorded
        self.adapter._prepare = preparing  # type: ignore[method-assign]  # a recorder in the line
        self.adapter._translator = telling  # type: ignore[method-assign]  # likewise
        return self

    def open(self) -> None:
        self.play(self.graph, **self.settings)

    async def turn(self, words: str) -> list[Event]:
        waiting = [(each.id, True) for each in self.interrupts]
        return await (self.answer(*waiting) if waiting else self.send(words))

    def input(self, text: str | None = None, **fields: Any) -> RunAgentInput:
        """What the client sends now: all it holds, and the new message."""
        held = MESSAGES.validate_python(self.view["messages"])
        if text is not None:
            held.append(UserMessage(id=f"u{len(self.runs) + 1}", content=text))
        fields = {"messages": held, "state": self.view["state"], **fields}
        return RunAgentInput(thread_id=self.thread, run_id=self.next_run(), **fields)

    async def send(self, text: str | None = None, **fields: Any) -> list[Event]:
        """One run, to its end."""
        return await self.perform(self.input(text, **fields))

    async def answer(self, *answers: tuple[str, Any], **fields: Any) -> list[Event]:
        """A run that answers interrupts: (id, payload)."""
        entries = [ResumeEntry(interrupt_id=key, status="resolved", payload=value) for key, value in answers]
        return await self.send(None, resume=entries, **fields)

    def took(self, input: RunAgentInput, events: list[Event]) -> None:
        """The client applies a run that was made from `input`."""
        super().took(input, events)
        assert not verify(events), verify(events)
        if self.oracle is None:
            return
        door = self.oracle.pipeline(events)
        assert door["ok"], door["error"]
        held = [message.model_dump(by_alias=True) for message in input.messages]
        answer = self.oracle.apply(events, messages=held, state=self.view["state"])
        assert answer["ok"], answer
        self.view = {"messages": answer["messages"], "state": answer["state"]}

    async def holds(
        self, *, state: Mapping[str, Any] | None = None, without: Sequence[str] = (), held: int = 0
    ) -> None:
        """The client holds what the graph holds, ids included."""
        if self.oracle is None:
            return
        found = (await self.graph.aget_state({"configurable": {"thread_id": self.thread}})).values
        ids = {str(each.id) for each in found.get("messages", [])}
        theirs = said(self.view["messages"], without=without, held=ids)
        ours = said(
            dumped(
                to_agui(
                    [each for each in found.get("messages", []) if "lc_source" not in each.additional_kwargs]
                )
            )
        )
        ours = ours[: len(ours) - held]  # results that wait for an elder call's
        if not self.in_order:
            theirs, ours = sorted(theirs, key=str), sorted(ours, key=str)
        assert theirs == ours, f"\nclient {theirs}\n graph {ours}"
        expected = {key: found[key] for key in self._shown_keys() if key in found} if state is None else state
        assert self.view["state"] == json.loads(json.dumps(plain(expected)))

    def _shown_keys(self) -> list[str]:
        """What `ainvoke` returns besides the conversation."""
        keys = self.graph.output_channels
        return [] if isinstance(keys, str) else [key for key in keys if key != "messages"]

    def tape(self) -> list[dict[str, Any]]:
        """What was recorded, as JSON-ready data."""
        return [{**tape, "told": self.told[id(tape["told"])]} for tape in self.tapes]


def dumped(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.model_dump(by_alias=True) for message in messages]


def said(
    messages: Sequence[Mapping[str, Any]], *, without: Sequence[str] = (), held: Collection[str] = ()
) -> list[Any]:
    """What matters of messages: no reasoning (it is inside the graph's messages), no names; of subagents' what is `held`."""
    found = []
    for message in messages:
        inner = message.get("subagentRunId") and message["id"] not in held
        if message["role"] in ("reasoning", "activity", "system") or inner:
            continue
        if message["id"] in without:
            continue
        calls = [
            (c["id"], c["function"]["name"], args(c["function"]["arguments"]))
            for c in message.get("toolCalls") or ()
        ]
        content = message.get("content")
        text = content if isinstance(content, str) or content is None else json.dumps(content)
        found.append((message["id"], message["role"], text or "", calls, message.get("toolCallId")))
    return found


def args(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def alike(runs: Sequence[Sequence[Event]]) -> list[str]:
    """Events to compare with those of another play: made-up ids by their order, no times, arguments as JSON."""
    ids: dict[str, str] = {}
    lines: list[str] = []
    for event in (event for run in runs for event in run):
        shown = event.model_dump(mode="json", by_alias=True, exclude={"timestamp"})
        if event.type == "TOOL_CALL_ARGS":
            shown["delta"] = args(shown["delta"])
        line = TIMES.sub("", json.dumps(shown))
        lines.append(MADE_UP.sub(lambda found: ids.setdefault(found.group(), f"#{len(ids)}"), line))
    return lines


def types(events: Sequence[Event], *, steps: bool = False) -> list[str]:
    """The sequence of event types, for reading; without steps unless asked for."""
    names = [event.type.value for event in events]
    return names if steps else [name for name in names if not name.startswith("STEP_")]
