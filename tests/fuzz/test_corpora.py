"""What fuzzing found stays found: every kept input again, and some fresh ones from the same seeds each time.

`make fuzz` searches for real; here nothing depends on the clock or on chance.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fuzz import corpora
from tests.fuzz.home import Breakage, Mutator, explore, fewest

FRESH = 150  # inputs a target
ALL = 300_000  # bytes of all corpora

every_target = pytest.mark.parametrize("name", corpora.names())


@every_target
def test_what_was_kept_breaks_nothing(name: str):
    target = corpora.target(name)
    assert corpora.read(name, "kept"), "a target has inputs to begin with"
    for data in target.inputs():
        target.check(data)


@every_target
def test_fresh_inputs_break_nothing(name: str):
    target = corpora.target(name)
    mutator, inputs = Mutator(target.tokens, seed=len(name)), target.inputs()
    for _ in range(FRESH):
        data = mutator.made(inputs)
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"the input, for corpus/{name}/broke.jsonl: {json.dumps(data.decode('latin-1'))}")
            raise


@every_target
def test_a_search_from_an_empty_corpus_begins_with_more_than_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    target = corpora.target(name)
    monkeypatch.setattr(corpora, "FOLDER", tmp_path)
    fewest(target.check, target.first())  # fills the caches
    nothing, words = (fewest(target.check, inputs)[1] for inputs in ([b""], target.first()))
    assert words > nothing


def test_the_corpora_are_small():
    assert sum(path.stat().st_size for path in corpora.FOLDER.rglob("*.jsonl")) < ALL


def test_an_input_is_kept_as_a_line_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corpora, "FOLDER", tmp_path)
    inputs = [b"", b"\xff\x00\n", b'{"a":"\xe2\x80\xa8"}', bytes(range(256))]
    corpora.write("x", "kept", [*inputs, b""])
    assert corpora.read("x", "kept") == inputs
    assert (tmp_path / "x" / "kept.jsonl").read_text().count("\n") == len(inputs)


def test_the_home_loop_finds_what_is_there_to_find():
    """A check that breaks on a word of the dictionary is broken, and told once for the place where it breaks."""

    def check(data: bytes) -> None:
        assert b"magic" not in data

    target = corpora.Target("x", check, (b"magic", b"else"))
    tried, _, broken = explore(target, 600, seed=1, most=200)
    assert tried == 200
    (least,) = broken.inputs.values()
    assert b"magic" in least


def test_the_smallest_inputs_that_reach_all_there_is_are_kept():
    wire = corpora.target("wire")
    kept, steps = fewest(wire.check, [b"{", b"{" * 5, b'{"type":"X"}', b'{"type":"X"}  '])
    assert kept[0] == b"{"
    assert b"{" * 5 not in kept
    assert steps > 10


def test_a_breakage_is_told_by_its_place_and_its_shortest_input():
    broken = Breakage()
    for data in (b"long one", b"one", b"another"):
        try:
            raise ValueError(data)
        except ValueError as error:
            broken.note(error, data)
    assert list(broken.inputs.values()) == [b"one"]
