"""The stage and the harness of every adapter's tests: runs before the official client, and runs that break at every event.

A framework's own stage inherits `AdapterStage` and brings two things: how it sets its agent up (`open`), and how one turn
of a scene is played on it (`turn`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

from ag_ui.core import Event, RunAgentInput, RunErrorEvent

from runcast.adapters import Adapter
from runcast.app.host.launch import to_finish
from runcast.app.skins.earlier_clients import earlier
from runcast.slim import AgentState
from runcast.slim.protocol.verifier import verify
from tests.conftest import LONG
from tests.e2e.oracle import Oracle

S = TypeVar("S", bound="AdapterStage")


class AdapterStage(ABC):
    """One thread of one agent behind its adapter: the inputs that were sent, and the events that came."""

    adapter: Adapter
    thread = "t1"

    def __init__(self) -> None:
        self.runs: list[list[Event]] = []
        self.inputs: list[RunAgentInput] = []
        self.until: int | None = None  # the next run's process dies after so many events

    # ------------------------------------------------------- what a framework brings

    @abstractmethod
    def open(self) -> None:
        """Set up a fresh adapter over what the framework stored: what a restart leaves."""

    @abstractmethod
    async def turn(self, words: str) -> list[Event]:
        """One run: answers what the run before left open, or else sends these words."""

    # --------------------------------------------------------------- playing

    def next_run(self) -> str:
        """The id of the next run."""
        return f"r{len(self.runs) + 1}"

    async def perform(self, input: RunAgentInput, *, point: Any = None) -> list[Event]:
        """One run, to its end or to the death of its process: then its log calls it truncated."""
        until, self.until = self.until, None
        events: list[Event] = []
        stream: Any = self.adapter.run(input, resume=point)
        async for event in stream:
            events.append(event)
            if len(events) == until:
                await stream.aclose()
                events.append(RunErrorEvent(message="the run was cut short", code="truncated"))
                break
        self.took(input, events)
        return events

    def took(self, input: RunAgentInput, events: list[Event]) -> None:
        """A run was played from `input`."""
        self.inputs.append(input)
        self.runs.append(events)

    async def go_on(self) -> list[Event]:
        """Resume the broken run from its log, as a host does after a crash: in another process, without new words."""
        self.open()
        state = AgentState.from_events(event for run in self.runs for event in run)
        messages = state.to_messages(half_said=True)
        input = self.inputs[-1].model_copy(
            update={"run_id": self.next_run(), "messages": messages, "resume": None, "parent_run_id": None}
        )
        events = await self.perform(input, point=to_finish(state))
        self.inputs[-1] = input.model_copy(
            update={"resume": self.inputs[-2].resume}
        )  # a client repeats its answers
        return events

    # --------------------------------------------------------------- judging

    def judge(self, oracle: Oracle) -> None:
        """Fail unless every run is valid: by the protocol's text, and for both of its clients."""
        strict([event for run in self.runs for event in run])
        asked = [{"op": "pipeline", "events": run} for run in self.runs]
        asked += [{"op": "earlier", "events": before_1_0(run)} for run in self.runs]
        for answer in oracle.batch(asked):
            assert answer["ok"], answer["error"]

    def client(self, oracle: Oracle, *, earlier: bool = False, **start: Any) -> Any:
        """The official client after these runs, one after the other; `earlier` is the one before 1.0."""
        scripts = []
        for events, it in zip(self.runs, self.inputs, strict=True):
            script: dict[str, Any] = {
                "events": before_1_0(events) if earlier else list(events),
                "runId": it.run_id,
            }
            if it.resume:
                script["resume"] = [wire(entry) for entry in it.resume]
            scripts.append(script)
        client = (oracle.run_earlier if earlier else oracle.run)(*scripts, **start)
        assert client["ok"], client["errors"]
        return client

    @property
    def interrupts(self) -> list[Any]:
        """The open questions of the last run."""
        return asked(self.runs[-1]) if self.runs else []


async def torn_at_every_event(
    opened: Callable[[], S],
    turns: Sequence[str],
    compare: Callable[[S, Oracle], Awaitable[Any]],
    oracle: Oracle,
) -> None:
    """Play a scene, and again with its process killed at every event: its end is the undisturbed one's.

    `compare` judges a stage at its end and returns what has to be equal.
    """
    whole = opened()
    for words in turns:
        await whole.turn(words)
    expected = await compare(whole, oracle)
    for number, until in places(whole.runs):
        run, stage = whole.runs[number], opened()
        for at, words in enumerate(turns):
            if at != number:
                await stage.turn(words)
                continue
            stage.until = until
            await stage.turn(words)
            await stage.go_on()
            while stage.interrupts and not asked(run):  # the answer was lost with its process
                await stage.turn(words)
        found = await compare(stage, oracle)
        assert found == expected, f"run {number + 1} torn after {until} events ({run[until - 1].type})"


def places(runs: Sequence[Sequence[Event]]) -> Iterator[tuple[int, int]]:
    """Where a scene is torn: after every event in the long form, else once between any two types that meet in it."""
    seen: set[tuple[str, str]] = set()
    for number, run in enumerate(runs):
        for until in range(1, len(run)):
            pair = (run[until - 1].type, run[until].type)
            if LONG or pair not in seen:
                yield number, until
            seen.add(pair)


def asked(run: Sequence[Event]) -> list[Any]:
    """The questions that a run ended with."""
    outcome = getattr(run[-1], "outcome", None)
    return outcome.interrupts if outcome is not None and outcome.type == "interrupt" else []


def before_1_0(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Events as the host sends them to clients before 1.0."""
    return [wire(each) for event in events for each in earlier(event)]


def strict(events: Sequence[Event]) -> None:
    """Fail unless these events are valid by the protocol's text."""
    found = verify(events, profile="strict")
    assert not found, "\n".join(map(str, found))


def wire(model: Any) -> Any:
    """A model as it travels."""
    return model.model_dump(mode="json", by_alias=True)
