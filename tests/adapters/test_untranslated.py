"""A piece of a translation that raises: one CUSTOM event, one report, and a stream that stays valid."""

from __future__ import annotations

from ag_ui.core import CustomEvent, Event

from runcast.adapters.open_blocks import OpenBlocks
from runcast.adapters.run_frame import RunFrame, RunIds
from runcast.adapters.untranslated import Guard
from runcast.slim.protocol.verifier import verify


def test_a_piece_that_raises_becomes_one_event_and_one_report():
    reports: list[tuple[object, Exception]] = []
    error = KeyError("api_key=secret-123456")

    def piece() -> list[Event]:
        raise error

    guard = Guard(OpenBlocks(), clock=lambda: 7, report=lambda *given: reports.append(given))
    [event] = guard.run(3.5, piece)
    assert isinstance(event, CustomEvent)
    assert (event.name, event.timestamp) == ("runcast.untranslated", 7)
    assert event.value == {"part": "float", "error": "KeyError: 'api_key=[redacted]'"}
    assert reports == [(3.5, error)]


def test_what_the_piece_opened_and_closed_is_undone():
    blocks = OpenBlocks()
    frame = RunFrame(RunIds("t", "r"))
    guard = Guard(blocks)
    events = [*frame.started(), *blocks.text("m1", "hi"), *blocks.step_started("model")]

    def piece() -> list[Event]:
        blocks.close_text("m1")
        blocks.call("c1", "look", message_id="m2")
        blocks.subagent_started("s1", "helper")
        blocks.step_finished("model")
        raise ValueError("lost")

    events += guard.run("part", piece)
    events += blocks.text("m1", " there")
    events += blocks.step_finished("model")
    assert blocks.unanswered == []
    events += [*blocks.close_all(), *frame.succeeded()]
    assert verify(events, "strict") == []
    assert [each.type.value for each in events].count("STEP_FINISHED") == 1


def test_a_piece_that_succeeds_is_untouched():
    blocks = OpenBlocks()
    assert Guard(blocks).run("part", lambda: blocks.text("m1", "hi"))
    assert blocks.is_open("m1")
