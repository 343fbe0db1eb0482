"""Chromium, driven over its own protocol: no driver to install, and the test keeps its event loop.

Knows how to start it, open tabs and ask them; does not know the page.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

MISSING = "no Chromium here: apt-get install chromium"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-port=0", "--hide-scrollbars",
    "--disable-extensions", "--force-color-profile=srgb",
)  # fmt: skip
PATIENCE = 60.0  # a browser that starts from a cold disk takes its time
SHOTS = os.environ.get("RUNCAST_SCREENSHOTS")  # a folder that keeps what tests photograph


def program() -> str | None:
    """The browser that is installed."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Tab:
    """One page. Whatever it throws is kept in `errors`."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.errors: list[str] = []

    async def call(self, method: str, **params: Any) -> Any:
        return await self._browser.call(method, params, self._session)

    async def goto(self, url: str) -> None:
        """Open a page, and wait until its document is read; its scripts may not have run yet."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState !== 'loading'")

    async def reload(self) -> None:
        """Load the page again, also while it is being loaded."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.call("Page.reload")
                    return
                except RuntimeError as error:  # between two documents there is none to load again
                    if "Not attached" not in str(error):
                        raise
                    await asyncio.sleep(0.02)

    async def js(self, expression: str) -> Any:
        """The value of an expression; promises are awaited."""
        told = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise RuntimeError(json.dumps(told["exceptionDetails"])[:600])
        return told["result"].get("value")

    async def until(self, expression: str, seconds: float = PATIENCE) -> Any:
        """Wait until an expression is true; an expression that throws is not true yet. An element is true."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    found = await self.js(
                        f"(() => {{ try {{ const it = {expression}; return it instanceof Node || it instanceof Blob || it }} "
                        "catch { return null } })()"
                    )
                    if found:
                        return found
                    await asyncio.sleep(0.03)
        except TimeoutError:
            shown = await self.js("document.body.innerText.slice(0, 1500)")
            raise AssertionError(f"never true: {expression}\nerrors: {self.errors}\npage: {shown}") from None

    async def shows(self, expression: str, expected: Any) -> None:
        """Wait until an expression has this value: a page draws a moment after it has heard."""
        found: Any = None
        try:
            async with asyncio.timeout(PATIENCE):
                while (found := await self.js(expression)) != expected:  # noqa: ASYNC110  the page rings nobody
                    await asyncio.sleep(0.03)
        except TimeoutError:
            raise AssertionError(f"{expression}\nis {found!r}, not {expected!r}") from None

    async def click(self, selector: str) -> None:
        await self.until(f"document.querySelector({json.dumps(selector)}) !== null")
        await self.js(f"document.querySelector({json.dumps(selector)}).click()")

    async def press(self, text: str) -> None:
        """Click the button that says this."""
        found = f"[...document.querySelectorAll('button')].find((each) => each.textContent.trim() === {json.dumps(text)})"
        await self.until(f"{found} !== undefined")
        await self.js(f"{found}.click()")

    async def press_named(self, name: str, within: str = "body") -> None:
        """Click the button with this name, as a screen reader has it."""
        await self.click(f'{within} button[aria-label="{name}"]')

    async def type(self, selector: str, text: str) -> None:
        await self.js(f"document.querySelector({json.dumps(selector)}).focus()")
        await self.call("Input.insertText", text=text)

    async def size(self, width: int, height: int, *, dark: bool = False) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=scheme)

    async def shot(self, name: str, folder: Path | None = None) -> None:
        """A picture, where pictures are kept."""
        kept = folder or (Path(SHOTS) if SHOTS else None)
        if kept is None:
            return
        told = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(kept.mkdir, parents=True, exist_ok=True)
        (kept / f"{name}.png").write_bytes(base64.b64decode(told["data"]))

    async def offline(self, yes: bool) -> None:
        await self.call(
            "Network.emulateNetworkConditions",
            offline=yes,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )


class Browser:
    """A running Chromium."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tabs: dict[str, Tab] = {}
        self._reader = asyncio.create_task(self._read())

    async def call(self, method: str, params: dict[str, Any], session: str | None = None) -> Any:
        self._last += 1
        number = self._last
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        asked = {"id": number, "method": method, "params": params}
        await self._socket.send(json.dumps(asked if session is None else {**asked, "sessionId": session}))
        async with asyncio.timeout(PATIENCE):
            return await waiting

    async def _read(self) -> None:
        async for text in self._socket:
            told = json.loads(text)
            if "id" in told:
                waiting = self._waiting.pop(told["id"])
                if "error" in told:
                    waiting.set_exception(RuntimeError(str(told["error"])))
                elif not waiting.done():
                    waiting.set_result(told["result"])
            elif told["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
                tab = self._tabs.get(told.get("sessionId", ""))
                if tab is not None:
                    self._note(tab, told)

    def _note(self, tab: Tab, told: Any) -> None:
        entry = told["params"].get("entry")
        if entry is None:
            tab.errors.append(json.dumps(told["params"]["exceptionDetails"])[:500])
        elif entry["level"] == "error" and entry["source"] != "network":
            tab.errors.append(entry["text"])

    async def tab(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Tab:
        """A new tab in a profile of its own."""
        context = (await self.call("Target.createBrowserContext", {}))["browserContextId"]
        target = await self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context})
        joined = await self.call("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        tab = self._tabs[joined["sessionId"]] = Tab(self, joined["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            await tab.call(f"{domain}.enable")
        await tab.size(width, height, dark=dark)
        await tab.goto(url)
        return tab

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)


def _address(profile: Path) -> list[str]:
    """The port and the path that a started browser has written; none while it has not, or has written one of them."""
    file = profile / "DevToolsActivePort"
    written = file.read_text().split("\n") if file.exists() else []
    return written[:2] if len(written) > 1 and written[1] else []


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser with an empty profile, while the block runs."""
    installed = program()
    if installed is None:
        raise FileNotFoundError(MISSING)
    profile = Path(tempfile.mkdtemp(prefix="runcast-chromium-"))
    process = await asyncio.create_subprocess_exec(
        installed, *FLAGS, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "TMPDIR": str(profile)},
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            while not (found := _address(profile)):  # noqa: ASYNC110  a file is all it gives
                await asyncio.sleep(0.02)
        port, path = found
        async with connect(f"ws://127.0.0.1:{port}{path}", max_size=None) as socket:
            browser = Browser(socket)
            try:
                yield browser
            finally:
                await browser.close()
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its renderers too: they write on into the profile
        await process.wait()
        await asyncio.to_thread(shutil.rmtree, profile, ignore_errors=True)
