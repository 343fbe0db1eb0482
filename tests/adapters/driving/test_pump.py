"""The driver for readers that may lag: whole streams whatever happens, and a stop that is at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import Event, StepStartedEvent, TextMessageContentEvent

from runcast.adapters import InvalidInput, OpenBlocks, RunFrame, RunIds, failure
from runcast.adapters.driving.pump import Pump
from runcast.slim.protocol.verifier import verify


class Words:
    """A translator of words into one message."""

    def __init__(self) -> None:
        self.blocks = OpenBlocks()
        self.frame = RunFrame(RunIds("t", "r"))

    def start(self) -> list[Event]:
        return self.frame.started()

    def feed(self, part: str) -> list[Event]:
        if part == "bad":
            raise ValueError("a bad word")
        return self.blocks.text("m", part)

    def finish(self) -> list[Event]:
        return self.blocks.close_all() + self.frame.succeeded()

    def fail(self, error: BaseException) -> list[Event]:
        return self.blocks.close_all() + self.frame.failed(failure(error))

    def cancel(self) -> list[Event]:
        return self.blocks.close_all() + self.frame.cancelled()


class Source:
    """Words, then an end of some kind; knows whether it was closed."""

    def __init__(self, words: list[str], *, end: BaseException | None = None, pause: float = 0) -> None:
        self.words, self.end, self.pause = words, end, pause
        self.closed = False

    async def parts(self) -> AsyncIterator[str]:
        try:
            for word in self.words:
                await asyncio.sleep(self.pause)
                yield word
            if self.end is not None:
                raise self.end
        finally:
            self.closed = True


def pump(source: Source, **settings: Any) -> Pump[str]:
    async def begin() -> Any:
        return source.parts(), Words()

    return Pump(begin, **settings)


async def read(it: Pump[str], *, pause: float = 0, lazy: int = 0) -> list[Any]:
    events = []
    async for event in it.events():
        events.append(event)
        if len(events) <= lazy:
            await asyncio.sleep(pause)
    assert not verify(events)
    return events


def text(events: list[Any]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextMessageContentEvent))


async def cancelled(it: Pump[str]) -> list[Any]:
    """What a reader got before the cancellation of its source reached it."""
    events: list[Any] = []

    async def reading() -> None:
        async for event in it.events():
            events.append(event)  # noqa: PERF401  what came before must stay

    with pytest.raises(asyncio.CancelledError):
        await reading()
    return events


SLOW: dict[str, Any] = {"pause": 0.012, "lazy": 14}


@pytest.mark.parametrize("reader", [{}, SLOW], ids=["keeps up", "lags"])
@pytest.mark.parametrize(
    ("words", "end", "last"),
    [
        (["w"] * 200, None, "success"),
        (["w"] * 200, RuntimeError("torn"), "RuntimeError: torn"),
        ([*["w"] * 200, "bad"], None, "ValueError: a bad word"),
        ([*["w"] * 200], asyncio.CancelledError(), "cancelled"),
    ],
    ids=["ends", "breaks", "is not understood", "is cancelled"],
)
async def test_every_end_is_told(reader: Any, words: list[str], end: Any, last: str):
    closed: list[bool] = []
    source = Source(words, end=end)
    it = pump(source, limit=30, closed=lambda: closed.append(True))
    if isinstance(end, asyncio.CancelledError) and not reader:
        events = await cancelled(it)
    else:
        events = await read(it, **reader)
    assert not verify(events)
    assert text(events) == "w" * 200
    ending = events[-1]
    assert last in (getattr(ending, "message", None), getattr(getattr(ending, "outcome", None), "type", None))
    assert source.closed
    assert closed == [True]
    if reader:
        assert it.box.highest == 30
        assert it.box.merged > 0


@pytest.mark.parametrize("reader", [{}, SLOW], ids=["keeps up", "lags"])
async def test_a_stop_is_at_once_and_a_normal_end(reader: Any):
    source = Source(["w"] * 2_000, pause=0.001)
    it = pump(source, limit=5)
    asyncio.get_running_loop().call_later(0.15, it.cancel)
    events = await read(it, **reader)
    assert events[-1].outcome.type == "cancelled"
    assert source.closed
    assert asyncio.current_task().cancelling() == 0


@pytest.mark.parametrize("reader", [{}, SLOW], ids=["keeps up", "lags"])
@pytest.mark.parametrize("stops", [1, 2])
async def test_a_source_that_answers_a_stop_with_an_error_is_stopped(reader: Any, stops: int):
    class Stubborn(Source):
        async def parts(self) -> AsyncIterator[str]:
            try:
                async for word in super().parts():
                    yield word
            except asyncio.CancelledError:
                raise RuntimeError("lost") from None

    it = pump(Stubborn(["w"] * 2_000, pause=0.001), limit=5)
    for _ in range(stops):
        asyncio.get_running_loop().call_later(0.15, it.cancel)
    events = await read(it, **reader)
    assert events[-1].outcome.type == "cancelled"
    assert not verify(events)
    assert asyncio.current_task().cancelling() == 0


async def test_a_stop_while_the_reader_is_elsewhere_comes_with_its_next_step():
    source = Source(["w"] * 2_000)
    it = pump(source)
    events = []
    async for event in it.events():
        events.append(event)
        if len(events) == 5:
            it.cancel()
    assert events[-1].outcome.type == "cancelled"
    assert len(events) < 10


@pytest.mark.parametrize("lags", [True, False])
async def test_a_cancelled_reader_gets_the_end_and_stays_cancelled(lags: bool):
    source = Source(["w"] * 40 + ["x"], pause=0)
    source.words += ["never"]
    hold = asyncio.Event()

    class Stuck(Source):
        async def parts(self) -> AsyncIterator[str]:
            async for word in super().parts():
                if word == "never":
                    await hold.wait()
                yield word

    stuck = Stuck(source.words)
    it = pump(stuck)
    events: list[Any] = []

    read_all = asyncio.Event()

    async def reading() -> None:
        async for event in it.events():
            events.append(event)
            if text([event]).endswith("x"):
                read_all.set()
            if lags and len(events) < 12:
                await asyncio.sleep(0.012)

    task = asyncio.create_task(reading())
    await read_all.wait()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events[-1].outcome.type == "cancelled"
    assert not verify(events)


@pytest.mark.parametrize("lags", [True, False])
async def test_leaving_closes_the_source(lags: bool):
    source = Source(["w"] * 5_000)
    closed: list[bool] = []
    it = pump(source, limit=3, closed=lambda: closed.append(True))
    events = it.events()
    for _ in range(12):
        await anext(events)
        await asyncio.sleep(0.012 if lags else 0)
    await events.aclose()
    assert source.closed
    assert closed == [True]


async def test_leaving_before_the_start_closes_too():
    closed: list[bool] = []

    async def begin() -> Any:
        raise RuntimeError("no beginning")

    with pytest.raises(RuntimeError, match="no beginning"):
        await read(Pump(begin, closed=lambda: closed.append(True)))
    assert closed == [True]


async def test_events_that_cannot_be_merged_wait_for_room():
    class Steps(Words):
        def feed(self, part: str) -> list[Event]:
            return [*self.blocks.step_started(part), *self.blocks.step_finished(part)]

    source = Source([f"s{n}" for n in range(60)])

    async def begin() -> Any:
        return source.parts(), Steps()

    it: Pump[str] = Pump(begin, limit=4)
    events = await read(it, pause=0.01, lazy=20)
    assert [event.step_name for event in events if isinstance(event, StepStartedEvent)] == source.words
    assert it.box.highest == 4
    assert it.box.refused > 0


async def test_a_stop_while_waiting_for_room():
    class Steps(Words):
        def feed(self, part: str) -> list[Event]:
            return self.blocks.step_started(part)

    async def begin() -> Any:
        return Source([f"s{n}" for n in range(60)]).parts(), Steps()

    it: Pump[str] = Pump(begin, limit=4)
    asyncio.get_running_loop().call_later(0.15, it.cancel)
    events = await read(it, pause=0.01, lazy=30)
    assert events[-1].outcome.type == "cancelled"


async def test_a_loop_that_closes_does_not_wait_for_a_reader_that_left_without_a_word():
    class Steps(Words):
        def feed(self, part: str) -> list[Event]:
            return self.blocks.step_started(part)

    async def begin() -> Any:
        return Source([f"s{n}" for n in range(60)]).parts(), Steps()

    it: Pump[str] = Pump(begin, limit=4)
    events = it.events()
    await anext(events)
    await asyncio.sleep(0.2)  # the reader is elsewhere, the box is full
    [filler] = [task for task in asyncio.all_tasks() if "_fill" in repr(task.get_coro())]
    filler.cancel()  # as `asyncio.run` does with every task at its end
    await asyncio.wait({filler}, timeout=5)
    assert filler.done()
    await events.aclose()


async def test_an_exception_leaves_its_traceback_in_the_log(caplog: pytest.LogCaptureFixture):
    await read(pump(Source(["w"], end=KeyError("topic")), limit=30))
    [record] = [it for it in caplog.records if it.name.startswith("runcast.adapters")]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)
    assert "KeyError" in record.getMessage()


async def test_a_refusal_leaves_none(caplog: pytest.LogCaptureFixture):
    await read(pump(Source(["w"], end=InvalidInput("send something else")), limit=30))
    assert not caplog.records
