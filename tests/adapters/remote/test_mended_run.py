"""What a remote agent sends is passed on as it is when it is valid, mended where nothing is lost, and else ended."""

from __future__ import annotations

import random

import pytest
from ag_ui.core import (
    Event,
    ReasoningMessageContentEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UserMessage,
)

from runcast.adapters.remote import MendedRun
from runcast.slim import decode, encode, fold, verify
from tests.streams import adversarial, mutated, structured

ASKED = RunAgentInput(
    thread_id="t", run_id="r", messages=[UserMessage(id="u", content="hi")], tools=[], context=[]
)
STARTED = RunStartedEvent(thread_id="t", run_id="r", input=ASKED)
FINISHED = RunFinishedEvent(thread_id="t", run_id="r")
TEXT = TextMessageStartEvent(message_id="m", role="assistant")
WORD = TextMessageContentEvent(message_id="m", delta="word")
TEXT_END = TextMessageEndEvent(message_id="m")


def mended(*parts: Event, ending: str | None = "finish") -> list[Event]:
    run = MendedRun(ASKED, clock=lambda: 7)
    events = [*run.start(), *(event for part in parts for event in run.feed(part))]
    return events if ending is None else [*events, *getattr(run, ending)()]


def types(events: list[Event]) -> list[str]:
    return [event.type.value for event in events]


def test_a_valid_run_passes_unchanged():
    events = [STARTED, TEXT, WORD, TEXT_END, FINISHED]
    assert mended(*events) == events


def test_a_missing_start_is_added_with_the_input():
    events = mended(TEXT, WORD, TEXT_END, FINISHED)
    assert types(events)[0] == "RUN_STARTED"
    assert events[0].input == ASKED
    assert [message.content for message in fold(events).messages] == ["hi", "word"]


def test_the_runs_own_ids_replace_others_at_both_ends():
    events = mended(RunStartedEvent(thread_id="x", run_id="y"), RunFinishedEvent(thread_id="x", run_id="z"))
    assert [(event.thread_id, event.run_id) for event in events] == [("t", "r"), ("t", "r")]
    assert events[0].input == ASKED


def test_open_items_are_closed_before_the_end():
    events = mended(
        STARTED,
        StepStartedEvent(step_name="s"),
        SubagentStartedEvent(subagent_run_id="a", name="helper"),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="f", subagent_run_id="a"),
        TEXT,
        WORD,
        FINISHED,
    )
    ends = ["TEXT_MESSAGE_END", "TOOL_CALL_END", "SUBAGENT_FINISHED", "STEP_FINISHED", "RUN_FINISHED"]
    assert types(events)[-5:] == ends
    assert verify(events, "client") == []


def test_text_without_a_start_gets_one():
    events = mended(STARTED, WORD, ReasoningMessageContentEvent(message_id="q", delta="hm"), FINISHED)
    assert verify(events, "client") == []
    assert fold(events).messages[1].content == "word"


@pytest.mark.parametrize(
    "useless",
    [
        TEXT_END,
        ToolCallEndEvent(tool_call_id="c"),
        StepFinishedEvent(step_name="s"),
    ],
)
def test_an_end_without_a_start_is_left_out(useless: Event):
    assert mended(STARTED, useless, FINISHED) == [STARTED, FINISHED]


def test_a_step_that_starts_twice_starts_once():
    step = StepStartedEvent(step_name="s")
    assert types(mended(STARTED, step, step, FINISHED)) == [
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]


def test_a_null_id_is_as_good_as_none():
    tagged = decode(b'{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","subagentRunId":null}')
    event = mended(STARTED, tagged, ending=None)[1]
    assert b"subagentRunId" not in encode(event)


def test_what_cannot_be_mended_ends_the_run_with_the_rules_name():
    events = mended(STARTED, ToolCallArgsEvent(tool_call_id="c", delta="{}"), TEXT, FINISHED)
    assert types(events) == ["RUN_STARTED", "RUN_ERROR"]
    assert events[-1].code == "invalid_stream"
    assert "call-not-open" in events[-1].message


def test_text_of_another_owner_ends_the_run():
    foreign = TextMessageContentEvent(message_id="m", delta="x", subagent_run_id="a", timestamp=5)
    events = mended(STARTED, TEXT, TEXT_END, foreign)
    assert events[-1].code == "invalid_stream"


def test_a_second_start_ends_the_run():
    events = mended(STARTED, STARTED)
    assert (events[-1].code, "twice" in events[-1].message) == ("invalid_stream", True)


def test_nothing_follows_the_end():
    assert mended(STARTED, FINISHED, TEXT, STARTED) == [STARTED, FINISHED]
    assert mended(RunErrorEvent(message="no"), TEXT) == [RunErrorEvent(message="no")]


def test_a_subagent_that_failed_is_closed():
    failed = SubagentErrorEvent(subagent_run_id="a", message="no")
    events = mended(STARTED, SubagentStartedEvent(subagent_run_id="a", name="n"), failed, FINISHED)
    assert types(events)[-2:] == ["SUBAGENT_ERROR", "RUN_FINISHED"]


def test_a_response_that_stops_short_is_an_error():
    events = mended(STARTED, TEXT, WORD)
    assert (events[-1].type.value, events[-1].code) == ("RUN_ERROR", "remote_ended")
    assert types(mended()) == ["RUN_STARTED", "RUN_ERROR"]


def test_a_stop_closes_what_is_open_and_is_no_error():
    events = mended(STARTED, TEXT, WORD, ending="cancel")
    assert types(events)[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert isinstance(events[-1].outcome, RunFinishedCancelledOutcome)
    assert types(mended(ending="cancel")) == ["RUN_STARTED", "RUN_FINISHED"]
    assert mended(STARTED, FINISHED, ending="cancel") == [STARTED, FINISHED]


@pytest.mark.parametrize("seed", range(150))
def test_whatever_is_sent_a_client_accepts_what_leaves(seed: int):
    rng = random.Random(seed)
    sent = (structured if seed % 2 else adversarial)(rng, chunks=seed % 3 == 0)
    for stream in (sent, mutated(rng, sent)):
        for cut in (len(stream), rng.randrange(len(stream) + 1)):
            events = mended(*stream[:cut])
            assert verify(events, "client") == []
            assert types(events)[-1] in ("RUN_FINISHED", "RUN_ERROR")


@pytest.mark.parametrize("seed", range(60))
def test_a_valid_first_run_keeps_its_conversation(seed: int):
    sent = structured(random.Random(seed))
    ends = (at for at, event in enumerate(sent) if isinstance(event, RunFinishedEvent | RunErrorEvent))
    end = next(ends, len(sent))
    first = sent[: end + 1]
    ids = {"thread_id": first[0].thread_id, "run_id": first[0].run_id}
    run = MendedRun(ASKED.model_copy(update=ids), clock=lambda: 7)
    events = [event for part in first for event in run.feed(part)]
    assert len(events) == len(first)
    assert events[1:] == first[1:]
