"""A snapshot from anywhere: read or refused with a path; written within its bound, stable, without the secret.

The first byte chooses the bounds. What follows is either a snapshot as JSON, or lines of events that a state is
built from.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ag_ui.core import UserMessage

from runcast.slim import (
    AgentState,
    Redactor,
    SlimConfig,
    SlimSerializer,
    SnapshotError,
    WireError,
    decode,
    encode,
)
from tests.slim.planted import BY_FORM

TOKENS = (
    *(
        b'"schema":"runcast.snapshot.v1"',
        b'"agent_id":"a"',
        b'"status":"completed"',
        b'"messages":[',
        b'"role":"tool"',
    ),
    *(
        b'"role":"assistant"',
        b'"role":"user"',
        b'"content":"x"',
        b'"metadata":{',
        b'"tool_calls":[',
        b'"id":"c"',
    ),
    *(
        b'"name":"n"',
        b'"arguments":"{}"',
        b'"tool_call_id":"c"',
        b'"steps":[',
        b'"usage":{"prompt":1}',
        b'"state":{',
    ),
    *(
        b'"interrupts":[{"id":"i","reason":"r"}]',
        b'"resume":{"seq":1,"framework":{}}',
        b'"dropped":{"messages":1}',
    ),
    *(
        b'"execution":{"started_at":"2026-01-16T10:00:00Z"}',
        b'"cumulative_seconds":1e300',
        b"-1",
        b"1e999",
        b"null",
    ),
    *(
        b'"\\ud800"',
        b'"\\u0000"',
        b"[",
        b"]",
        b"}",
        b",",
        b'"type":"final"',
        b'"extra":{',
        b'"original_length":',
    ),
    *(
        b'"0001-01-01T00:00:00+23:59"',
        b'"9999-12-31T23:59:59-23:59"',
        b'"encrypted_value":"e"',
        b'"run_usage":',
    ),
    *(
        b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}\n',
        b'{"type":"TEXT_MESSAGE_START","messageId":"m"}\n',
    ),
)
SECRET = BY_FORM["openai"]
REDACTOR = Redactor()
CONFIGS = (
    SlimConfig(),
    SlimConfig.minimal(),
    SlimConfig.full(),
    SlimConfig(max_bytes=4_096, max_content_length=10, max_state_bytes=100, max_metadata_bytes=50),
    SlimConfig(max_bytes=4_096, max_messages=3, pin_first_user=True, include_reasoning=True),
    SlimConfig(max_bytes=4_096, redact_tool_args=True, include_system=True, pin_first_system=True),
    SlimConfig(max_messages=0, max_steps=0, max_state_bytes=0, max_metadata_bytes=0),
)


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    if len(data) < 2:
        return
    config = CONFIGS[data[0] % len(CONFIGS)]
    state = _told(data[1:]) if data[0] & 128 else _read(data[1:])
    if state is None:
        return
    serializer = SlimSerializer(config, REDACTOR)
    planted = UserMessage(id="planted", content=f"so {SECRET} is")
    snapshot = serializer.serialize(_with(state, planted))
    written = json.dumps(snapshot, ensure_ascii=False).encode()
    assert len(written) <= config.max_bytes, f"{len(written)} bytes of {config.max_bytes}"
    if SECRET.encode() not in data:
        assert SECRET.encode() not in written, "the secret survived"
    assert serializer.serialize(serializer.deserialize(json.loads(written))) == snapshot, "it is not stable"


def _read(data: bytes) -> AgentState | None:
    try:
        given: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    try:
        return SlimSerializer().deserialize(given)
    except SnapshotError:
        return None


def _told(data: bytes) -> AgentState | None:
    events = []
    for line in data.split(b"\n"):
        try:
            events.append(decode(line))
            encode(events[-1])
        except WireError:
            continue
    return AgentState.from_events(events, "agent")


def _with(state: AgentState, message: UserMessage) -> AgentState:
    return replace(state, history=[*state.history, message])
