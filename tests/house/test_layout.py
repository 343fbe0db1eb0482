"""The shape of the sources: where a file may stand, how long it and its functions may be, and that it says what it is."""

from __future__ import annotations

import ast
import statistics
import tomllib

import pytest

from tests.house.tree import ROOT, ROOTS, Module, Source, modules, packages, sources

FILE_LINES = 500
FUNCTION_LINES = 60
MEDIAN_LINES = 12
ANNOTATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign)

every_source = pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
every_module = pytest.mark.parametrize("module", modules(), ids=lambda module: module.inside)
every_house = pytest.mark.parametrize("house", ROOTS)


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code from `def` on, without the docstring: saying more never makes a function too long."""
    first = function.body[0]
    docstring = 0
    if ast.get_docstring(function) is not None:
        docstring = (first.end_lineno or 0) - first.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


@every_house
def test_no_file_stands_in_the_namespace_folder(house: str):
    # One stray __init__.py here hides the other houses in an editable install.
    assert not list((ROOT / house / "runcast").glob("*.py"))
    assert not list((ROOT / house).glob("*.py"))


@every_house
def test_a_house_holds_one_package_of_its_own_name(house: str):
    inside = {module.inside.split("/")[0] for module in modules() if module.house == house}
    assert inside <= {house}


def test_every_folder_with_modules_is_a_package():
    folders = {module.path.parent for module in modules()}
    assert folders == {package.path.parent for package in packages()}


@every_house
def test_every_house_tells_type_checkers_that_it_is_typed(house: str):
    if any(module.house == house for module in modules()):
        assert (ROOT / house / "runcast" / house / "py.typed").is_file()


@every_source
def test_a_file_is_short_enough_to_be_read_at_once(source: Source):
    assert len(source.text.splitlines()) <= FILE_LINES


@every_module
def test_a_function_is_short_enough_to_be_held_in_the_head(module: Module):
    long = {function.name: length(function) for function in module.functions()}
    assert {name: lines for name, lines in long.items() if lines > FUNCTION_LINES} == {}


@every_house
def test_half_of_a_houses_functions_are_shorter_than_a_dozen_lines(house: str):
    lengths = [length(f) for module in modules() if module.house == house for f in module.functions()]
    assert not lengths or statistics.median(lengths) < MEDIAN_LINES


@every_source
def test_a_file_says_what_it_is_and_takes_annotations_as_text(source: Source):
    if not source.tree.body:  # an empty __init__.py of the tests
        return
    assert ast.get_docstring(source.tree)
    if source.name.startswith("examples/"):  # they read like what a user would write
        return
    annotated = any(isinstance(node, ANNOTATED) for node in ast.walk(source.tree))
    assert not annotated or "from __future__ import annotations" in source.text


def test_import_linter_watches_every_house_that_is_there():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    there = {f"runcast.{module.house}" for module in modules() if module.is_package}
    assert there <= set(settings["root_packages"])


def test_type_checkers_and_packager_see_every_house():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert set(ROOTS) <= set(tool["mypy"]["files"])
    assert set(ROOTS) <= set(tool["pyright"]["include"])
    assert [f"{house}/runcast" for house in ROOTS] == tool["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert list(ROOTS) == tool["hatch"]["build"]["dev-mode-dirs"]
