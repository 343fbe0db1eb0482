"""A remote agent through the adapter, over a real socket: whatever the server does, the run is whole and says what to do."""

from __future__ import annotations

import asyncio
import gzip
import logging
import random

import pytest
from ag_ui.core import Event, RunAgentInput, RunErrorEvent, RunFinishedEvent, UserMessage

from runcast.adapters import UnknownRun
from runcast.adapters.remote import AgentClient, RemoteAdapter, RemoteError, RemoteOptions
from runcast.app import Cast
from runcast.slim import encode, fold, verify
from tests.adapters.remote.serving import HEAD, serving, sse
from tests.streams import structured

ASKED = RunAgentInput(thread_id="t", run_id="r", messages=[UserMessage(id="u", content="hi")])
HELLO = [
    b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}',
    b'{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}',
    b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hello"}',
    b'{"type":"TEXT_MESSAGE_END","messageId":"m"}',
    b'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}',
]
WHOLE = HEAD + sse(*HELLO)


async def run(url: str, **settings: object) -> list[Event]:
    adapter = RemoteAdapter(url, **settings)  # type: ignore[arg-type]
    try:
        return [event async for event in adapter.run(ASKED)]
    finally:
        await adapter.aclose()


def said(events: list[Event]) -> list[object]:
    return [message.content for message in fold(events).messages]


async def test_a_remote_run_is_shown_as_it_was_sent():
    async with serving(WHOLE) as server:
        events = await run(server.url)
    assert said(events) == ["hi", "Hello"]
    assert verify(events, "strict") == []
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /agents/helper HTTP/1.1")
    assert RunAgentInput.model_validate_json(body) == ASKED


@pytest.mark.parametrize("seed", range(12))
async def test_a_corpus_through_the_adapter_equals_the_corpus(seed: int):
    rng = random.Random(seed)
    sent = structured(rng)
    ends = (at for at, event in enumerate(sent) if isinstance(event, RunFinishedEvent | RunErrorEvent))
    first = sent[: next(ends, len(sent)) + 1]
    body = sse(*map(encode, first))

    async def in_pieces(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        at = 0
        while at < len(body):
            size = rng.randrange(1, 400)
            writer.write(body[at : at + size])
            await writer.drain()
            at += size

    asked = ASKED.model_copy(update={"thread_id": first[0].thread_id, "run_id": first[0].run_id})
    async with serving(in_pieces) as server, AgentClient(server.url) as client:
        received = [event async for event in client.run(asked)]
    assert [encode(event) for event in received] == [encode(event) for event in first]


async def test_events_without_data_and_data_in_lines_are_read():
    start = b'data: {"type":"RUN_STARTED",\ndata: "threadId":"t","runId":"r"}\n\n'
    async with serving(HEAD + b"data:\n\n" + start + sse(*HELLO[1:])) as server:
        assert said(await run(server.url)) == ["hi", "Hello"]


async def test_cut_at_every_byte_the_run_is_whole():
    body = sse(*HELLO)
    cut = 0

    async def cut_off(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + body[:cut])

    async with serving(cut_off) as server, AgentClient(server.url) as client:
        for cut in range(len(body)):  # noqa: B007  the server reads it
            adapter = RemoteAdapter(server.url, http=client._http)
            events = [event async for event in adapter.run(ASKED)]
            assert verify(events, "client") == []
            assert isinstance(events[-1], RunErrorEvent)
            assert events[-1].code == "remote_ended"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\nno model!", "answered 500: no model!"),
        (b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", "answered 401"),
        (b"HTTP/1.1 502 Bad\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>", "answered 502"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>", "text/html"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "no content type"),
        (b"HTTP/1.1 307 T\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n", "redirects"),
        (HEAD + b"data: {not json\n\n", "something else than AG-UI events"),
        (HEAD + b"data: [1]\n\n", "something else than AG-UI events"),
        (HEAD + b"data: " + b"x" * 5_000, "more than 4,096 bytes"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "broke"),
    ],
)
async def test_an_answer_that_is_no_stream_is_one_sentence(answer: bytes, sentence: str):
    async with serving(answer) as server:
        *_, end = await run(server.url, options=RemoteOptions(max_event_bytes=4_096))
    assert isinstance(end, RunErrorEvent)
    assert end.code == "remote_error"
    assert sentence in end.message


async def test_a_server_that_is_not_there_is_one_sentence():
    async with serving(WHOLE) as server:
        pass
    *_, end = await run(server.url)
    assert end.message.endswith("cannot be reached: is the agent running?")


async def test_a_compressed_stream_is_read():
    body = gzip.compress(sse(*HELLO))
    head = HEAD.replace(b"connection", b"content-encoding: gzip\r\nconnection")
    async with serving(head + body) as server:
        assert said(await run(server.url)) == ["hi", "Hello"]


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b": still here\n\n"])
async def test_a_server_without_a_first_event_has_a_deadline(sent: bytes):
    async def silent(writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()
        await asyncio.sleep(30)

    async with serving(silent) as server:
        *_, end = await run(server.url, options=RemoteOptions(answer_seconds=0.2))
    assert "no event in 0.2 s" in end.message


async def test_a_stream_that_falls_silent_has_a_deadline():
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + sse(*HELLO[:3]))
        await writer.drain()
        await asyncio.sleep(30)

    async with serving(half) as server:
        events = await run(server.url, options=RemoteOptions(silence_seconds=0.3))
    assert said(events) == ["hi", "Hello"]
    assert "silent for too long" in events[-1].message


async def test_a_stop_closes_the_connection_and_the_run():
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + sse(*HELLO[:2]))
        while True:
            writer.write(sse(HELLO[2]))
            await writer.drain()
            await asyncio.sleep(0.005)

    async with serving(endless) as server:
        adapter = RemoteAdapter(server.url)
        events: list[Event] = []
        async for event in adapter.run(ASKED):
            events.append(event)
            if len(events) == 5:
                await adapter.stop("r")
        async with asyncio.timeout(60):
            await server.closed.wait()
        await adapter.aclose()
    assert verify(events, "strict") == []
    assert events[-1].outcome.type == "cancelled"
    with pytest.raises(UnknownRun):
        await adapter.stop("r")


async def test_a_slow_reader_does_not_fill_the_memory():
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(HEAD + sse(HELLO[0]))
        while sent < 200_000:
            writer.write(
                sse(b'{"type":"CUSTOM","name":"n","value":"a value that is not merged with others"}') * 100
            )
            sent += 100
            await writer.drain()

    async with serving(endless) as server:
        adapter = RemoteAdapter(server.url, options=RemoteOptions(waiting_events=50))
        events = adapter.run(ASKED)
        await anext(events)
        await asyncio.sleep(0.5)
        before = sent
        await asyncio.sleep(0.3)
        assert sent == before < 200_000
        await events.aclose()
        await adapter.aclose()


async def test_no_header_and_no_password_is_in_an_error_or_a_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    async with serving(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n") as server:
        url = server.url.replace("http://", "http://ann:hunter%32@")
        *_, end = await run(url)
        assert b"Basic YW5uOmh1bnRlcjI=" in server.requests[0]  # ann:hunter2
        await run(url, headers={"Authorization": "Bearer hunter3"})
        assert b"Bearer hunter3" in server.requests[1]
    assert "answered 403" in end.message
    assert "hunter" not in end.message + caplog.text


async def test_what_the_server_says_of_itself_can_be_asked():
    card = b'{"identity":{"name":"Helper"}}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
    async with serving(head + card) as server, AgentClient(server.url) as client:
        found = await client.capabilities()
        assert found is not None
        assert found.identity is not None
        assert found.identity.name == "Helper"
        assert server.requests[0].startswith(b"GET /agents/helper/capabilities ")
    for answer in (b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", head + b"[]"):
        async with serving(answer) as server, AgentClient(server.url) as client:
            assert await client.capabilities() is None
    async with AgentClient(server.url) as client:
        with pytest.raises(RemoteError, match="cannot be reached"):
            await client.capabilities()


def test_an_adapter_has_a_name():
    assert RemoteAdapter("https://host/agents/support/").name == "support"
    assert RemoteAdapter("https://host:8000").name == "host"
    assert RemoteAdapter("https://host/x", name="mine").capabilities().identity.name == "mine"


@pytest.mark.parametrize("url", ["ftp://host/x", "host/x", "http:///x"])
def test_a_url_without_http_or_host_is_refused(url: str):
    with pytest.raises(ValueError, match="http:// or https://"):
        AgentClient(url)


@pytest.mark.parametrize("wrong", [{"answer_seconds": 0}, {"max_event_bytes": 0}, {"waiting_events": 0}])
def test_options_without_meaning_are_refused(wrong: dict[str, int]):
    with pytest.raises(ValueError, match="must be"):
        RemoteOptions(**wrong)


async def test_a_url_is_an_agent_of_a_cast():
    async with serving(WHOLE) as server, Cast.open("memory://", agents=[server.url]) as cast:
        started = await cast.say("t9", "hi", agent="helper")
        await started.result()
        conversation = fold(await cast.log.restore("t9"))
    assert [message.content for message in conversation.messages] == ["hi", "Hello"]
