"""Which threads are taken in this process, and by which run."""

from __future__ import annotations

import pytest

from runcast.app import Busy, Full
from runcast.app.runs.run_slots import RunSlots


def test_a_thread_is_freed_by_the_run_that_has_it_alone() -> None:
    slots = RunSlots(2)
    slots.reserve("", "t1", "r1")
    slots.note("", "t1")
    slots.free("", "t1", "r2")  # it ended long ago, and is late
    assert slots.has("")
    assert slots.is_noted("", "t1")
    with pytest.raises(Busy, match="run r1"):
        slots.reserve("", "t1", "r3")
    slots.free("", "t1", "r1")
    assert not slots.has("")
    slots.reserve("", "t1", "r3")
    assert not slots.is_noted("", "t1"), "what waited then may have begun"


def test_as_many_threads_are_taken_as_there_are_slots() -> None:
    slots = RunSlots(2)
    for thread in ("t1", "t2"):
        assert not slots.full
        slots.reserve("", thread, "r")
    assert slots.full
    with pytest.raises(Full):
        slots.reserve("a", "t1", "r")
    assert [slots.has(tenant) for tenant in ("", "a")] == [True, False]
