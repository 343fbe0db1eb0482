"""The table of lifecycles: every event that starts, continues or ends a thing stands in it once, with its id."""

from __future__ import annotations

from runcast.slim.values.lifecycles import LIFECYCLES, PHASES, STREAMS, wire_type
from runcast.slim.values.protocol_shapes import EVENT_SHAPES

ENDINGS = {
    **dict.fromkeys(("_START", "_STARTED"), "start"),
    **dict.fromkeys(("_CONTENT", "_ARGS"), "content"),
    **dict.fromkeys(("_END", "_FINISHED"), "end"),
    "_CHUNK": "chunk",
}


def test_the_protocols_event_types_are_all_in_the_table():
    wanted = {
        shape.model: phase
        for tag, shape in EVENT_SHAPES.items()
        for ending, phase in ENDINGS.items()
        if tag.endswith(ending) and not tag.startswith(("RUN_", "SUBAGENT_"))
    }
    assert {event: phase for event, (_, phase) in PHASES.items()} == wanted


def test_every_event_of_a_lifecycle_has_its_id():
    for life in LIFECYCLES:
        for event in (event for event, (one, _) in PHASES.items() if one is life):
            assert life.id_field in event.model_fields
            assert life.key(event.model_construct(**{life.id_field: "x"})) == "x"
    assert [wire_type(life.start) for life in STREAMS] == [
        "TEXT_MESSAGE_START",
        "REASONING_MESSAGE_START",
        "TOOL_CALL_START",
    ]
