"""What a package promises: its `__init__.py` says it plainly, each name says what it is, and a test uses it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import lru_cache
from types import ModuleType

import pytest

from tests.house.tree import Module, modules, packages, sources

# A `try` asks for a framework and names the extra where it is missing; a `del` forgets it again.
IMPORTS = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr, ast.Try, ast.Delete)
MEANS = {"TYPE_CHECKING", "on_demand"}  # what an `__init__` needs to load its names on demand

every_package = pytest.mark.parametrize("package", packages(), ids=lambda package: package.dotted)


def promised(package: Module) -> list[str]:
    """`__all__` as it is written, which has to be a plain list of strings."""
    for node in package.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def brought_in(package: Module) -> set[str]:
    """The public names that the package's import statements, and those under a `try`, bring in."""
    found = [node for node in ast.walk(package.tree) if isinstance(node, ast.ImportFrom)]
    names = {
        alias.asname or alias.name for node in found if node.module != "__future__" for alias in node.names
    }
    return {name for name in names - MEANS if not name.startswith("_")}


def for_type_checkers(package: Module) -> list[ast.stmt]:
    """The imports of a package whose names load on demand."""
    guards = (node for node in package.tree.body if isinstance(node, ast.If))
    return [node for guard in guards if ast.unparse(guard.test) == "TYPE_CHECKING" for node in guard.body]


@every_package
def test_a_package_promises_what_it_imports_and_nothing_else(package: Module):
    if not package.tree.body:
        return
    assert set(promised(package)) == brought_in(package)


@every_package
def test_no_promise_is_made_twice(package: Module):
    names = promised(package)  # ruff keeps them sorted
    assert len(names) == len(set(names))


@every_package
def test_a_package_holds_imports_alone(package: Module):
    hidden = for_type_checkers(package)
    for node in [*package.tree.body, *hidden]:
        on_demand = isinstance(node, ast.If) and set(node.body) <= set(hidden) and is_on_demand(node.orelse)
        assert on_demand or isinstance(node, IMPORTS), f"{ast.unparse(node)}: move it to a module of its own"


def is_on_demand(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and ast.unparse(body[0]).startswith("__getattr__, __dir__ = on_demand(__name__, {")


@every_package
def test_a_name_that_loads_on_demand_is_the_one_that_type_checkers_see(package: Module):
    loaded = importlib.import_module(package.dotted)
    for node in for_type_checkers(package):
        assert isinstance(node, ast.ImportFrom)
        place = importlib.import_module(str(node.module))
        for alias in node.names:
            assert getattr(loaded, alias.name) is getattr(place, alias.name)
            assert alias.name in dir(loaded)


@every_package
def test_every_promise_is_kept_and_says_what_it_is(package: Module):
    loaded = importlib.import_module(package.dotted)
    silent = [name for name in promised(package) if not says_what_it_is(loaded, name)]
    assert silent == []


@every_package
def test_every_promised_name_is_used_in_a_test(package: Module):
    assert [name for name in promised(package) if name not in words_of_tests()] == []


def says_what_it_is(package: ModuleType, name: str) -> bool:
    """A class or function by its own docstring; a constant or alias by the words beside its definition."""
    value = getattr(package, name)
    if inspect.ismodule(value):
        return bool(value.__doc__)
    if inspect.isclass(value) or inspect.isfunction(value):
        return bool(defined_with_docstring(value.__module__, value.__name__))
    return any(constant_is_explained(module, name) for module in modules())


def defined_with_docstring(dotted: str, name: str) -> bool:
    # Read from the source: a dataclass makes itself a docstring that says nothing.
    for module in modules():
        if module.dotted == dotted:
            for node in module.tree.body:
                if (
                    isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                    and node.name == name
                ):
                    return ast.get_docstring(node) is not None
    return False


def constant_is_explained(module: Module, name: str) -> bool:
    for at, node in enumerate(module.tree.body):
        match node:
            case ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found)):
                if found == name:
                    after = module.tree.body[at + 1 : at + 2]
                    return bool(after and ast.get_docstring(ast.Module(after, []))) or commented(module, node)
            case _:
                pass
    return False


def commented(module: Module, node: ast.stmt) -> bool:
    lines = module.text.splitlines()
    beside = lines[node.lineno - 1 : node.end_lineno]
    above = lines[node.lineno - 2] if node.lineno > 1 else ""
    return above.startswith("#") or any("  # " in line for line in beside)


@lru_cache
def words_of_tests() -> frozenset[str]:
    """Every word in the tests of behaviour; the tests of this folder name things without using them."""
    return frozenset(
        word
        for source in sources()
        if source.name.startswith("tests/") and not source.name.startswith("tests/house/")
        for word in re.findall(r"\w+", source.text)
    )
