"""What a user would pick instead, end to end over HTTP: the server's CPU, the time to the first token, and the bytes.

One graph of so many tokens behind `POST /` of runcast (with a log, redaction and snapshots), behind `ag-ui-langgraph`'s FastAPI
endpoint, which keeps nothing, and in LangGraph's own development server (`runs/stream`, resumable). The last is shown where
`.venv-peers/langgraph_cli` has `langgraph-cli[inmem]`: it is not installed by itself. Runs of the servers alternate; CPU is
that of the server's process and its children, from the request until its work behind the run is done.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.hub import started
from tests.servers import free_port

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
CLI = ROOT / ".venv-peers" / "langgraph_cli" / "bin" / "langgraph"
TICKS = os.sysconf("SC_CLK_TCK")
SETTLED = 0.5  # seconds without work of the server: nothing is left to do


@dataclass
class Server:
    """A server under measure."""

    pid: int
    port: int
    request: Callable[[], tuple[str, Any]]
    cpu: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    size: int = 0

    def spent(self) -> float:
        """CPU seconds of the process and its children so far."""
        pids, total = [self.pid], 0.0
        for pid in pids:
            stat = Path(f"/proc/{pid}/stat").read_text()
            fields = stat[stat.rindex(")") + 2 :].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
        return total

    def run(self) -> None:
        """One run, read to its end."""
        path, body = self.request()
        before, began = self.spent(), time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        first, self.size = None, 0
        while data := answer.read1(1 << 16):
            if first is None and b"tok " in data:
                first = time.perf_counter() - began
            self.size += len(data)
        connection.close()
        if answer.status != 200 or first is None:
            raise RuntimeError(f"{path} answered {answer.status} and no token")
        self.first.append(first * 1e3)
        self.cpu.append(self.rested() - before)

    def rested(self) -> float:
        """CPU so far, once the server rests."""
        spent, quiet = self.spent(), time.monotonic()
        while time.monotonic() - quiet < SETTLED:
            time.sleep(0.05)
            now = self.spent()
            if now - spent > 2 / TICKS:
                spent, quiet = now, time.monotonic()
        return self.spent()


def ag_ui() -> tuple[str, Any]:
    thread = str(uuid.uuid4())
    message = {"id": f"u-{thread}", "role": "user", "content": "hi"}
    given = {"threadId": thread, "runId": f"run-{thread}", "messages": [message]}
    return "/", {**given, "state": {}, "tools": [], "context": [], "forwardedProps": {}}


def langgraph() -> tuple[str, Any]:
    message = {"role": "user", "content": "hi"}
    given = {"assistant_id": "agent", "input": {"messages": [message]}}
    return "/runs/stream", {**given, "stream_mode": "messages-tuple", "stream_resumable": True}


@contextmanager
def development(tokens: int, folder: Path) -> Iterator[Server]:
    """LangGraph's development server, with the same graph."""
    (folder / "graph.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from benchmarks._langgraph_load import talking\ngraph = talking({tokens})\n"
        "graph.checkpointer = None\n"  # the server has its own, and refuses another
    )
    (folder / "langgraph.json").write_text('{"dependencies": ["."], "graphs": {"agent": "./graph.py:graph"}}')
    port = free_port()
    command = [str(CLI), "dev", "--no-browser", "--no-reload", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, **quiet)  # type: ignore[call-overload]
    try:
        deadline = time.monotonic() + 60
        while not answers(port):
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError("langgraph dev does not start")
            time.sleep(0.2)
        yield Server(process.pid, port, langgraph)
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/ok")
        return connection.getresponse().status == 200
    except OSError:
        return False


def servers(stack: ExitStack, tokens: int) -> dict[str, Server]:
    found: dict[str, Server] = {}
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for kind in ("runcast", "ag-ui-langgraph"):
        store = f"sqlite:///{folder}/runs.db"
        it = stack.enter_context(started("benchmarks._endpoints_peer", kind, str(tokens), store))
        found[kind] = Server(it.process.pid, int(it.answer()), ag_ui)
    if CLI.exists():
        try:
            found["langgraph dev"] = stack.enter_context(development(tokens, folder))
        except RuntimeError as error:
            print(f"  langgraph dev cannot be measured here: {error}", file=sys.stderr)
    return found


def rows_of(found: dict[str, Server], tokens: int) -> list[Row]:
    ours, rows = found.pop("runcast"), []
    figures: dict[str, tuple[str, Callable[[Server], float]]] = {
        f"server CPU for {tokens:,} tokens": ("s", lambda it: statistics.median(it.cpu)),
        "time to the first token": ("ms", lambda it: statistics.median(it.first)),
        "bytes of the answer": ("bytes", lambda it: it.size),
    }
    for name, peer in found.items():
        for said, (unit, figure) in figures.items():
            mine, other = figure(ours), figure(peer)
            rows.append(
                {
                    "name": f"over HTTP, {said}, to {name}", "ours": mine, "peer": other, "unit": unit,
                    "ratio": mine / other, "bar": "shown", "ok": None,
                }
            )  # fmt: skip
    return rows


def run(quick: bool) -> list[Row]:
    tokens, rounds = (500, 1) if quick else (5_000, 5)
    with ExitStack() as stack:
        found = servers(stack, tokens)
        for server in found.values():
            server.run()
            server.cpu.clear()
            server.first.clear()
        for _ in range(rounds):
            for server in found.values():
                server.run()
        return rows_of(found, tokens)
