"""Whole streams in any order: verified, folded, compacted, expanded and checkpointed without another error than their own.

The laws hold for what the client's verifier accepts: compacting changes no outcome, once is enough, and nothing grows.
"""

from __future__ import annotations

import json
from contextlib import suppress

from runcast.slim import (
    AnyEvent,
    CheckpointRefused,
    ChunkExpander,
    InvalidStream,
    Redactor,
    WireError,
    checkpoint,
    compact,
    decode,
    encode,
    fold,
    verify,
)

TOKENS = (
    *(b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}\n', b'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n'),
    *(b'{"type":"TEXT_MESSAGE_START","messageId":"m"}\n', b'{"type":"TEXT_MESSAGE_END","messageId":"m"}\n'),
    *(b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}\n', b'{"type":"TOOL_CALL_END","toolCallId":"c"}\n'),
    *(b'{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"}\n', b'{"type":"RUN_ERROR","message":"e"}\n'),
    *(b'{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}\n', b'{"type":"STEP_STARTED","stepName":"s"}\n'),
    *(b'{"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"c","content":"x"}\n', b'"subagentRunId":"s1"'),
    *(b'{"type":"STEP_FINISHED","stepName":"s"}\n', b'{"type":"STATE_SNAPSHOT","snapshot":{"a":[1]}}\n', b"\\ud83d"),
    *(b'{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a/-","value":1}]}\n', b'"op":"move","from":"/a"'),
    *(b'{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}\n', b'{"type":"TOOL_CALL_CHUNK","toolCallId":"c",'),
    *(b'{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"user","content":"x"}]}\n', b'"messageId":"m"'),
    *(b'{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"A","content":{"a":1}}\n', b'"replace":false'),
    *(b'{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"A","patch":[{"op":"remove","path":"/a"}]}\n',),
    *(b'{"type":"REASONING_START","messageId":"q"}\n', b'{"type":"REASONING_MESSAGE_START","messageId":"q","role":"reasoning"}\n'),
    *(b'{"type":"REASONING_MESSAGE_CONTENT","messageId":"q","delta":"x"}\n', b'{"type":"REASONING_END","messageId":"q"}\n'),
    *(b'{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"q","encryptedValue":"v"}\n', b'"metadata":{}'),
    *(b'{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"n"}\n', b'{"type":"CUSTOM","name":"n","value":1}\n'),
)  # fmt: skip
REDACTOR = Redactor(keys=("no such name",), patterns=())


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    events = list(_events(data))
    before = [encode(event) for event in events]
    shorthand = b"_CHUNK" in b"".join(before)  # what the client takes is judged only when it is spelled out
    valid = verify(events, "strict" if shorthand else "client") == []
    verify(events, "strict")
    outcome = fold(events)
    small = compact(events)
    _expanded(events)
    with suppress(CheckpointRefused):
        checkpoint(events)
    stream = REDACTOR.stream()
    passed = [each for event in events for each in stream.feed(event)] + stream.close()
    assert [encode(event) for event in passed] == before, "who looks for nothing changes nothing"
    assert [encode(event) for event in events] == before, "what was given is left as it was"
    if valid:
        written = [encode(event) for event in small]
        if not shorthand:  # it is spelled out, which may take more room
            assert len(small) <= len(events)
            assert sum(map(len, written)) <= sum(map(len, before)), "it grew"
        assert [encode(event) for event in compact(small)] == written, "compacting twice is compacting once"
        again = fold(small)
        assert again.messages == outcome.messages
        assert json.dumps(again.state) == json.dumps(outcome.state)


def _events(data: bytes) -> list[AnyEvent]:
    events: list[AnyEvent] = []
    for line in data.split(b"\n"):
        try:
            events.append(decode(line))
        except WireError:
            continue
    return events


def _expanded(events: list[AnyEvent]) -> None:
    expander = ChunkExpander()
    for event in events:
        try:
            for each in expander.feed(event):
                encode(each)
        except InvalidStream:
            return
