"""A run that did not begin leaves nothing behind that would be in another one's way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from ag_ui.core import RunFinishedEvent, RunStartedEvent, UserMessage

from runcast.app import Busy, Cast
from runcast.app.nodes.handover import RunRequest, input_for
from runcast.slim import MemoryStore, RunLog, StoreError
from runcast.slim.stores.records import Batch
from tests.app.agents import parrot
from tests.app.host.test_followers import a_hub, ends, watching
from tests.app.mortal import ahead
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
