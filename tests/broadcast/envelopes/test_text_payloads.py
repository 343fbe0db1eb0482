"""Texts in chunks: numbered, whole in their characters, and corrected by the snapshots that follow."""

from __future__ import annotations

from ag_ui.core import (
    AssistantMessage,
    MessagesSnapshotEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextPart,
    UserMessage,
)

from runcast.broadcast import BroadcastConfig
from tests.broadcast.entries import mapped, payloads
from tests.broadcast.envelopes.test_mapper import finished, started, text


def test_a_snapshot_that_says_something_else_replaces_what_was_streamed() -> None:
    said = [
        AssistantMessage(id="m", content="[REDACTED]"),
        AssistantMessage(id="other", content="never streamed"),
        AssistantMessage(id="same", content="same"),
        AssistantMessage(id="calls"),
        UserMessage(id="u", content="hi"),
    ]
    events = [
        started(),
        *text("same", "same"),
        *text("m", "my ssn 123"),
        MessagesSnapshotEvent(messages=said),
    ]
    envelopes = mapped([*events, finished()])
    replaced = [each for each in payloads(envelopes, "agent.stream.chunk") if each.get("replace")]
    assert [(each["message_id"], each["chunk"], each["is_complete"]) for each in replaced] == [
        ("m", "[REDACTED]", True)
    ]
    assert envelopes[-1].payload["last_response"] == "[REDACTED]"


def test_tokens_that_were_reported_with_a_chunk_are_counted_from_the_one_before() -> None:
    def note(usage: object) -> dict[str, object]:
        return {"runcast": {"usage": usage}}

    (start, *_) = text("m", "x")
    events = [
        started(),
        start,
        TextMessageContentEvent(message_id="m", delta="a"),
        TextMessageContentEvent(message_id="m", delta="b", metadata=note({"completion": 4})),
        TextMessageContentEvent(message_id="m", delta="c", metadata=note({"completion": 4})),
        TextMessageContentEvent(message_id="m", delta="d" * 9_000, metadata=note({"completion": 9})),
        TextMessageContentEvent(message_id="m", delta="e", metadata=note("many")),
        TextMessageContentEvent(message_id="m", delta="\ud83d", metadata=note({"completion": 10})),
        TextMessageEndEvent(message_id="m", metadata=note({"prompt": 7, "completion": 12, "total": 19})),
    ]
    chunks = payloads(mapped(events), "agent.stream.chunk")
    assert "".join(str(each["chunk"])[0] for each in chunks) == "abcdde\ufffd"
    assert [each.get("tokens_delta") for each in chunks] == [None, 4, None, None, 5, None, 3]


def test_a_repair_of_an_earlier_message_leaves_the_last_response() -> None:
    events = [
        started(),
        *text("a", "one"),
        *text("b", "two"),
        MessagesSnapshotEvent(
            messages=[AssistantMessage(id="a", content="uno"), AssistantMessage(id="b", content="two")]
        ),
        finished(),
    ]
    assert mapped(events)[-1].payload["last_response"] == "two"


def test_what_a_snapshot_leaves_out_is_taken_back_until_it_is_started_again() -> None:
    events = [
        started(),
        *text("a", "secret\ud83d")[:-1],
        MessagesSnapshotEvent(messages=[]),
        TextMessageContentEvent(message_id="a", delta="more"),
        TextMessageEndEvent(message_id="a"),
        MessagesSnapshotEvent(messages=[]),
        *text("a", "anew"),
        finished(),
    ]
    envelopes = mapped(events)
    told = [
        (each["chunk"], each["is_complete"], each.get("replace"))
        for each in payloads(envelopes, "agent.stream.chunk")
    ]
    assert told == [("secret", False, None), ("", True, True), ("anew", False, None), ("", True, None)]
    assert envelopes[-1].payload["last_response"] == "anew"


def test_media_that_replaces_a_text_is_not_shown() -> None:
    shown = UserMessage(id="u", content=[TextPart(text="hi")])
    events = [started(), *text("u", "hi", role="user"), MessagesSnapshotEvent(messages=[shown])]
    assert len(payloads(mapped(events), "agent.stream.chunk")) == 2


def test_chunks_are_numbered_and_the_last_says_so() -> None:
    chunks = payloads(mapped([started(), *text("m", "Hel", "", "lo")]), "agent.stream.chunk")
    assert [(each["chunk"], each["chunk_index"], each["is_complete"]) for each in chunks] == [
        ("Hel", 0, False),
        ("lo", 1, False),
        ("", 2, True),
    ]


def test_a_message_opened_again_goes_on_counting() -> None:
    chunks = payloads(mapped([started(), *text("m", "a"), *text("m", "b")]), "agent.stream.chunk")
    assert [each["chunk_index"] for each in chunks] == [0, 1, 2, 3]


def test_a_character_split_over_two_deltas_arrives_whole() -> None:
    chunks = payloads(mapped([started(), *text("m", "a\ud83d", "\ude00b", "c\ud83d")]), "agent.stream.chunk")
    assert "".join(str(each["chunk"]) for each in chunks) == "a😀bc\ufffd"


def test_only_other_roles_are_named() -> None:
    chunks = payloads(mapped([started(), *text("m", "hi", role="user")]), "agent.stream.chunk")
    assert {each.get("role") for each in chunks} == {"user"}


def test_reasoning_is_off_by_default() -> None:
    events = [
        started(),
        ReasoningMessageContentEvent(message_id="m", delta="hmm\ud83d"),
        ReasoningMessageContentEvent(message_id="m", delta="\ud83d"),
        ReasoningMessageEndEvent(message_id="m"),
    ]
    assert [envelope.type for envelope in mapped(events)] == ["agent.status"]
    thoughts = payloads(mapped(events, BroadcastConfig.debug()), "agent.reasoning.chunk")
    assert [each["chunk"] for each in thoughts] == ["hmm", "\ufffd", "\ufffd"]
