"""Conversations for the log: short runs, a clock that is moved by hand, and logs over something empty."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ag_ui.core import (
    Event,
    Message,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    UserMessage,
)

from runcast.slim.entry import Entry
from runcast.slim.folding.conversation import fold
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import Store, open_store
from runcast.slim.wire.codec import AnyEvent

THREAD = "thread"
NOW = 1_700_000_000_000


class Clock:
    """Milliseconds that pass when told to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now

    def pass_ms(self, ms: int) -> None:
        self.now += ms


class Gate:
    """Holds the writes of a store back while it is closed."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._waiting = asyncio.Event()
        self._written = asyncio.Event()

    def guard(self, store: Store) -> None:
        for name in ("append", "append_all"):
            setattr(store, name, self._guarded(getattr(store, name)))

    def _guarded(self, write: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def guarded(what: Any) -> Any:
            self._waiting.set()
            await self._open.wait()
            answer = await write(what)
            self._written.set()
            return answer

        return guarded

    @contextmanager
    def closed(self) -> Iterator[None]:
        """No write passes meanwhile."""
        self._open.clear()
        self._waiting.clear()
        try:
            yield
        finally:
            self._open.set()

    async def reached(self) -> None:
        """A write waits at the gate."""
        await self._waiting.wait()

    async def passed(self) -> None:
        """The next write is done."""
        self._written.clear()
        await self._written.wait()


def make_log(url: str, **options: Any) -> RunLog:
    """A log that flushes at once and derives nothing by itself."""
    return RunLog(open_store(url), **{"flush_ms": 1, "derive": "manual", **options})


def started(run_id: str = "r", *messages: Message, thread_id: str = THREAD, **more: Any) -> RunStartedEvent:
    """RUN_STARTED; with messages, it echoes an input that holds them."""
    if not messages:
        return RunStartedEvent(thread_id=thread_id, run_id=run_id, **more)
    given = RunAgentInput(
        thread_id=thread_id, run_id=run_id, messages=list(messages), state={}, tools=[], context=[], forwarded_props={}
    )  # fmt: skip
    return RunStartedEvent(thread_id=thread_id, run_id=run_id, input=given, **more)


def finished(run_id: str = "r", *, thread_id: str = THREAD, **more: Any) -> RunFinishedEvent:
    return RunFinishedEvent(thread_id=thread_id, run_id=run_id, **more)


def text(message_id: str, *deltas: str) -> Iterator[Event]:
    """A whole text message."""
    yield TextMessageStartEvent(message_id=message_id, role="assistant")
    for delta in deltas:
        yield TextMessageContentEvent(message_id=message_id, delta=delta)
    yield TextMessageEndEvent(message_id=message_id)


def user(message_id: str, content: str) -> UserMessage:
    return UserMessage(id=message_id, role="user", content=content)


def turn(run_id: str, answer: str = "yes", *history: Message, asks: str = "well?") -> list[Event]:
    """A whole run: the user asks, the agent answers."""
    state: list[Event] = [StateDeltaEvent(delta=[{"op": "add", "path": f"/{run_id}", "value": answer}])]
    words = [word + " " for word in answer.split(" ")]
    return [
        started(run_id, *history, user(f"{run_id}-user", asks)),
        *text(f"{run_id}-answer", *words),
        *state,
        finished(run_id),
    ]


def contents(events: Iterable[AnyEvent]) -> list[Any]:
    """What the messages say that these events amount to."""
    return [message.content for message in fold(events).messages]


def seqs(entries: Iterable[Entry]) -> list[int]:
    return [entry.seq for entry in entries]
