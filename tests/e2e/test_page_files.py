"""Files that go with a message: offered where the agent takes them, refused with a reason, shown where they were sent."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, UserMessage

from runcast.app import Cast
from tests.app.agents import parrot, said
from tests.app.serving import serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, Tab, browsing, program
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server]

DOT = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


async def add(tab: Tab, *files: Path) -> None:
    """Choose files, as in the browser's own dialog."""
    document = await tab.call("DOM.getDocument")
    found = await tab.call("DOM.querySelector", nodeId=document["root"]["nodeId"], selector="#file")
    await tab.call("DOM.setFileInputFiles", files=[str(each) for each in files], nodeId=found["nodeId"])


async def test_a_picture_goes_with_a_message_and_other_files_are_refused(tmp_path: Path) -> None:
    if program() is None:
        missing(MISSING)
    got: list[Any] = []

    async def viewer(input: RunAgentInput) -> AsyncIterator[Event]:
        got.append(input.messages[-1])
        for event in said(input.run_id, "I see a dot."):
            yield event

    viewer.files = ("image", "pdf")  # type: ignore[attr-defined]  # as a user marks a function
    for name, content in (
        ("dot.gif", DOT),
        ("notes.zip", b"PK"),
        ("huge.png", b"\x89PNG" + bytes(5_000_000)),
    ):
        (tmp_path / name).write_bytes(content)
    async with browsing() as browser, serving(Cast.open("memory://", agents=[viewer, parrot])) as host:
        tab = await browser.tab(f"{host.url}/")
        await tab.until("document.getElementById('file') !== null")
        await tab.shows("document.getElementById('file').accept", "image/*,application/pdf")
        await add(tab, tmp_path / "dot.gif", tmp_path / "notes.zip", tmp_path / "huge.png")
        await tab.until("document.querySelectorAll('#files li').length === 1")
        refused = await tab.js("document.getElementById('refused').textContent")
        assert "notes.zip was left out: this agent takes images, PDF." in refused
        assert "huge.png was left out: files of a message have at most 5 MB together." in refused
        await tab.type("#ask", "What is this?")
        await tab.click("#send")
        await tab.until("document.querySelector('.said img')?.naturalWidth === 1")
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        message = got[0]
        assert isinstance(message, UserMessage)
        assert isinstance(message.content, list)
        text, picture = message.content
        assert (text.type, text.text) == ("text", "What is this?")
        assert (picture.type, base64.b64decode(picture.source.value)) == ("image", DOT)
        await tab.reload()
        await tab.until("document.querySelector('.said img')?.naturalWidth === 1")
        await tab.shows("document.querySelectorAll('#files li').length", 0)
        await tab.js("document.getElementById('agent').value = 'parrot'")
        await tab.js("document.getElementById('agent').dispatchEvent(new Event('change', { bubbles: true }))")
        await tab.until("document.getElementById('file') === null")  # it takes none
        assert tab.errors == []


async def test_parts_that_the_protocol_does_not_know_are_refused() -> None:
    async with serving() as host:
        for wrong in ([], [{"type": "hologram"}], [5]):
            answer = await host.http.post("/threads/t1/runs", json={"message": wrong, "agent": "parrot"})
            assert answer.status_code == 400, wrong
        parts = [{"type": "text", "text": "in parts"}]
        assert (
            await host.http.post("/threads/t1/runs", json={"message": parts, "agent": "parrot"})
        ).status_code == 202
