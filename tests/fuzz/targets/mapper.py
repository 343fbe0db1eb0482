"""From events to envelopes to a reader: nothing is raised, each fits its budget, the chain holds, all are applied."""

from __future__ import annotations

import json

from runcast.broadcast import BroadcastConfig, Budget, Envelope, EnvelopeMapper, Reader, Take
from runcast.slim import AnyEvent, WireError, decode
from runcast.slim.entry import Entry

TOKENS = (
    *(
        b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}\n',
        b'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n',
    ),
    *(b'{"type":"TEXT_MESSAGE_START","messageId":"m"}\n', b'{"type":"TEXT_MESSAGE_END","messageId":"m"}\n'),
    *(
        b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"',
        b'"}\n',
        b'{"type":"TEXT_MESSAGE_CHUNK","delta":"x"',
    ),
    *(
        b'{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"}\n',
        b'{"type":"TOOL_CALL_END","toolCallId":"c"}',
    ),
    *(
        b'{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\\"a\\":1',
        b'{"type":"STEP_STARTED","stepName":"s"}\n',
    ),
    *(b'{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"', b'"subagentRunId":"s1"'),
    *(
        b'{"type":"STEP_FINISHED","stepName":"s"}\n',
        b'{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"n"}\n',
    ),
    *(
        b'{"type":"CUSTOM","name":"n","value":',
        b'{"type":"STATE_SNAPSHOT","snapshot":',
        b'{"type":"RUN_ERROR","message":"',
    ),
    *(b'"metadata":{"runcast":{"usage":{"prompt":1},"attempt":2}}', b'"timestamp":', b"-62135596800001"),
    *(
        b"99999999999999999",
        b'"outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"r"}]}',
        b"\\ud83d",
        b"\n",
    ),
)
CONFIGS = (
    BroadcastConfig.minimal(),
    BroadcastConfig.standard(),
    BroadcastConfig.debug(),
    BroadcastConfig.agui(),
)
BUDGETS = (Budget(900), Budget(8_000), Budget(10_000, quoted=True, overhead=900))


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    if not data:
        return
    entries = _entries(data[1:])
    config, budget = CONFIGS[data[0] % 4], BUDGETS[data[0] // 4 % 3]
    envelopes = _told(entries, EnvelopeMapper(config, budget=budget))
    assert envelopes == _told(entries, EnvelopeMapper(config, budget=budget)), (
        "the same, whenever it is asked"
    )
    reader = Reader(last=0)
    for envelope in envelopes:
        body = envelope.encode()
        assert budget.fits(body), f"{budget.size(body)} bytes of {budget.limit}"
        assert Envelope.from_dict(json.loads(body)).encode() == body
        assert reader.take(envelope) is Take.APPLY, "the chain holds"
        assert reader.take(envelope) is Take.DROP, "and nothing is told twice"
        assert len(envelope.timestamp) >= 24
        assert envelope.timestamp.endswith("Z")


def _told(entries: list[Entry], mapper: EnvelopeMapper) -> list[Envelope]:
    return [envelope for entry in entries for envelope in mapper.feed(entry)]


def _entries(data: bytes) -> list[Entry]:
    events: list[AnyEvent] = []
    for line in data.split(b"\n"):
        try:
            events.append(decode(line))
        except WireError:
            continue
    run_id, entries = "r0", []
    for seq, event in enumerate(events, 1):
        run_id = getattr(event, "run_id", None) or run_id
        entries.append(Entry("t", seq, "e", run_id, 1_768_557_905_123 + 10 * seq, event))
    return entries
