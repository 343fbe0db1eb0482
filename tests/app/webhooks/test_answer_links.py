"""A link answers one question of one run, once: it is signed, it expires, and its form is plain text with limits."""

from __future__ import annotations

import asyncio
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from ag_ui.core import Event, Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome

from runcast.app import AnswerLinks, Cast, Gone, NotAllowed, TooLarge
from runcast.app.errors import TooSlow
from runcast.app.http import answer_page, http_messages
from runcast.app.http.http_messages import ApiRequest
from tests.app.agents import asker
from tests.app.serving import serving

PATIENCE = 60.0


async def test_a_link_shows_the_question_and_answers_it_once() -> None:
    links = AnswerLinks("https://host", "s" * 32)
    async with serving(
        Cast.open("memory://", agents=[asker], answer_links=links), authorize=lambda *_: False
    ) as host:
        first = await (await host.cast.say("t1", "go")).result()
        assert first.status == "interrupted"

        def path(run_id: str, ago: int = 0) -> str:
            return links.link("", "t1", run_id, now=int(time.time()) - ago).removeprefix("https://host")

        link = path(first.run_id)
        for _ in range(2):  # a mail scanner opens it too
            page = await host.http.get(link)
            assert (page.status_code, "go on?" in page.text) == (200, True)
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert (await host.http.post(link, data={})).status_code == 400
        evil = {"origin": "https://evil.example"}
        assert (await host.http.post(link, data={"a0": "x"}, headers=evil)).status_code == 403
        posts = await asyncio.gather(*(host.http.post(link, data={"a0": "yes, please"}) for _ in range(3)))
        assert sorted(each.status_code for each in posts)[0] == 200
        assert sum(each.status_code == 200 for each in posts) == 1
        async with asyncio.timeout(PATIENCE):
            while (await host.cast.log.runs("t1"))[-1].status != "completed":  # noqa: ASYNC110  the run ends by itself
                await asyncio.sleep(0.01)
        assert len(await host.cast.log.runs("t1")) == 2
        assert (await host.http.get(link)).status_code == 410
        assert (await host.http.get(path(first.run_id, 10**6))).status_code == 410
        assert (await host.http.get(link[:-2] + "AA")).status_code == 403
        assert (await host.http.get("/threads/t1/runs")).status_code == 403  # the link opens nothing else
        again = await (await host.cast.say("t1", "go on")).result()
        assert (await host.http.get(path(again.run_id))).status_code == 200
        assert (await host.http.get(link)).status_code == 410  # it is not for the question of another run


@pytest.mark.parametrize(
    ("place", "name", "status"), [(ApiRequest, "read", 410), (answer_page, "told_of", 409)]
)
async def test_a_link_answers_no_later_question_of_the_same_id(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, status: int
) -> None:
    links, known = AnswerLinks("https://host", "s" * 32), getattr(place, name)
    async with serving(Cast.open("memory://", agents=[asker], answer_links=links)) as host:
        first = await (await host.cast.say("t1", "go")).result()

        async def meanwhile(*given: Any) -> Any:
            found = await known(*given)
            monkeypatch.setattr(place, name, known)
            await (await host.cast.resume("t1", {"q1": "by its owner"})).result()
            await (await host.cast.say("t1", "again")).result()
            return found

        monkeypatch.setattr(place, name, meanwhile)
        link = links.link("", "t1", first.run_id, now=int(time.time())).removeprefix("https://host")
        assert (await host.http.post(link, data={"a0": "by the link"})).status_code == status
        statuses = [each.status for each in await host.cast.log.runs("t1")]
        assert statuses == ["interrupted", "completed", "interrupted"]


async def test_a_question_is_text_to_the_page_that_asks_it() -> None:
    async def sly(input: RunAgentInput) -> AsyncIterator[Event]:
        asked = Interrupt(id="q", reason="r", message="<script>go</script>")
        yield RunFinishedEvent(
            thread_id=input.thread_id,
            run_id=input.run_id,
            outcome=RunFinishedInterruptOutcome(interrupts=[asked]),
        )

    links = AnswerLinks("https://host", "s" * 32)
    async with serving(Cast.open("memory://", agents=[sly], answer_links=links)) as host:
        run = await (await host.cast.say("t1", "go")).result()
        link = links.link("", "t1", run.run_id, now=int(time.time())).removeprefix("https://host")
        page = (await host.http.get(link)).text
        assert "&lt;script&gt;go" in page
        assert "<script" not in page


async def test_the_form_of_a_link_has_a_deadline_and_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_messages, "BODY_TIMEOUT", 0.2)
    links = AnswerLinks("https://host", "s" * 32)
    async with serving(Cast.open("memory://", agents=[asker], answer_links=links)) as host:
        first = await (await host.cast.say("t1", "go")).result()
        link = links.link("", "t1", first.run_id, now=int(time.time())).removeprefix("https://host")
        assert (await host.http.post(link, data={"a0": "x" * 100_001})).status_code == TooLarge.status
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(host.url).port)
        head = (
            f"POST {link} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n"
        )
        writer.write(f"{head}content-length: 100\r\n\r\na0=".encode())
        async with asyncio.timeout(PATIENCE):
            assert f" {TooSlow.status} ".encode() in await reader.readline()
        writer.close()


def test_only_our_links_are_read_and_only_in_their_time() -> None:
    links, other = AnswerLinks("https://host", "s" * 32), AnswerLinks("https://host", "t" * 32)
    token = links.link("acme", "t 1", "r1", now=1_000).rpartition("/")[2]
    assert links.read(token, now=2_000)[:3] == ("acme", "t 1", "r1")
    for bad in ("", "x", token[:-1], "A" + token[1:], token + "A"):
        with pytest.raises(NotAllowed):
            links.read(bad, now=2_000)
    raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for at in range(len(raw)):  # every byte is proven, and every byte of the proof counts
        bad = urlsafe_b64encode(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]).rstrip(b"=").decode()
        with pytest.raises(NotAllowed):
            links.read(bad, now=2_000)
    with pytest.raises(NotAllowed):
        other.read(token, now=2_000)
    with pytest.raises(Gone):
        links.read(token, now=1_000 + links.lasting)
    with pytest.raises(ValueError, match="at least 32"):
        AnswerLinks("https://host", "short")
    assert "s" * 32 not in repr(links)
    assert httpx.URL(links.link("", "t", "r", now=1)).path.startswith("/answers/")
