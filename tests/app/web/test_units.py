"""The page's own tests: types by tsc, behaviour by vitest, both as npm installed them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import missing
from tests.house.tree import ROOT

WEB = ROOT / "app" / "web"


@pytest.mark.parametrize("script", ["check", "test"])
def test_the_npm_script_passes(script: str):
    npm = shutil.which("npm")
    if npm is None or not (WEB / "node_modules").is_dir():
        missing("the page's tests need Node and its packages: run make web")
        return
    ran = subprocess.run(
        [npm, "run", "--silent", script], cwd=WEB, capture_output=True, check=False, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
