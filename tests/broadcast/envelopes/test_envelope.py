"""Envelopes within any budget, summaries in a line, and settings that say what is wrong with them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.broadcast import HUB, PUSHER, REVERB, SOKETI, BroadcastConfig, Budget, ConfigError, Envelope, fit
from runcast.broadcast.envelopes.budget import smaller
from runcast.broadcast.envelopes.split_text import split_text
from runcast.broadcast.envelopes.summary import summarize_args, summarize_result
from runcast.broadcast.json_bytes import dumps, iso
from tests.broadcast.envelopes.test_rollup import chunk, other


def custom(value: Any) -> Envelope:
    return replace(other(7, "agent.custom"), payload={"name": "n", "value": value})


def test_the_wire_form_reads_back() -> None:
    for envelope in (chunk(3, "ż"), replace(other(2), part=(1, 2))):
        wire = json.loads(envelope.encode())
        assert Envelope.from_dict({**wire, "v": 2, "unknown": 1}) == envelope


def test_what_fits_is_left_alone() -> None:
    envelope = custom("x" * 100)
    assert fit(envelope, Budget(8_000)) is envelope


SAMPLES = ["a", '"', "\n", "ż", "漢", "😀", "\ud83d", "\x00"]


@pytest.mark.parametrize(
    "budget", [Budget(600), Budget(8_000), HUB, PUSHER, REVERB, SOKETI, Budget(2_000, True, 500)]
)
@pytest.mark.parametrize("sample", SAMPLES)
def test_no_envelope_exceeds_its_budget_and_every_cut_is_marked(sample: str, budget: Budget) -> None:
    for value in (
        sample * 200_000,
        [sample * 50] * 5_000,
        {f"{sample}{n}": {"deep": [sample]} for n in range(9_000)},
    ):
        envelope = custom(value)
        smaller = fit(envelope, budget)
        assert budget.fits(smaller.encode())
        assert smaller.payload["truncated"] is True
        assert smaller.payload["original_bytes"] == len(envelope.encode())
        assert json.loads(smaller.encode())


def test_ids_survive_when_everything_else_must_go() -> None:
    payload = {"tool_call_id": "c1", "tool_name": "f", **{f"k{n}": "x" * 50 for n in range(300)}}
    smaller = fit(replace(other(1), payload=payload), Budget(600))
    assert (smaller.payload["tool_call_id"], smaller.payload["tool_name"]) == ("c1", "f")


def test_even_ids_beyond_measure_are_cut() -> None:
    monster = replace(other(1), session_id="s" * 90_000, execution_id="漢" * 90_000)
    assert Budget(1_000).fits(fit(monster, Budget(1_000)).encode())


def test_huge_numbers_and_deep_nesting_are_cut_too() -> None:
    deep: Any = "end"
    for _ in range(60):
        deep = {"d": [deep]}
    smaller = fit(custom([deep, 10**5_000, (1, 2), {}, "x" * 9_000]), Budget(2_000))
    assert smaller.payload["truncated"]


@pytest.mark.parametrize("wrap", [lambda it: {"d": it}, lambda it: [it]])
def test_nesting_ends_where_the_cut_is_too_deep(wrap: Any) -> None:
    deep: Any = "x" * 3_000
    for _ in range(30):
        deep = wrap(deep)
    value = fit(custom(deep), Budget(1_000)).payload["value"]
    depth = 0
    while value:
        value, depth = next(iter(value.values() if isinstance(value, dict) else value), None), depth + 1
    assert depth <= 8


def test_long_numbers_are_cut_as_text() -> None:
    smaller = fit(custom([2**100] * 90), Budget(1_500))
    assert smaller.payload["value"][0] == str(2**100)


@given(st.binary(max_size=4_000), st.booleans())
def test_the_cheap_bound_never_contradicts_the_exact_one(body: bytes, quoted: bool) -> None:
    text = body.decode("utf-8", "replace").encode()
    budget = Budget(2_000, quoted, 100)
    assert budget.fits(dumps(text.decode())) == (budget.size(dumps(text.decode())) <= 2_000)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_times_are_utc_with_milliseconds(ms: int) -> None:
    seconds, millis = divmod(ms, 1000)
    there = datetime.fromtimestamp(0, UTC).timestamp() + seconds
    moment = datetime.fromtimestamp(there, UTC)
    assert iso(ms) == f"{moment:%m}".join([f"{moment.year:04}-", f"-{moment:%dT%H:%M:%S}.{millis:03}Z"])


def test_anything_becomes_json() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert json.loads(dumps({"a": 2**70, "b": "\ud83d", "c": Odd(), "d": float("nan")}))["b"] == "\ufffd"
    assert dumps({1: "ż"}) == '{"1":"ż"}'.encode()
    circle: list[Any] = [None, True, float("inf"), 1.5, (2**70, 10**5_000)]
    circle += [circle, {"c": circle}]
    assert json.loads(dumps(circle)) == [
        None,
        True,
        None,
        1.5,
        [2**70, "an integer of 16610 bits"],
        "...",
        {"c": "..."},
    ]


@given(st.text(max_size=200), st.integers(1, 40))
def test_pieces_join_to_the_text_and_fit(text: str, most: int) -> None:
    pieces = split_text(text, lambda piece: len(piece.encode("utf-8", "surrogatepass")) <= most)
    assert "".join(pieces) == text
    assert all(len(piece.encode("utf-8", "surrogatepass")) <= most or len(piece) < 9 for piece in pieces)


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        ('{"query":"dbplus","types":["program"]}', "query: 'dbplus', types: [\"program\"]"),
        ('{"a":1,"b":null,"c":true,"d":"never"}', "a: 1, b: null, c: true"),
        ('{"q":"%s"}' % ("x" * 40), "q: '" + "x" * 26 + "..."),
        ('{"q":"%s"}' % ("👨‍👩‍👧‍👦" * 10), "q: '" + "👨‍👩‍👧‍👦" * 3 + "..."),
        ("{}", ""),
        ("[1,2]", "[1,2]"),
        ("{oops", "{oops"),
        ("", ""),
        ('"' + "x" * 200, '"' + "x" * 96 + "..."),
        ('"text"', '"text"'),
    ],
)
def test_arguments_in_a_line(arguments: str, summary: str) -> None:
    assert summarize_args(arguments) == summary


def test_results_in_a_line() -> None:
    class Part:
        type = "image"

    assert summarize_result("x" * 101) == "x" * 97 + "..."
    assert summarize_result("x" * 100) == "x" * 100
    assert summarize_result([Part()]) == "[image]"


def test_settings_that_cannot_work_say_so() -> None:
    with pytest.raises(ConfigError, match="max_args is -1; it must be 0 or more"):
        BroadcastConfig(max_args=-1)
    with pytest.raises(ConfigError, match="at least 512"):
        BroadcastConfig(max_envelope_bytes=100)
    assert BroadcastConfig.standard() == BroadcastConfig()
    assert not BroadcastConfig.minimal().chunks


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=60,
)


@given(
    st.dictionaries(st.text(max_size=8), JSON, max_size=8),
    st.integers(600, 3_000),
    st.booleans(),
    st.sampled_from(["content", "patch"]),
)
def test_an_activity_is_whole_or_a_reference(
    drawn: dict[str, Any], most: int, quoted: bool, field: str
) -> None:
    named = {"message_id": "s1", "activity_type": "a2ui-surface", "subagent_run_id": "sub"}
    envelope = replace(other(7, "agent.activity"), payload={**named, field: drawn})
    budget = Budget(most, quoted)
    fitted = fit(envelope, budget)
    size = len(envelope.encode())
    whole = budget.fits(envelope.encode())
    reference = {**named, "by_reference": True, "original_bytes": size}
    assert fitted.payload == (envelope.payload if whole else reference)
    assert budget.fits(fitted.encode())


def test_a_reference_is_the_smallest_form_of_an_activity():
    payload = {"message_id": "m", "activity_type": "a2ui-surface", "content": {"x": 1}}
    assert list(smaller("agent.activity", payload, 9)) == [
        {"message_id": "m", "activity_type": "a2ui-surface", "by_reference": True, "original_bytes": 9}
    ]
