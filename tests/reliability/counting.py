"""Agents that count: what each says is known beforehand, so that nothing missing or double goes unseen.

The last user message says the plan, `{nodes}x{size}@{pause}`: so many nodes of so many tokens, with a pause in seconds
after each. Resumed, the agent goes on at the first node whose end the thread does not hold, under the next attempt.
Whenever it begins a node it writes that down in a file of its own, which no crash takes back.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from ag_ui.core import (
    Event,
    MessagesSnapshotEvent,
    RunAgentInput,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    UserMessage,
)

from runcast.slim import Entry
from tests.reliability.ledger import Token

EFFECTS = "RUNCAST_TEST_EFFECTS"


def plan(nodes: int, size: int, pause: float) -> str:
    """What to say to a counter."""
    return f"{nodes}x{size}@{pause}"


def planned(text: str) -> tuple[int, int, float]:
    """What a counter was told."""
    nodes, _, rest = text.partition("x")
    size, _, pause = rest.partition("@")
    return int(nodes), int(size), float(pause)


def asked(thread: str, run: str, text: str) -> RunAgentInput:
    """A run that begins a thread."""
    return RunAgentInput(
        thread_id=thread,
        run_id=run,
        state={},
        messages=[UserMessage(id=f"u-{run}", content=text)],
        tools=[],
        context=[],
        forwarded_props={},
    )


class Counter:
    """The agent, as `Cast` takes it."""

    __name__ = "counter"
    reconciles_history = True  # it counts its attempts by the unfinished messages

    def __init__(self, effects: Path | None = None, *, ballast: int = 0) -> None:
        self._effects = effects
        self._ballast = ballast  # spaces behind each token

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        said = next(str(each.content) for each in input.messages if each.role == "user")
        nodes, size, pause = planned(said)
        before = [Token.read(word) for word in _spoken(input.messages)]
        done = {each.node for each in before if each.last}
        for node in range(nodes):
            if node in done:
                continue
            attempt = 1 + max((each.attempt for each in before if each.node == node), default=0)
            self._write_down(f"{input.thread_id} {node} {attempt}")
            message = f"m-{input.run_id}-{node}"
            yield StepStartedEvent(step_name=f"node {node}")
            yield TextMessageStartEvent(message_id=message)
            for number in range(size):
                token = Token(node, attempt, number, number == size - 1)
                delta = f"{token} {' ' * self._ballast}"
                yield TextMessageContentEvent(message_id=message, delta=delta)
                await asyncio.sleep(pause)
            yield TextMessageEndEvent(message_id=message)
            yield StepFinishedEvent(step_name=f"node {node}")

    def _write_down(self, line: str) -> None:
        where = self._effects or os.environ.get(EFFECTS)
        if where:
            with Path(where).open("a") as file:
                file.write(line + "\n")


def _spoken(messages: Iterable[Any]) -> list[str]:
    return [word for each in messages if each.role == "assistant" for word in str(each.content or "").split()]


def words(entries: Iterable[Entry]) -> str:
    """All that stands of what was said in a thread, from its entries.

    A graph's message may be durable before the checkpoint of its node: the run that resumes takes it back.
    """
    texts: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry.event, TextMessageContentEvent):
            texts[entry.event.message_id] = texts.get(entry.event.message_id, "") + entry.event.delta
        elif isinstance(entry.event, MessagesSnapshotEvent):
            stand = {each.id for each in entry.event.messages}
            texts = {id: text for id, text in texts.items() if id in stand}
    return "".join(texts.values())
