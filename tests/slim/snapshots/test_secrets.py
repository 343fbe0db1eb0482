"""A snapshot hides what is secret, wherever in a thread it stands."""

from __future__ import annotations

import json

import pytest
from ag_ui.core import Interrupt, TextPart, UserMessage

from runcast.slim.folding.step_records import StepRecord
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer
from runcast.slim.snapshots.slim_config import SlimConfig
from tests.slim.planted import PLANTED
from tests.slim.snapshots.test_serializer import calling, contents, result, told, user


@pytest.mark.parametrize(("text", "secret"), PLANTED.values(), ids=PLANTED)
def test_a_planted_secret_is_nowhere_in_a_snapshot(text: str, secret: str):
    state = AgentState(
        agent_id="a",
        history=[
            user(1, text),
            calling("c", arguments=json.dumps({"note": text})),
            result("c", text, error=text),
            UserMessage(id="u", content=[TextPart(text=text)], name=text, metadata={"note": text}),
        ],
        steps=[
            StepRecord(1, text, text, finish_reason=text, tool_calls=(("c", text),), extra={"note": text})
        ],
        last_continuation={"stop_reason": text},
        interrupts=[Interrupt(id="i", reason=text, message=text, metadata={"note": [text]})],
        state={"note": {"deep": [text]}, "text": text},
        metadata={"note": text},
        framework={"note": text},
        extra={"note": text},
    )
    for config in (SlimConfig.full(), SlimConfig(max_content_length=25)):
        snapshot = json.dumps(SlimSerializer(config).serialize(state))
        assert secret not in snapshot
        assert json.dumps(secret)[1:-1] not in snapshot


def test_a_redactor_that_looks_for_nothing_hides_nothing():
    serializer = SlimSerializer(redactor=Redactor(keys=(), patterns=()))
    assert contents(serializer.serialize(told(user(1, "password=hunter2xyz")))) == ["password=hunter2xyz"]
