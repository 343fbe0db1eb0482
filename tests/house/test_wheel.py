"""What is published: the wheel holds every module and nothing else, and works with the core dependencies alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.house.test_public_names import promised
from tests.house.tree import ROOT, ROOTS, kept, modules, packages

PAGE = {
    "index.html",
    "runcast.js",
    "runcast.d.ts",
    "reader.js",
    "runcast-thread.js",
}  # of the page, which the build compiles
HOUSES = {module.house for module in modules()}
UV = [sys.executable, "-m", "uv"]
# Imports everything in a fresh interpreter, and says what refused to be imported, and how.
TRIAL = """
import importlib, json, sys
report = {"version": importlib.import_module("importlib.metadata").version("runcast"), "refused": {}, "lacking": []}
for package, names in json.load(sys.stdin).items():
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        report["refused"][package] = str(error)
        continue
    report["lacking"] += [f"{package}.{name}" for name in names if not hasattr(module, name)]
print(json.dumps(report))
"""


def run(*command: str, cwd: Path = ROOT, input: str | None = None) -> str:
    ran = subprocess.run(command, cwd=cwd, input=input, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, f"{command} failed:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist of a checkout in which nothing was made yet, and the wheel of that sdist."""
    folder, checkout = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("checkout")
    for each in kept():
        copy = checkout / each.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(each, copy)
    run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(folder), str(checkout))
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def bare_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that holds the wheel and what it requires, no extra."""
    home = tmp_path_factory.mktemp("bare")
    run(*UV, "venv", "--quiet", "--python", sys.executable, str(home))
    python = home / "bin" / "python"
    run(*UV, "pip", "install", "--quiet", "--python", str(python), "-c", "constraints.txt", str(wheel))
    return python


def test_the_wheel_holds_every_module_and_nothing_but_the_product(wheel: Path):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {f"runcast/{module.inside}" for module in modules()} <= held
    assert {f"runcast/{house}/py.typed" for house in HOUSES} <= held
    assert {f"runcast/app/page/{name}" for name in PAGE} <= held
    assert {name.split("/")[0] for name in held} == {"runcast"}
    assert {name.split("/")[1] for name in held} <= set(ROOTS)
    assert not [name for name in held if "test" in Path(name).name or "__pycache__" in name]


def test_the_sdist_holds_what_the_wheel_is_built_from(built: Path):
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        held = {name.split("/", 1)[1] for name in sdist.getnames()}
    assert {module.name for module in modules()} <= held
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "docs/design.md"} <= held
    assert {f"app/runcast/app/page/{name}" for name in PAGE} <= held
    assert "app/web/package-lock.json" in held
    assert not [name for name in held if "/node_modules/" in name]
    assert not [name for name in held if name.startswith(("tests/", "benchmarks/", ".ci/", ".venv/"))]


def extras() -> dict[str, list[str]]:
    """The extras by name, but for `all`, which the build adds."""
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    found: dict[str, list[str]] = hatch["metadata"]["hooks"]["custom"]["extras"]
    return found


def test_the_wheel_says_what_it_needs_and_which_extras_there_are(wheel: Path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = archive.read(name).decode()
    for extra in (*extras(), "all"):
        assert f"Provides-Extra: {extra}\n" in metadata
    for need in (need for each in extras().values() for need in each if not need.startswith("runcast[")):
        assert f"Requires-Dist: {need}; extra == 'all'\n" in metadata
    assert metadata.count("Requires-Dist: ") >= len(project["dependencies"])
    assert "License-Expression: MIT" in metadata


def test_every_public_name_is_there_with_the_core_dependencies_alone(bare_python: Path):
    wanted = {package.dotted: promised(package) for package in packages()}
    wanted |= {module.dotted: [] for module in modules() if not module.is_package}
    report = json.loads(
        run(str(bare_python), "-W", "error", "-c", TRIAL, cwd=bare_python.parent, input=json.dumps(wanted))
    )
    assert report["lacking"] == []
    # What cannot be imported says in one line which extra to install.
    unhelpful = {
        name: said
        for name, said in report["refused"].items()
        if not any(f"runcast[{extra}]" in said for extra in extras())
    }
    assert unhelpful == {}
    assert {f"runcast.{house}" for house in HOUSES}.isdisjoint(report["refused"])
