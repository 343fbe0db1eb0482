"""One patch, one verdict: `runcast.js`, the log's `Document` and the official client's library agree, also on hostile ones."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runcast.slim.errors import PatchTooLarge
from runcast.slim.values.json_patch import Document, clone, disputed
from tests.conftest import missing, share
from tests.house.tree import ROOT

PAGE = ROOT / "app" / "runcast" / "app" / "page"
CLIENT = ROOT / "tests" / "e2e" / "js" / "package.json"

NAMES = (
    *("a", "b", "0", "1", "-", "01", "", "x/y", "~", "~1", "length", "é", "1e0", "-1", " 1", "4294967297"),
    *("__proto__", "constructor", "prototype", "toString", "hasOwnProperty"),
)
PLAIN = (None, True, False, 0, 1, -1, 1.5, 2**53, "", "x", "é", "1", "\U0001f600")
STRAY = ("~", "~2", "~01", "~10", "a~", "~~1")  # tildes that begin no escape
Case = dict[str, Any]


def escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


class Maker:
    """Documents, and patches that often fit them."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        kind = self.pick.random()
        if depth > 2 or kind < 0.4:
            return self.pick.choice(PLAIN)
        if kind < 0.7:
            return [self.value(depth + 1) for _ in range(self.pick.randrange(4))]
        return {self.pick.choice(NAMES): self.value(depth + 1) for _ in range(self.pick.randrange(4))}

    def pointer(self, document: Any) -> str:
        kind, (there, _) = self.pick.random(), self.pick.choice(list(places(document)))
        if kind < 0.5:
            return there
        if kind < 0.9:
            return f"{there}/{escaped(self.pick.choice(NAMES))}"
        return f"{there}/{self.pick.choice(STRAY)}"

    def operation(self, document: Any) -> dict[str, Any]:
        kind = self.pick.choice(("add", "add", "replace", "remove", "move", "copy", "test"))
        path = self.pointer(document)
        match kind:
            case "move" | "copy":
                return {"op": kind, "path": path, "from": self.pointer(document)}
            case "remove":
                return {"op": kind, "path": path}
            case "test" if self.pick.random() < 0.7:
                path, value = self.pick.choice(list(places(document)))
                return {"op": kind, "path": path, "value": clone(value)}
            case _:
                return {"op": kind, "path": path, "value": self.value(1)}

    def case(self) -> Case:
        document = self.value()
        now = Document(clone(document))
        patch = []
        for _ in range(self.pick.randrange(1, 5)):
            patch.append(self.operation(now.value))
            now.patch(clone(patch[-1:]))
        return {"document": document, "patch": patch}


def places(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from places(each, f"{path}/{escaped(str(name))}")


def nested(levels: int, width: int = 1) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] * width
    return value


SINK = (
    {"op": "move", "from": "/a", "path": "/b/a"},
    {"op": "move", "from": "/b", "path": "/a"},
    {"op": "add", "path": "/b", "value": {}},
)
BOMBS: dict[str, Case] = {
    "copies that double in an object": {
        "document": {"a": {"b": "x" * 1_000}},
        "patch": [{"op": "copy", "from": "/a", "path": f"/a/x{n}"} for n in range(60)],
    },
    "copies that double in a list": {
        "document": {"a": [1]},
        "patch": [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60,
    },
    "copies of the whole document": {
        "document": {"a": 1},
        "patch": [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(60)],
    },
    "many copies of much": {
        "document": {"a": nested(10, 2)},
        "patch": [{"op": "copy", "from": "/a", "path": f"/{n}"} for n in range(60)],
    },
    "moves that nest": {"document": {"a": {}, "b": {}}, "patch": [*SINK] * 400},
    "a deep value": {"document": {}, "patch": [{"op": "add", "path": "/a", "value": nested(250)}]},
    "a value as deep as may be": {
        "document": {},
        "patch": [{"op": "add", "path": "/a", "value": nested(249)}],
    },
    "a deep path": {"document": {}, "patch": [{"op": "add", "path": "/a" * 5_000, "value": 1}]},
    "a path of slashes": {"document": {"": {}}, "patch": [{"op": "add", "path": "/" * 5_000, "value": 1}]},
    "an array of a million": {
        "document": {},
        "patch": [{"op": "add", "path": "/a", "value": [0] * 1_000_001}],
    },
    "an index beyond every array": {
        "document": [1],
        "patch": [{"op": "add", "path": f"/{10**300}", "value": 1}],
    },
    "long insertions": {
        "document": {"a": list(range(1_000))},
        "patch": [{"op": "add", "path": "/a/0", "value": 1}] * 1_000,
    },
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Asks Node for the verdicts on many patches."""
    program = shutil.which("node")
    if program is None or not (CLIENT.parent / "node_modules").exists():
        missing("Node or the official client is not there: run make js")
    page = shutil.copytree(PAGE, tmp_path_factory.mktemp("page") / "page")
    (page / "package.json").write_text('{"type": "module"}')

    def ask(cases: list[Case]) -> list[Case]:
        ran = subprocess.run(
            [
                str(program),
                str(Path(__file__).with_name("patches.mjs")),
                str(page / "runcast.js"),
                str(CLIENT),
            ],
            input="".join(f"{json.dumps(case)}\n" for case in cases),
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return ask


def of_the_log(case: Case) -> tuple[str, Any]:
    document = Document(clone(case["document"]))
    failure = document.patch(clone(case["patch"]))
    verdict = (
        "applied" if failure is None else "too large" if isinstance(failure, PatchTooLarge) else "refused"
    )
    return verdict, document.value


def test_three_libraries_agree_on_a_patch_that_is_not_disputed(node: Any):
    make = Maker(7)
    cases = [make.case() for _ in range(share(9_000))]
    verdicts = []
    for case, answer in zip(cases, node(cases), strict=True):
        ours, theirs, log = (
            (answer["ours"]["verdict"], answer["ours"]["value"]),
            (answer["theirs"]["verdict"], answer["theirs"]["value"]),
            of_the_log(case),
        )
        if log[0] == "applied" or not disputed(case["patch"], case["document"]):
            assert ours == log == theirs, case
        else:
            assert ours in (log, theirs), case  # the official client may take it
        verdicts.append(ours[0])
    assert min(verdicts.count("applied"), verdicts.count("refused")) > len(cases) // 10


def test_a_bomb_has_the_same_verdict_in_both(node: Any):
    answers = node([{**case, "bomb": True} for case in BOMBS.values()])
    found = {}
    for name, case, answer in zip(BOMBS, BOMBS.values(), answers, strict=True):
        found[name], value = of_the_log(case)
        assert (answer["ours"]["verdict"], answer["ours"]["value"]) == (found[name], value), name
    assert found == dict.fromkeys(BOMBS, "too large") | {
        "a value as deep as may be": "applied",
        "long insertions": "applied",
        "an index beyond every array": "refused",
    }
