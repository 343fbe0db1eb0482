"""The laws of snapshots and redaction, for whatever hypothesis thinks of."""

from __future__ import annotations

import json
from typing import Any

from ag_ui.core import TextMessageContentEvent, TextMessageEndEvent, UserMessage
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer
from runcast.slim.snapshots.slim_config import SlimConfig

REDACTOR = Redactor()
texts = st.text(max_size=400) | st.text(st.characters(categories=["Cs", "Mn", "So", "Zs", "Lo"]), max_size=80)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
configs = st.builds(
    SlimConfig,
    max_messages=st.integers(0, 6),
    max_content_length=st.integers(0, 300),
    max_bytes=st.integers(4_096, 9_000),
    max_state_bytes=st.integers(0, 5_000),
    max_metadata_bytes=st.integers(0, 5_000),
    include_system=st.booleans(),
    redact_tool_args=st.booleans(),
)
pieces = st.lists(
    st.sampled_from(
        (
            *(
                "password",
                ": ",
                "=",
                '"',
                "\\",
                "hunter2xyz",
                " ",
                "\n",
                "token",
                "sk-",
                "abcdefghij0123456789",
            ),
            *(
                "Bearer ",
                "eyJ",
                ".",
                "AKIA",
                "IOSFODNN7EXAMPLE",
                "https://u:",
                "pw12",
                "@h",
                "{",
                "}",
                "[",
                "1",
                "é",
            ),
            *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\ud83d", "the ", "ordinary ", ","),
        )
    ),
    max_size=14,
)


@given(
    st.lists(st.tuples(texts, st.dictionaries(texts, values, max_size=2)), max_size=8),
    values,
    values,
    configs,
)
def test_any_state_fits_and_is_stable(said: list[Any], state: Any, metadata: Any, config: SlimConfig):
    history = [
        UserMessage(id=f"{number}{text[:3]}", content=text, metadata=noted or None)
        for number, (text, noted) in enumerate(said)
    ]
    serializer = SlimSerializer(config, REDACTOR)
    snapshot = serializer.serialize(
        AgentState(agent_id="a", history=history, state=state, metadata={"given": metadata})
    )
    written = json.dumps(snapshot, ensure_ascii=False).encode()
    assert len(written) <= config.max_bytes
    assert len(snapshot["messages"]) == min(len(history), config.max_messages)
    assert serializer.serialize(serializer.deserialize(json.loads(written))) == snapshot


@given(pieces)
def test_redacting_twice_changes_nothing(parts: list[str]):
    once = REDACTOR.text("".join(parts))
    assert REDACTOR.text(once) == once


@given(pieces)
def test_a_stream_never_says_more_than_the_whole(parts: list[str]):
    stream = REDACTOR.stream()
    out = [
        each for part in parts for each in stream.feed(TextMessageContentEvent(message_id="m", delta=part))
    ]
    out += stream.feed(TextMessageEndEvent(message_id="m"))
    said = "".join(getattr(event, "delta", "") for event in out)
    whole = REDACTOR.text("".join(parts))
    kept = [piece for piece in said.split("[redacted]") if piece]
    at = 0
    for piece in kept:  # what is left stands in the whole as well, in this order
        at = whole.find(piece, at)
        assert at >= 0
