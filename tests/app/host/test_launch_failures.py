"""A run that did not begin leaves nothing behind that would be in another one's way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from ag_ui.core import RunFinishedEvent, RunStartedEvent, UserMessage

from runcast.app import Busy, Cast, EventFunction
from runcast.app.nodes import node
from runcast.app.nodes.annotations import Annotation
from runcast.app.nodes.handover import RunRequest, input_for
from runcast.slim import MemoryStore, RunLog, StoreError
from runcast.slim.stores.records import Batch
from tests.app.agents import Gated, parrot
from tests.app.host.test_followers import a_hub, ends, watching
from tests.app.mortal import ahead
from tests.app.nodes.stage import knows
from tests.slim.logs import turn


class Away(MemoryStore):
    """Writes nothing while it is down, and says so late."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False

    async def append(self, batch: Batch) -> int:
        if self.down:
            for _ in range(20):
                await asyncio.sleep(0)
            raise StoreError("the disk is full")
        return await super().append(batch)

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        return [await self.append(each) for each in batches]


@pytest.mark.parametrize("why", ["the lease is lost", "the store is away"])
async def test_a_run_that_did_not_begin_keeps_its_watchers_from_no_other(why: str) -> None:
    store = Away()
    log, other = RunLog(store, patience_ms=0), RunLog(store, clock=ahead)
    async with Cast(log, hub=a_hub(), agents=[parrot], recover="off") as cast, other:

        async def claim() -> None:
            if why == "the store is away":
                store.down = True
            else:
                await other.start_run("t1", "theirs")

        asked = RunRequest("parrot", input_for("t1", "r1", [UserMessage(id="u", content="go")]))
        with pytest.raises(Busy if why == "the lease is lost" else StoreError):
            await cast.launcher.launch(asked, "t1", "r1", claim=claim)
        store.down = False
        reader = await watching(cast)
        for event in turn("theirs"):
            thread = isinstance(event, RunStartedEvent | RunFinishedEvent)
            await other.append("t1", event.model_copy(update={"thread_id": "t1"}) if thread else event)
        assert "theirs" in await ends(reader, "theirs")
        assert reader.faults == []


async def test_an_annotation_that_another_owner_kept_out_leaves_watchers_to_its_run() -> None:
    store = MemoryStore()
    log, other = RunLog(store), RunLog(store, clock=ahead)
    async with Cast(log, hub=a_hub(), agents=[parrot], recover="off") as cast, other:
        await (await cast.say("t1", "a word")).result()
        await other.start_run("t1", "theirs")
        note = Annotation(id="a", metaType="thumb", payload={})
        assert not await cast.annotations.write("t1", note)
        reader = await watching(cast)
        for event in turn("theirs"):
            thread = isinstance(event, RunStartedEvent | RunFinishedEvent)
            await other.append("t1", event.model_copy(update={"thread_id": "t1"}) if thread else event)
        assert "theirs" in await ends(reader, "theirs")


async def test_a_requested_run_begins_as_soon_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "POLL", 3_600.0)
    store, gated = MemoryStore(), Gated(1)
    async with (
        Cast(
            RunLog(store), agents=[parrot, EventFunction(gated, name="gated")], max_runs=1, recover="off"
        ) as worker,
        Cast(RunLog(store), work=False) as front,
    ):
        busy = await worker.say("t1", "one", agent="gated")
        await knows(front, "parrot")
        waits = await front.say("t2", "two", agent="parrot")
        for _ in range(3):  # no ring is left that could begin it
            await worker.node.look()
            await asyncio.sleep(0.02)
        gated.open()
        await busy.result()
        async with asyncio.timeout(30):
            assert (await waits.result()).status == "completed"
