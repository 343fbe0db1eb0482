"""CopilotKit in Chromium as npm gives it, its runtime and its chat, while lines break and processes die under it.

What the page shows is held to what the agents of `writers.py` write undisturbed. The packages are large, so only the
long form runs this: `make copilotkit`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from runcast.slim import RunLog, open_store
from tests.e2e import oracle
from tests.e2e.browser import Browser, Tab, browsing
from tests.e2e.npm_client import WEB
from tests.e2e.react import EXAMPLES, installed, served, vite
from tests.e2e.writers import answer
from tests.reliability.network import Network, port_of
from tests.reliability.nodes import Node, Shared, again, running
from tests.servers import free_port, own_schema, postgres_server

__all__ = ["postgres_server"]

pytestmark = [pytest.mark.server, pytest.mark.slow]

TURNS, RELOADS = 10, 5  # fifty reloads
THREAD = "t1"
MESSAGES = "[data-testid=copilot-user-message], [data-testid=copilot-assistant-message]"
SHOWN = f"[...document.querySelectorAll({MESSAGES!r})].map((each) => [each.dataset.testid.split('-')[1], each.innerText.trim()])"
SEND = "[data-testid=copilot-send-button]"
BROKEN = re.compile("network error|Failed to fetch|ERR_|Load failed|BodyStreamBuffer was aborted")


class Runtime:
    """A process of CopilotKit's runtime. It keeps its port over all its lives."""

    def __init__(self, script: str, host: str) -> None:
        self.port = free_port()
        self._script = script
        self._host = host
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        settings = {
            "RUNCAST_URL": self._host,
            "PORT": str(self.port),
            "COPILOTKIT_TELEMETRY_DISABLED": "true",
        }
        self._process = await asyncio.create_subprocess_exec(
            str(shutil.which("node")), self._script, cwd=EXAMPLES / "copilotkit", env={**os.environ, **settings},
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        async with asyncio.timeout(60), httpx.AsyncClient() as http:
            while True:
                try:
                    (await http.get(f"http://127.0.0.1:{self.port}/api/copilotkit/info")).raise_for_status()
                    return self
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)

    async def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        assert self._process.returncode is None, "a cut line ended the runtime's process"
        self._process.kill()
        await self._process.wait()

    async def ended(self) -> int:
        """Wait until it ends by itself."""
        assert self._process is not None
        async with asyncio.timeout(60):
            return await self._process.wait()

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page; the runtime, and the one that keeps its threads in memory, lie beside their packages."""
    folder = installed("copilotkit", "make copilotkit")
    page = tmp_path_factory.mktemp("page")

    async def build() -> None:
        await vite(folder, "--outDir", str(page))
        await vite(folder, "--ssr", "runtime.js", "--outDir", "build")

    asyncio.run(build())
    shutil.copy(oracle.HERE / "copilotkit_memory.mjs", folder / "build")
    return page


@dataclass
class Scene:
    """Two workers and a web node, two runtimes, and a page; between each two of them a line that can be cut."""

    page: str
    browser: Browser
    workers: list[Node]
    web: Node
    behind: Network  # between the first runtime and runcast
    runtime: Runtime
    before: Network  # between the page and the first runtime
    second: Runtime
    direct: Network  # between a page without a runtime and runcast
    rng: random.Random
    done: Counter[str] = field(default_factory=Counter)

    async def tab(self, port: int) -> Tab:
        return await self.browser.tab(f"{self.page}/?thread={THREAD}&runtime={at(port)}/api/copilotkit")

    async def without_runtime(self) -> Tab:
        return await self.browser.tab(f"{self.page}/?thread={THREAD}&host={at(self.direct.port)}")

    async def cut_behind(self, tab: Tab) -> None:
        self.behind.cut()

    async def cut_before(self, tab: Tab) -> None:
        self.before.cut()

    async def cut_direct(self, tab: Tab) -> None:
        self.direct.cut()

    async def reload(self, tab: Tab) -> None:
        await tab.reload()

    async def kill_workers(self, tab: Tab) -> None:
        """kill -9 of all that could run the agent."""
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            await again(worker)

    async def kill_runtime(self, tab: Tab) -> None:
        await self.runtime.kill()
        await self.runtime.__aenter__()
        await tab.reload()  # a page that loads while there is no runtime does not ask again

    async def disturb(self, tab: Tab, *what: Any) -> None:
        for each in self.rng.sample(what, len(what)):
            await asyncio.sleep(self.rng.uniform(0.02, 0.5))
            await each(tab)
            self.done[each.__name__] += 1


def at(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@pytest.fixture(params=["langgraph", "adk"])
def framework(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def nodes(framework: Any, postgres_server: str, tmp_path: Path) -> Iterator[tuple[list[Node], Node, Shared]]:
    shared = Shared(own_schema(postgres_server), None, str(tmp_path / "effects"), cors=("*",))
    with running(2, 1, shared, role=framework) as (workers, webs):
        yield workers, webs[0], shared


@pytest.fixture
async def scene(built: Path, nodes: tuple[list[Node], Node, Shared]) -> AsyncIterator[Scene]:
    workers, web, _ = nodes
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(served(built))
        browser = await stack.enter_async_context(browsing())
        behind, direct = [await stack.enter_async_context(Network(port_of(web.address))) for _ in range(2)]
        runtime = await stack.enter_async_context(Runtime("build/runtime.js", at(behind.port)))
        before = await stack.enter_async_context(Network(runtime.port))
        second = await stack.enter_async_context(Runtime("build/runtime.js", web.address))
        yield Scene(page, browser, workers, web, behind, runtime, before, second, direct, random.Random(17))


def written(turns: int) -> list[list[str]]:
    """What a page shows of so many undisturbed turns."""
    return [
        message
        for turn in range(turns)
        for message in (["user", f"question {turn}"], *(["assistant", part] for part in answer(turn)))
    ]


async def ask(tab: Tab, turn: int) -> None:
    """Type a question, and wait until its answer begins: what did not reach the host is not disturbed."""
    await tab.until(f"document.querySelectorAll('[data-testid=copilot-user-message]').length === {turn}")
    question = f"question {turn}"
    await tab.until("document.querySelector('textarea')?.value === ''")
    await tab.type("textarea", question)
    async with asyncio.timeout(60):  # the button is off until the page has connected
        while await tab.js("document.querySelector('textarea').value !== ''"):
            await tab.js(f"document.querySelector({SEND!r})?.click()")
            await asyncio.sleep(0.1)
    await tab.until(f"JSON.stringify({SHOWN}).includes({question!r})")
    await tab.until(f"JSON.stringify({SHOWN}).includes('w{turn}-0-0')")


async def shows(tab: Tab, turns: int) -> None:
    """Wait until the page shows these turns whole, and nothing else."""
    await tab.until(
        f"JSON.stringify({SHOWN}) === {json.dumps(json.dumps(written(turns), separators=(',', ':')))}"
    )


def unexpected(*tabs: Tab) -> list[str]:
    """Errors of pages but for those that say that a line broke."""
    return [error for tab in tabs for error in tab.errors if not BROKEN.search(error)]


async def test_reloads_cuts_and_kills_end_in_the_text_of_an_undisturbed_run(
    scene: Scene, nodes: tuple[list[Node], Node, Shared]
) -> None:
    tab = await scene.tab(scene.before.port)
    others: list[Tab] = []
    for turn in range(TURNS):
        await ask(tab, turn)
        what = [scene.reload] * RELOADS + [scene.cut_behind, scene.cut_before, scene.kill_workers]
        await scene.disturb(tab, *what, *([scene.kill_runtime] if turn % 3 == 2 else []))
        others.append(await scene.tab(scene.second.port))  # a second browser, over another runtime
        await shows(tab, turn + 1)
        await shows(others[-1], turn + 1)
    async with RunLog(open_store(nodes[2].postgres), derive="manual") as log:
        scene.done["resumed"] = sum(run.edge == "resume" for run in await log.runs(THREAD))
    print(dict(scene.done), "lines cut:", scene.behind.cuts, scene.before.cuts)
    assert scene.done["reload"] == TURNS * RELOADS
    assert scene.done["resumed"] > 0
    assert unexpected(tab, *others) == []
    await scene.runtime.kill()  # it lives: only this test ends it
    await scene.second.kill()


async def test_a_cut_line_comes_back_without_a_reload_and_without_a_runtime_too(scene: Scene) -> None:
    tab, direct = await scene.tab(scene.before.port), await scene.without_runtime()
    for turn in range(3):
        await ask(tab, turn)
        await scene.disturb(tab, *[scene.cut_before] * 2, *[scene.cut_behind] * 2)
        await shows(tab, turn + 1)
    await direct.reload()
    for turn in range(3, 6):
        await ask(direct, turn)
        await scene.disturb(direct, *[scene.cut_direct] * 5, scene.kill_workers)
        await shows(direct, turn + 1)
    assert unexpected(tab, direct) == []


async def test_a_run_that_the_server_started_is_followed_and_stopped(scene: Scene) -> None:
    async with httpx.AsyncClient(base_url=scene.web.address, timeout=30) as http:

        async def start(turn: int) -> None:
            body = {"message": f"question {turn}", "agent": "writer"}
            (await http.post(f"/threads/{THREAD}/runs", json=body)).raise_for_status()

        async def newest() -> Any:
            return (await http.get(f"/threads/{THREAD}/runs")).json()["runs"][-1]

        await start(0)
        one, two = await scene.tab(scene.before.port), await scene.tab(scene.second.port)
        for tab in (one, two):
            await shows(tab, 1)
        await ask(one, 1)
        await two.reload()
        for tab in (one, two):
            await shows(tab, 2)
        await ask(one, 2)
        await one.click(SEND)  # while a run is active, it is the button that stops it
        await one.until(f"document.querySelector({SEND!r}).disabled")
        async with asyncio.timeout(60):
            while (run := await newest())["status"] == "in_progress":  # noqa: ASYNC110  a row is all there is
                await asyncio.sleep(0.05)
        assert run["status"] == "cancelled"
        assert unexpected(one, two) == []


async def test_control_the_runner_in_memory_loses_the_thread_when_its_process_dies(scene: Scene) -> None:
    async with Runtime("build/copilotkit_memory.mjs", scene.web.address) as runtime:
        tab = await scene.tab(runtime.port)
        await ask(tab, 0)
        await shows(tab, 1)
        await tab.reload()
        await shows(tab, 1)
        await runtime.kill()
        async with runtime:
            await tab.reload()
            connected = "performance.getEntriesByType('resource').some((each) => each.name.endsWith('/connect') && each.responseEnd > 0)"
            await tab.until(connected)
            await tab.shows(SHOWN, [])
        mine = await scene.tab(scene.second.port)
        await shows(mine, 1)


FITS = """
import { CopilotRuntime } from "@copilotkit/runtime/v2";
import { RuncastAgent, RuncastRunner } from "runcast/agui";
const agents = { writer: new RuncastAgent({ url: "http://host/agents/writer" }) };
export const runtime = new CopilotRuntime({ agents, runner: new RuncastRunner({ url: "http://host/" }) });
"""
STRICT = {
    "compilerOptions": {
        "strict": True, "noEmit": True, "skipLibCheck": True, "module": "nodenext", "target": "es2022",
        "lib": ["es2023", "dom", "dom.iterable"], "types": [],
    },
    "files": ["fits.ts"],
}  # fmt: skip


def test_the_types_are_those_of_the_runtimes_own_seam() -> None:
    folder = installed("copilotkit", "make copilotkit") / "build"
    package = folder / "node_modules" / "runcast"
    package.mkdir(parents=True, exist_ok=True)
    tsc = [str(WEB / "node_modules" / ".bin" / "tsc"), "--project"]
    subprocess.run([*tsc, "tsconfig.agui.json", "--outDir", str(package / "types")], cwd=WEB, check=True)
    door = {"./agui": {"types": "./types/agui/index.d.ts"}}
    (package / "package.json").write_text(json.dumps({"name": "runcast", "type": "module", "exports": door}))
    (folder / "fits.ts").write_text(FITS)
    (folder / "tsconfig.json").write_text(json.dumps(STRICT))
    subprocess.run([*tsc, "tsconfig.json"], cwd=folder, check=True)
