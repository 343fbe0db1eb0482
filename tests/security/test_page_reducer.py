"""What an agent names things cannot reach the prototypes of the page: run ids, envelope types and patch paths."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.conftest import missing
from tests.house.tree import ROOT

REDUCER = ROOT / "app" / "runcast" / "app" / "page" / "runcast.js"


def test_no_name_reaches_a_prototype(tmp_path: Path):
    node = shutil.which("node")
    if node is None:
        missing("Node is not on PATH: install it, or run make js")
    script = Path(__file__).with_name("pollution.mjs")
    page = shutil.copytree(REDUCER.parent, tmp_path / "page")
    (page / "package.json").write_text(
        '{"type": "module"}'
    )  # what a browser is told by the tag, older Nodes by this
    ran = subprocess.run(
        [str(node), str(script), str(page / REDUCER.name)],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["clean"], "a prototype was written to"
    assert told["untouched"]
    assert told["refused"], "no patch writes a key of that name, as for the official client"
    names = ["__proto__", "constructor", "prototype", "toString"]
    assert told["runs"] == [[name, "failed"] for name in names]
    assert told["count"] == 12, "every envelope was taken"
