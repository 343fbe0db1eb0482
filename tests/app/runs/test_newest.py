"""A bounded memory gives up what was put in longest ago."""

from __future__ import annotations

from runcast.app.runs.newest import Newest


def test_the_oldest_goes_when_there_is_no_room() -> None:
    held = Newest[str](3)
    for name in ("a", "b", "c", "d"):
        held.put(name, name.upper(), 1)
    assert (len(held), held.weight) == (3, 3)
    assert [held.take(name) for name in ("a", "b", "d", "b")] == [None, "B", "D", None]
    assert (len(held), held.weight) == (1, 1)


def test_what_is_put_in_again_is_the_newest_by_its_new_weight() -> None:
    held = Newest[int](4)
    held.put("a", 1, 1)
    held.put("b", 2, 1)
    held.put("a", 3, 2)
    held.put("c", 4, 2)
    assert [held.take(name) for name in ("b", "a", "c")] == [None, 3, 4]
    assert held.weight == 0


def test_a_thing_too_heavy_by_itself_is_not_held_and_moves_no_other() -> None:
    held = Newest[int](2)
    held.put("a", 1, 1)
    held.put("b", 2, 3)
    assert held.take("b") is None
    assert held.take("a") == 1
