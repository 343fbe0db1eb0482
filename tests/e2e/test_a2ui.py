"""A2UI's own React renderer in Chromium: the DOM of a surface is the same before and after a reload.

LangGraph and ADK draw. One surface is too large for an envelope, one grows, one is broken, and one is unfinished: its run
waits, and then fails.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.events.ui_widget import UiWidget
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from runcast.adapters.langgraph import activity, activity_patch
from runcast.app import Cast
from tests.app.serving import Served, anyone, serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, Browser, Tab, browsing, program
from tests.e2e.npm_client import WEB
from tests.house.tree import ROOT

pytestmark = pytest.mark.server

FOLDER = ROOT / "tests" / "e2e" / "js-a2ui"
BUNDLE = 900_000  # bytes of the judge itself: React, A2UI, the official client, and nothing by accident
CATALOG = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"


def created(surface: str) -> dict[str, Any]:
    return {"version": "v0.9", "createSurface": {"surfaceId": surface, "catalogId": CATALOG}}


def shown(surface: str, *components: dict[str, Any]) -> dict[str, Any]:
    return {"version": "v0.9", "updateComponents": {"surfaceId": surface, "components": list(components)}}


def filled(surface: str, value: Any) -> dict[str, Any]:
    return {"version": "v0.9", "updateDataModel": {"surfaceId": surface, "path": "/", "value": value}}


def text(id: str, value: Any) -> dict[str, Any]:
    return {"id": id, "component": "Text", "text": value}


def column(*children: str) -> dict[str, Any]:
    return {"id": "root", "component": "Column", "children": list(children)}


CARD = [
    created("card"),
    shown(
        "card",
        {"id": "root", "component": "Card", "child": "all"},
        {**column("title", "name", "go"), "id": "all"},
        text("title", {"path": "/title"}),
        {"id": "name", "component": "TextField", "label": "Name", "value": {"path": "/name"}},
        {"id": "go", "component": "Button", "child": "label", "action": {"event": {"name": "book"}}},
        text("label", "Book it"),
    ),
    filled("card", {"title": "Zug nach Łódź", "name": "Ada"}),
]
ROWS = [
    created("rows"),
    shown("rows", column(*(f"t{n}" for n in range(300))), *(text(f"t{n}", f"Row {n}") for n in range(300))),
]
BROKEN = [
    created("broken"),
    shown("broken", column("here", "nowhere"), text("here", "Half of it")),
    shown("lost", text("t", "x")),
]
HALF = [created("half"), shown("half", column("one", "two"), text("one", "First"))]
GROWN = [shown("rows", text("t299", "The last row has changed"))]
LATER = [shown("half", text("two", "Second"))]


@dataclass
class Drawing:
    """A graph that draws, waits, draws again and fails."""

    wait: asyncio.Event = field(default_factory=asyncio.Event)

    async def draw(self, state: MessagesState) -> dict[str, Any]:
        write = get_stream_writer()
        for id, operations in (("card", CARD), ("rows", ROWS), ("grown", [created("grown")])):
            write(activity(id, "a2ui-surface", {"a2ui_operations": operations}))
        for operation in (
            shown("grown", column("a"), text("a", {"path": "/said"})),
            filled("grown", {"said": "Grown"}),
        ):
            write(activity_patch("grown", "a2ui-surface", [add(operation)]))
        write(activity("broken", "a2ui-surface", {"status": "failed", "a2ui_operations": BROKEN}))
        write(activity("half", "a2ui-surface", {"a2ui_operations": HALF}))
        await self.wait.wait()
        write(activity_patch("half", "a2ui-surface", [add(each) for each in LATER]))
        write(activity_patch("rows", "a2ui-surface", [add(each) for each in GROWN]))
        raise RuntimeError("the model is away")

    def graph(self) -> Any:
        builder: Any = StateGraph(MessagesState)
        builder.add_node("draw", self.draw)
        builder.add_edge(START, "draw")
        builder.add_edge("draw", END)
        return builder.compile(checkpointer=InMemorySaver())


def add(operation: dict[str, Any]) -> dict[str, Any]:
    return {"op": "add", "path": "/a2ui_operations/-", "value": operation}


class Painter(BaseAgent):
    """An ADK agent that draws by ADK's own widgets, one of them twice."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncIterator[Event]:
        for id, operations in (("card", CARD), ("rows", ROWS), ("rows", [*ROWS, *GROWN]), ("half", HALF)):
            widget = UiWidget(id=id, provider="a2ui-surface", payload={"a2ui_operations": operations})
            yield Event(author=self.name, actions=EventActions(render_ui_widgets=[widget]))


async def build(folder: Path) -> None:
    """The judge's page, bundled by the page's own tools."""
    npx = shutil.which("npx")
    if npx is None or not (FOLDER / "node_modules").is_dir() or not (WEB / "node_modules").is_dir():
        missing("A2UI's renderer is not installed: put Node >= 20 with npm on PATH and run `make setup js`")
    process = await asyncio.create_subprocess_exec(
        str(npx),
        "vite",
        "build",
        str(FOLDER),
        "--base",
        "./",
        "--logLevel",
        "error",
        "--outDir",
        str(folder),
        cwd=WEB,
    )
    assert await process.wait() == 0


@dataclass
class Scene:
    """A host, the judge's page on it, and a browser."""

    host: Served
    browser: Browser
    drawing: Drawing

    async def tab(self, thread: str) -> Tab:
        return await self.browser.tab(
            f"{self.host.url}/judge/index.html?host={self.host.url}/&thread={thread}"
        )

    async def begin(self, thread: str, agent: str) -> None:
        given = {"message": "draw", "agent": agent}
        assert (await self.host.http.post(f"/threads/{thread}/runs", json=given)).status_code == 202


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    if program() is None:
        missing(MISSING)
    await build(tmp_path / "dist")
    assert sum(file.stat().st_size for file in (tmp_path / "dist").rglob("*.js")) < BUNDLE
    drawing = Drawing()
    cast = Cast.open("memory://")
    cast.register(drawing.graph(), name="graph")
    cast.register(Painter(name="painter"), name="painter")
    judge = Mount("/judge", StaticFiles(directory=tmp_path / "dist"))
    app = Starlette(routes=[judge, Mount("/", cast.asgi(authorize=anyone))])
    async with serving(cast, app=app) as host, browsing() as browser:
        yield Scene(host, browser, drawing)


async def drawn(tab: Tab, surfaces: int, run: str) -> Any:
    """The DOM of each surface, once all are there and whole."""
    await tab.until(
        f"seen()?.surfaces === {surfaces} && seen().whole && seen().link === 'live' && seen().run === '{run}'"
    )
    await tab.until("Object.values(drawn()).every(({ html }) => html !== '')")
    return await tab.js("drawn()")


async def same_after_a_reload(scene: Scene, tab: Tab, thread: str, before: Any, run: str) -> None:
    """Whoever comes now sees what is seen already: `watch` after a reload, and the official client."""
    other = await scene.tab(thread)
    await tab.reload()
    for each in (tab, other):
        assert await drawn(each, len(before), run) == before
    await tab.js("join()")
    await tab.until("JSON.stringify(joined()) === JSON.stringify(drawn())")


async def test_surfaces_of_a_graph_are_drawn_the_same_after_a_reload(scene: Scene) -> None:
    tab = await scene.tab("t")
    await scene.begin("t", "graph")
    before = await drawn(tab, 5, "in_progress")
    texts = {id: each["text"] for id, each in before.items()}
    assert "Zug nach Łódź" in texts["card"]
    assert "Row 299" in texts["rows"]
    assert "Grown" in texts["grown"]
    assert "First" in texts["half"]
    assert before["broken"]["problems"]
    assert not before["card"]["problems"]
    await same_after_a_reload(scene, tab, "t", before, "in_progress")
    scene.drawing.wait.set()
    await tab.until("drawn().half.text.includes('Second') && drawn().rows.text.includes('has changed')")
    after = await drawn(tab, 5, "failed")
    assert {id for id in before if before[id] != after[id]} == {"half", "rows"}
    await same_after_a_reload(scene, tab, "t", after, "failed")
    log = scene.host.cast.log
    await log.archive.compact("t")
    await same_after_a_reload(scene, tab, "t", after, "failed")
    page = (await scene.host.http.get("/threads/t/envelopes")).json()["envelopes"]
    referred = [each["payload"]["message_id"] for each in page if each["payload"].get("by_reference")]
    assert set(referred) == {"rows"}  # too large for an envelope, and drawn all the same


async def test_surfaces_of_an_adk_agent_are_drawn_the_same_after_a_reload(scene: Scene) -> None:
    tab = await scene.tab("a")
    await scene.begin("a", "painter")
    before = await drawn(tab, 3, "completed")
    assert "has changed" in before["rows"]["text"]
    await same_after_a_reload(scene, tab, "a", before, "completed")
