"""Cores are sans-IO: what they import and call is read from their syntax trees, and no more than that is needed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.house.tree import ROOT, ROOTS, Module, Source, cores, modules

# Clocks, chance, the environment, the network, other threads and processes, files, and importing by name.
OUTSIDE = {
    *("asyncio", "concurrent", "contextvars", "multiprocessing", "queue", "sched", "signal", "subprocess", "threading"),
    *("ftplib", "http", "select", "selectors", "smtplib", "socket", "socketserver", "ssl", "urllib.request", "urllib.error"),
    *("fileinput", "glob", "mmap", "os", "pathlib", "shutil", "sqlite3", "tempfile"),
    *("calendar", "time", "random", "secrets", "uuid", "getpass", "locale", "platform", "resource"),
    *("atexit", "ctypes", "gc", "importlib", "logging"),
}  # fmt: skip
# What every core may stand on besides the standard library.
GROUND = {
    *("ag_ui", "annotated_types", "jsonpatch", "jsonpointer", "orjson", "pydantic", "pydantic_core"),
    *("runcast", "typing_extensions"),
}  # fmt: skip
# Plain values that happen to live in such a module.
VALUES = {"uuid.UUID", "pathlib.PurePath", "pathlib.PurePosixPath", "os.PathLike"}
CALLS = {"open", "print", "input", "eval", "exec", "__import__", "breakpoint"}
CLOCKS = {"now", "utcnow", "today"}
AWAITING = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)

every_core = pytest.mark.parametrize("core", cores(), ids=lambda core: core.inside)


def imports(tree: ast.Module, *, typing_only: bool = False) -> Iterator[tuple[str, int]]:
    """The modules that running this tree imports, each with its line; on request those for type checkers too."""
    hidden = {
        id(node)
        for guard in ast.walk(tree)
        if isinstance(guard, ast.If) and ast.unparse(guard.test).endswith("TYPE_CHECKING")
        for statement in guard.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in hidden and not typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            names = [f"{base}.{alias.name}" for alias in node.names]
            if not VALUES.issuperset(names):
                yield base, node.lineno
            yield from ((name, node.lineno) for name in names)


def outside(name: str) -> bool:
    return name not in VALUES and any(name == banned or name.startswith(f"{banned}.") for banned in OUTSIDE)


def foreign(name: str) -> bool:
    top = name.split(".")[0]
    return bool(top) and top not in GROUND and top not in sys.stdlib_module_names


def actions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Calls that reach outside, or read a clock."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield f"{name}()", node.lineno
            case ast.Call(func=ast.Attribute(attr=name, value=owner)) if name in CLOCKS:
                if ast.unparse(owner).split(".")[-1] in ("datetime", "date"):
                    yield f"{ast.unparse(owner)}.{name}()", node.lineno


def waits(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Asynchronous syntax. A signature in a protocol awaits nothing and is no wait."""
    for node in ast.walk(tree):
        if isinstance(node, AWAITING) and not _signature(node):
            yield type(node).__name__, node.lineno
        elif isinstance(node, ast.comprehension) and node.is_async:
            yield "async comprehension", node.target.lineno


def _signature(node: ast.AST) -> bool:
    return isinstance(node, ast.AsyncFunctionDef) and all(
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        for statement in node.body
    )


def listed(core: Source, found: Iterator[tuple[str, int]]) -> list[str]:
    return [f"{core.name}:{line}: {what}" for what, line in found]


@every_core
def test_a_core_reaches_neither_outside_nor_for_a_clock(core: Module):
    assert not listed(core, ((name, line) for name, line in imports(core.tree) if outside(name)))
    assert not listed(core, actions(core.tree))


@every_core
def test_a_core_waits_for_nothing(core: Module):
    if core.is_driver:  # it awaits the framework's stream for the others
        return
    assert not listed(core, waits(core.tree))


@every_core
def test_a_core_stands_on_the_protocol_and_small_libraries_alone(core: Module):
    if core.is_door:  # a framework's own types come in here, decoded once
        return
    assert not listed(core, ((name, line) for name, line in imports(core.tree) if foreign(name)))


def test_no_framework_folder_imports_another():
    frameworks = {module.framework for module in modules()} - {None}
    for module in modules():
        if module.framework is None:
            continue
        others = tuple(f"runcast.adapters.{other}" for other in frameworks - {module.framework})
        assert not [name for name, _ in imports(module.tree, typing_only=True) if name.startswith(others)]


def test_the_shared_files_of_adapters_know_no_framework():
    frameworks = tuple(f"runcast.adapters.{name}" for name in {m.framework for m in modules()} - {None})
    for module in modules():
        if module.house == "adapters" and module.framework is None:
            assert not [
                name for name, _ in imports(module.tree, typing_only=True) if name.startswith(frameworks)
            ]


# The distributions that all names of a house may load; all else waits until the file that needs it is asked for.
LIGHT = {
    *("ag-ui-protocol", "annotated-types", "jsonpatch", "jsonpointer", "orjson", "pydantic", "pydantic-core"),
    *("runcast", "typing-extensions", "typing-inspection"),
}  # fmt: skip
LOADED = """
import importlib.metadata, json, re, sys
before = set(sys.modules)
{statement}
tops = {{name.partition(".")[0] for name in set(sys.modules) - before}}
owners = importlib.metadata.packages_distributions()
found = {{dist for top in tops - sys.stdlib_module_names for dist in owners.get(top, ())}}
print(json.dumps(sorted(re.sub("[-_.]+", "-", dist).lower() for dist in found)))
"""


@pytest.mark.parametrize("house", [house for house in ROOTS if house != "app"])
def test_importing_a_house_loads_no_framework_driver_or_server(house: str):
    packages = [module.dotted for module in modules() if module.dotted == f"runcast.{house}"]
    for package in packages:
        assert loaded_by(f"from {package} import *") <= LIGHT


@pytest.mark.parametrize("house", [house for house in ROOTS if house != "adapters"])
def test_a_house_loads_nothing_before_a_name_is_asked_for(house: str):
    assert loaded_by(f"import runcast.{house}") <= {"runcast"}


def loaded_by(statement: str) -> set[str]:
    script = LOADED.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("import asyncio", "asyncio"),
        ("from time import monotonic", "time"),
        ("from os import path", "os"),
        ("import urllib.request", "urllib.request"),
        ("from uuid import UUID, uuid4", "uuid.uuid4"),
        ("def f():\n    import logging", "logging"),
    ],
)
def test_the_scan_finds_an_import_wherever_it_stands(code: str, finding: str):
    assert finding in [name for name, _ in imports(ast.parse(code)) if outside(name)]


def test_the_scan_lets_parsing_and_typing_pass():
    code = "import urllib.parse\nif TYPE_CHECKING:\n    import asyncio\nfrom uuid import UUID"
    assert not [name for name, _ in imports(ast.parse(code)) if outside(name)]


@pytest.mark.parametrize(
    "code", ["open('x')", "datetime.now(UTC)", "datetime.datetime.utcnow()", "date.today()", "print(1)"]
)
def test_the_scan_finds_calls_that_reach_outside(code: str):
    assert list(actions(ast.parse(code)))


@pytest.mark.parametrize("code", ["stream.open()", "self.now()", "re.compile('x')"])
def test_the_scan_leaves_other_calls_alone(code: str):
    assert not list(actions(ast.parse(code)))


def test_the_scan_tells_a_wait_from_a_signature():
    assert list(waits(ast.parse("async def f():\n    await g()")))
    assert not list(waits(ast.parse('async def f():\n    """Said."""\n    ...')))


def test_the_rule_names_shells_and_cores():
    shell = {
        "slim/log/run_log.py",
        "slim/stores/sqlite.py",
        "adapters/langgraph/adapter.py",
        "broadcast/hub/skins/websockets_server.py",
    }
    core = {
        "slim/wire/codec.py",
        "adapters/open_blocks.py",
        "adapters/adk/translator.py",
        "broadcast/hub/protocol.py",
    }
    here = {path: module(path) for path in shell | core}
    assert {path for path, it in here.items() if it.is_shell} == shell
    assert {path for path, it in here.items() if it.is_core} == core


def module(inside: str) -> Module:
    return Module(ROOT / inside.split("/")[0] / "runcast" / inside)
