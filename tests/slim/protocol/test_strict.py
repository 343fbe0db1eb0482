"""What `strict` asks for beyond the client, how chunks are judged, and where a stream may end."""

from __future__ import annotations

import random

import pytest
from ag_ui.core import CustomEvent, RunStartedEvent, TextMessageContentEvent, TextMessageStartEvent

from runcast.slim.protocol.rules import RULES, Profile, Rule, Violation
from runcast.slim.protocol.verifier import Verifier, verify
from tests.e2e.oracle import Oracle
from tests.slim.mutations import babble, broken
from tests.slim.probes import ORDER, UNCHECKED, Probe
from tests.slim.probes_owners import OWNERSHIP
from tests.slim.protocol.test_parity import on_the_wire, streams
from tests.slim.wires import (
    Wire,
    asks,
    call,
    call_end,
    event,
    failed,
    finished,
    read,
    says,
    started,
    step,
    subagent,
    subagent_end,
    text,
    text_end,
)
from tests.streams import structured

CLIENTS = [each for each in [*ORDER, *OWNERSHIP] if each not in UNCHECKED]
S1, S2 = {"subagentRunId": "s1"}, {"subagentRunId": "s2"}
STRICT = {
    "an unknown type": ("unknown-type", 1),
    "an unknown type before any run": ("unknown-type", 0),
    "an unknown type behind an error": ("unknown-type", 2),
    "no end": ("truncated-stream", 2),
    "nothing at all": ("no-run", 0),
    "another run's finish": ("run-finished-wrong-run-id", 1),
    "another thread's finish": ("run-finished-wrong-thread-id", 1),
    "a run again": ("run-id-reused", 2),
    "another thread's run": ("second-run-on-another-thread", 2),
    "a run that is its own parent": ("own-parent", 0),
    "two interrupts of one id": ("duplicate-interrupt-id", 1),
}


def chunk(key: str | None = None, **fields: object) -> Wire:
    return event("TEXT_MESSAGE_CHUNK", delta="x", **({} if key is None else {"messageId": key}), **fields)


def call_chunk(key: str | None = None, **fields: object) -> Wire:
    return event("TOOL_CALL_CHUNK", delta="x", **({} if key is None else {"toolCallId": key}), **fields)


def told(found: list[Violation]) -> list[tuple[str, int]]:
    return [(each.rule, each.index) for each in found]


@pytest.mark.parametrize("probe", UNCHECKED, ids=lambda probe: probe.name)
def test_strict_looks_where_the_client_does_not(probe: Probe):
    assert told(verify(read(probe.events)))[0] == STRICT[probe.name]


def test_every_strict_rule_is_asked_for():
    assert {rule for rule, _ in STRICT.values()} == {name for name, rule in RULES.items() if rule.strict}


@pytest.mark.parametrize("probe", CLIENTS, ids=lambda probe: probe.name)
def test_strict_says_what_the_client_says(probe: Probe):
    found = verify(read(probe.events), explicit_nulls=True)
    wanted = [] if probe.rule is None else [(probe.rule, len(probe.events) - 1)]
    assert told(found)[:1] == wanted


def test_strict_adds_and_takes_nothing_away():
    source = streams(random.Random(7))
    for _ in range(1500):
        wire = [each for each in next(source) if not each["type"].endswith("_CHUNK")]
        events = read(wire)
        kept = [each for each in verify(events) if not RULES[each.rule].strict]
        assert kept == verify(events, "client")


def test_the_five_of_the_later_drafts_are_told_in_words():
    def sentence(*wires: Wire) -> str:
        return str(verify(read(wires))[0])

    assert sentence(started("r1"), finished("r2")) == (
        "event 1 (RUN_FINISHED): RUN_FINISHED names run 'r2', but the open run is 'r1'; send the id of the run that "
        "ends [run-finished-wrong-run-id]"
    )
    assert "run 'r1' was started on 't1'" in sentence(started("r1", "t1"), finished("r1", "t2"))
    assert "this stream belongs to 't1'" in sentence(started(), finished(), started("r2", "t2"))
    assert "two interrupts carry the id 'i2'" in sentence(
        started(), finished(**asks({"id": "i1"}, {"id": "i2"}, {"id": "i3"}, {"id": "i2"}))
    )
    assert sentence(started(), text(), step("think", **S1)) == (
        "event 3 (the end): the stream ended inside run 'r1' (open: step 'think' of subagent 's1'; text message "
        "'m1'), which so has no outcome; end it with RUN_FINISHED or RUN_ERROR [truncated-stream]"
    )


def test_ids_may_come_back_in_another_run():
    interrupt = asks({"id": "i1"})
    events = [started("r1"), finished("r1", **interrupt), started("r2"), finished("r2", **interrupt)]
    assert verify(read(events)) == []


@pytest.mark.parametrize("profile", ["strict", "client"])
@pytest.mark.parametrize("end", [[finished()], [failed()], [finished(), failed()]])
def test_a_stream_may_end_after_a_terminal(end: list[Wire], profile: Profile):
    assert verify(read([started(), *end]), profile) == []


def test_close_may_be_asked_at_any_time_and_changes_nothing():
    verifier = Verifier()
    assert verifier.close() == verifier.close()
    for wire in (started(), text()):
        assert verifier.feed(*read([wire])) is None
    cut = verifier.close()
    assert cut is not None
    assert (cut.rule, cut.index, cut.type, cut.subject) == ("truncated-stream", 2, None, "r1")
    for wire in (text_end(), finished()):
        assert verifier.feed(*read([wire])) is None
    assert verifier.close() is None


def test_the_client_does_not_judge_the_end():
    assert Verifier("client").close() is None
    assert verify(read([started(), text()]), "client") == []


# ------------------------------------------------------------------ chunks


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        (None, [chunk("m1"), chunk(), chunk("m1")]),
        (None, [chunk("m1"), chunk("m2"), chunk("m1")]),
        (None, [call_chunk("c1", toolCallName="f"), call_chunk(), chunk("m1")]),
        (None, [event("REASONING_MESSAGE_CHUNK", messageId="g1", delta="x"), chunk("m1")]),
        (None, [chunk("m1", **S1), chunk("m2", **S2), chunk(**S1), chunk(**S2)]),
        (None, [subagent(), chunk("m1", **S1), subagent_end()]),
        (None, [chunk("m1"), event("RAW", event=1), chunk()]),
        (None, [text("m1"), text_end("m1"), chunk("m1")]),
        ("bad-chunk", [chunk()]),
        ("bad-chunk", [call_chunk("c1")]),
        ("bad-chunk", [chunk("m1"), event("CUSTOM", name="n", value=1), chunk()]),
        ("bad-chunk", [chunk("m1"), chunk("m1", role="user")]),
        ("bad-chunk", [chunk("m1", **S1), chunk("m1", **S2)]),
        ("text-already-open", [text("m1"), chunk("m1")]),
        ("text-not-open", [chunk("m1"), says("m1")]),
        ("text-not-open", [chunk("m1"), text_end("m1")]),
        ("wrong-owner", [text("m1", **S1), text_end("m1"), chunk("m1", **S2)]),
        ("null-tag", [chunk("m1"), chunk("m1", subagentRunId=None)]),
        ("open-at-finish", [text("m1"), chunk("m2"), finished()]),
    ],
)
@pytest.mark.oracle
def test_a_chunk_is_judged_by_what_it_stands_for(rule: str | None, events: list[Wire], oracle: Oracle):
    end = [finished()] if rule is None else []
    stream = [started(), *events, *end]
    found = verify(read(stream), explicit_nulls=True)
    assert told(found)[:1] == ([] if rule is None else [(rule, len(stream) - 1)])
    assert oracle.pipeline(stream)["ok"] is (rule is None)
    assert oracle.pipeline(stream[:-1])["ok"]


@pytest.mark.oracle
def test_chunks_break_a_stream_where_they_break_the_clients_pipeline(oracle: Oracle):
    rng = random.Random(3)
    asked: list[list[Wire]] = []
    for _ in range(700):
        valid = on_the_wire(structured(rng, chunks=True))
        asked += [valid, _scattered(rng, valid)]
    firsts = [_first_of_the_clients(each) for each in asked]
    # A stream is cut before and after its first offender: the client takes the one and refuses the other.
    cuts = [each if at is None else each[:at] for each, at in zip(asked, firsts, strict=True)]
    refused = [each[: at + 1] for each, at in zip(asked, firsts, strict=True) if at is not None]
    assert all(answer["ok"] for answer in oracle.batch([{"op": "pipeline", "events": each} for each in cuts]))
    assert not any(
        answer["ok"] for answer in oracle.batch([{"op": "pipeline", "events": each} for each in refused])
    )
    assert len(refused) > 300


def _scattered(rng: random.Random, events: list[Wire]) -> list[Wire]:
    """The stream with chunks thrown in and a few events moved or left out."""
    out = [each for each in events if rng.random() > 0.03]
    for _ in range(rng.randint(1, 3)):
        keys = ("m1", "m2", "a", None)
        tag = rng.choice(({}, {}, S1))
        out.insert(rng.randrange(1, len(out) + 1), chunk(rng.choice(keys), **tag))
    return out


def _first_of_the_clients(events: list[Wire]) -> int | None:
    found = [each for each in verify(read(events)) if each.rule == "bad-chunk" or not RULES[each.rule].strict]
    return found[0].index if found else None


# ------------------------------------------------------------------ Python's own


class Loud(TextMessageContentEvent):
    """Somebody's own class is still the event it extends."""


class Own(RunStartedEvent):
    """Somebody's own way to begin."""


def test_a_subclass_is_judged_as_its_parent():
    verifier = Verifier()
    assert verifier.feed(Own(thread_id="t1", run_id="r1")) is None
    found = verifier.feed(Loud(message_id="m1", delta="x"))
    assert found is not None
    assert found.rule == "text-not-open"


def test_none_in_python_is_absence_and_only_what_was_decoded_can_hold_a_null():
    made = TextMessageStartEvent(message_id="m1", subagent_run_id=None)
    assert verify([*read([started()]), made, *read([text_end(), finished()])]) == []
    wire = [started(), text(subagentRunId=None), text_end(), finished()]
    assert verify(read(wire)) == []
    assert told(verify(read(wire), explicit_nulls=True))[0] == ("null-tag", 1)


def test_a_null_tag_where_no_tag_belongs_is_always_written_and_always_told():
    assert told(verify(read([started(subagentRunId=None), finished()]))) == [("null-tag", 0)]


# ------------------------------------------------------------------ after a violation


def test_an_event_that_broke_a_rule_changes_nothing():
    events = [started(), says(), text(), text(), says(), text_end(), text_end(), finished()]
    assert told(verify(read(events))) == [
        ("text-not-open", 1),
        ("text-already-open", 3),
        ("text-not-open", 6),
    ]


def test_a_border_stands_even_when_it_came_wrong():
    events = [started(), text(), finished(), says(), started("r2"), step(), started("r3"), finished("r3")]
    assert told(verify(read(events))) == [("open-at-finish", 2), ("after-finish", 3), ("run-active", 6)]


def test_what_finishes_nothing_does_not_stand():
    assert told(verify(read([finished(), started(), finished()]))) == [("first-event", 0)]
    assert told(verify(read([failed(), finished(), started(), finished()]))) == [("after-error", 1)]


def test_no_mistake_outlives_its_run():
    source = streams(random.Random(11))
    for _ in range(400):
        events = read(next(source))
        every = told(verify(events, "client"))
        for at, each in enumerate(events):
            if each.type == "RUN_STARTED" and ("null-tag", at) not in every:
                later = [(rule, index - at) for rule, index in every if index > at]
                assert later == told(verify(events[at:], "client"))


@pytest.mark.parametrize("make", [babble, lambda rng: broken(rng, on_the_wire(structured(rng, chunks=True)))])
def test_what_a_refusing_verifier_lets_pass_is_valid(make):
    rng = random.Random(5)
    for _ in range(500):
        verifier = Verifier(refusing=True)
        passed = [each for each in read(make(rng)) if verifier.feed(each) is None]
        assert {each.rule for each in verify(passed)} <= {"truncated-stream", "no-run"}


def test_a_refused_border_did_not_happen():
    verifier = Verifier(refusing=True)
    wires = [started(), text(), finished(), started("r2"), says(), text_end(), finished("r9"), finished()]
    found = [verifier.feed(each) for each in read(wires)]
    assert [each and each.rule for each in found] == [
        *(None, None, "open-at-finish", "run-active", None, None, "run-finished-wrong-run-id", None)
    ]
    assert verifier.close() is None


def test_a_refused_chunk_did_not_happen():
    verifier = Verifier(refusing=True)
    wires = [
        started(),
        text("m2"),
        chunk("m1"),
        chunk("m2"),
        text_end("m1"),
        chunk(),
        chunk("m1"),
        text_end("m2"),
    ]
    found = [verifier.feed(each) for each in read([*wires, finished()])]
    assert [each and each.rule for each in found] == [
        *(None, None, None, "text-already-open", "text-not-open", None, None, None, None)
    ]


def test_chunks_end_with_the_run_whatever_way_it_ends():
    events = [
        started(),
        text(),
        chunk("m2"),
        finished(),
        started("r2"),
        text("m2"),
        text_end("m2"),
        finished("r2"),
    ]
    assert told(verify(read(events))) == [("open-at-finish", 3)]
    events = [started(), chunk("m2"), started("r2"), text("m2"), text_end("m2"), finished("r2")]
    assert told(verify(read(events))) == [("run-active", 2)]


# ------------------------------------------------------------------ words


def test_a_violation_says_what_was_open_and_what_would_be_right():
    (found, *_) = verify(
        read([started(), call("c1"), call("c2"), event("TOOL_CALL_ARGS", toolCallId="c3", delta="")])
    )
    assert found == Violation(
        rule="call-not-open",
        index=3,
        type="TOOL_CALL_ARGS",
        subject="c3",
        message="no tool call 'c3' is open (open: 'c1', 'c2'); send TOOL_CALL_START first",
    )


def test_many_open_things_are_counted():
    calls = [call(f"c{number}") for number in range(9)]
    (found, *_) = verify(read([started(), *calls, finished()]))
    assert "still open: tool call 'c0', 'c1', 'c2', 'c3', 'c4' and 4 more; end" in found.message


def test_ids_are_cut_and_escaped_before_they_stand_in_a_sentence():
    (found, *_) = verify(read([started(), call_end("a\nb\u0000" + "x" * 500), finished()]))
    assert "\n" not in found.message
    assert len(found.message) < 200
    assert found.subject is not None
    assert len(found.subject) > 500


def test_an_unknown_type_keeps_its_name():
    (found, *_) = verify(read([started(), event("NEWS"), finished()]))
    assert (found.type, found.subject) == ("NEWS", "NEWS")
    assert verify([*read([started()]), CustomEvent(name="NEWS", value=1), *read([finished()])]) == []


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_a_message_without_a_full_stop(name: str):
    rule: Rule = RULES[name]
    assert rule.message
    assert not rule.message.endswith(".")
