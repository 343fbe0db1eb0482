"""The two ends of a run, its usage, and what its errors may say."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Interrupt, RunAgentInput

from runcast.adapters import (
    AdapterError,
    Failure,
    InvalidInput,
    RunFrame,
    RunIds,
    ThreadBusy,
    UnknownRun,
    UsageTally,
    failure,
    scrub,
)
from tests.e2e.oracle import Oracle

IDS = RunIds("t", "r", "parent")


@pytest.mark.oracle
def test_the_echoed_input_has_tools_and_context_for_clients_before_1_0(oracle: Oracle):
    sent = RunAgentInput(thread_id="t", run_id="r", messages=[])
    [event] = RunFrame(IDS, input=sent).started()
    assert (event.input.tools, event.input.context) == ([], [])
    assert oracle.earlier([event.model_dump(mode="json", by_alias=True)])["ok"]


def test_calls_that_the_client_derives_are_not_named():
    named, derived = RunFrame(IDS), RunFrame(IDS)
    assert named.succeeded(pending=["c1"])[0].outcome.pending_tool_call_ids == ["c1"]
    assert derived.succeeded(pending=["c1"], derived=["c1"])[0].outcome.pending_tool_call_ids is None


def test_a_run_opens_with_its_version_parent_and_input():
    sent = RunAgentInput(thread_id="t", run_id="r", messages=[], tools=[], context=[])
    [event] = RunFrame(IDS, input=sent, clock=lambda: 9).started(metadata={"k": 1})
    assert (event.protocol_version, event.parent_run_id, event.input, event.timestamp) == (
        "1.0",
        "parent",
        sent,
        9,
    )
    [bare] = RunFrame(RunIds("t", "r")).started()
    assert (bare.parent_run_id, bare.input, bare.timestamp, bare.metadata) == (None, None, None, None)


ENDINGS: list[Any] = [
    lambda frame: frame.succeeded(pending=["c"], result=1),
    lambda frame: frame.succeeded(),
    lambda frame: frame.interrupted([Interrupt(id="i", reason="why")]),
    lambda frame: frame.cancelled(),
    lambda frame: frame.failed(Failure("code", "text")),
]


@pytest.mark.parametrize("end", ENDINGS)
def test_a_run_ends_once_with_its_usage(end: Any):
    frame = RunFrame(IDS)
    frame.usage.add(
        provider="p", model="m", input_tokens=1, output_tokens=2, total_tokens=3, reasoning_tokens=None
    )
    [event] = end(frame)
    assert event.usage[0].total_tokens == 3
    assert all(other(frame) == [] for other in ENDINGS)


def test_usage_is_summed_by_model_and_never_made_up():
    tally = UsageTally()
    assert tally.rows() is None
    tally.add(provider="p", model="m", total_tokens=3)
    tally.add(provider="p", model="m", total_tokens=4, input_tokens=-1)
    tally.add(total_tokens=5)
    tally.add(model="silent")
    rows = tally.rows()
    assert [(row.provider, row.model, row.total_tokens, row.input_tokens) for row in rows] == [
        ("p", "m", 7, None),
        (None, None, 5, None),
    ]
    assert tally.total() == 12


class RateLimitError(Exception):
    pass


class Odd(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RateLimitError("slow down"), "rate_limited"),
        (TimeoutError("late"), "timeout"),
        (InvalidInput("no"), "invalid_input"),
        (ThreadBusy("busy"), "thread_busy"),
        (UnknownRun("who"), "unknown_run"),
        (Odd("x"), "odd"),
        (ValueError("x"), "agent_error"),
    ],
)
def test_errors_have_codes(error: Exception, code: str):
    own = isinstance(error, AdapterError)
    message = str(error) if own else f"{type(error).__name__}: {error}"
    assert failure(error, codes={"Odd": "odd"}) == Failure(code, message)


def test_an_error_keeps_its_type():
    assert failure(KeyError("topic")).message == "KeyError: 'topic'"


def test_everything_raised_on_purpose_has_one_root():
    assert all(issubclass(kind, AdapterError) for kind in (InvalidInput, ThreadBusy, UnknownRun))


def test_an_error_of_ones_own_names_its_code_either_way_or_has_its_parents():
    class InHead(AdapterError, code="in_head"):
        pass

    class AsAttribute(InHead):
        code = "as_attribute"

    class Neither(InHead):
        pass

    codes = [failure(kind("x")).code for kind in (InHead, AsAttribute, Neither)]
    assert codes == ["in_head", "as_attribute", "in_head"]


def test_an_error_without_words_is_called_by_its_name():
    assert failure(ValueError()).message == "ValueError"


@pytest.mark.parametrize(
    "secret",
    [
        "api_key=hunter2secret rest",
        'password: "hunter2secret"',
        "Bearer hunter2secret",
        "postgresql://ada:hunter2secret@db/x",
        "sk-hunter2secret",
    ],
)
def test_secrets_do_not_ride_out(secret: str):
    said = scrub(f"it broke: {secret} there")
    assert "hunter2secret" not in said
    assert "[redacted]" in said


def test_error_text_is_one_line_and_short():
    assert scrub("a\n b\t c") == "a b c"
    assert len(scrub("x" * 9_000)) == 500
    assert scrub("x" * 9_000).endswith("...")
