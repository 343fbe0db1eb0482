"""One node at a time has a job: it is renewed, given back, taken over when it expired, and never taken from the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from runcast.app.nodes.mailboxes import at_every_ring
from runcast.app.nodes.note_lease import NoteLease
from runcast.slim import MemoryStore, Note, RunLog, StoreError
from runcast.slim.tasks import end
from tests.slim.logs import Clock


def two(clock: Clock) -> tuple[NoteLease, NoteLease]:
    notes = RunLog(MemoryStore(), clock=clock).notes
    one, other = (NoteLease(notes, "job", lasting_ms=1_000) for _ in range(2))
    return one, other


async def test_the_first_has_it_and_renews_it() -> None:
    clock = Clock()
    one, other = two(clock)
    for _ in range(3):
        assert await one.hold()
        clock.pass_ms(1_000)  # to its last millisecond
        assert not await other.hold()
    assert await one.hold()


async def test_it_is_taken_over_when_it_has_expired_and_its_holder_notices() -> None:
    clock = Clock()
    one, other = two(clock)
    assert await one.hold()
    clock.pass_ms(1_001)
    assert await other.hold()
    assert not await one.hold()
    await one.release()  # it is not its own any more
    assert not await one.hold()
    assert await other.hold()


async def test_what_was_given_back_is_free() -> None:
    one, other = two(Clock())
    await other.release()
    assert await one.hold()
    await one.release()
    await one.release()
    assert await other.hold()
    assert not await one.hold()


class Deaf(MemoryStore):
    """Stores a note, and its answer is lost once."""

    lost = False

    async def post(self, note: Note, *, replace: bool = False) -> bool:
        stored = await super().post(note, replace=replace)
        if not self.lost:
            self.lost = True
            raise StoreError("the line was cut")
        return stored


async def test_a_lease_whose_answer_was_lost_is_its_own() -> None:
    notes = RunLog(Deaf()).notes
    one, other = (NoteLease(notes, "job", lasting_ms=60_000) for _ in range(2))
    with pytest.raises(StoreError):
        await one.hold()
    assert not await other.hold()
    assert await one.hold()
    await one.release()
    assert await other.hold()


async def test_jobs_have_leases_of_their_own() -> None:
    notes = RunLog(MemoryStore()).notes
    assert all([await NoteLease(notes, job, lasting_ms=1_000).hold() for job in ("a", "b")])
    assert not await NoteLease(notes, "a", lasting_ms=1_000).hold()


class Bells:
    """Looks at boxes, and counts."""

    def __init__(self) -> None:
        self.log = RunLog(MemoryStore())
        self.boxes: Sequence[str] = ("a", "b")
        self.looks = 0
        self.may_look = asyncio.Event()
        self.may_look.set()
        self.looked = asyncio.Event()

    async def look(self) -> None:
        self.looks += 1
        self.looked.set()
        await self.may_look.wait()

    def start(self, every: float = 60.0) -> asyncio.Task[None]:
        return asyncio.create_task(at_every_ring(self.log.notes, lambda: self.boxes, self.look, every=every))

    async def ring(self, box: str) -> None:
        await self.log.notes.leave(f"{box} {self.looks}", box=box, body=b"", replace=True)

    async def reaches(self, looks: int) -> None:
        async with asyncio.timeout(30):
            while self.looks < looks:
                self.looked.clear()
                await self.looked.wait()

    async def rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_box_is_looked_at_once_and_at_every_ring() -> None:
    bells = Bells()
    task = bells.start()
    await bells.reaches(1)
    for looks, box in ((2, "a"), (3, "b")):
        await bells.rest()
        await bells.ring(box)
        await bells.reaches(looks)
    await bells.ring("another")
    await bells.rest()
    assert bells.looks == 3
    await end([task])


async def test_a_ring_during_a_look_is_not_lost() -> None:
    bells = Bells()
    bells.may_look.clear()
    task = bells.start()
    await bells.reaches(1)
    await bells.ring("a")
    bells.may_look.set()
    await bells.reaches(2)
    await end([task])


async def test_without_a_ring_it_is_looked_at_in_time_and_at_the_boxes_of_then() -> None:
    bells = Bells()
    task = bells.start(every=0.001)
    await bells.reaches(3)
    await end([task])
    task = bells.start()
    bells.boxes = ("c",)
    await bells.reaches(bells.looks + 1)
    await bells.rest()
    looks = bells.looks
    await bells.ring("c")
    await bells.reaches(looks + 1)
    await end([task])


async def test_a_look_that_fails_ends_it_and_leaves_no_bell() -> None:
    bells = Bells()
    bells.look = fails  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="a bug"):
        await bells.start()
    assert not [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]


async def fails() -> None:
    raise RuntimeError("a bug")
