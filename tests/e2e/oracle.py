"""The official TypeScript client as a judge: one Node process, asked over stdin thousands of times.

Knows how to talk to `js/oracle.mjs`; does not know what a right answer is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "js"
MISSING = "the TypeScript client is not installed: put Node >= 20 with npm on PATH and run `make js`"


def available() -> bool:
    return shutil.which("node") is not None and (HERE / "node_modules" / "@ag-ui" / "client").is_dir()


class Oracle:
    """Ask the client of record what it makes of a stream. Use as a context manager, or call `close`."""

    def __init__(self) -> None:
        node = shutil.which("node")
        if node is None or not available():
            raise RuntimeError(MISSING)
        self._process = subprocess.Popen(
            [node, "oracle.mjs"], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, op: str, **request: Any) -> Any:
        """Send one request, return its answer. Events may be models, or JSON-ready dicts."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"op": op, **request}, default=_plain)
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            raise RuntimeError(f"the oracle died on {op!r}")
        answer = json.loads(reply)
        if answer.get("harness"):
            raise RuntimeError(f"the oracle failed on {op!r}: {answer['error']}")
        return answer

    def verify(self, events: Sequence[Any]) -> Any:
        """`verifyEvents` alone."""
        return self.ask("verify", events=list(events))

    def accepts(self, events: Sequence[Any]) -> Any:
        """`transformChunks -> verifyEvents`; `passed` counts the events that went in before the first offender."""
        return self.ask("accepts", events=list(events))

    def pipeline(self, events: Sequence[Any]) -> Any:
        """`enforceEvents -> transformChunks -> verifyEvents`, the client's door."""
        return self.ask("pipeline", events=list(events))

    def earlier(self, events: Sequence[Any]) -> Any:
        """The door of client 0.0.59, which CopilotKit ships."""
        return self.ask("earlier", events=list(events))

    def apply(self, events: Sequence[Any], **start: Any) -> Any:
        """`defaultApplyEvents` alone; `messages=` and `state=` say what the client held before."""
        return self.ask("apply", events=list(events), **start)

    def compact(self, events: Sequence[Any]) -> list[Any]:
        """The official `compactEvents`."""
        answer: list[Any] = self.ask("compact", events=list(events))["events"]
        return answer

    def run(self, *runs: Sequence[Any], **start: Any) -> Any:
        """`AbstractAgent.runAgent` over whole runs, one after the other, on one client."""
        scripts = [run if isinstance(run, dict) else {"events": list(run)} for run in runs]
        return self.ask("run", runs=scripts, **start)

    def run_earlier(self, *runs: Any, **start: Any) -> Any:
        """The same, on client 0.0.59."""
        return self.ask("run_earlier", runs=list(runs), **start)

    def batch(self, requests: Sequence[dict[str, Any]]) -> list[Any]:
        """Many requests in one round trip: what property tests want."""
        answers: list[Any] = self.ask("batch", requests=list(requests))["answers"]
        return answers

    def close(self) -> None:
        """End the Node process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait(timeout=10)

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"cannot send a {type(value).__name__} to the oracle")
    return dump(mode="json", by_alias=True)
