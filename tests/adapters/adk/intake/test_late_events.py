"""Which events of a session count, by the marks of the runs that stored them."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event

from runcast.adapters.adk.intake.late_events import counted, stamp


def event(name: str, run: str | None = None, **mark: Any) -> Event:
    made = Event(id=name, author="root", custom_metadata={"runcast": mark, "own": 1} if mark else None)
    if run is not None:
        stamp(made, run)
    return made


def ids(*events: Event) -> list[str]:
    return [each.id for each in counted(events)]


def test_a_mark_stands_beside_what_an_event_has():
    marked = event("a", "r1", messages=[])
    assert marked.custom_metadata == {"runcast": {"messages": [], "run": "r1"}, "own": 1}
    stamp(marked, "r2")
    assert marked.custom_metadata == {"runcast": {"messages": [], "run": "r2"}, "own": 1}


def test_an_event_behind_those_of_a_later_run_is_late():
    given = (event("a", "r1"), event("b", "r2"), event("late", "r1"), event("c", "r2"), event("d", "r3"))
    assert ids(*given) == ["a", "b", "c", "d"]


def test_a_note_of_a_run_that_took_over_makes_later_and_is_none_of_the_events():
    given = (event("a", "r1"), event("note", "r2", taken=True), event("late", "r1"), event("b", "r2"))
    assert ids(*given) == ["a", "b"]


def test_events_of_others_count_wherever_they_are():
    given = (event("a"), event("b", "r1"), event("c"), event("d", "r2"), event("e", messages=[]))
    assert ids(*given) == ["a", "b", "c", "d", "e"]
