"""Arguments streamed by JSON path (cases 24 and 25): the JSON that went out equals the final arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from runcast.adapters.adk import AdkOptions
from runcast.adapters.adk.stream.streamed_args import ArgsWriter, steps
from tests.adapters.adk.fakes import Turn, agent, blocked, chunk, text
from tests.adapters.adk.stage import Stage, brief, kinds, texts
from tests.e2e.oracle import Oracle

STREAMED = AdkOptions(stream_args=True)
Piece = tuple[str, Any]


def save(**given: Any) -> dict[str, Any]:
    """Save something."""
    return {"saved": True}


def arg(path: str, value: Any, more: bool = False) -> types.PartialArg:
    it = types.PartialArg(json_path=path, will_continue=more)
    if isinstance(value, str):
        it.string_value = value
    elif isinstance(value, bool):
        it.bool_value = value
    elif value is None:
        it.null_value = "NULL_VALUE"
    else:
        it.number_value = value
    return it


def streamed(name: str, *pieces: Piece, ends: bool = True) -> list[Any]:
    """One call as Gemini streams it: a named start, a chunk a piece, an empty end."""
    parts = [types.FunctionCall(name=name, will_continue=True)]
    parts += [types.FunctionCall(partial_args=[arg(*piece)], will_continue=True) for piece in pieces]
    if ends:
        parts.append(types.FunctionCall())
    return [chunk(types.Part(function_call=it)) for it in parts]


def over(turn: Turn) -> Turn:
    return [*turn, chunk(finish="STOP", usage=True)]


SHAPES: dict[str, list[Piece]] = {
    "one string": [("$.title", "Hel"), ("$.title", "lo")],
    "two strings": [("$.a", "x"), ("$.a", "y"), ("$.b", "z")],
    "number bool null": [("$.n", 3.5), ("$.yes", True), ("$.no", False), ("$.none", None)],
    "nested": [("$.loc.name", "Pa"), ("$.loc.name", "ris"), ("$.loc.at.lat", 48.0), ("$.after", "x")],
    "array": [("$.tags[0]", "a"), ("$.tags[1]", "b"), ("$.items[0].n", 1.0), ("$.items[1].n", 2.0)],
    "hole": [("$.tags[2]", "c"), ("$.x", 1.0)],
    "escapes": [("$.t", 'say "hi"\n\\'), ("$['a b']['c.d']", "é\u2028"), ("$.e", "\t")],
    "empty string": [("$.t", ""), ("$.u", "x")],
}


@pytest.mark.oracle
@pytest.mark.parametrize("pieces", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("options", [AdkOptions(), STREAMED], ids=["whole", "streamed"])
async def test_case_24_streamed_arguments_equal_the_final_ones(
    oracle: Oracle, pieces: list[Piece], options: AdkOptions
):
    stage = Stage(agent("root", over(streamed("save", *pieces)), text("done"), tools=[save]), options=options)
    run = await stage.say("hi")
    assert "MESSAGES_SNAPSHOT" not in kinds(run)
    made = _calls(await _client(oracle, stage))
    assert made == [("save", _final(stage))]
    if options is STREAMED:
        assert kinds(run).count("TOOL_CALL_ARGS") > 1


@pytest.mark.oracle
async def test_case_24_two_streamed_calls_are_two(oracle: Oracle):
    two = over(streamed("save", ("$.a", "1")) + streamed("save", ("$.a", "2"), ("$.b", 3.0)))
    stage = Stage(agent("root", two, text("done"), tools=[save]), options=STREAMED)
    await stage.say("hi")
    made = _calls(await _client(oracle, stage))
    assert made == [("save", {"a": "1"}), ("save", {"a": "2", "b": 3.0})]


@pytest.mark.oracle
async def test_case_24_text_before_and_after_a_streamed_call(oracle: Oracle):
    one = [chunk(types.Part(text="well ")), *streamed("save", ("$.a", "1")), chunk(types.Part(text="so"))]
    stage = Stage(agent("root", over(one), text("done"), tools=[save]), options=STREAMED)
    await stage.say("hi")
    client = await _client(oracle, stage)
    assert texts(client)[1] == ("assistant", "well so")
    assert _calls(client) == [("save", {"a": "1"})]


@pytest.mark.oracle
async def test_case_24_what_cannot_be_completed_is_repaired(oracle: Oracle):
    back = over(streamed("save", ("$.loc.name", "x"), ("$.n", 1.0), ("$.loc.city", "y")))
    stage = Stage(agent("root", back, text("done"), tools=[save]), options=STREAMED)
    run = await stage.say("hi")
    assert "MESSAGES_SNAPSHOT" in kinds(run)
    assert _calls(await _client(oracle, stage)) == [("save", {"loc": {"name": "x", "city": "y"}, "n": 1.0})]


@pytest.mark.oracle
@pytest.mark.parametrize("options", [AdkOptions(), STREAMED], ids=["whole", "streamed"])
async def test_case_25_a_blocked_turn_leaves_no_call_open(oracle: Oracle, options: AdkOptions):
    # ADK's aggregator confirms the call as far as it came, and carries it out.
    stopped = [*streamed("save", ("$.a", "1"), ends=False), blocked("SAFETY")]
    stage = Stage(agent("root", stopped, text("sorry"), tools=[save]), options=options)
    run = await stage.say("hi")
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    client = await stage.check(oracle)
    assert _calls(client) == [("save", _final(stage))]
    assert texts(client)[-1] == ("assistant", "sorry")


@pytest.mark.oracle
async def test_case_25_a_call_that_no_final_confirms_is_taken_back(oracle: Oracle):
    cut = [*streamed("save", ("$.a", "1"), ends=False), RuntimeError("connection lost")]
    stage = Stage(agent("root", cut, tools=[save]), options=STREAMED)
    run = await stage.say("hi")
    assert brief(run) == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "MESSAGES_SNAPSHOT",
        "RUN_ERROR",
    ]
    assert texts(await stage.check(oracle)) == [("user", "hi")]


async def _client(oracle: Oracle, stage: Stage) -> dict[str, Any]:
    return await stage.check(oracle)


def _calls(client: dict[str, Any]) -> list[tuple[str, Any]]:
    made = [call["function"] for it in client["messages"] for call in it.get("toolCalls", ())]
    return [(it["name"], json.loads(it["arguments"])) for it in made]


def _final(stage: Stage) -> Any:
    finals = [event for event in stage.native[0] if not event.partial]
    return next(call.args for event in finals for call in event.get_function_calls())


# ------------------------------------------------------------------ the writer alone

LEAVES = st.one_of(st.text(max_size=8), st.booleans(), st.none(), st.floats(-9, 9).map(lambda n: round(n, 2)))
KEYS = st.text("abc .'\"[]é\\", min_size=1, max_size=4)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.dictionaries(KEYS, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def _pieces(value: Any, path: str = "$") -> list[Piece]:
    if isinstance(value, dict):
        return [it for key, one in value.items() for it in _pieces(one, f"{path}['{_escaped(key)}']")]
    if isinstance(value, list):
        return [it for index, one in enumerate(value) for it in _pieces(one, f"{path}[{index}]")]
    if isinstance(value, str) and len(value) > 2:
        return [(path, value[:2]), (path, value[2:])]
    return [(path, value)]


def _escaped(key: str) -> str:
    return key.replace("\\", "\\\\").replace("'", "\\'")


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_whatever_is_streamed_in_order_is_written_whole(args: dict[str, Any]):
    writer = ArgsWriter()
    sent = "".join(writer.feed(arg(*piece)) for piece in _pieces(args))
    tail = writer.finish(json.dumps(args))
    assert tail is not None
    assert json.loads(sent + tail) == args


@given(st.lists(st.tuples(st.sampled_from(["$.a", "$.a.b", "$.c[0]", "$.c[1].d", "$", "$.a[0]"]), LEAVES)))
def test_what_cannot_be_written_is_said_and_never_wrong(pieces: list[Piece]):
    writer = ArgsWriter()
    sent = "".join(writer.feed(arg(*piece)) for piece in pieces)
    final = {"a": {"b": "x"}, "c": [1, {"d": None}]}
    tail = writer.finish(json.dumps(final))
    assert tail is None or json.loads(sent + tail) == final


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("$.a.b[0]", ["a", "b", 0]),
        ('$[\'a b\']["c\\"d"]', ["a b", 'c"d']),
        ("a", ["a"]),
        ("$['\\u0041\\n']", ["A\n"]),
        ("$", []),
    ],
)
def test_paths_are_read_as_adk_reads_them(path: str, read: list[str | int]):
    assert steps(path) == read


def test_pieces_without_a_path_or_a_value_add_nothing():
    writer = ArgsWriter()
    assert writer.feed(types.PartialArg(json_path="$.a")) == ""
    assert writer.feed(types.PartialArg(string_value="x")) == ""
    assert writer.finish('{"a":1}') == '{"a":1}'


def test_a_string_that_becomes_a_number_cannot_be_completed():
    writer = ArgsWriter()
    sent = [writer.feed(arg("$.a", "x")), writer.feed(arg("$.a", 1.0)), writer.feed(arg("$.b", 1.0))]
    assert sent == ['{"a":"x', "", ""]
    assert writer.finish('{"a":1.0}') is None
    assert writer.finish('{"a":"xyz"}') == 'yz"}'
