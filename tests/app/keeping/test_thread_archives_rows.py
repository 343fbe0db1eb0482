"""What is beside a thread's log in its archive: what waits, letters and a snapshot, and nothing that has no meaning elsewhere."""

from __future__ import annotations

from runcast.app import Cast, Webhook
from tests.app.agents import Gated, parrot
from tests.app.keeping.test_thread_archives import exported, imported, rows_in
from tests.app.webhooks.test_webhook import NEW


async def test_of_notes_only_messages_and_letters_go_along() -> None:
    gated = Gated(1)
    hook = Webhook("https://example.com/", (NEW,))
    async with Cast.open("memory://", agents=[gated], watch=False, webhooks=[hook]) as cast:
        run = await cast.say("t1", "one")
        await cast.say("t1", "two", on_busy="queue")
        await cast.log.notes.leave("n", box="stop nobody", body=b"soft", thread_id="t1", run_id=run.run_id)
        archive = await exported(cast)
        assert {each["box"] for each in rows_in(archive, "letter")} <= {
            "webhook armed",
            "webhook over",
            "webhook due",
        }
        assert run.run_id in {each["run_id"] for each in rows_in(archive, "letter")}
        assert [each["body"].count("two") for each in rows_in(archive, "waiting")] == [1]
        gated.open()
        await run.result()


async def test_a_snapshot_goes_along_where_every_run_is_whole() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        for word, more in (("one", 1), ("two", 0)):
            run = await cast.say("t1", word)
            await run.result()
            rows = rows_in(await exported(cast), "snapshot")
            assert [each["run_id"] for each in rows] == [run.run_id] * more
            await cast.log.archive.compact("t1")
            await cast.log.archive.prune(thread_id="t1", keep_bytes=0)
        assert all(each.pruned for each in await cast.log.runs("t1"))


async def test_a_snapshot_of_an_earlier_place_stays_behind() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[parrot, gated], watch=False) as cast:
        await (await cast.say("t1", "one", agent="parrot")).result()
        run = await cast.say("t1", "two", agent=next(each for each in cast.agents if each != "parrot"))
        assert rows_in(await exported(cast), "snapshot"), "it is that of the run before, whole"
        gated.open(1)
        await run.result()
        assert [each["run_id"] for each in rows_in(await exported(cast), "snapshot")] == [run.run_id]


async def test_messages_that_wait_in_an_archive_begin_at_once() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[parrot, gated], watch=False) as cast:
        first = await cast.say("t1", "one", agent=next(each for each in cast.agents if each != "parrot"))
        await cast.say("t1", "two", agent="parrot", on_busy="queue")
        archive = await exported(cast)
        gated.open()
        await first.result()
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        await cast.node.close()  # nothing looks by itself
        await imported(cast, archive, waiting=True)
        assert len(await cast.log.runs("t1")) == 2
