"""A checkout that was not compiled: its host serves all but the page, and names the command where the page would be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx

from tests.house.tree import ROOT, ROOTS

PROGRAM = "async def parrot(input):\n    yield\n"


def test_a_host_that_was_not_compiled_names_the_command_at_the_start_and_in_place_of_the_page(tmp_path: Path):
    for house in ROOTS:
        shutil.copytree(
            ROOT / house / "runcast", tmp_path / house / "runcast", ignore=shutil.ignore_patterns("page")
        )
    (tmp_path / "my_program.py").write_text(PROGRAM)
    env = {name: value for name, value in os.environ.items() if not name.startswith("RUNCAST_")}
    env["PYTHONPATH"] = os.pathsep.join(str(tmp_path / house) for house in ROOTS)
    command = [
        sys.executable,
        "-m",
        "runcast.app",
        "serve",
        "my_program:parrot",
        "--url",
        "memory://",
        "--port",
        "0",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            printed = ""
            while not (address := re.search(r"(http://\S+)/\?token=(\S+)", printed)):
                line = process.stdout.readline()
                assert line, printed
                printed += line
            assert "`make web`" in printed
            headers = {"authorization": f"Bearer {address[2]}"}
            page, threads = (httpx.get(address[1] + path, headers=headers) for path in ("/", "/threads"))
            assert (page.status_code, threads.status_code) == (404, 200)
            assert "`make web`" in page.json()["detail"]
        finally:
            process.terminate()
