"""The rooms: how many files a folder holds, how large a file and a class may be, what names mean, and how prose reads."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.house.test_purity import imports
from tests.house.tree import ROOTS, Module, modules

FOLDER_MODULES = 12
FULLER_FOLDERS: dict[str, str] = {  # folder below runcast/ → why it holds 13
    "adapters/langgraph": "a file for each way in: adapter, announcement, callbacks, hosting",
    "slim/redaction": "a file for each way to find a secret, and two for what need not be searched",
}

MODULE_LINES = 400
PUBLIC_METHODS = 20
PARAMETERS = 8

# The two public factories import their web skin when they are called.
FACTORIES = {
    ("runcast.broadcast.hub.hub", "runcast.broadcast.hub.skins.asgi"),
    ("runcast.broadcast.hub.hub", "runcast.broadcast.hub.skins.websockets_server"),
    ("runcast.app.host.cast", "runcast.app.http.asgi_app"),
}

# Names that stand more than once because they mean the same thing in each place.
SAME_MEANING = {
    "errors": "the error tree of a house",
    "adapter": "the seam, and its implementation in each framework's folder",
    "translator": "the seam, and its implementation in each framework's folder",
    "memory": "the implementation that keeps everything in memory",
    "redis": "the implementation over Redis",
    "base": "the protocol that the files beside it implement",
}

# Words of a dialect in which processes speak. Below 150 in all is plain English.
DIALECT = re.compile(r"\b(?:told|tells?|said|says|nobody|somebody|whoever|whose|whom)\b", re.IGNORECASE)
DIALECT_WORDS = 150


def folders() -> dict[str, list[Module]]:
    found: dict[str, list[Module]] = defaultdict(list)
    for module in modules():
        found[module.inside.rpartition("/")[0]].append(module)
    return found


@pytest.mark.parametrize("folder", folders())
def test_a_folder_is_seen_at_a_glance(folder: str):
    count = len([module for module in folders()[folder] if not module.is_package])
    assert count <= FOLDER_MODULES + (folder in FULLER_FOLDERS)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.inside)
def test_a_module_has_at_most_400_lines(module: Module):
    assert len(module.text.splitlines()) <= MODULE_LINES


def test_a_name_of_a_file_means_one_thing():
    places = defaultdict(set)
    for module in modules():
        if not module.is_package and not module.path.stem.startswith("__"):
            # The folders of frameworks mirror each other on purpose.
            places[module.path.stem].add("adapters/*" if module.framework else module.inside)
    unclear = {name: sorted(where) for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in unclear.items() if name not in SAME_MEANING} == {}


def classes() -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                yield module, node


def decorators(node: ast.ClassDef) -> str:
    return " ".join(ast.unparse(each) for each in node.decorator_list)


def test_a_class_has_at_most_twenty_public_methods():
    large = {
        f"{module.inside}:{node.name}": count
        for module, node in classes()
        if (
            count := sum(
                isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_")
                for each in node.body
            )
        )
        > PUBLIC_METHODS
    }
    assert large == {}


def test_a_constructor_has_at_most_eight_parameters():
    wide = {
        f"{module.inside}:{node.name}": len(parameters)
        for module, node in classes()
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name == "__init__"
        if len(parameters := [*each.args.posonlyargs[1:], *each.args.args[1:], *each.args.kwonlyargs])
        > PARAMETERS
    }
    assert wide == {}


def imported(module: Module, known: set[str]) -> set[str]:
    found = {name for name, _ in imports(module.tree) if name in known}
    return {name for name in found if (module.dotted, name) not in FACTORIES} - {module.dotted}


def test_no_module_imports_itself_by_way_of_others():
    packages = {module.dotted for module in modules() if module.is_package}
    known = {module.dotted for module in modules()} - packages
    edges = {module.dotted: imported(module, known) for module in modules() if not module.is_package}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in edges[name]:
                visit(other, (*path, name))
            done.add(name)

    for name in edges:
        visit(name, ())


def test_prose_and_texts_speak_plain_english():
    counts = Counter(dict.fromkeys(ROOTS, 0))
    for module in modules():
        counts[module.house] += len(DIALECT.findall(module.text))
    assert counts.total() < DIALECT_WORDS, counts
