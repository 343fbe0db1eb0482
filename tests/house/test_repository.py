"""What may not stand in a kept file: addresses of registries, paths of one machine, and work left for later."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house.tree import ROOT, kept, modules

# Each pattern is written so that it does not match itself.
REGISTRIES = re.compile(
    r"(pypi|pythonhosted|npmjs|yarnpkg|jsdelivr|unpkg|rubygems)\.(org|com|net)|deb\.(debian|nodesource)\."
)
MACHINE = re.compile(r"(?<![\w.:/{}-])/(?:work|root|farm|tmp|home/\w+|Users/\w+)(?:/|\b)(?!\.)")
SOURCES = re.compile(r'"resolved"\s*:\s*"\w+:|\bregistry\s*=\s*\S*:/|--(?:extra-)?index-[u]rl|--find-[l]inks')
LATER = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X|HAC[K])\b|\bNotImplemented[E]rror\b")
LEFT_OUT = re.compile(r"\bx[f]ail\b|\bmark\.s[k]ip|\bpytest\.s[k]ip|\bimportor[s]kip|\bunittest\.s[k]ip")
SILENCED = re.compile(r"#\s*(?:type|pyright): ignore(?!\[[\w, -]+\]  # \w)")
# What was recorded says what it says.
RECORDED = {".events", ".json", ".jsonl", ".parts"}
# The one place where a test may be left out, and where CI fails instead.
MAY_LEAVE_OUT = ROOT / "tests" / "conftest.py"


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return "" if b"\0" in data else data.decode("utf-8")


def findings(
    pattern: re.Pattern[str], *, without: Path | None = None, within: Iterable[Path] = kept()
) -> list[str]:
    return [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {found[0]}"
        for path in within
        if path != without
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if (found := pattern.search(line))
    ]


def test_no_file_names_the_host_of_a_package_registry():
    assert findings(REGISTRIES) == []


def test_no_file_says_where_packages_are_fetched_from():
    assert findings(SOURCES) == []


def test_no_file_names_a_path_of_one_machine():
    assert findings(MACHINE) == []


def test_no_file_leaves_work_for_later():
    assert findings(LATER, within=[path for path in kept() if path.suffix not in RECORDED]) == []


def test_no_test_is_left_out():
    assert findings(LEFT_OUT, without=MAY_LEAVE_OUT) == []


def test_a_type_checker_is_silenced_for_one_thing_and_for_a_reason():
    assert findings(SILENCED, within=[module.path for module in modules()]) == []


def test_every_lock_file_names_versions_and_no_addresses():
    for lock in (path for path in kept() if path.name == "package-lock.json"):
        package = json.loads((lock.parent / "package.json").read_text())
        wanted = package.get("dependencies", {}) | package.get("devDependencies", {})
        assert wanted
        locked = json.loads(lock.read_text())["packages"]
        versions = {name: version.rpartition("@")[2] for name, version in wanted.items()}  # npm:name@version
        assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == versions


@pytest.mark.parametrize(
    "name", ["LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "constraints.txt"]
)
def test_the_files_a_visitor_looks_for_are_there(name: str):
    assert (ROOT / name).stat().st_size > 0


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRIES, "fetch https://py" + "pi.org/simple"),
        (MACHINE, 'open("/ho' + 'me/someone/x")'),
        (MACHINE, "cd /wo" + "rk/main"),
        (MACHINE, "in /tm" + "p/x.db"),
        (LATER, "# TO" + "DO: later"),
        (LEFT_OUT, "@pytest.mark.sk" + "ip"),
        (SOURCES, '"resol' + 'ved": "https:'),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str):
    assert pattern.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "#!/usr/bin/env bash",
        "the /work_items route",
        "https://ag-ui.com/home/start",
        "a/tmp/b",
        "sqlite:///runs.db",
    ],
)
def test_the_pattern_for_paths_leaves_others_alone(line: str):
    assert not MACHINE.search(line)
