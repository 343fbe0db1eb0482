"""An async generator function as an agent: the smallest one there is, and the seam for any other SDK's event iterator.

Knows how a stream of events begins and ends; does not know what the function does.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from typing import Any, cast

from ag_ui.core import (
    AgentCapabilities,
    Event,
    IdentityCapabilities,
    MultimodalCapabilities,
    MultimodalInputCapabilities,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
)
from pydantic import BaseModel

from runcast.adapters import Failure, ResumePoint, RunFrame, RunIds, failure
from runcast.adapters.driving.pumps import Pumps

EventSource = Callable[[RunAgentInput], AsyncIterator[Event]]


class EventFunction:
    """An async generator function of AG-UI events as an adapter; a missing RUN_STARTED or end is added."""

    def __init__(self, function: EventSource, *, name: str = "agent") -> None:
        self.name = name
        # A function may have the attribute; without it, unfinished messages are removed from its input.
        self.reconciles_history = bool(getattr(function, "reconciles_history", False))
        self._function = function
        self._pumps = Pumps()

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        """The function's events, from RUN_STARTED to one terminal event, even if it raises."""

        async def opened() -> tuple[AsyncIterator[Event], _Whole]:
            own = [
                message.model_copy() for message in input.messages
            ]  # the function may change what it is given
            return _closable(self._function(input.model_copy(update={"messages": own}))), _Whole(input)

        return self._pumps.run(input.run_id, opened)

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Cancel the run: a plain function has no step border to stop at."""
        self._pumps.cancel(run_id)

    def capabilities(self) -> AgentCapabilities:
        """Its name; and the kinds of files it takes, where the function has an attribute `files` with their names."""
        files = dict.fromkeys(getattr(self._function, "files", ()), True)
        return AgentCapabilities(
            identity=IdentityCapabilities(name=self.name),
            multimodal=MultimodalCapabilities(input=MultimodalInputCapabilities(**files)) if files else None,
        )


class _Whole:
    """A translator that passes events on and adds the start and the end that a stream leaves out.

    A stop becomes RUN_ERROR with the code `cancelled`: what the function had open is unknown here, and only an error may
    leave messages open.
    """

    def __init__(self, input: RunAgentInput) -> None:
        ids = RunIds(input.thread_id, input.run_id)
        self._frame = RunFrame(ids, input=input, clock=_now)
        self._started = False

    def start(self) -> list[Event]:
        return []

    def feed(self, part: Event) -> list[Event]:
        if self._frame.ended:
            return []
        if isinstance(part, RunStartedEvent):
            self._started = True
            return [part]
        opened = self._opened()
        self._frame.ended = isinstance(part, RunFinishedEvent | RunErrorEvent)
        return [*opened, part]

    def finish(self) -> list[Event]:
        ids = self._frame.ids
        return self.feed(RunFinishedEvent(thread_id=ids.thread_id, run_id=ids.run_id, timestamp=_now()))

    def fail(self, error: BaseException) -> list[Event]:
        return [*self._opened(), *self._frame.failed(failure(error))]

    def cancel(self) -> list[Event]:
        return [*self._opened(), *self._frame.failed(Failure("cancelled", "the run was stopped"))]

    def _opened(self) -> list[Event]:
        if self._started or self._frame.ended:
            return []
        self._started = True
        return self._frame.started()


async def _closable(events: Any) -> AsyncGenerator[Event]:
    """The events as a generator, which can be closed whatever iterator the function returned."""
    if not isinstance(cast("object", events), AsyncIterable):
        raise TypeError(
            f"an agent is an async generator function that yields AG-UI events; this one returned a {type(events).__name__}"
        )
    async for event in events:
        if not isinstance(event, BaseModel):
            raise TypeError(
                f"an agent yields AG-UI events, of ag_ui.core; this one yielded a {type(event).__name__}"
            )
        yield cast("Event", event)


def _now() -> int:
    return time.time_ns() // 1_000_000
