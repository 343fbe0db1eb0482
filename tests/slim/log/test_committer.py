"""The committer by itself: when a write leaves, what waits for what, and whom an answer reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from runcast.slim.errors import LineageError, StoreError
from runcast.slim.log import committer
from runcast.slim.log.committer import Committer
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Answer, Batch, Key

HOUR = 3_600


class Played(MemoryStore):
    """Writes nothing: notes the lots, holds threads back, refuses some, and leaves some to be appended alone."""

    def __init__(self) -> None:
        super().__init__()
        self.lots: list[list[str]] = []
        self.ended: list[float] = []
        self.held: dict[str, asyncio.Event] = {}
        self.refused: dict[str, Exception] = {}
        self.alone: set[str] = set()

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        names = await self._write([each.key.thread_id for each in batches])
        return [None if name in self.alone else len(name) for name in names]

    async def append(self, batch: Batch) -> int:
        return len((await self._write([batch.key.thread_id]))[0])

    async def _write(self, names: list[str]) -> list[str]:
        self.lots.append(names)
        for name in names:
            if name in self.held:
                await self.held[name].wait()
            if name in self.refused and not (len(names) > 1 and name in self.alone):
                raise self.refused[name]
        self.ended.append(asyncio.get_running_loop().time())
        return names


class Stage:
    def __init__(self, flush_ms: int = 20) -> None:
        self.store = Played()
        self.committer = Committer(self.store, flush_ms)
        self.answers: dict[str, Answer] = {}

    def write(self, name: str) -> None:
        batch = Batch(Key("", name), "me", 1, name, 1, 0, ())
        self.committer.write(batch, lambda answer: self.answers.update({name: answer}))

    def sender(self, name: str) -> Callable[[], None]:
        return lambda: self.write(name)

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not so():  # noqa: ASYNC110  it writes by itself
                await asyncio.sleep(0.001)


async def rested() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def test_an_idle_store_is_written_to_at_once_and_all_that_waits_goes_together(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        stage.write(name)
    await rested()
    assert stage.store.lots == [["a", "b", "c"]]
    assert stage.answers == {"a": 1, "b": 1, "c": 1}
    stage.write("d")
    await rested()
    assert stage.store.lots[1:] == [["d"]], "a caller waits for it, so no pause"


async def test_each_that_gathered_sends_once_when_the_next_write_starts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "SHORTEST", HOUR)
    stage.write("first")
    await rested()
    senders = [stage.sender(name) for name in ("a", "b")]
    for _ in range(3):
        for send in senders:
            stage.committer.gather(send, read=True)
    await rested()
    assert stage.store.lots == [["first"]], "the pause has begun"
    stage.write("waits")
    await rested()
    assert stage.store.lots == [["first"], ["waits", "a", "b"]], "a caller ends it for all"


@pytest.mark.parametrize(("first", "then", "sent"), [(False, True, True), (False, False, False)])
async def test_what_is_read_gathers_shorter(
    first: bool, then: bool, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "UNREAD", HOUR)
    stage = Stage(flush_ms=HOUR * 1_000)
    stage.write("first")
    await rested()
    send = stage.sender("a")
    for read in (first, then):
        stage.committer.gather(send, read=read)
    if sent:
        await stage.until(lambda: stage.store.lots[1:] == [["a"]])
    await asyncio.sleep(0.02)
    assert (stage.store.lots[1:] == [["a"]]) is sent


async def test_what_is_read_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "UNREAD", HOUR)
    stage = Stage(flush_ms=HOUR * 1_000)
    stage.write("first")
    await rested()
    send, other = stage.sender("a"), stage.sender("b")
    for each, read in ((send, True), (send, False), (other, False)):
        stage.committer.gather(each, read=read)
    await stage.until(lambda: len(stage.store.lots) == 2)
    assert stage.store.lots[1] == ["a", "b"], "one that would wait goes along"


async def test_the_longest_pause_bounds_that_of_unread_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "UNREAD", HOUR)
    stage = Stage(flush_ms=2)
    stage.write("first")
    await rested()
    stage.committer.gather(stage.sender("a"), read=False)
    await stage.until(lambda: len(stage.store.lots) == 2)


async def test_a_loaded_store_rests_twice_as_long_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "SHORTEST", 0.01)
    stage, began = Stage(flush_ms=40), list[float]()
    loop = asyncio.get_running_loop()

    def send() -> None:
        began.append(loop.time())
        stage.write(f"n{len(began)}")
        if len(began) < 6:
            loop.call_soon(lambda: stage.committer.gather(send, read=True))  # while the write is under way

    stage.write("first")
    stage.committer.gather(send, read=True)
    await stage.until(lambda: len(stage.store.lots) == 6)
    pauses = [start - end for start, end in zip(began[1:], stage.store.ended, strict=False)]
    for pause, least in zip(pauses, (0.01, 0.02, 0.04, 0.04, 0.04), strict=True):
        assert pause >= least - 0.002
    await stage.until(lambda: len(stage.answers) == 7)
    await rested()
    stage.committer.gather(stage.sender("idle"), read=True)
    at = loop.time()
    await stage.until(lambda: "idle" in stage.answers)
    assert stage.store.ended[-1] - at < 30, "its load is forgotten"


async def test_a_slow_write_holds_up_no_other_thread(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "SLOW", 0.3)
    slow = stage.store.held["slow"] = asyncio.Event()
    stage.write("slow")
    await rested()
    stage.write("a")
    await rested()
    assert stage.store.lots == [["slow"]], "it waits a little"
    await stage.until(lambda: "a" in stage.answers)
    also = stage.store.held["also slow"] = asyncio.Event()
    stage.write("also slow")
    await stage.until(lambda: ["also slow"] in stage.store.lots)
    monkeypatch.setattr(committer, "SLOW", HOUR)
    slow.set()
    await stage.until(lambda: "slow" in stage.answers)
    also.set()
    await stage.until(lambda: "also slow" in stage.answers)
    stage.write("b")
    await stage.until(lambda: "b" in stage.answers)


async def test_what_the_store_does_not_write_together_is_written_alone(stage: Stage) -> None:
    stage.store.alone = {"bb", "ccc"}
    stage.store.refused["ccc"] = LineageError("no parent")
    for name in ("a", "bb", "ccc"):
        stage.write(name)
    await stage.until(lambda: len(stage.answers) == 3)
    assert stage.store.lots == [["a", "bb", "ccc"], ["bb"], ["ccc"]]
    assert (stage.answers["a"], stage.answers["bb"], str(stage.answers["ccc"])) == (1, 2, "no parent")


async def test_an_error_of_a_write_answers_every_batch_of_it(stage: Stage) -> None:
    stage.store.refused["b"] = StoreError("the disk is full")
    for name in ("a", "b"):
        stage.write(name)
    await stage.until(lambda: len(stage.answers) == 2)
    assert [str(each) for each in stage.answers.values()] == ["the disk is full"] * 2
    assert stage.store.lots == [["a", "b"]]


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
async def test_a_write_that_is_broken_off_is_answered_by_an_error(
    stage: Stage, names: tuple[str, ...]
) -> None:
    stage.store.held["a"] = asyncio.Event()
    for name in names:
        stage.write(name)
    await rested()
    for task in asyncio.all_tasks():
        if task.get_name() == "runcast-write":
            task.cancel()
    await stage.until(lambda: len(stage.answers) == len(names))
    assert all("broken off" in str(each) for each in stage.answers.values())
