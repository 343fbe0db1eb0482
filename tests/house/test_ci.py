"""What CI is held to: nothing is left out there, and the checks it runs are the ones a developer runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.core_coverage import gap
from tests.house.tree import ROOT, Module

PROBE = """
from tests.conftest import missing

def test_that_needs_a_server():
    missing("no server here: install one")
"""


@pytest.mark.parametrize(("ci", "code", "outcome"), [("true", 1, "1 failed"), ("", 0, "1 skipped")])
def test_what_is_missing_is_left_out_at_home_and_fails_in_ci(
    tmp_path: Path, ci: str, code: int, outcome: str
):
    probe = tmp_path / "test_probe.py"
    probe.write_text(PROBE)
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-c",
            "pyproject.toml",
            f"--rootdir={ROOT}",
            "-q",
            str(probe),
        ],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (ran.returncode, outcome in ran.stdout) == (code, True), ran.stdout
    assert "no server here: install one" in ran.stdout


def test_ci_is_a_script_that_runs_the_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()
    assert "make bench ARGS=--quick" in script.read_text()
    assert "make test" in (ROOT / "README.md").read_text()
    subprocess.run(["bash", "-n", str(script)], check=True)


@pytest.mark.parametrize("target", ["setup", "demo", "test", "check", "bench", "figures", "build"])
def test_the_makefile_has_what_the_documents_name(target: str):
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    assert any(line.split()[0] == target for line in said.splitlines())


def test_a_core_that_no_test_reached_is_named():
    core = Module(ROOT / "slim" / "runcast" / "slim" / "errors.py")
    whole = {"missing_lines": [], "missing_branches": []}
    holed = {"missing_lines": [7], "missing_branches": [[3, 5]]}
    assert gap(core, {}) == "slim/runcast/slim/errors.py: no test imports it"
    assert gap(core, {core.name: whole}) is None
    assert gap(core, {core.name: holed}) == "slim/runcast/slim/errors.py: lines 7; branches 3->5"
