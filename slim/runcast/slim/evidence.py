"""Exports one run as a small artifact that others can check: its messages between a start and an end.

The contract `ag-ui.compacted-message-snapshot.export.v1` needs one RUN_STARTED, exactly one MESSAGES_SNAPSHOT, one
terminal event, and of each message only id, role, text and name, within limits. It claims nothing about state,
branches, timing or other events. A run that does not fit is refused with a typed reason, never cut. With
`policy="omit"` single messages are left out and reported beside the artifact, which has no field for them. A run with
other events needs a projection that the caller names. Knows events; does not know logs or files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from ag_ui.core import (
    Event,
    Message,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
)

from runcast.slim.entry import Entry
from runcast.slim.errors import EvidenceRefused
from runcast.slim.folding.conversation import fold
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.values.surrogates import has_lone_surrogate

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

SCHEMA = "ag-ui.compacted-message-snapshot.export.v1"
LONGEST_REF = 96
LONGEST_CONTENT = 400
LONGEST_NAME = 60
LONGEST_ERROR = 200
LONGEST_CODE = 48
ROLES = frozenset({"assistant", "developer", "system", "tool", "user"})

Policy = Literal["refuse", "omit"]
Projection = Literal["snapshot", "fold"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 253_402_300_799_999  # the last millisecond that RFC 3339 can write
_SCHEME = re.compile("://")


@dataclass(frozen=True, slots=True)
class Omission:
    """A message that was left out, and the reason."""

    message_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """An artifact, and the facts that it has no field for."""

    artifact: dict[str, Any]
    projection: Projection | None  # the source of the messages, if the run had other events
    omissions: tuple[Omission, ...] = ()
    outcome_lost: str | None = None  # `interrupt` or `cancelled`, which the artifact shows as RUN_FINISHED


def export_evidence(events: Iterable[AnyEvent | Entry], **options: Any) -> dict[str, Any]:
    """The artifact of one run; `options` are those of `collect_evidence`, which also reports what was left out."""
    return collect_evidence(events, **options).artifact


def collect_evidence(
    events: Iterable[AnyEvent | Entry],
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    policy: Policy = "refuse",
    projection: Projection | None = None,
    lose_outcome: bool = False,
    parent_run_id: str | None = None,
    started_at: int | None = None,
    finished_at: int | None = None,
    redactor: Redactor | None = None,
) -> Evidence:
    """Export one run: the one named, or the only one there is. Raises `EvidenceRefused`.

    Events may be entries of a log, whose times replace missing timestamps. A run with more than RUN_STARTED, one
    MESSAGES_SNAPSHOT and a terminal event needs a `projection`: `snapshot` takes its one snapshot, `fold` folds its
    events and those before it. The artifact shows an interrupted or cancelled run as a finished one;
    `lose_outcome=True` accepts that. `parent_run_id` comes from the log's lineage.
    """
    placed = [_placed(each) for each in events]
    run = _run(placed, thread_id, run_id)
    messages = _messages(run, projection, [event for event, _ in placed])
    lost = _lost_outcome(run.end)
    if lost is not None and not lose_outcome:
        raise EvidenceRefused(
            "outcome_lost", f"the artifact cannot say {lost!r}; lose_outcome=True accepts that"
        )
    rows, omissions = _rows(messages, policy, redactor or Redactor())
    if not rows:
        raise EvidenceRefused("no_messages", "no message of the run fits; an artifact needs at least one")
    began = run.started_at if started_at is None else started_at
    artifact = {
        "schema": SCHEMA,
        "framework": "ag_ui",
        "surface": "compacted_message_snapshot_artifact",
        "thread_id_ref": _ref(run.start.thread_id, "thread_id"),
        "run_id_ref": _ref(run.start.run_id, "run_id"),
        "started_at": _time(began, "started_at"),
        "messages": rows,
        "terminal_event": str(run.end.type.value),
    }
    ended = run.finished_at if finished_at is None else finished_at
    if ended is not None:
        artifact["finished_at"] = _time(ended, "finished_at")
        if began is not None and ended < began:
            raise EvidenceRefused("times_reversed", "the run ended before it began; give the times by hand")
    parent = parent_run_id or run.start.parent_run_id
    if parent is not None:
        artifact["parent_run_id_ref"] = _ref(parent, "parent_run_id")
    if isinstance(run.end, RunErrorEvent):
        artifact |= _error(run.end, redactor or Redactor())
    return Evidence(artifact, projection, tuple(omissions), lost)


def canonical(artifact: Mapping[str, Any]) -> bytes:
    """The artifact as the same bytes every time: sorted keys, no spaces, UTF-8."""
    return json.dumps(artifact, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


# ---------------------------------------------------------------------- the run


@dataclass(slots=True)
class _Run:
    """The events of one run."""

    start: RunStartedEvent
    started_at: int | None
    place: int  # how many events came before it
    inside: list[AnyEvent] = field(default_factory=list["AnyEvent"])
    end: Any = None  # RUN_FINISHED or RUN_ERROR
    finished_at: int | None = None


def _placed(each: AnyEvent | Entry) -> tuple[AnyEvent, int | None]:
    """An event and its timestamp, or its time of receipt."""
    event = each.event if isinstance(each, Entry) else each
    own: object = getattr(event, "timestamp", None)
    received = each.at if isinstance(each, Entry) else None
    return event, own if isinstance(own, int) else received


def _run(placed: list[tuple[AnyEvent, int | None]], thread_id: str | None, run_id: str | None) -> _Run:
    runs: list[_Run] = []
    for place, (event, at) in enumerate(placed):
        if isinstance(event, RunStartedEvent):
            runs.append(_Run(event, at, place))
        elif runs:
            _take(runs[-1], event, at)
    fitting = [
        run for run in runs if thread_id in (None, run.start.thread_id) and run_id in (None, run.start.run_id)
    ]
    if len(fitting) != 1:
        raise EvidenceRefused(
            "no_run" if not fitting else "several_runs",
            f"{len(fitting)} runs fit; an artifact holds exactly one RUN_STARTED: say which with run_id",
        )
    run = fitting[0]
    if run.end is None:
        raise EvidenceRefused("truncated_run", "the run has no terminal event; wait for its end or resume it")
    return run


def _take(run: _Run, event: AnyEvent, at: int | None) -> None:
    run.inside.append(event)
    if isinstance(event, RunFinishedEvent | RunErrorEvent):
        run.end, run.finished_at = event, at


def _messages(run: _Run, projection: Projection | None, before: list[AnyEvent]) -> list[Message]:
    """The messages to export."""
    if projection == "fold":
        return fold([*before[: run.place], run.start, *run.inside]).messages
    own = [event for event in run.inside if isinstance(event, MessagesSnapshotEvent)]
    if len(own) != 1:
        raise EvidenceRefused(
            "no_snapshot" if not own else "several_snapshots",
            f"the run has {len(own)} MESSAGES_SNAPSHOT, and exactly one is exported; projection='fold' makes one",
        )
    if projection is None and run.inside != [own[0], run.end]:
        other = next(event for event in run.inside if event is not own[0])
        raise EvidenceRefused(
            "other_events",
            f"the run also has {getattr(other.type, 'value', other.type)}; projection='snapshot' takes its MESSAGES_SNAPSHOT and leaves the rest",
        )
    return list(own[0].messages)


# ---------------------------------------------------------------------- what is kept


def _rows(
    messages: list[Message], policy: Policy, redactor: Redactor
) -> tuple[list[dict[str, str]], list[Omission]]:
    rows: list[dict[str, str]] = []
    omissions: list[Omission] = []
    ids: set[str] = set()
    for message in messages:
        try:
            row = _row(message, redactor)
            if row["id"] in ids:
                raise EvidenceRefused("doubled_id", f"two messages have the id {row['id']!r}")
        except EvidenceRefused as refused:
            if policy == "refuse":
                raise
            omissions.append(Omission(message.id, refused.reason))
            continue
        ids.add(row["id"])
        rows.append(row)
    return rows, omissions


def _row(message: Message, redactor: Redactor) -> dict[str, str]:
    """The message within the contract's limits."""
    where = f"message {message.id!r:.60}"
    content: object = message.content
    if message.role not in ROLES:
        raise EvidenceRefused(
            "role", f"{where} has the role {message.role}, which the artifact has no field for"
        )
    if content is not None and not isinstance(content, str):
        raise EvidenceRefused("content_parts", f"{where} has parts; the artifact holds plain text")
    text = redactor.text(content or "").strip()
    if not text:
        raise EvidenceRefused("blank_content", f"{where} has no text; calls without words cannot be exported")
    row = {
        "id": _ref(message.id, where),
        "role": message.role,
        "content": _bounded(text, LONGEST_CONTENT, "content_too_long", where),
    }
    name = getattr(message, "name", None)
    if name:
        row["name"] = _bounded(redactor.text(name), LONGEST_NAME, "name_too_long", where)
    return row


def _ref(text: str, where: str) -> str:
    """An opaque reference: short, not blank, and no link."""
    if not text.strip():
        raise EvidenceRefused("blank_reference", f"{where} is blank")
    if _SCHEME.search(text):
        raise EvidenceRefused("reference_is_link", f"{where} looks like a link; references are opaque")
    return _bounded(text, LONGEST_REF, "reference_too_long", where)


def _bounded(text: str, limit: int, reason: str, where: str) -> str:
    if len(text) > limit:
        raise EvidenceRefused(reason, f"{where}: {len(text)} characters, and at most {limit} are allowed")
    if has_lone_surrogate(text):
        raise EvidenceRefused("lone_surrogate", f"{where}: half a surrogate pair cannot be hashed as UTF-8")
    return text


def _error(event: RunErrorEvent, redactor: Redactor) -> dict[str, str]:
    message = redactor.text(event.message).strip()
    if not message:
        raise EvidenceRefused("blank_error", "the RUN_ERROR has no message, and a failed run needs one")
    fields = {"error_message": _bounded(message, LONGEST_ERROR, "error_too_long", "error_message")}
    if event.code:
        fields["error_code"] = _bounded(event.code, LONGEST_CODE, "error_code_too_long", "error_code")
    return fields


def _time(at: int | None, where: str) -> str:
    if at is None:
        raise EvidenceRefused("no_time", f"{where} is unknown: the event has no timestamp; give it by hand")
    if not 0 <= at <= _LATEST:
        raise EvidenceRefused("time_out_of_range", f"{where} is no moment between 1970 and 9999")
    moment = _EPOCH + timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds" if at % 1000 else "seconds").replace("+00:00", "Z")


def _lost_outcome(event: Event) -> str | None:
    if not isinstance(event, RunFinishedEvent) or event.outcome is None:
        return None
    return None if isinstance(event.outcome, RunFinishedSuccessOutcome) else event.outcome.type
