"""The npm package: what `npm pack` makes holds one module without dependencies, its types, and the custom element."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.house.tree import ROOT

WEB = ROOT / "app" / "web"
CONSUMER = """
import { apply, initial, Reader, watch, type Envelope, type View, type Watching } from "runcast";
const options: Watching = { thread: "t1", onChange: (view: View) => console.log(view.items.length) };
const stop: () => void = watch(options);
declare const envelope: Envelope;
const verdict: "apply" | "drop" | "fetch" | "restart" = new Reader({ last: 0 }).take(envelope);
apply(initial("t1"), envelope).items.map(({ kind }) => kind);
stop();
console.log(verdict);
"""


AGENTS = """
import type { AbstractAgent, BaseEvent, HttpAgent } from "@ag-ui/client";
import type { Observable } from "rxjs";
import { RuncastAgent, type RuncastAgentConfig, RuncastRunner, type ThreadRow } from "runcast/agui";
const config: RuncastAgentConfig = { url: "http://127.0.0.1/agents/a", threadId: "t1", patience: 1000 };
const agent: HttpAgent = new RuncastAgent(config);
const own = agent as RuncastAgent;
const leave: () => void = own.follow();
const threads: Promise<ThreadRow[]> = own.threads();
const stopped: Promise<boolean> = own.stop({ hard: true });
void own.branch("r1", "again").then(({ newMessages }) => newMessages.length);
const events: Observable<BaseEvent> = new RuncastRunner({ url: "http://127.0.0.1/" }).connect({ threadId: "t1" });
export { events, leave, stopped, threads };
export type Any = AbstractAgent;
"""
# A module's most bytes, as it is served; what a page loads with `watch` has to stay small.
MOST = {"runcast.js": 40_000, "reader.js": 4_000, "agui.js": 40_000, "runcast-thread.js": 450_000}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in whose node_modules the packed package lies."""
    npm = shutil.which("npm")
    if npm is None or not (WEB / "node_modules").is_dir():
        missing("the package is made by Node and its packages: run make web")
    folder = tmp_path_factory.mktemp("consumer")
    subprocess.run(
        [str(npm), "pack", "--silent", "--pack-destination", str(folder)], cwd=WEB, check=True, capture_output=True, timeout=300
    )  # fmt: skip
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (folder / "node_modules").mkdir()
    (folder / "unpacked" / "package").rename(folder / "node_modules" / "runcast")
    return folder


def test_it_needs_no_other_package(installed: Path):
    package = json.loads((installed / "node_modules" / "runcast" / "package.json").read_text())
    assert package.get("dependencies", {}) == {}
    for name in ("runcast.js", "runcast-thread.js"):
        text = (installed / "node_modules" / "runcast" / "dist" / name).read_text()
        assert 'from "' not in text, "one module each"


def test_it_is_imported_by_its_name(installed: Path):
    script = "const it = await import('runcast'); console.log(Object.keys(it).sort().join())"
    ran = subprocess.run(
        ["node", "--input-type=module", "--eval", script], cwd=installed, check=True, capture_output=True, text=True, timeout=60
    )  # fmt: skip
    known = {"Reader", "apply", "authorizer", "channelFor", "initial", "patched", "watch"}
    assert known <= set(ran.stdout.strip().split(","))


def test_its_modules_stay_small(installed: Path):
    dist = installed / "node_modules" / "runcast" / "dist"
    sizes = {path.name: path.stat().st_size for path in dist.glob("*.js")}
    assert {name: size for name, size in sizes.items() if size > MOST.get(name, 10_000)} == {}
    assert "agui.js" in sizes


@pytest.mark.parametrize("peer", ["@ag-ui/client", "ag-ui-client-earlier"])
def test_its_agents_have_strict_types_beside_both_ends_of_their_peers(installed: Path, peer: str):
    peers = installed / "node_modules" / "@ag-ui"
    peers.mkdir(exist_ok=True)
    for link, target in (("@ag-ui/client", peer), ("@ag-ui/core", "@ag-ui/core"), ("rxjs", "rxjs")):
        (installed / "node_modules" / link).unlink(missing_ok=True)
        (installed / "node_modules" / link).symlink_to(
            WEB / "node_modules" / target, target_is_directory=True
        )
    check_types(installed, AGENTS)


def test_its_types_are_strict(installed: Path):
    check_types(installed, CONSUMER)


def check_types(installed: Path, program: str) -> None:
    """Compile a program against the package as it was packed."""
    (installed / "consumer.ts").write_text(program)
    tsc = WEB / "node_modules" / ".bin" / "tsc"
    options = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--exactOptionalPropertyTypes",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--target",
        "es2022",
    ]
    ran = subprocess.run(
        [str(tsc), *options, "consumer.ts"], cwd=installed, check=False, capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
