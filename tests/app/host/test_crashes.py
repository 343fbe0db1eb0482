"""A run is cut off at every border of its nodes and in the middle of them; the next one repeats what was unfinished."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, RunStartedEvent, StepFinishedEvent, StepStartedEvent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.app import BadRequest, Cadence, Cast, EventFunction, RunResult
from runcast.app import serve as server
from runcast.app.demo import script
from runcast.app.demo.graph import build
from runcast.app.demo.headless import spoken
from runcast.app.host.agent_adapters import as_adapter, cautions
from runcast.slim import AgentState, MemoryStore, RunLog, StoreError, open_store, verify
from runcast.slim.stores.records import Batch
from tests.app.agents import Gated, parrot
from tests.app.serving import anyone, run_input, sent, serving
from tests.reliability.counting import words

NODES = ["plan", "gather", "tools", "check", "write"]


async def play(folder: Path, cut: int | None) -> tuple[list[Any], list[tuple[str, str]], list[Any]]:
    """The demo's run up to its question, cut off after so many entries and taken up by another process's stand-in."""
    url, checkpoints = f"sqlite:///{folder}/runs.db", str(folder / "checkpoints.db")
    async with AsyncSqliteSaver.from_conn_string(checkpoints) as saver:
        cast = Cast.open(url, agents=[build(saver, pace=0.0005)])
        async with cast:
            run = await cast.say("t1", script.QUESTION)
            if cut is None:
                await run.result()
            else:
                while run.last_seq < cut and run.active:  # noqa: ASYNC110  entries are counted, not announced
                    await asyncio.sleep(0)
                await run.abandon()
            await cast.aclose(grace=0)
    async with (
        AsyncSqliteSaver.from_conn_string(checkpoints) as saver,
        Cast.open(url, agents=[build(saver, pace=0.0005)]) as cast,
    ):
        runs = await cast.log.runs("t1")
        if runs[-1].status == "truncated":
            again = await cast.resume("t1")
            assert (await again.result()).status == "interrupted"
        finished = await (await cast.resume("t1", {each.id: True for each in await asked(cast)})).result()
        assert finished.status == "completed"
        return await cast.log.entries("t1"), await spoken(cast, "t1"), await cast.log.runs("t1")


async def asked(cast: Cast) -> list[Any]:
    state = await cast.state("t1")
    assert state is not None
    return list(state.interrupts)


def borders(entries: list[Any]) -> list[int]:
    """Where to cut: right after each node's end, and halfway through the next."""
    ends = [e.seq for e in entries if isinstance(e.event, StepFinishedEvent) and e.event.step_name in NODES]
    starts = [e.seq for e in entries if isinstance(e.event, StepStartedEvent) and e.event.step_name in NODES]
    middles = [(a + b) // 2 for a, b in zip(starts, ends, strict=False)]
    return sorted({*ends, *middles})


async def test_only_what_was_unfinished_runs_again_wherever_it_was_cut(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    entries, undisturbed, _ = await play(tmp_path / "whole", None)
    points = borders(entries)
    assert len(points) >= 8
    cut_short = 0
    for point in points:
        folder = tmp_path / f"cut-{point}"
        folder.mkdir()
        told, conversation, runs = await play(folder, point)
        assert conversation == undisturbed, point
        assert [entry.seq for entry in told] == list(range(1, len(told) + 1))
        assert not verify([entry.event for entry in told if entry.run_id != runs[0].run_id])
        if runs[0].status == "truncated":
            cut_short += 1
            assert [run.attempt for run in runs] == [1, 2, 3]
            done = finished(told, runs[0].run_id)
            assert done.isdisjoint(begun(told, runs[1].run_id)), point
    assert cut_short >= 6


def finished(entries: list[Any], run_id: str) -> set[str]:
    return {
        e.event.step_name
        for e in entries
        if e.run_id == run_id and isinstance(e.event, StepFinishedEvent) and e.event.step_name in NODES
        and not (e.event.metadata or {}).get("runcast", {}).get("errors")
    }  # fmt: skip


def begun(entries: list[Any], run_id: str) -> set[str]:
    return {
        e.event.step_name for e in entries if e.run_id == run_id and isinstance(e.event, StepStartedEvent)
    }


def graph(saver: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("speak", lambda state: {"messages": []})
    builder.add_edge(START, "speak")
    return builder.compile(checkpointer=saver)


async def test_what_will_not_survive_is_said_before_the_run(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "runcast.app"):
        async with Cast.open("memory://", agents=[graph(None)]):
            pass
    assert "compile it with one" in caplog.text
    assert "end with this process" in cautions(LangGraphAdapter(graph(InMemorySaver())))[0]
    assert "compile it with one" in cautions(LangGraphAdapter(graph(False)))[0]
    assert cautions(as_adapter(parrot)) == []
    caplog.clear()
    lazy = LangGraphAdapter(graph(InMemorySaver()), options=LangGraphOptions(durability="exit"))
    assert lazy.durability == "exit"
    assert isinstance(lazy.saver, InMemorySaver)
    with caplog.at_level(logging.WARNING, "runcast.app"):
        async with Cast.open("memory://", agents=[lazy]):
            pass
    assert 'durability="exit" writes only at the end' in caplog.text


async def test_what_holds_for_several_agents_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    named = [LangGraphAdapter(graph(None), name=name) for name in ("ann", "bob")]
    with caplog.at_level(logging.WARNING, "runcast.app"):
        async with Cast.open("memory://", agents=[*named, parrot]):
            pass
    (line,) = [record.getMessage() for record in caplog.records if "compile it" in record.getMessage()]
    assert line.startswith("agents ann, bob: the graph has no checkpointer")


async def test_two_agents_of_one_name_are_refused() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        with pytest.raises(BadRequest, match="'parrot' is registered already"):
            cast.register(parrot)
        named = cast.register(graph(InMemorySaver()).with_config(), name="other")
        assert named.name == "other"


async def test_a_run_that_is_cut_short_is_told_to_whoever_reads_it() -> None:
    gated = Gated()
    async with serving(Cast.open("memory://", agents=[gated])) as host:
        async with host.http.stream("POST", "/", json=run_input()) as response:
            told = sent(response)
            assert (await anext(told)).event["type"] == "RUN_STARTED"
            await host.cast.run("r1").abandon()
            rest = [each async for each in told]
        assert (rest[-1].event["code"], rest[-1].id) == ("truncated", "")


class Silent:
    """An adapter that ends without saying so."""

    name = "silent"
    reconciles_history = False

    async def run(self, input: RunAgentInput, *, resume: Any = None) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)

    async def stop(self, run_id: str, *, hard: bool = False) -> None: ...

    def capabilities(self) -> Any: ...


async def test_an_end_that_was_not_told_is_told_and_frees_the_thread() -> None:
    async with Cast.open("memory://", agents=[Silent()]) as cast:
        for _ in range(2):
            run = await cast.say("t1", "x")
            result: RunResult = await run.result()
            assert (result.status, result.code) == ("failed", "no_terminal")
        async with asyncio.timeout(60):
            while cast.stats()["followers"]:  # noqa: ASYNC110  they say nothing when they go
                await asyncio.sleep(0.01)


class Leaving(MemoryStore):
    """A store that goes away."""

    away = False

    async def append(self, batch: Batch) -> int:
        if self.away:
            raise StoreError("gone")
        return await super().append(batch)


async def test_a_run_that_could_not_be_written_gives_its_thread_back_when_the_store_is_there_again() -> None:
    store, gated = Leaving(), Gated(30)
    async with Cast(RunLog(store, flush_ms=1), agents=[EventFunction(gated, name="counter")]) as cast:
        run = await cast.say("t1", "count")
        gated.open(3)
        await asyncio.sleep(0.05)
        store.away = True
        while run.active:
            gated.open(1)  # one at a time: the failure is met in the middle of the run
            await asyncio.sleep(0.01)
        result = await run.result()
        assert (result.status, result.code) == ("truncated", "store_error")
        store.away = False
        async with asyncio.timeout(60):
            while (await cast.log.runs("t1"))[-1].status != "truncated":  # noqa: ASYNC110  a store has no event
                await asyncio.sleep(0.02)
        gated.open()
        assert (await (await cast.resume("t1")).result()).status == "completed"


async def test_a_server_whose_store_is_gone_closes_its_port_all_the_same() -> None:
    store, gated = Leaving(), Gated(30)
    cast = Cast(RunLog(store, flush_ms=1), agents=[EventFunction(gated, name="counter")])
    host = AsyncExitStack()
    address = await host.enter_async_context(server.serving(cast, cast.asgi(authorize=anyone)))
    await cast.say("t1", "count")
    gated.open(3)
    await asyncio.sleep(0.05)
    store.away = True
    with pytest.raises(StoreError, match="gone"):
        await host.aclose()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))


class Listening:
    """An agent that says nothing, and keeps what it was told."""

    __name__ = "counter"
    reconciles_history = True  # its input includes the unfinished messages
    heard = ""

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        self.heard = "".join(str(each.content) for each in input.messages if each.role == "assistant")
        for event in ():
            yield event


async def test_an_owner_that_only_slept_adds_nothing_to_what_another_goes_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, gated, listening = f"sqlite:///{tmp_path}/runs.db", Gated(30), Listening()
    behind = RunLog(open_store(url), clock=lambda: time.time_ns() // 1_000_000 - 3_600_000, flush_ms=1)
    async with Cast(behind, agents=[EventFunction(gated, name="counter")]) as asleep:
        run = await asleep.say("t1", "count")
        gated.open(3)
        async with Cast.open(url, agents=[listening]) as cast:
            async with asyncio.timeout(60):
                while len(await cast.log.entries("t1")) < 5:  # noqa: ASYNC110  a store has no event
                    await asyncio.sleep(0.01)
            read = cast.threads.state

            async def and_it_wakes(thread_id: str, run_id: str | None = None) -> AgentState | None:
                state = await read(thread_id, run_id)
                gated.open(2)
                await asyncio.sleep(0.2)  # long enough to be written, if it may be
                return state

            monkeypatch.setattr(cast.threads, "state", and_it_wakes)
            await (await cast.resume("t1")).result()
            entries = await cast.log.entries("t1")
            assert listening.heard == words(entries) == "0 1 2 "
            gated.open()
            assert (await run.result()).code == "conflict"


async def test_snapshots_are_kept_as_often_as_was_said() -> None:
    gated = Gated(30)
    often = Cadence(events=5, seconds=60)
    async with Cast.open("memory://", agents=[EventFunction(gated, name="counter")], cadence=often) as cast:
        run = await cast.say("t1", "count")
        gated.open(12)
        async with asyncio.timeout(60):
            while (kept := await cast.log.snapshot("t1")) is None or kept.seq < 10:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert run.active
        gated.open()
        await run.result()


async def test_a_host_that_ends_hands_its_runs_over(tmp_path: Path) -> None:
    url, gated = f"sqlite:///{tmp_path}/runs.db", Gated(5)
    agent = EventFunction(gated, name="counter")
    async with Cast.open(url, agents=[agent], recover="continue", recover_every=0.05) as cast:
        await cast.say("t1", "count")
        gated.open(2)
        await cast.aclose(grace=0.1)
    gated.open()
    async with Cast.open(url, agents=[agent], recover="continue", recover_every=0.05) as cast:
        async with asyncio.timeout(60):
            while (await cast.log.runs("t1"))[-1].status != "completed":  # noqa: ASYNC110  a store has no event
                await asyncio.sleep(0.02)
        assert [(run.status, run.edge) for run in await cast.log.runs("t1")] == [
            ("truncated", "continue"),
            ("completed", "resume"),
        ]
