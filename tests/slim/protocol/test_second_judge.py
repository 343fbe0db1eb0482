"""A second judge, `ag-ui-validate`: where it and the strict profile agree, and where it errs or asks for more.

It was written against AG-UI 0.x. Its own example streams come with it and are judged here too.
"""

from __future__ import annotations

import json
import random
from importlib.resources import files

import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui, validate_agui

from runcast.slim.protocol.verifier import verify
from tests.slim.protocol.test_parity import on_the_wire
from tests.slim.wires import (
    Wire,
    call,
    call_end,
    failed,
    finished,
    read,
    result,
    says,
    span,
    started,
    step,
    step_end,
    subagent,
    subagent_end,
    text,
    text_end,
)
from tests.streams import structured

EXAMPLES = files("ag_ui_validate") / "spec" / "fixtures"
# Its rule, which its example breaks first at that place; ours for the same event.
AGREED = {
    "AGUI001-first-event-not-run-started": "first-event",
    "AGUI002-duplicate-run-started": "run-active",
    "AGUI003-run-never-terminated": "truncated-stream",
    "AGUI004-event-after-terminal": "after-finish",
    "AGUI006-step-finished-unmatched": "step-not-open",
    "AGUI007-step-unterminated": "open-at-finish",
    "AGUI008-unstable-run-ids": "run-finished-wrong-run-id",
    "AGUI101-content-without-start": "text-not-open",
    "AGUI102-end-without-start": "text-not-open",
    "AGUI103-message-unterminated": "open-at-finish",
    "AGUI106-interleaved-same-message-id": "text-already-open",
    "AGUI201-args-without-start": "call-not-open",
    "AGUI202-end-without-start": "call-not-open",
    "AGUI203-unterminated-tool-call": "open-at-finish",
    "AGUI401-reasoning-content-without-start": "reasoning-not-open",
    "AGUI402-reasoning-unterminated": "open-at-finish",
    "AGUI503-unknown-event-type": "unknown-type",
    "AGUI601-duplicate-subagent-started": "subagent-already-active",
    "AGUI602-finished-without-start": "subagent-not-active",
    "AGUI603-error-without-start": "subagent-not-active",
    "AGUI604-subagent-unterminated": "open-at-finish",
    "AGUI605-unknown-parent-subagent-run-id": "subagent-parent-unknown",
    "AGUI606-continuation-owner-mismatch": "wrong-owner",
}
# What it calls an error in streams that AG-UI 1.0 allows, and why it is none.
NO_ERRORS = {
    "AGUI001": "RUN_ERROR may come first: a run can fail before it begins",
    "AGUI005": "RUN_ERROR may follow RUN_FINISHED: a failure that surfaced late",
    "AGUI101": "follows from AGUI104",
    "AGUI102": "follows from AGUI104",
    "AGUI104": "a message that was ended may be opened again",
    "AGUI201": "follows from AGUI205",
    "AGUI202": "follows from AGUI205",
    "AGUI204": "the protocol carries arguments as text; they need not parse",
    "AGUI205": "a call that was ended may be opened again",
    "AGUI207": "the call may be of an earlier run or of the input",
    "AGUI302": "a patch that does not apply is skipped by the client, not fatal",
    "AGUI504": "since 1.0 a result may be a list of parts",
}


def example(folder: str, name: str) -> list[Wire]:
    lines = (EXAMPLES / folder / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


@pytest.mark.parametrize("name", AGREED)
def test_both_find_the_same_event_at_fault(name: str):
    wires = example("invalid", f"{name}/stream.jsonl")
    (theirs, *_) = json.loads((EXAMPLES / "invalid" / name / "expected.json").read_text(encoding="utf-8"))
    ours = verify(read(wires))[0]
    at_the_end = len(wires)
    assert ours.rule == AGREED[name]
    assert ours.index == (theirs["eventIndex"] if theirs["eventIndex"] >= 0 else at_the_end)


@pytest.mark.parametrize(
    "path", [each.name for each in (EXAMPLES / "valid").iterdir() if each.name.endswith("l")]
)
def test_its_valid_examples_are_valid(path: str):
    assert verify(read(example("valid", path))) == []


def test_it_finds_errors_in_our_valid_streams_only_where_it_is_wrong():
    rng = random.Random(1)
    told: set[str] = set()
    for _ in range(400):
        wires = on_the_wire(structured(rng))
        if verify(read(wires)) == []:
            told |= {each.rule for each in validate_agui(wires).diagnostics if each.severity == "error"}
    assert told <= set(NO_ERRORS)
    assert {"AGUI204", "AGUI207", "AGUI302", "AGUI504"} <= told


def test_a_plain_stream_satisfies_both():
    parts = [step(), text(), says(), call(parentMessageId="m1"), call_end(), result(), text_end(), step_end()]
    wires = [started(), *parts, subagent(), subagent_end(), finished()]
    assert verify(read(wires)) == []
    assert_valid_agui(wires, max_warnings=0)


@pytest.mark.parametrize(
    ("theirs", "wires"),
    [
        ("AGUI001", [failed()]),
        ("AGUI005", [started(), finished(), failed()]),
        ("AGUI104", [started(), text(), text_end(), text(), text_end(), finished()]),
        ("AGUI205", [started(), call(), call_end(), call(), call_end(), finished()]),
        ("AGUI207", [started(), result(call="of an earlier run"), finished()]),
        (
            "AGUI504",
            [started(), call(), call_end(), result(content=[{"type": "text", "text": "ok"}]), finished()],
        ),
    ],
)
def test_what_it_wrongly_calls_an_error(theirs: str, wires: list[Wire]):
    assert verify(read(wires)) == []
    assert theirs in {each.rule for each in validate_agui(wires).diagnostics if each.severity == "error"}


@pytest.mark.parametrize(
    ("ours", "wires"),
    [
        ("step-already-open", [started(), step(), step(), step_end(), step_end(), finished()]),
        ("span-already-open", [started(), span(), span(), finished()]),
        (
            "subagent-reused",
            [
                started(),
                subagent(),
                subagent_end(outcome={"type": "suspended"}),
                subagent(),
                subagent_end(),
                finished(),
            ],
        ),
    ],
)
def test_what_it_does_not_see(ours: str, wires: list[Wire]):
    assert verify(read(wires))[0].rule == ours
    assert [each for each in validate_agui(wires).diagnostics if each.severity == "error"] == []
