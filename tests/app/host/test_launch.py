"""What a run continues from is read under the thread's lease, and a request that makes no sense any more is refused."""

from __future__ import annotations

import pytest

from runcast.app import Cast, Over, Overtaken
from runcast.app.nodes.handover import RunRequest
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
