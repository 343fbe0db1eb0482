"""Verifies that the client accepts a stream, event by event.

**The rules.** A stream is a sequence of runs, and a run holds things that are open: text messages, tool calls, reasoning
messages, reasoning spans, steps, subagents. Three groups of rules:

1. Borders. `_MAY_COME` and `_LEADS_TO` are the whole table: which of RUN_STARTED, RUN_FINISHED and RUN_ERROR
   may come in which phase, and the phase that follows. Every other event belongs inside a run.
2. Open, continue, close. `MOVES` gives each event its move. Each kind has its own open set; an id may be opened
   again once it was closed; RUN_FINISHED wants every set empty. RUN_ERROR drops them: a new run starts empty.
3. Owners. The opener of a thing owns it until the run ends, also after it was closed, and the parent agent (no tag)
   is an owner like any subagent. A later event may leave the tag out, but not carry another. Ids are unique
   within a kind, so there is one book of owners a kind: message, call, activity, reasoning (which spans and
   messages share). A snapshot rewrites the books, the input that RUN_STARTED echoes only adds to them, a result
   owns its own message.

The profile `client` is the pipeline of `@ag-ui/client` 1.0.0: the same first offender in every stream of events that have
their shape from the schema (with `explicit_nulls`, since the client sees the wire: its schemas refuse null in every
optional field of an event). An event of an unknown type is dropped wherever it comes, and a chunk is judged by the events it
stands for. A null tag on a border breaks a rule, although 1.0.0 strips it: 0.0.59 refuses it. `strict` adds the rules that the text of 1.0 has and that client
does not check, marked in `RULES`; the client's own rules come first.

**After a violation.** The client stops at its first one; this verifier continues, so that a log can name every
mistake. An event that broke a rule changes nothing, except that a run's border counts even when it came wrong: every
reader of the stream sees it, and so no mistake outlives its run. `refusing=True` is for a caller that keeps such an
event out of the stream: then the border does not count either.

It does not know shapes (the models hold those), content, JSON Patch, or whether a result answers a known call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from ag_ui.core import (
    EventType,
    Message,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
)

from runcast.slim.errors import InvalidStream
from runcast.slim.protocol.chunk_expander import CHUNKS, ChunkExpander
from runcast.slim.protocol.rules import Complaint, Profile, Violation, complain, quoted
from runcast.slim.protocol.transitions import MOVES, Run, null_extra, null_field, null_tag
from runcast.slim.values.by_class import nearest

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

Phase = Literal["before", "running", "finished", "failed"]

# The borders that may come in each phase; every other event belongs into "running".
_MAY_COME: Mapping[Phase, frozenset[str]] = {
    "before": frozenset({"RUN_STARTED", "RUN_ERROR"}),
    "running": frozenset({"RUN_FINISHED", "RUN_ERROR"}),
    "finished": frozenset({"RUN_STARTED", "RUN_ERROR"}),
    "failed": frozenset({"RUN_STARTED"}),
}
_LEADS_TO: Mapping[str, Phase] = {
    "RUN_STARTED": "running",
    "RUN_FINISHED": "finished",
    "RUN_ERROR": "failed",
}
# The rule that an event breaks when it may not come in this phase.
_OUT_OF_PLACE: Mapping[Phase, str] = {
    "before": "first-event",
    "running": "run-active",
    "finished": "after-finish",
    "failed": "after-error",
}
_Border = RunStartedEvent | RunFinishedEvent | RunErrorEvent


class Verifier:
    """Judges one stream. Call `feed` with every event in order, and `close` where the stream ends.

    None for an optional field means absence, as in the Python models. `explicit_nulls` is for decoded events: there a
    given None was null on the wire, which some fields may not be. `refusing`: see the module.
    """

    def __init__(
        self, profile: Profile = "strict", *, explicit_nulls: bool = False, refusing: bool = False
    ) -> None:
        self._strict = profile == "strict"
        self._nulls = explicit_nulls
        self._refusing = refusing
        self._phase: Phase = "before"
        self._run = Run(nulls=self._nulls)
        self._chunks = ChunkExpander()
        self._fed = 0  # events so far, so the index of the next
        self._thread: str | None = None  # of the stream, from its first RUN_STARTED
        self._run_ids: set[str] = set()  # of all runs that began

    def feed(self, event: AnyEvent) -> Violation | None:
        """Judge the next event: None when it is legal, else the first rule that it breaks."""
        index = self._fed
        self._fed = index + 1
        move = MOVES.get(type(event))
        complaint = null_field(event) if self._nulls and not isinstance(event, _Border) else None
        if complaint is None and (move is None or self._phase != "running" or self._chunks.lanes):
            complaint = self._judge_any(event)
        elif complaint is None and move is not None:
            complaint = move(self._run, event)
        return None if complaint is None else _violation(complaint, index, event)

    def close(self) -> Violation | None:
        """Judge the end. It changes nothing, so a stream may continue after all."""
        if not self._strict or self._phase in ("finished", "failed"):
            return None
        if self._phase == "before":
            return _violation(complain("no-run"), self._fed)
        return _violation(self._about_run("truncated-stream"), self._fed)

    def _judge_any(self, event: AnyEvent) -> Complaint | None:
        """The other events: borders, chunks, subclasses, unknown types, events out of place."""
        if self._phase == "running" and (self._chunks.lanes or isinstance(event, CHUNKS)):
            return self._judge_expanded(event)
        return self._judge(event)

    def _judge_expanded(self, event: AnyEvent) -> Complaint | None:
        """Judge a chunk, or an event that may end a chunked stream, by the whole events it stands for."""
        run, lanes = self._run, dict(self._chunks.lanes)
        opened = {kind: dict(ids) for kind, ids in run.open.items()}
        try:
            whole = self._chunks.feed(event)
        except InvalidStream as problem:
            return complain("bad-chunk", problem=str(problem))
        complaint = next(filter(None, map(self._judge, whole)), None)
        if complaint is not None and self._run is run and self._phase == "running":
            run.open, self._chunks.lanes = opened, lanes
        return complaint

    def _judge(self, event: AnyEvent) -> Complaint | None:
        if isinstance(event, _Border):
            return self._judge_border(event)
        move = nearest(MOVES, type(event))
        if move is None and not isinstance(event, CHUNKS):  # the client drops it before it looks at the order
            return complain("unknown-type", _type(event)) if self._strict else None
        if self._phase != "running" or move is None:
            return self._about_run(_OUT_OF_PLACE[self._phase])
        return move(self._run, event)

    def _judge_border(self, event: _Border) -> Complaint | None:
        if _type(event) not in _MAY_COME[self._phase]:
            complaint: Complaint | None = self._about_run(_OUT_OF_PLACE[self._phase])
        else:
            given = null_field(event) if self._nulls else None
            complaint = given or null_extra(event) or self._check(event)
        if complaint is None or not self._refusing:
            self._cross(event)
        return complaint

    def _about_run(self, rule: str) -> Complaint:
        subject = self._run.run_id if self._run_ids else None
        return complain(rule, subject, open=self._run.still_open() or "nothing")

    def _cross(self, event: _Border) -> None:
        """Cross the border, also a wrong one; but without an active run, nothing is finished."""
        if isinstance(event, RunStartedEvent):
            self._run = Run(nulls=self._nulls, thread_id=event.thread_id, run_id=event.run_id)
            self._run.owners.enter(_echoed(event), rewrite=False)
            self._run_ids.add(event.run_id)
            self._thread = event.thread_id if self._thread is None else self._thread
        elif isinstance(event, RunFinishedEvent) and self._phase != "running":
            return
        self._phase = _LEADS_TO[_type(event)]

    def _check(self, event: _Border) -> Complaint | None:
        match event:
            case RunStartedEvent():
                return self._check_start(event)
            case RunFinishedEvent():
                return self._check_finish(event)
            case _:
                return None  # RUN_ERROR may come at any time of a run, and needs nothing closed

    def _check_start(self, event: RunStartedEvent) -> Complaint | None:
        run_id, thread_id = event.run_id, event.thread_id
        complaint = null_tag(self._run, _echoed(event))
        if complaint is not None or not self._strict:
            return complaint
        if self._thread is not None and thread_id != self._thread:
            return complain("second-run-on-another-thread", thread_id, thread=quoted(self._thread))
        if run_id in self._run_ids:
            return complain("run-id-reused", run_id)
        if event.parent_run_id == run_id:
            return complain("own-parent", run_id)
        return None

    def _check_finish(self, event: RunFinishedEvent) -> Complaint | None:
        run, outcome = self._run, event.outcome
        interrupts = outcome.interrupts if isinstance(outcome, RunFinishedInterruptOutcome) else []
        if complaint := null_tag(run, interrupts):
            return complaint
        if found := run.still_open():
            return complain("open-at-finish", run.run_id, open=found)
        if not self._strict:
            return None
        if event.run_id != run.run_id:
            return complain("run-finished-wrong-run-id", event.run_id, run=quoted(run.run_id))
        if event.thread_id != run.thread_id:
            names = {"run": quoted(run.run_id), "thread": quoted(run.thread_id)}
            return complain("run-finished-wrong-thread-id", event.thread_id, **names)
        twice = [ident for ident, times in Counter(each.id for each in interrupts).items() if times > 1]
        return complain("duplicate-interrupt-id", twice[0]) if twice else None


def verify(
    events: Iterable[AnyEvent], profile: Profile = "strict", *, explicit_nulls: bool = False
) -> list[Violation]:
    """Every violation in this stream, its end included. The client would stop at the first."""
    verifier = Verifier(profile, explicit_nulls=explicit_nulls)
    found = [violation for event in events if (violation := verifier.feed(event))]
    end = verifier.close()
    return found if end is None else [*found, end]


def _echoed(event: RunStartedEvent) -> Sequence[Message]:
    return () if event.input is None else event.input.messages


def _type(event: AnyEvent) -> str:
    return event.type.value if isinstance(event.type, EventType) else event.type


def _violation(complaint: Complaint, index: int, event: AnyEvent | None = None) -> Violation:
    kind = None if event is None else _type(event)
    return Violation(complaint.rule, index, kind, complaint.subject, complaint.message)
