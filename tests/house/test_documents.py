"""Documents and examples: their Python runs, and the files and tests they point to are there.

A block fenced `python` is a program of its own, and is run. An example says in its head what it needs from a test:

    # run: --once            arguments for a run that ends by itself
    # needs: node, redis     programs without which it is left out (and fails in CI)
    Install: `pip install …`.   for its reader, in the docstring
    # /// script             needs other packages than ours: tests/app/test_remote_examples.py runs it
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from pkgutil import iter_modules

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runcast.broadcast import open_publisher, publishers
from tests.conftest import missing
from tests.house.tree import ROOT, ROOTS, Source, kept

SECONDS = 90
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)")
NAMED_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)(?:::(\w+))?`")

OURS = ("tests/", *(f"{house}/runcast/" for house in ROOTS))

README = ROOT / "README.md"
DOCUMENTS = [path for path in kept() if path.suffix == ".md"]
EXAMPLES = [
    Source(path)
    for path in kept()
    if path.suffix == ".py" and path.parent == ROOT / "examples" and "# /// script\n" not in path.read_text()
]
BLOCKS = [
    pytest.param(code, id=f"{path.relative_to(ROOT)}-{number}")
    for path in DOCUMENTS
    for number, code in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")), 1)
]


def run(*arguments: str, cwd: Path) -> str:
    # stdin is closed: a program that asks has no answer, and none may hang on a question.
    ran = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": "", "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def head(example: Source, word: str) -> list[str]:
    """What the comment `# word: …` in an example says, split at blanks and commas."""
    found = re.search(rf"^# {word}: (.+)$", example.text, re.MULTILINE)
    return re.split(r"[,\s]+", found[1].strip()) if found else []


@pytest.mark.parametrize("code", BLOCKS)
def test_the_python_in_a_document_runs(code: str, tmp_path: Path):
    program = tmp_path / "block.py"
    program.write_text(code, encoding="utf-8")
    run(str(program), cwd=tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_an_example_runs(example: Source, tmp_path: Path):
    for program in head(example, "needs"):
        if shutil.which(program) is None:
            missing(f"{example.name} needs {program} on PATH")
    run(str(example.path), *head(example, "run"), cwd=tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path.stem)
def test_an_example_says_what_to_install(example: Source):
    """Each module that it imports, and uvicorn where it is started with it, comes with what `pip install …` names."""
    named = re.search(r"^Install: `pip install (.+)`\.$", example.text, re.MULTILINE)
    assert named
    installed = {name for each in shlex.split(named[1]) for name in distributions(Requirement(each))}
    used = {node.module or "" for node in ast.walk(example.tree) if isinstance(node, ast.ImportFrom)}
    used |= {
        each.name for node in ast.walk(example.tree) if isinstance(node, ast.Import) for each in node.names
    }
    used |= set(re.findall(r"(?:`|^    )(uvicorn) ", example.text, re.MULTILINE))
    modules = {each.partition(".")[0] for each in used} - sys.stdlib_module_names
    known = providers()
    assert [each for each in modules if not installed & known.get(each, {each})] == []


@cache
def providers() -> dict[str, set[str]]:
    """The distributions of each module."""
    return {
        module: {canonicalize_name(each) for each in names}
        for module, names in packages_distributions().items()
    }


@cache
def needs(name: str) -> list[Requirement]:
    """What a distribution needs, extras too; nothing when it is for another system."""
    try:
        return [Requirement(text) for text in requires(name) or ()]
    except PackageNotFoundError:
        return []


def distributions(wanted: Requirement) -> set[str]:
    """The distributions that come with a requirement."""
    found, open_ends = set[tuple[str, str]](), [wanted]
    while open_ends:
        each = open_ends.pop()
        name = canonicalize_name(each.name)
        for extra in {"", *each.extras}:
            if (name, extra) not in found:
                found.add((name, extra))
                open_ends += [
                    one for one in needs(name) if one.marker is None or one.marker.evaluate({"extra": extra})
                ]
    return {name for name, _ in found}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_points_to_what_is_there(document: Path):
    text = document.read_text(encoding="utf-8")
    broken = [link for link in LINK.findall(text) if not (document.parent / link).exists()]
    broken += [
        name for name, word in NAMED_FILE.findall(text) if name.startswith(OURS) and not holds(name, word)
    ]
    assert broken == []


def test_the_figures_of_the_readme_are_those_of_the_demo(tmp_path: Path):
    said = run(str(ROOT / "examples" / "restore_a_thread.py"), cwd=tmp_path)
    rows = re.findall(
        r"^\| .+ \| ([\d,]+) \| ([\d,]+) \| \d+ % \|$", README.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) == 3
    assert [row for row in rows if not re.search(rf"\b{row[0]} +{row[1]}\b", said)] == []


def test_the_targets_that_the_readme_names_open():
    urls = re.findall(r'broadcast="(\w[^"…]+)"', README.read_text(encoding="utf-8"))
    named = {type(open_publisher(url)).__module__.rpartition(".")[2] for url in urls}
    assert named == publishers_found() - {"memory"}


def publishers_found() -> set[str]:
    names = [module.name for module in iter_modules(publishers.__path__)]
    return {name for name in names if hasattr(import_module(f"{publishers.__name__}.{name}"), "SCHEMES")}


def holds(name: str, word: str) -> bool:
    path = ROOT / name
    return path.is_file() and (not word or f"def {word}(" in path.read_text(encoding="utf-8"))


def test_there_is_an_example_and_the_readme_shows_code():
    assert EXAMPLES
    assert BLOCK.search(README.read_text(encoding="utf-8"))
