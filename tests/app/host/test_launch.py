"""What a run continues from is read under the thread's lease, and a request that makes no sense any more is refused."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from runcast.app import Cast, Over, Overtaken
from runcast.app.nodes import node
from runcast.app.nodes.handover import RunRequest
from runcast.slim import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import BlobInfo, BlobKind, Key, Note
from tests.app.agents import asker, parrot


async def test_a_request_for_a_run_that_is_not_the_newest_any_more_is_refused_and_frees_the_thread() -> None:
    async with Cast.open("memory://", agents=[parrot, asker]) as cast:
        first = await (await cast.say("t1", "go", agent="asker")).result()
        await (await cast.say("t1", "other", agent="parrot")).result()
        late = RunRequest("asker", None, "resume", first.run_id, unfinished=True)
        with pytest.raises(Overtaken, match="has moved on since"):
            await cast.launcher.launch(late, "t1", "late")
        assert (await (await cast.say("t1", "on", agent="parrot")).result()).status == "completed"


async def test_a_run_that_has_completed_is_not_resumed() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        run = await cast.say("t1", "hello")
        await run.result()
        with pytest.raises(Over, match="nothing to resume"):
            await cast.resume("t1")
        assert [each.run_id for each in await cast.log.runs("t1")] == [run.run_id]


class _Counting(MemoryStore):
    """Counts the questions that cost a small run more than they bring."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
        self.asked["mailboxes"] += 1
        return await super().notes(*boxes, limit=limit)

    async def blob_index(self, key: Key, kind: BlobKind) -> list[BlobInfo]:
        self.asked[kind] += 1
        return await super().blob_index(key, kind)


async def test_a_small_run_asks_the_store_for_nothing_that_waits_or_is_too_small_to_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node, "POLL", 3_600.0)
    store = _Counting()
    async with Cast(RunLog(store), agents=[parrot]) as cast, asyncio.timeout(60):
        await (await cast.say("first", "hello")).result()
        await cast.log.archive.compact("first")  # takes its turn behind the compaction in the background
        before = store.asked.copy()
        for n in range(5):
            await (await cast.say(f"t{n}", "hello")).result()
            await cast.log.archive.compact(f"t{n}")
        assert store.asked - before == {"segment": 10, "snapshot": 5}
