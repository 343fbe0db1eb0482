"""An artifact holds what its contract allows, to the byte; what it cannot hold is refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ReasoningMessage,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TextPart,
    ToolMessage,
    UserMessage,
)

from runcast.slim.entry import Entry
from runcast.slim.errors import EvidenceRefused
from runcast.slim.evidence import Evidence, Omission, canonical, collect_evidence, export_evidence
from runcast.slim.redaction.redactor import Redactor
from tests.slim.contract import held
from tests.slim.planted import PLANTED

AT = 1_776_193_200_000  # 2026-04-14T19:00:00Z
HI = UserMessage(id="m1", content="Hello")


def run(*messages: Message, end: Any = None, **start: Any) -> list[Any]:
    given = {"thread_id": "thread_123", "run_id": "run_456", "timestamp": AT} | start
    return [
        RunStartedEvent(**given),
        MessagesSnapshotEvent(
            messages=list(messages) or [HI, AssistantMessage(id="m2", content=" Hi there ")]
        ),
        end or RunFinishedEvent(thread_id="thread_123", run_id="run_456", timestamp=AT + 2_000),
    ]


def test_an_envelope_is_exported_as_the_contract_shows_it():
    artifact = export_evidence(run())
    assert artifact == {
        "schema": "ag-ui.compacted-message-snapshot.export.v1",
        "framework": "ag_ui",
        "surface": "compacted_message_snapshot_artifact",
        "thread_id_ref": "thread_123",
        "run_id_ref": "run_456",
        "started_at": "2026-04-14T19:00:00Z",
        "messages": [
            {"id": "m1", "role": "user", "content": "Hello"},
            {"id": "m2", "role": "assistant", "content": "Hi there"},
        ],
        "terminal_event": "RUN_FINISHED",
        "finished_at": "2026-04-14T19:00:02Z",
    }
    held(artifact)


def test_the_same_run_gives_the_same_bytes():
    assert canonical(export_evidence(run())) == canonical(export_evidence(iter(run())))
    assert canonical({"b": "é", "a": 1}) == '{"a":1,"b":"é"}'.encode()


def test_a_failed_run_says_why():
    artifact = export_evidence(run(end=RunErrorEvent(message=" no luck ", code="timeout", timestamp=AT + 5)))
    assert (artifact["terminal_event"], artifact["error_message"], artifact["error_code"]) == (
        "RUN_ERROR",
        "no luck",
        "timeout",
    )
    assert artifact["finished_at"] == "2026-04-14T19:00:00.005Z"
    held(artifact)
    assert "error_code" not in export_evidence(run(end=RunErrorEvent(message="x")))


def test_names_and_parents_are_kept_where_they_are_known():
    message = AssistantMessage(id="m", content="x", name="Ada")
    artifact = export_evidence(run(message, parent_run_id="r0"))
    assert artifact["messages"] == [{"id": "m", "role": "assistant", "content": "x", "name": "Ada"}]
    assert artifact["parent_run_id_ref"] == "r0"
    assert export_evidence(run(), parent_run_id="r9")["parent_run_id_ref"] == "r9"
    held(artifact)


def test_entries_lend_their_times():
    events = run(timestamp=None, end=RunFinishedEvent(thread_id="thread_123", run_id="run_456"))
    entries = [
        Entry("thread_123", seq, "e", "run_456", AT + seq * 1_000, event) for seq, event in enumerate(events)
    ]
    artifact = export_evidence(entries)
    assert (artifact["started_at"], artifact["finished_at"]) == (
        "2026-04-14T19:00:00Z",
        "2026-04-14T19:00:02Z",
    )
    by_hand = export_evidence(events, started_at=AT, finished_at=AT)
    assert by_hand["finished_at"] == by_hand["started_at"] == "2026-04-14T19:00:00Z"
    assert "finished_at" not in export_evidence(events, started_at=AT)


STREAMED = [
    TextMessageStartEvent(message_id="s", role="assistant"),
    TextMessageContentEvent(message_id="s", delta="streamed"),
    TextMessageEndEvent(message_id="s"),
]


def test_a_run_with_more_than_its_envelope_needs_a_named_projection():
    start, snapshot, end = run()
    events = [start, *STREAMED, snapshot, end]
    with pytest.raises(EvidenceRefused, match="other_events: the run also has"):
        export_evidence(events)
    taken = collect_evidence(events, projection="snapshot")
    assert (taken.projection, taken.artifact) == ("snapshot", export_evidence(run()))
    folded = collect_evidence([start, *STREAMED, end], projection="fold")
    assert folded.projection == "fold"
    assert folded.artifact["messages"] == [{"id": "s", "role": "assistant", "content": "streamed"}]


def test_a_fold_knows_what_was_said_before_the_run():
    before = [RunStartedEvent(thread_id="thread_123", run_id="r0"), *STREAMED]
    start, _, end = run()
    stray = CustomEvent(name="x", value=1)
    artifact = export_evidence([stray, *before, start, end], run_id="run_456", projection="fold")
    assert artifact["messages"] == [{"id": "s", "role": "assistant", "content": "streamed"}]


def refused(events: list[Any], **options: Any) -> str:
    with pytest.raises(EvidenceRefused) as caught:
        export_evidence(events, **options)
    assert str(caught.value).startswith(f"{caught.value.reason}: ")
    return caught.value.reason


def user(content: Any = "x", key: str = "m", **fields: Any) -> UserMessage:
    return UserMessage(id=key, content=content, **fields)


REFUSED: dict[str, Any] = {
    "no_run": ([], {}),
    "several_runs": (run() + run(run_id="r2"), {}),
    "truncated_run": (run()[:2], {}),
    "no_snapshot": ([run()[0], run()[2]], {"projection": "snapshot"}),
    "several_snapshots": ([*run()[:2], *run()[1:]], {}),
    "other_events": ([*run()[:2], CustomEvent(name="x", value=1), run()[2]], {}),
    "outcome_lost": (
        run(end=RunFinishedEvent(thread_id="t", run_id="r", outcome=RunFinishedCancelledOutcome())),
        {},
    ),
    "no_messages": (run(user(" ")), {"policy": "omit"}),
    "role": (run(ReasoningMessage(id="r", content="hm", role="reasoning")), {}),
    "content_parts": (run(user([TextPart(text="x")])), {}),
    "blank_content": (run(user(" \n")), {}),
    "content_too_long": (run(user("x" * 401)), {}),
    "name_too_long": (run(user(name="n" * 61)), {}),
    "lone_surrogate": (run(user("\ud83d")), {}),
    "doubled_id": (run(user(), user()), {}),
    "blank_reference": (run(user(key=" ")), {}),
    "reference_is_link": (run(thread_id="https://x.example/t"), {}),
    "reference_too_long": (run(run_id="r" * 97), {}),
    "blank_error": (run(end=RunErrorEvent(message=" ")), {}),
    "error_too_long": (run(end=RunErrorEvent(message="x" * 201)), {}),
    "error_code_too_long": (run(end=RunErrorEvent(message="x", code="c" * 49)), {}),
    "no_time": (run(timestamp=None), {}),
    "time_out_of_range": (run(), {"started_at": -1}),
    "times_reversed": (run(), {"finished_at": AT - 1}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_does_not_fit_is_refused_with_its_reason(reason: str):
    events, options = REFUSED[reason]
    assert refused(events, **options) == reason


def test_the_limits_themselves_fit():
    message = user("x" * 400, key="k" * 96, name="n" * 60)
    held(
        export_evidence(run(message, end=RunErrorEvent(message="e" * 200, code="c" * 48), thread_id="t" * 96))
    )
    held(export_evidence(run(*(user(key=f"m{n}") for n in range(5_000)))))


def test_omitting_says_what_was_left_out():
    messages = [
        user(),
        AssistantMessage(id="calls", content=None),
        ToolMessage(id="long", tool_call_id="c", content="x" * 401),
        user("y"),
    ]
    evidence = collect_evidence(run(*messages), policy="omit")
    held(evidence.artifact)
    assert [row["content"] for row in evidence.artifact["messages"]] == ["x"]
    assert evidence.omissions == (
        Omission("calls", "blank_content"), Omission("long", "content_too_long"), Omission("m", "doubled_id"),
    )  # fmt: skip
    assert refused(run(*messages)) == "blank_content"


def test_an_outcome_that_the_artifact_cannot_say_is_flagged():
    asked = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="ask")])
    events = run(end=RunFinishedEvent(thread_id="t", run_id="r", outcome=asked))
    evidence: Evidence = collect_evidence(events, lose_outcome=True)
    assert (evidence.outcome_lost, evidence.artifact["terminal_event"]) == ("interrupt", "RUN_FINISHED")
    fine = RunFinishedEvent(thread_id="t", run_id="r", outcome=RunFinishedSuccessOutcome())
    assert collect_evidence(run(end=fine)).outcome_lost is None


def test_one_of_several_runs_is_named():
    events = run() + run(run_id="r2", timestamp=AT + 1)
    assert export_evidence(events, run_id="r2")["run_id_ref"] == "r2"
    assert refused(events, thread_id="other") == "no_run"


@pytest.mark.parametrize(("text", "secret"), PLANTED.values(), ids=PLANTED)
def test_a_planted_secret_is_nowhere_in_an_artifact(text: str, secret: str):
    artifact = export_evidence(run(user(text[:400], name="n"), end=RunErrorEvent(message=text[:200])))
    assert secret.encode() not in canonical(artifact)
    assert json.dumps(secret, ensure_ascii=False)[1:-1].encode() not in canonical(artifact)
    open_book = Redactor(keys=(), patterns=())
    assert (
        secret
        in json.loads(canonical(export_evidence(run(user(text)), redactor=open_book)))["messages"][0][
            "content"
        ]
    )
