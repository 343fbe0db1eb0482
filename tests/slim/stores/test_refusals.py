"""The sentences with which every store refuses, and the texts that none of them can hold."""

from __future__ import annotations

import pytest

from runcast.slim.errors import StoreError
from runcast.slim.stores import refusals
from runcast.slim.stores.records import Batch, Key, NewEvent, RunEnd

KEY = Key("acme", "t")


@pytest.mark.parametrize(("until", "left"), [(None, 0), (90, 0), (100, 0), (101, 1), (5_100, 5_000)])
def test_a_lease_that_is_held_says_how_long(until: int | None, left: int) -> None:
    said = str(refusals.taken(KEY, "other", until, 100))
    assert f"written by other; its lease is valid for {left} ms more" in said


def test_a_lost_lease_says_who_has_it() -> None:
    assert "now belongs to other" in str(refusals.lost(KEY, "other"))
    assert "was released" in str(refusals.lost(KEY, None))


def test_a_schema_says_which_version_is_too_old() -> None:
    assert "install the version of runcast" in str(refusals.other_schema(4, 3))
    for found in (0, 3):
        assert "open it once for writing" in str(refusals.other_schema(found, 3))


@pytest.mark.parametrize("text", ["", "a", "\x01", "é", "\ud7ff", "\ue000", "😀", "a\U0010ffff"])
def test_text_is_text(text: str) -> None:
    assert refusals.unless_text("a run id", text) == text


@pytest.mark.parametrize("text", ["\0", "a\0b", "é\0", "\ud800", "é\udbff", "\udc00é", "a\udfff", "\0\ud800"])
def test_what_no_database_can_hold_is_refused(text: str) -> None:
    with pytest.raises(StoreError, match="a run id must be text without NUL"):
        refusals.unless_text("a run id", text)


def test_a_batch_writes_what_is_more_than_a_lease() -> None:
    event = NewEvent(1, 0, "RAW", b"")

    def made(**more: object) -> Batch:
        return Batch(KEY, "me", 1, "id", 1, 0, **{"events": (), **more})  # type: ignore[arg-type]  # fields

    assert not made(until=5).writes
    assert all(
        made(**more).writes
        for more in ({"events": (event,)}, {"raws": (event,)}, {"end": RunEnd("failed", None)})
    )
