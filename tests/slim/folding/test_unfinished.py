"""What a run that broke off had half said is shown, and is not handed to a model as if it had been said."""

from __future__ import annotations

import random

import pytest
from ag_ui.core import (
    AssistantMessage,
    Event,
    Interrupt,
    MessagesSnapshotEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)

from runcast.slim.compaction.compactor import compact
from runcast.slim.folding.conversation import fold
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer
from tests.streams import structured

ASKED = UserMessage(id="u1", content="hi")


def run(*events: Event, number: int = 1) -> list[Event]:
    """A run that says this, and has no end."""
    return [RunStartedEvent(thread_id="t", run_id=f"r{number}"), *events]


def whole(key: str = "m0") -> list[Event]:
    return [*half(key), TextMessageEndEvent(message_id=key)]


def half(key: str = "m1") -> list[Event]:
    return [TextMessageStartEvent(message_id=key), TextMessageContentEvent(message_id=key, delta="words")]


def discarded(key: str = "m1") -> list[Event]:
    end = TextMessageEndEvent(message_id=key, metadata={"runcast": {"discarded": "error"}})
    return [*half(key), end]


def thinking(key: str = "m1") -> list[Event]:
    return [
        ReasoningMessageStartEvent(message_id=key, role="reasoning"),
        ReasoningMessageContentEvent(message_id=key, delta="hm"),
    ]


def calling(key: str = "m1", *, ends: bool = False, result: bool = False) -> list[Event]:
    """A text said to its end, and calls: the first whole, the second as far as is said."""
    events: list[Event] = [
        *whole(key),
        ToolCallStartEvent(tool_call_id="c1", tool_call_name="add", parent_message_id=key),
        ToolCallArgsEvent(tool_call_id="c1", delta="{}"),
        ToolCallEndEvent(tool_call_id="c1"),
        ToolCallStartEvent(tool_call_id="c2", tool_call_name="add", parent_message_id=key),
        ToolCallArgsEvent(tool_call_id="c2", delta='{"a":'),
    ]
    events += [ToolCallEndEvent(tool_call_id="c2")] if ends else []
    return events + ([ToolCallResultEvent(message_id="x1", tool_call_id="c1", content="1")] if result else [])


CUT: list[list[Event]] = [
    [],  # the log has no end of it
    [RunErrorEvent(message="the run was cut short", code="truncated")],
    [RunFinishedEvent(thread_id="t", run_id="r1", outcome=RunFinishedCancelledOutcome())],
    run(number=2),
]


@pytest.mark.parametrize("end", CUT, ids=["no end", "error", "cancelled", "another run"])
@pytest.mark.parametrize("said", [half(), discarded(), thinking(), calling()])
def test_what_had_no_end_of_its_own_is_half_said(said: list[Event], end: list[Event]):
    state = AgentState.from_events([*run(*whole(), *said), *end], "agent")
    assert state.half_said == ("m1",)
    assert [message.id for message in state.history][:2] == ["m0", "m1"]
    assert [message.id for message in state.messages] == ["m0"]


@pytest.mark.parametrize("end", CUT, ids=["no end", "error", "cancelled", "another run"])
@pytest.mark.parametrize("said", [whole("m1"), calling(ends=True), calling(result=True)])
def test_what_was_said_to_its_end_or_acted_on_stays(said: list[Event], end: list[Event]):
    """A call without a result goes, as ever; a message with one stays, for a tool has done what it asked."""
    state = AgentState.from_events([*run(*said), *end], "agent")
    assert state.half_said == ()
    assert state.messages[0].id == "m1"


def finished(number: int = 1, **how: object) -> RunFinishedEvent:
    return RunFinishedEvent(thread_id="t", run_id=f"r{number}", **how)  # type: ignore[arg-type]  # fields


ASKS = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="q", reason="ask")])


@pytest.mark.parametrize(
    "after",
    [
        [*run(number=2), finished(2)],
        [*run(number=2), finished(2, outcome=ASKS)],
        run(MessagesSnapshotEvent(messages=[AssistantMessage(id="m1", content="words, all")]), number=2),
        run(*whole("m1"), number=2),
        run(MessagesSnapshotEvent(messages=[ASKED]), number=2),
    ],
    ids=["a run that ends well", "a question", "restated", "said to its end", "taken back"],
)
def test_it_is_so_until_somebody_settles_it(after: list[Event]):
    torn = run(*half())
    assert fold([*torn, *run(number=2)]).half_said == ["m1"]
    assert fold([*torn, *after]).half_said == []


def test_a_call_that_ends_later_settles_its_message():
    torn = fold(run(*calling()))
    assert torn.half_said == ["m1"]
    torn.feed(ToolCallEndEvent(tool_call_id="c2"))
    assert torn.half_said == []
    torn.feed(ToolCallStartEvent(tool_call_id="c2", tool_call_name="add"))
    assert torn.half_said == ["m1"]


def test_a_snapshot_remembers_it():
    """Whoever goes on from a snapshot alone knows no more than it says."""
    serializer = SlimSerializer()
    state = AgentState.from_events(run(*whole(), *half()), "agent")
    kept = serializer.serialize(state)
    assert kept["resume"]["half_said"] == ["m1"]
    again = serializer.deserialize(kept)
    assert (again.half_said, [each.id for each in again.messages]) == (("m1",), ["m0"])
    later = AgentState.from_events([TextMessageEndEvent(message_id="m1")], base=again)
    assert [each.id for each in later.messages] == ["m0", "m1"]
    assert "half_said" not in serializer.serialize(later)["resume"]


@pytest.mark.parametrize("seed", range(25))
def test_a_compacted_stream_that_was_cut_says_the_same(seed: int):
    rng = random.Random(seed)
    events = structured(rng)
    for _ in range(8):
        cut = events[: rng.randrange(len(events) + 1)]
        assert sorted(fold(compact(cut)).half_said) == sorted(fold(cut).half_said)
