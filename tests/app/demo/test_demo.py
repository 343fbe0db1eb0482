"""The demo plays itself: a worker is killed, watchers lose their lines, and everything is as it would have been."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from runcast.app.demo import script
from runcast.app.demo.desk import Desk
from runcast.app.demo.headless import status
from runcast.app.errors import NotFound
from tests.house.tree import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "seed"), [("langgraph", 3), ("adk", 5)])
def test_nothing_is_lost_when_the_worker_is_killed(kind: str, seed: int) -> None:
    command = [sys.executable, "-m", "runcast.app", "demo", "--headless", "--json", "--seed", str(seed)]
    command += ["--adk"] if kind == "adk" else []
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    figures = json.loads(ran.stdout)
    assert [run["status"] for run in figures["runs"]][-1] == "completed"
    assert figures["lines_lost"] > 0
    assert figures["size"]["bytes"] > 10 * figures["size"]["snapshot"] / 2
    assert ran.stderr == ""


def test_it_says_what_it_saw() -> None:
    command = [sys.executable, "-m", "runcast.app", "demo", "--seed", "11"]
    environment = {**os.environ, "COLUMNS": "200"}
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"the worker was killed at event \d+", ran.stdout)
    assert "none lost, none doubled" in ran.stdout
    assert re.search(r"snapshot +[\d.,]+ k?B", ran.stdout)


async def test_a_desk_without_its_worker_keeps_requests_for_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pace=0.001)
    async with desk.cast as cast:
        with pytest.raises(NotFound, match="no agent is called"):
            await desk.ask("t1")
        await desk.start()
        pid = desk.worker.pid
        await desk.worker.start()  # harmless
        assert desk.worker.pid == pid
        with pytest.raises(NotFound, match="there is no thread"):
            await cast.resume("ghost")
        with pytest.raises(NotFound):
            cast.run("ghost")
        await desk.worker.kill()
        assert desk.worker.pid is None
        run = await cast.say("t1", script.QUESTION, agent="travel-desk")
        assert await cast.log.runs("t1") == []
        await desk.bring_back()
        await run.begun()
        assert await cast.stop(run.run_id, hard=True) == "asked"
        for _ in range(200):
            if await status(desk, "t1") != "in_progress":
                break
            await asyncio.sleep(0.05)
        assert await desk.bring_back() == []
        await desk.worker.end()
    assert desk.worker.pid is None


def test_keys_kill_the_worker_and_bring_it_back() -> None:
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS="200", TERM="xterm")
        os.execv(sys.executable, [sys.executable, "-m", "runcast.app", "demo"])
    try:
        greeting = until(terminal, "any key begins it without")
        url = re.search(r"http://\S+", greeting)
        assert url is not None
        assert re.search(r"live after \d+\.\d s", greeting)
        first = url.group().replace("\x1b[0m", "")
        address, token = first.split("/?")[0], first.split("token=")[1].split("&")[0]
        assert httpx.get(first, follow_redirects=False).headers["location"] == "./?thread=night-train"
        live = time.monotonic() - began
        assert live < 15  # five seconds are meant; a busy machine that runs tests may take longer
        bearer = {"authorization": f"Bearer {token}"}
        assert "the run begins when the page is open" in greeting
        with httpx.Client(base_url=address, timeout=60, headers=bearer) as http:
            assert http.get("/threads/night-train/runs").json()["runs"] == []  # nobody watches yet
            os.write(terminal, b" ")
            while not http.get("/threads/night-train/runs").json()["runs"]:
                time.sleep(0.1)
            os.write(terminal, b"k")
            until(terminal, "the page is not")
            assert http.get("/threads/night-train/envelopes").status_code == 200
            os.write(terminal, b"r")
            until(terminal, "resumes in")
        os.write(terminal, b"q")
        assert "snapshot" in until(terminal, "snapshot")
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        os.close(terminal)


def until(terminal: int, word: str, seconds: float = 40) -> str:
    """What the terminal shows until it shows this."""
    shown, patience = "", time.monotonic() + seconds
    while word not in shown:
        assert time.monotonic() < patience, shown
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
