"""JSON Patch as the client applies it, and the places where the two libraries part ways, pinned."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from runcast.slim.errors import PatchRefused, PatchTooLarge
from runcast.slim.values.json_patch import Document, clone, disputed, idle
from tests.e2e.oracle import Oracle

Operations = list[dict[str, Any]]

NOTHING = "undefined"  # the client is left without any value, or with one that no JSON can say

# What the client's library applies and `jsonpatch` refuses: a document, a patch, and what the client makes of it.
PARTINGS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "removing the root": ({"a": 1}, {"op": "remove", "path": ""}, None),
    "an empty array index": ([1, 2], {"op": "add", "path": "/", "value": 9}, [9, 1, 2]),
    "an array index with a leading zero": (
        {"b": [1]},
        {"op": "add", "path": "/b/01", "value": 9},
        {"b": [1, 9]},
    ),
    "removing what every object inherits": ({"a": 1}, {"op": "remove", "path": "/toString"}, {"a": 1}),
    "a member of a number": (5, {"op": "add", "path": "/a", "value": 1}, 5),
    "a member of a string": ("s", {"op": "add", "path": "/a", "value": 1}, "s"),
    "an array index that does not fit 32 bits": (
        [1],
        {"op": "add", "path": "/4294967296", "value": 9},
        [9, 1],
    ),
    "a move past the end of an array": ([1, 2], {"op": "move", "from": "/0", "path": "/2"}, [2, 1]),
    "a copy past the end of an array": ([1], {"op": "copy", "from": "/0", "path": "/3"}, [1, 1]),
    "a missing value moved to the root": ({"a": 1}, {"op": "move", "from": "/b", "path": ""}, NOTHING),
    "a missing value copied to the root": ({"a": 1}, {"op": "copy", "from": "/b", "path": ""}, NOTHING),
    "the root moved into itself": ({"a": 1}, {"op": "move", "from": "", "path": "/b"}, NOTHING),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", PARTINGS)
def test_case_25_where_the_client_applies_what_jsonpatch_refuses(oracle: Oracle, name: str):
    document, operation, theirs = PARTINGS[name]
    ours = Document(clone(document))
    assert ours.patch([operation]) is not None
    assert ours.value == document
    assert disputed([operation], document)
    answer = oracle.ask("patch", document=document, patch=[operation])
    assert answer["ok"]
    assert answer.get("document", NOTHING) == theirs


@pytest.mark.oracle
@pytest.mark.parametrize(
    "path", ["/__proto__", "/constructor/prototype", "/constructor/prototype/a", "/__proto__/a"]
)
def test_case_25_neither_reaches_into_a_prototype(oracle: Oracle, path: str):
    document = {"constructor": {"prototype": {}}}
    operations: Operations = [{"op": "add", "path": path, "value": 1}]
    ours = Document(clone(document))
    assert str(ours.patch(operations)) == f"{path} would change a prototype"
    assert ours.value == document
    assert not oracle.ask("patch", document=document, patch=operations)["ok"]
    copied: Operations = [{"op": "copy", "from": path, "path": "/a"}]
    assert ours.patch(copied) is not None
    assert ours.patch([{"op": "add", "path": "/prototype", "value": 1}]) is None


@pytest.mark.oracle
@pytest.mark.parametrize("path", ["/~", "/~2", "/a~", "/~~1", "/~01"])
def test_a_tilde_that_begins_no_escape_stands_for_itself_in_both(oracle: Oracle, path: str):
    operations: Operations = [
        {"op": "add", "path": path, "value": 1},
        {"op": "copy", "from": path, "path": "/b"},
    ]
    ours = Document({})
    assert ours.patch(operations) is None
    assert ours.value == oracle.ask("patch", document={}, patch=operations)["document"]


@pytest.mark.oracle
@pytest.mark.parametrize("value", [{"hasOwnProperty": 1}, [{"a": {"hasOwnProperty": None}}]])
def test_neither_compares_objects_with_a_member_in_the_place_of_a_method(oracle: Oracle, value: Any):
    operations: Operations = [{"op": "test", "path": "", "value": value}]
    assert "hasOwnProperty" in str(Document(value).patch(operations))
    assert not oracle.ask("patch", document=value, patch=operations)["ok"]
    assert Document("x").patch([{"op": "test", "path": "", "value": "x"}]) is None


TOKENS = (
    "a",
    "b",
    "k",
    "0",
    "1",
    "2",
    "3",
    "-",
    "",
    "01",
    "00",
    "10",
    "a~1b",
    "m~0n",
    "constructor",
    "toString",
)
DOCUMENTS: tuple[Any, ...] = (
    None, 0, 2.5, True, "", "abc", [], [1, None], [[1], {"a": 1}], {}, {"k": None}, {"b": [1, [2]], "a": {"b": 1}},
    {"a": {"b": [1, 2, {"c": 0}]}, "": 1, "0": 2, "-": 3}, {"01": 1, "a/b": 1, "m~n": 2, "toString": 1},
)  # fmt: skip


def drawn(rng: random.Random) -> dict[str, Any]:
    def pointer() -> str:
        if rng.random() < 0.08:
            return ""
        plain = rng.random() < 0.7
        return "".join(f"/{rng.choice(TOKENS[:8] if plain else TOKENS)}" for _ in range(rng.randint(1, 3)))

    operation: dict[str, Any] = {"op": rng.choice(("add", "remove", "replace", "move", "copy", "test"))}
    operation["path"] = pointer()
    if operation["op"] in ("move", "copy"):
        operation["from"] = pointer()
    elif operation["op"] != "remove":
        operation["value"] = rng.choice(DOCUMENTS)
    return operation


def same(one: Any, other: Any) -> bool:
    """JavaScript writes 1.0 as 1; everything else has to agree to the letter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.oracle
def test_case_25_outside_the_disputed_the_libraries_agree(oracle: Oracle):
    rng = random.Random(25)
    cases = [
        (rng.choice(DOCUMENTS), [drawn(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))])
        for _ in range(20_000)
    ]
    answers = oracle.batch(
        [{"op": "patch", "document": document, "patch": patch} for document, patch in cases]
    )
    seen: Counter[str] = Counter()
    for (document, patch), theirs in zip(cases, answers, strict=True):
        ours = Document(document)
        failure = ours.patch(patch)
        if failure is None:
            assert theirs["ok"], (document, patch)
            assert same(ours.value, theirs["document"]), (document, patch)
            seen["both apply"] += 1
        else:
            assert ours.value is document
            unsure = disputed(patch, document)
            assert unsure or not theirs["ok"], (document, patch)
            seen["disputed" if unsure else "both refuse"] += 1
            if idle(patch, document) and theirs["ok"]:
                assert same(theirs.get("document"), document)
    assert min(seen.values()) > 500, seen


def test_a_patch_that_fails_at_its_end_changes_nothing():
    document = Document({"a": [1]})
    assert (
        document.patch([{"op": "add", "path": "/a/-", "value": 2}, {"op": "remove", "path": "/b"}])
        is not None
    )
    assert document.value == {"a": [1]}
    assert document.patch([{"op": "add", "path": "/a/-", "value": 2}]) is None
    assert (
        document.patch([{"op": "remove", "path": "/a/0"}, {"op": "test", "path": "/a/0", "value": 9}])
        is not None
    )
    assert document.value == {"a": [1, 2]}


def test_what_was_handed_out_stays_as_it_was():
    given = {"a": {"b": 1}}
    document = Document(given)
    assert document.patch([{"op": "replace", "path": "/a/b", "value": 2}]) is None
    seen = document.value
    assert document.patch([{"op": "replace", "path": "/a/b", "value": 3}]) is None
    assert (given, seen, document.value) == ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 3}})
    document.value = seen
    assert document.patch([{"op": "remove", "path": "/a"}]) is None
    assert seen == {"a": {"b": 2}}


def test_a_patch_does_not_share_its_values_with_the_document():
    value: dict[str, Any] = {"n": 1}
    document = Document({})
    assert document.patch([{"op": "add", "path": "/a", "value": value}]) is None
    assert document.patch([{"op": "replace", "path": "/a/n", "value": 2}]) is None
    assert value == {"n": 1}


def test_a_document_too_deep_for_the_machine_is_a_failure_not_a_crash():
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    document = Document(deep)
    failure = document.patch([{"op": "add", "path": "/0", "value": 1}])
    assert str(failure) == "the document is nested too deeply to be patched"
    assert document.value is deep
    while deep:  # taken apart by hand: a destructor would recurse just as deep
        deep = deep.pop()


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = {"x": value}
    return value


SINK = [
    {"op": "move", "from": "/a", "path": "/b/a"},
    {"op": "move", "from": "/b", "path": "/a"},
    {"op": "add", "path": "/b", "value": {}},
]
BOMBS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "an object in itself": (
        {"a": {"b": "x" * 1_000}},
        [{"op": "copy", "from": "/a", "path": f"/a/x{n}"} for n in range(60)],
    ),
    "a list in itself": ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60),
    "the root in itself": ({}, [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(60)]),
    "many copies": (
        {"a": list(range(2_000))},
        [{"op": "copy", "from": "/a", "path": f"/{n}"} for n in range(60)],
    ),
    "a long text": (
        {"a": "x" * 100_000},
        [{"op": "copy", "from": "/a", "path": f"/{n}"} for n in range(60)],
    ),
    "moves into each other": ({"a": {}, "b": {}}, SINK * 1_000),
    "a deep value at a deep place": (
        nested(200),
        [{"op": "replace", "path": "/x" * 200, "value": nested(60)}],
    ),
    "a deep value moved down": (
        {"a": nested(200), **nested(60)},
        [{"op": "move", "from": "/a", "path": "/x" * 59 + "/a"}],
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_patch_that_makes_too_much_is_refused_before_it_is_made(name: str):
    given, operations = BOMBS[name]
    document = Document(given)
    tracemalloc.start()
    failure = document.patch(operations)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(failure, PatchTooLarge)
    assert "send a snapshot instead" in str(failure)
    assert document.value is given
    assert peak < 20_000_000


def test_copies_and_moves_within_the_budget_apply():
    document = Document({"a": [1, {"b": 2}], "c": {}})
    assert document.patch([{"op": "copy", "from": "/a", "path": "/c/d"}]) is None
    assert document.patch([{"op": "move", "from": "/a/1", "path": "/c/e"}]) is None
    assert document.value == {"a": [1], "c": {"d": [1, {"b": 2}], "e": {"b": 2}}}
    deep = Document(nested(200))
    assert deep.patch([{"op": "replace", "path": "/x" * 200, "value": {"y": 1}}]) is None


def test_a_copy_of_what_is_missing_is_refused_and_changes_nothing():
    document = Document({"a": 1})
    failure = document.patch(
        [{"op": "add", "path": "/b", "value": 2}, {"op": "copy", "from": "/z", "path": "/c"}]
    )
    assert type(failure) is PatchRefused
    assert document.value == {"a": 1}


def test_a_document_stops_growing_however_small_the_patches_are():
    document = Document({"a": "x" * 1_000_000})
    failures = (document.patch([{"op": "copy", "from": "/a", "path": f"/{n}"}]) for n in range(100))
    assert isinstance(next(filter(None, failures)), PatchTooLarge)
    assert document.patch([{"op": "remove", "path": "/a"}]) is None
    document = Document(["x" * 60_000_000])
    big = [{"op": "add", "path": "/-", "value": "x" * 5_000_000}]
    assert document.patch(big) is None
    assert isinstance(document.patch(big), PatchTooLarge)


def test_a_reason_does_not_print_the_document():
    document = Document({"a": "x" * 100_000})
    failure = document.patch([{"op": "test", "path": "/a", "value": 1}])
    assert type(failure) is PatchRefused
    assert len(str(failure)) <= 300
