"""The page's own tests, by vitest as npm installed it; `make lint` checks its types."""

from __future__ import annotations

import shutil
import subprocess

from tests.conftest import missing
from tests.house.tree import ROOT

WEB = ROOT / "app" / "web"


def test_the_behaviour_is_right():
    npm = shutil.which("npm")
    if npm is None or not (WEB / "node_modules").is_dir():
        missing("the page's tests need Node and its packages: run make web")
        return
    ran = subprocess.run(
        [npm, "run", "--silent", "test"], cwd=WEB, capture_output=True, check=False, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
