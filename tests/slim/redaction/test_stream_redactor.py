"""A secret that is split over deltas does not leave; everything else leaves at once, in order and unchanged."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ag_ui.core import (
    ActivitySnapshotEvent,
    Event,
    MessagesSnapshotEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.folding.conversation import fold
from runcast.slim.protocol.verifier import verify
from runcast.slim.redaction.event_parts import EXEMPT_FIELDS
from runcast.slim.redaction.patterns import CARD_NUMBER, DEFAULT_PATTERNS, EMAIL
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.redaction.stream_redactor import StreamRedactor
from runcast.slim.wire.codec import encode
from tests.slim.planted import HARMLESS, JWT, PASSWORD, PLANTED
from tests.streams import structured

REDACTOR = Redactor()
SIZES = (1, 1, 2, 3, 5, 8, 20)


def pieces(rng: random.Random, text: str) -> list[str]:
    out: list[str] = []
    while text:
        size = rng.choice(SIZES)
        out.append(text[:size])
        text = text[size:]
    return out


def texts(events: list[Any]) -> str:
    return "".join(event.delta for event in events if hasattr(event, "delta") and event.delta)


def test_a_stream_is_asked_of_its_redactor():
    assert isinstance(REDACTOR.stream(), StreamRedactor)


def said(redactor: Redactor, deltas: list[str]) -> str:
    """What leaves when a message is told in these deltas."""
    stream = redactor.stream()
    events = [
        each for delta in deltas for each in stream.feed(TextMessageContentEvent(message_id="m", delta=delta))
    ]
    return texts([*events, *stream.feed(TextMessageEndEvent(message_id="m"))])


@pytest.mark.parametrize(("text", "secret"), PLANTED.values(), ids=PLANTED)
def test_what_leaves_in_pieces_is_what_would_leave_whole(text: str, secret: str):
    rng = random.Random(text)
    for _ in range(25):
        deltas = pieces(rng, f"before {text} after, password")
        assert said(REDACTOR, deltas) == REDACTOR.text("".join(deltas))
        assert secret not in said(REDACTOR, deltas)


@pytest.mark.parametrize(
    "text",
    [
        "Cookie:nullVATE\\ KE",
        '{"password":nullvoid,"a":1}',
        "token=trueish-words now",
        "secret: none",
        '"token":null',
    ],
)
def test_a_word_for_nothing_waits_for_what_may_hang_on_to_it(text: str):
    for size in range(1, len(text)):
        deltas = [text[at : at + size] for at in range(0, len(text), size)]
        assert said(REDACTOR, deltas) == REDACTOR.text(text), size


def test_any_mixture_of_secrets_and_prose_leaves_as_it_would_whole():
    fill = (
        *HARMLESS,
        "hello ",
        ". ",
        "s",
        "-",
        "é",
        " AKIA ",
        "bearer of news ",
        '"',
        "{",
        "token",
        "1",
        "\n",
        "[",
    )
    for seed in range(400):
        rng = random.Random(seed)
        picked = [
            rng.choice(list(PLANTED.values()))[0] + " " if rng.random() < 0.3 else rng.choice(fill) + " "
            for _ in range(rng.randint(1, 8))
        ]
        text = "".join(picked)
        assert said(REDACTOR, pieces(rng, text)) == REDACTOR.text(text), seed


def test_harmless_deltas_pass_at_once_as_the_same_objects():
    stream = REDACTOR.stream()
    for delta in (
        "The",
        " quick",
        " brown",
        " fox",
        ",",
        " 漢字",
        " is",
        " 12",
        " times",
        " faster",
        " \ud83d",
        "\ude00",
    ):
        event = TextMessageContentEvent(message_id="m", delta=delta)
        assert list(stream.feed(event)) == [event]
        assert stream.feed(event)[0] is event


def test_what_may_be_a_secret_waits_until_it_is_certain():
    stream = REDACTOR.stream()
    deltas = ("a task", "-, or", " a sk", "-tic", "-tac", " toe")
    out = [texts(stream.feed(TextMessageContentEvent(message_id="m", delta=delta))) for delta in deltas]
    assert out == ["a task", "-, or", " a sk", "-", "", "tic-tac toe"]


def test_no_more_deltas_are_known_by_heart_than_fit():
    redactor = Redactor()
    stream = redactor.stream()
    for number in range(5_000):
        event = TextMessageContentEvent(message_id="m", delta=f" {number}")
        assert list(stream.feed(event)) == [event]
    assert len(redactor.harmless) < 5_000


def test_after_a_secret_what_is_known_by_heart_passes_unread():
    redactor, read = Redactor(), list[str]()
    wakes = redactor.scanner.wakes

    def listened(text: str) -> bool:
        read.append(text)
        return wakes(text)

    redactor.scanner.wakes = listened
    assert said(redactor, ["hello ", "é ", "漢 "]) == "hello é 漢 "
    assert {"hello ", "é ", "漢 "} <= redactor.harmless
    stream = redactor.stream()
    for delta in ("password: ", "hunter22", " then ", "hello "):
        stream.feed(TextMessageContentEvent(message_id="m", delta=delta))
    read.clear()
    known = TextMessageContentEvent(message_id="m", delta="hello ")
    assert stream.feed(known) == (known,)
    assert read == []


def test_streams_do_not_mix():
    stream = REDACTOR.stream()
    out: list[Any] = []
    for left, right in zip(
        pieces(random.Random(1), JWT), pieces(random.Random(2), PASSWORD * 9), strict=False
    ):
        out += stream.feed(TextMessageContentEvent(message_id="a", delta=left))
        out += stream.feed(TextMessageContentEvent(message_id="b", delta=right))
    out += stream.close()
    assert PASSWORD in texts([event for event in out if event.message_id == "b"])
    assert texts([event for event in out if event.message_id == "a"]) == "eyJ[redacted]"


@pytest.mark.parametrize("delta", ["x" * 300 + " password: hunter2xyz", "sk-" + "a" * 9_000, "-sk-" * 4_000])
def test_a_hold_that_outgrows_the_window_is_replaced_and_the_rest_dropped(delta: str):
    stream = Redactor(window=1_024).stream()
    out = [
        each
        for at in range(0, len(delta), 500)
        for each in stream.feed(TextMessageContentEvent(message_id="m", delta=delta[at : at + 500]))
    ]
    more = TextMessageContentEvent(message_id="m", delta="b" * 3_000)
    out += stream.feed(more)
    out += stream.feed(more)
    out += stream.feed(TextMessageContentEvent(message_id="m", delta=" and on"))
    out += stream.feed(TextMessageEndEvent(message_id="m"))
    assert texts(out).endswith("[redacted]")
    assert "aaaa" not in texts(out)


def test_a_stream_is_dropped_though_its_hold_ended_at_once():
    redactor = Redactor(patterns=["A+"], window=1_024, hold=256)
    assert said(redactor, ["A" * 1_100 + "b" * 5, " more", " and more"]) == "[redacted]"


def test_a_callable_gets_a_text_without_blanks_before_it_outgrows_the_window():
    redactor = Redactor(also=lambda text: text.replace("x", "y"), window=1_024, hold=16)
    assert said(redactor, ["x" * 50] * 60) == "y" * 3_000


def test_a_long_hold_is_released_when_it_proves_harmless():
    stream = REDACTOR.stream()
    text = "eyJ" + "abc/" * 700
    out = [
        each
        for at in range(0, len(text), 10)
        for each in stream.feed(TextMessageContentEvent(message_id="m", delta=text[at : at + 10]))
    ]
    assert texts(out) == "eyJ"
    out += stream.feed(TextMessageContentEvent(message_id="m", delta=" " * 600))
    assert texts(out).startswith("eyJabc/")


KINDS: dict[str, tuple[Event, Event, Any]] = {
    "text": (
        TextMessageStartEvent(message_id="m", role="assistant"),
        TextMessageEndEvent(message_id="m"),
        lambda delta: TextMessageContentEvent(message_id="m", delta=delta, subagent_run_id="s", timestamp=5),
    ),
    "reasoning": (
        ReasoningMessageStartEvent(message_id="m", role="reasoning"),
        ReasoningMessageEndEvent(message_id="m"),
        lambda delta: ReasoningMessageContentEvent(message_id="m", delta=delta),
    ),
    "arguments": (
        ToolCallStartEvent(tool_call_id="m", tool_call_name="f"),
        ToolCallEndEvent(tool_call_id="m"),
        lambda delta: ToolCallArgsEvent(tool_call_id="m", delta=delta),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_held_leaves_before_the_end_looking_like_its_stream(kind: str):
    start, end, delta = KINDS[kind]
    stream = REDACTOR.stream()
    given = [start, delta('{"password": "'), delta("hunter"), delta("2"), end]
    out = [each for event in given for each in stream.feed(event)]
    assert texts(out) == '{"password": "[redacted]'
    assert out[-1] is end
    assert type(out[-2]) is type(given[1])
    assert out[-2].__dict__ | {"delta": ""} == given[1].__dict__ | {"delta": ""}


BARRIERS: dict[str, Event] = {
    "messages snapshot": MessagesSnapshotEvent(messages=[]),
    "finished": RunFinishedEvent(thread_id="t", run_id="r"),
    "error": RunErrorEvent(message="x"),
    "next run": RunStartedEvent(thread_id="t", run_id="r2"),
    "a result with its id": ToolCallResultEvent(message_id="m", tool_call_id="c", content="x"),
    "an activity with its id": ActivitySnapshotEvent(message_id="m", activity_type="A", content={}),
    "reasoning under its id": ReasoningMessageContentEvent(message_id="m", delta="hm"),
    "chunked reasoning under its id": ReasoningMessageChunkEvent(message_id="m", delta="hm"),
}


@pytest.mark.parametrize("barrier", BARRIERS.values(), ids=BARRIERS)
def test_what_is_held_leaves_before_anything_that_its_order_counts_against(barrier: Event):
    stream = REDACTOR.stream()
    held = stream.feed(TextMessageContentEvent(message_id="m", delta="x sk-ab"))
    out = stream.feed(barrier)
    assert texts(held) == "x sk-"
    assert out[0].__dict__["delta"] == "ab"
    assert out[-1] is barrier


@pytest.mark.parametrize(
    "barrier",
    [each for each in BARRIERS.values() if isinstance(each, ToolCallResultEvent | ActivitySnapshotEvent)],
)
def test_so_does_reasoning_whose_id_another_message_takes(barrier: Event):
    stream = REDACTOR.stream()
    stream.feed(ReasoningMessageContentEvent(message_id="m", delta="x sk-ab"))
    assert [type(each) for each in stream.feed(barrier)] == [ReasoningMessageContentEvent, type(barrier)]


def test_other_events_do_not_wait_for_held_text():
    stream = REDACTOR.stream()
    stream.feed(TextMessageContentEvent(message_id="m", delta="sk-ab"))
    state = StateSnapshotEvent(snapshot={})
    assert list(stream.feed(state)) == [state]
    other = ToolCallResultEvent(message_id="x", tool_call_id="c", content="x")
    assert list(stream.feed(other)) == [other]


def test_a_secret_goes_on_being_one_after_a_barrier():
    stream = REDACTOR.stream()
    out = stream.feed(TextMessageContentEvent(message_id="m", delta="password: hunter2"))
    out += stream.feed(MessagesSnapshotEvent(messages=[]))
    out += stream.feed(TextMessageContentEvent(message_id="m", delta="-Xyzzy now"))
    assert "Xyzzy" not in texts(out)


@pytest.mark.parametrize(
    "make",
    [
        lambda delta, key: TextMessageChunkEvent(message_id=key, delta=delta, role="assistant"),
        lambda delta, key: ReasoningMessageChunkEvent(message_id=key, delta=delta),
        lambda delta, key: ToolCallChunkEvent(tool_call_id=key, tool_call_name="f", delta=delta),
    ],
    ids=["text", "reasoning", "arguments"],
)
def test_chunks_are_streams_too(make: Any):
    stream = REDACTOR.stream()
    out: list[Any] = []
    for number, delta in enumerate(pieces(random.Random(4), f"my password: {PASSWORD}")):
        out += stream.feed(make(delta, "m" if number == 0 else None))
    out += stream.feed(make("sk-ab", "n"))
    out += stream.feed(make(None, None))
    end = StateSnapshotEvent(snapshot=1)
    out += stream.feed(end)
    assert texts(out) == "my password: [redacted]sk-ab"
    assert out[-1] is end
    assert texts(stream.feed(TextMessageContentEvent(message_id="m", delta="ok"))) == "ok"


def test_chunks_give_way_to_ordinary_deltas():
    stream = REDACTOR.stream()
    stream.feed(TextMessageChunkEvent(message_id="m", delta="sk-ab"))
    out = stream.feed(TextMessageContentEvent(message_id="n", delta="hello"))
    assert [event.__dict__["delta"] for event in out] == ["ab", "hello"]


def test_what_else_is_on_a_delta_is_looked_into():
    stream = REDACTOR.stream()
    plain = TextMessageContentEvent(message_id="m", delta="hello", metadata={"a": 1})
    assert stream.feed(plain)[0] is plain
    secret = TextMessageContentEvent(message_id="m", delta="hello", raw_event={"api_key": PASSWORD})
    out = stream.feed(secret)
    assert PASSWORD.encode() not in b"".join(map(encode, out))
    assert texts(out) == "hello"
    unknown = TextMessageContentEvent.model_validate({"messageId": "m", "delta": " sk-ab", "token": PASSWORD})
    out = stream.feed(unknown)
    assert PASSWORD.encode() not in b"".join(map(encode, out))
    assert texts(stream.close()) == "ab"


@pytest.mark.parametrize(
    "more", [{"metadata": {"token": PASSWORD}}, {"token": PASSWORD}, {"rawEvent": {"token": PASSWORD}}]
)
def test_a_secret_beside_a_harmless_delta_is_removed(more: dict[str, Any]):
    """The second delta of a text is known to be harmless."""
    stream = REDACTOR.stream()
    for _ in range(2):
        event = TextMessageContentEvent.model_validate({"messageId": "m", "delta": "hello", **more})
        out = stream.feed(event, encode(event))
        assert texts(out) == "hello"
        assert PASSWORD.encode() not in b"".join(map(encode, out))


def test_held_text_that_is_released_has_no_metadata_of_its_delta():
    stream = REDACTOR.stream()
    held = TextMessageContentEvent(message_id="m", delta="the password=hunt", metadata={"token": PASSWORD})
    out = [*stream.feed(held), *stream.close()]
    assert PASSWORD.encode() not in b"".join(map(encode, out))
    assert texts(out) == "the password=[redacted]"


def test_held_arguments_leave_when_the_stream_is_closed():
    stream = REDACTOR.stream()
    out = stream.feed(ToolCallArgsEvent(tool_call_id="c", delta='{"password": "hunt'))
    left = "".join(str(event.__dict__["delta"]) for event in [*out, *stream.close()])
    assert left == '{"password": "[redacted]'


def test_a_run_begins_without_the_texts_of_the_one_before():
    stream = REDACTOR.stream()
    for delta in ("hello my pass", "word"):
        stream.feed(TextMessageContentEvent(message_id="m", delta=delta))
    stream.feed(RunStartedEvent(thread_id="t", run_id="r"))
    out = stream.feed(TextMessageContentEvent(message_id="m", delta=": hunter22 and "))
    assert texts([*out, *stream.close()]) == ": hunter22 and "


def test_patterns_of_ones_own_and_callables_look_across_deltas():
    text = "see CUST-123456 and Ada Lovelace there"
    own = Redactor(patterns=(r"CUST-\d{4,}",), hold=16)
    called = Redactor(also=lambda given: given.replace("Lovelace", "L."), hold=16)
    both = Redactor(patterns=(*DEFAULT_PATTERNS, EMAIL, CARD_NUMBER))
    for seed in range(20):
        deltas = pieces(random.Random(seed), text * 3)
        assert said(own, deltas) == text.replace("CUST-123456", "[redacted]") * 3
        assert said(called, deltas) == text.replace("Lovelace", "L.") * 3
        mail = pieces(random.Random(seed), "ada@example.org paid with 4111-1111-1111-1111. ")
        assert said(both, mail) == "[redacted] paid with [redacted]. "
    unbroken = said(called, ["a" * 100] * 3)
    assert unbroken == "a" * 300


def test_a_whole_stream_stays_valid_and_amounts_to_the_same():
    for seed in range(150):
        events = structured(random.Random(seed), chunks=seed % 2 == 0)
        out = list(REDACTOR.stream().redact(events))
        assert [str(v) for v in verify(out, "client")] == [str(v) for v in verify(events, "client")]
        before, after = fold(events), fold(out)
        assert after.wire_messages() == before.wire_messages()
        assert after.state == before.state


def test_secrets_planted_in_a_whole_stream_are_in_no_event():
    for seed in range(60):
        rng = random.Random(seed)
        text, secret = rng.choice(list(PLANTED.values()))
        events: list[Any] = []
        for event in structured(rng):
            events.append(event)
            if isinstance(event, TextMessageStartEvent | ToolCallStartEvent):
                name = "message_id" if isinstance(event, TextMessageStartEvent) else "tool_call_id"
                kind = TextMessageContentEvent if name == "message_id" else ToolCallArgsEvent
                tag = {"subagent_run_id": event.subagent_run_id} if event.subagent_run_id else {}
                events += [
                    kind(**{name: getattr(event, name)}, delta=each, **tag)
                    for each in pieces(rng, f" {text} ")
                ]
        out = list(REDACTOR.stream().redact(events))
        messages = str(fold(out).wire_messages())
        assert secret not in messages


def test_a_border_without_content_is_passed_by_and_one_with_content_looked_into():
    kinds: list[Any] = [
        TextMessageStartEvent,
        TextMessageEndEvent,
        ReasoningMessageStartEvent,
        ReasoningMessageEndEvent,
    ]
    for kind in [*kinds, ToolCallStartEvent, ToolCallEndEvent]:
        ids: dict[str, Any] = {
            name: "i" for name in ("message_id", "tool_call_id") if name in kind.model_fields
        }
        if "role" in kind.model_fields:
            ids["role"] = "assistant" if kind is TextMessageStartEvent else "reasoning"
        if kind is ToolCallStartEvent:
            ids["tool_call_name"] = "look"
        bare = kind(**ids)
        assert Redactor().stream().feed(bare, encode(bare))[0] is bare
        content = set(kind.model_fields) - EXEMPT_FIELDS - {"raw_event"}
        for name in content:
            value = {"token": PASSWORD} if name == "metadata" else f"password={PASSWORD}"
            told = kind(**ids | {name: value})
            assert PASSWORD not in encode(Redactor().stream().feed(told, encode(told))[0]).decode(), (
                kind,
                name,
            )
        loud = kind(**ids, note=f"password={PASSWORD}")
        assert PASSWORD not in encode(Redactor().stream().feed(loud, encode(loud))[0]).decode()


@pytest.mark.parametrize("more", ["", "r", "r2", "r2go"])
def test_what_is_held_leaves_once_when_the_conversation_is_shown_anew(more: str) -> None:
    stream = REDACTOR.stream()
    deltas = ["the password=hunt", "e", *more, " and on"]
    out: list[Event] = [*stream.feed(TextMessageStartEvent(message_id="m"))]
    for delta in deltas[:-1]:
        out += stream.feed(TextMessageContentEvent(message_id="m", delta=delta))
    out += stream.feed(MessagesSnapshotEvent(messages=[]))
    out += stream.feed(TextMessageContentEvent(message_id="m", delta=deltas[-1]))
    out += [*stream.feed(TextMessageEndEvent(message_id="m")), *stream.close()]
    said = "".join(each.delta for each in out if isinstance(each, TextMessageContentEvent))
    assert said == "the password=[redacted] and on"
