"""The AI SDK's own chat, as npm has it, against a host: turns, edits, approvals, reloads in the middle, a stop."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ag_ui.core import (
    Event,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.app import Cast
from runcast.app.skins import ai_sdk
from runcast.app.skins.ui_messages import reduce_chunks
from tests.app.agents import asker, parrot, said
from tests.app.serving import Served, serving
from tests.conftest import missing
from tests.e2e import oracle

pytestmark = pytest.mark.oracle

CONFIRM = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}, "required": ["confirmed"]}


async def careful(input: RunAgentInput) -> AsyncIterator[Event]:
    """Asks before it deletes, and says what was decided."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    if input.resume:
        done = bool(input.resume[0].payload["confirmed"])
        yield ToolCallResultEvent(message_id="result", tool_call_id="c1", content="gone" if done else "kept")
        for event in said(input.run_id, "deleted" if done else "left alone"):
            yield event
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)
        return
    yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="delete")
    yield ToolCallArgsEvent(tool_call_id="c1", delta='{"file": "a"}')
    yield ToolCallEndEvent(tool_call_id="c1")
    asked = Interrupt(
        id="q1", reason="tool_confirmation", tool_call_id="c1", message="delete?", response_schema=CONFIRM
    )
    yield RunFinishedEvent(
        thread_id=input.thread_id,
        run_id=input.run_id,
        outcome=RunFinishedInterruptOutcome(interrupts=[asked]),
    )


class Slow:
    """Counts to fifty, and stops in the middle until it is let go on."""

    __name__ = "slow"

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        yield TextMessageStartEvent(message_id=f"m-{input.run_id}")
        for n in range(50):
            if n == 25:
                self.reached.set()
                await self.go.wait()
            yield TextMessageContentEvent(message_id=f"m-{input.run_id}", delta=f"{n} ")
        yield TextMessageEndEvent(message_id=f"m-{input.run_id}")


async def client_tool(input: RunAgentInput) -> AsyncIterator[Event]:
    """Calls a tool that the client runs, and says what came back."""
    results = [each for each in input.messages if each.role == "tool"]
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    if results:
        for event in said(input.run_id, f"here: {results[-1].content}"):
            yield event
    else:
        yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="where")
        yield ToolCallEndEvent(tool_call_id="c1")
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
async def host(slow: Slow) -> AsyncIterator[Served]:
    async with serving(Cast.open("memory://", agents=[parrot, asker, careful, client_tool, slow])) as it:
        yield it


async def chat(
    host: Served, agent: str, *steps: dict[str, Any], load: bool = False, **more: Any
) -> list[Any]:
    """What the SDK's chat holds after each step."""
    node = shutil.which("node")
    if node is None or not (oracle.HERE / "node_modules" / "ai").is_dir():
        missing(oracle.MISSING)
    process = await asyncio.create_subprocess_exec(
        str(node),
        "ai_chat.mjs",
        cwd=oracle.HERE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    asked = {"api": f"{host.url}/chat/{agent}", "id": "t1", "steps": steps, **more}
    if load:
        asked["load"] = f"{host.url}/chat/t1/messages"
    async with asyncio.timeout(60):
        out, _ = await process.communicate(json.dumps(asked).encode())
    found: list[Any] = json.loads(out)
    return found


def view(answer: Any) -> list[str]:
    """The messages as short lines."""
    lines: list[str] = []
    for message in answer["messages"]:
        texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
        tools = [f"[{part['state']}]" for part in message["parts"] if part["type"] == "dynamic-tool"]
        lines.append(" ".join([message["role"], *tools, "".join(texts)]).strip())
    return lines


async def kept(host: Served) -> list[str]:
    """What the host gives a page that loads."""
    answer = await host.http.get("/chat/t1/messages")
    return view(answer.json())


async def test_it_talks_in_turns(host: Served) -> None:
    first, second = await chat(host, "parrot", {"say": "one two"}, {"say": "three"})
    assert view(first) == ["user one two", "assistant one two"]
    assert view(second)[2:] == ["user three", "assistant three"]
    assert second["errors"] == []
    assert await kept(host) == view(second)


async def test_another_try_and_an_edit_are_branches(host: Served) -> None:
    *_, again, edited, first = await chat(
        host,
        "parrot",
        {"say": "one"},
        {"say": "two"},
        {"again": True},
        {"edit": 1, "text": "changed"},
        {"edit": 0, "text": "from the start"},
    )
    assert view(again) == ["user one", "assistant one", "user two", "assistant two"]
    assert view(edited) == ["user one", "assistant one", "user changed", "assistant changed"]
    assert view(first) == ["user from the start", "assistant from the start"]
    assert again["errors"] == edited["errors"] == first["errors"] == []
    runs = (await host.http.get("/threads/t1/runs")).json()["runs"]
    assert [each["edge"] for each in runs] == ["continue", "continue", "branch", "branch", "continue"]


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("automatic", [True, False])
async def test_a_tool_is_approved_or_not(host: Served, approved: bool, automatic: bool) -> None:
    asked, answered = await chat(
        host, "careful", {"say": "delete a"}, {"approve": approved}, automatic=automatic
    )
    assert view(asked) == ["user delete a", "assistant [approval-requested]"]
    told = "deleted" if approved else "left alone"
    assert view(answered) == ["user delete a", f"assistant [output-available] {told}"]
    assert answered["errors"] == []
    assert await kept(host) == view(answered)


async def test_an_approval_that_waits_is_there_after_a_reload(host: Served) -> None:
    await chat(host, "careful", {"say": "delete a"})
    (answered,) = await chat(host, "careful", {"approve": True}, load=True)
    assert view(answered) == ["user delete a", "assistant [output-available] deleted"]


async def test_a_question_in_words_is_answered_by_its_name(host: Served) -> None:
    asked, answered = await chat(host, "asker", {"say": "go"}, {"answers": {"q1": "yes, go"}})
    (question,) = [each for each in asked["messages"][-1]["parts"] if each["type"] == "data-interrupt"]
    assert question["data"]["message"] == "go on?"
    assert view(answered)[-1] == "assistant resolved yes, go"


async def test_the_clients_own_tool_gives_its_result(host: Served) -> None:
    called, answered = await chat(host, "client_tool", {"say": "where?"}, {"result": "at sea"})
    assert view(called) == ["user where?", "assistant [input-available]"]
    assert view(answered) == ["user where?", "assistant [output-available] here: at sea"]


@pytest.mark.parametrize("late", [False, True])
async def test_a_reload_in_the_middle_of_a_run_ends_with_the_whole_message(
    host: Served, slow: Slow, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """`late`: the run ends after the page has loaded its messages, and before it asks for the stream."""
    active = ai_sdk.active

    async def asked(cast: Cast, thread_id: str) -> Any:
        (run,) = cast.active
        if late:
            slow.go.set()
            await run.over()
        found = await active(cast, thread_id)
        slow.go.set()
        return found

    monkeypatch.setattr(ai_sdk, "active", asked)
    whole = "".join(f"{n} " for n in range(50))
    (left,) = await chat(host, "slow", {"say": "count", "leaveAfter": 20})
    assert whole.startswith(view(left)[1].removeprefix("assistant "))
    await slow.reached.wait()
    assert await kept(host) == ["user count"]
    (back,) = await chat(host, "slow", {"resume": True}, load=True)
    assert view(back) == ["user count", f"assistant {whole}".strip()]
    assert back["errors"] == []
    assert await kept(host) == view(back)


async def test_nothing_is_resumed_where_nothing_runs(host: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/chat/t1/stream", "/chat/parrot/t1/stream"):
        assert (await host.http.get(path)).status_code == 204
    assert (await host.http.get("/chat/t1/messages")).json() == {"messages": []}
    assert (await host.http.post("/chat/t1/stop", json={})).status_code == 404
    monkeypatch.setattr(ai_sdk, "FRESH_MS", 0)
    await chat(host, "parrot", {"say": "one"})
    assert (await host.http.get("/chat/t1/stream")).status_code == 204


async def test_a_stop_ends_the_run_for_everyone(host: Served, slow: Slow) -> None:
    streaming = asyncio.create_task(chat(host, "slow", {"say": "count"}))
    await slow.reached.wait()
    stopped = await host.http.post("/chat/t1/stop", json={})
    assert stopped.status_code == 202
    slow.go.set()
    (answer,) = await streaming
    assert answer["errors"] == []
    runs = (await host.http.get("/threads/t1/runs")).json()["runs"]
    assert [each["status"] for each in runs] == ["failed"]  # as functions end that were stopped
    assert runs[0]["terminal"] == "RUN_ERROR"


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({}, 400, "useChat"),
        ({"id": "t1", "messages": []}, 400, "useChat"),
        ({"id": "t1", "messages": [{"role": "system"}]}, 400, "last message"),
        ({"id": "t1", "messages": [{"role": "user", "parts": []}]}, 400, "neither text nor a file"),
        ({"id": "t1", "messages": [{"role": "assistant", "parts": []}]}, 400, "no message to answer"),
        ({"id": "a\nb", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]}, 400, "id"),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused_with_a_sentence(
    host: Served, body: Any, status: int, told: str
) -> None:
    answer = await host.http.post("/chat/parrot", json=body)
    assert answer.status_code == status
    assert told in answer.json()["detail"]


async def test_an_answer_that_nobody_waits_for_is_refused(host: Served) -> None:
    await chat(host, "parrot", {"say": "one"})
    body = {"id": "t1", "messages": [{"role": "assistant", "parts": []}]}
    answer = await host.http.post("/chat/parrot", json=body)
    assert (answer.status_code, "nothing waits" in answer.text) == (400, True)


async def test_a_question_without_an_answer_stays_open(host: Served) -> None:
    await chat(host, "asker", {"say": "go"})
    body = {"id": "t1", "messages": [{"role": "assistant", "parts": []}]}
    answer = await host.http.post("/chat/asker", json=body)
    assert (answer.status_code, "q1" in answer.text) == (400, True)


async def test_a_node_that_does_not_work_streams_what_another_one_runs(slow: Slow, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    body = {"id": "t1", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]}
    async with (
        Cast.open(url, agents=[slow]),
        serving(Cast.open(url, agents=[slow], work=False)) as host,
        host.http.stream("POST", "/chat/slow", json=body, timeout=httpx.Timeout(60)) as first,
    ):
        lines = first.aiter_lines()
        await anext(lines)
        await slow.reached.wait()
        async with host.http.stream("GET", "/chat/slow/t1/stream", timeout=httpx.Timeout(60)) as second:
            slow.go.set()
            chunks = [
                json.loads(line[6:]) async for line in second.aiter_lines() if line.startswith("data: {")
            ]
        assert [line async for line in lines if line][-1] == "data: [DONE]"
    texts = [part["text"] for part in reduce_chunks(chunks) if part["type"] == "text"]
    assert texts == ["".join(f"{n} " for n in range(50))]


async def test_files_come_and_go(host: Served) -> None:
    data = "data:image/png;base64,iVBORw0KGgo="
    files = [
        {"type": "file", "mediaType": "image/png", "url": data},
        {"type": "file", "mediaType": "application/pdf", "url": "https://files.example/a.pdf"},
    ]
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "look"}, *files]}
    async with host.http.stream("POST", "/chat/parrot", json={"id": "t1", "messages": [message]}) as answer:
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert (await answer.aread()).endswith(b"data: [DONE]\n\n")
    (stored, _) = (await host.http.get("/chat/t1/messages")).json()["messages"]
    assert stored == message
    bad = {**message, "parts": [{"type": "file", "mediaType": "text/plain", "url": "data:text/plain,hi"}]}
    refused = await host.http.post("/chat/parrot", json={"id": "t2", "messages": [bad]})
    assert (refused.status_code, "base64" in refused.text) == (400, True)


async def test_a_run_that_is_cut_short_ends_its_stream_with_a_sentence(host: Served, slow: Slow) -> None:
    body = {"id": "t1", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]}
    async with host.http.stream("POST", "/chat/slow", json=body, timeout=httpx.Timeout(60)) as answer:
        lines = answer.aiter_lines()
        assert json.loads((await anext(lines)).removeprefix("data: "))["type"] == "start"
        await slow.reached.wait()
        (run,) = host.cast.active
        await run.abandon()
        rest = [json.loads(line[6:]) async for line in lines if line.startswith("data: {")]
    assert [each["type"] for each in rest][-4:] == ["text-end", "error", "finish-step", "finish"]
    assert "cut short" in rest[-3]["errorText"]


async def test_a_stream_goes_on_where_a_node_resumes_the_run(slow: Slow) -> None:
    cast = Cast.open("memory://", agents=[slow], recover="continue", recover_every=0.1)
    body = {"id": "t1", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]}
    async with (
        serving(cast) as host,
        host.http.stream("POST", "/chat/slow", json=body, timeout=httpx.Timeout(60)) as answer,
    ):
        lines = answer.aiter_lines()
        chunks = [json.loads((await anext(lines))[6:])]
        await slow.reached.wait()
        (run,) = cast.active
        await run.release_running()
        slow.go.set()
        chunks += [json.loads(line[6:]) async for line in lines if line.startswith("data: {")]
        stored = (await host.http.get("/chat/t1/messages")).json()["messages"][1:]
    texts = [part["text"] for part in reduce_chunks(chunks) if part["type"] == "text"]
    assert texts == ["".join(f"{n} " for n in range(50))]
    assert [each["type"] for each in chunks].count("finish") == 1
    assert stored == [{"id": chunks[0]["messageId"], "role": "assistant", "parts": reduce_chunks(chunks)}]
