"""Messages that wait: none is lost, doubled or reordered, however often a process dies, and each is seen while it waits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, cast

import pytest
from ag_ui.core import (
    CustomEvent,
    ImageInputContent,
    InputContentUrlSource,
    RunStartedEvent,
    TextInputContent,
    UserMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from runcast.app import BadRequest, Busy, Cast, Full, NotFound, Over, Run
from runcast.app.nodes.handover import OnBusy, RunRequest, input_for, new_messages
from runcast.app.nodes.queue import MOST
from runcast.app.nodes.waiting import Waiting, before, in_order, to_begin, to_wait, words_of
from runcast.broadcast import Broadcaster, MemoryPublisher, channel_for
from runcast.slim import MemoryStore, Note, RunInfo, RunLog, StoreError, verify
from runcast.slim.stores.records import Key
from tests.app.agents import Gated, asker, parrot
from tests.app.mortal import Mortal, behind
from tests.app.node_process import WorkerProcess
from tests.app.nodes.stage import PATIENCE, ask, counting, knows, nodes, until, web, worker
from tests.app.serving import run_input, sent, serving
from tests.conftest import LONG

POLICIES: tuple[OnBusy, ...] = ("queue", "steer", "interrupt", "rollback")


async def whole(run: Run) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await run.result()


async def words(cast: Cast, thread_id: str = "t1") -> list[str]:
    """The user's words in the thread, in order."""
    state = await cast.state(thread_id)
    return [] if state is None else [words_of(each) for each in state.history if each.role == "user"]


async def queued(cast: Cast, thread_id: str = "t1") -> list[str]:
    return [each.text for each in await cast.queue.waiting(thread_id)]


async def idle(cast: Cast, thread_id: str = "t1") -> None:
    async def over() -> bool:
        if await cast.queue.waiting(thread_id):
            return False
        runs = await cast.log.runs(thread_id)
        return bool(runs) and runs[-1].status != "in_progress" and not cast.slots.has("")

    await until(over)


# ------------------------------------------------------------------ one host


async def test_messages_wait_in_order_and_each_has_a_run_of_its_own() -> None:
    gated = Gated(3)
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        cast.register(gated, name="gated")
        first = await cast.say("t1", "one", agent="gated")
        with pytest.raises(Busy):
            await cast.say("t1", "two", agent="parrot")
        later = [
            await cast.say("t1", text, agent="parrot", on_busy="queue") for text in ("two", "three", "four")
        ]
        assert (first.accepted, {each.accepted for each in later}) == ("started", {"queued"})
        assert await queued(cast) == ["two", "three", "four"]
        await cast.queue.edit("t1", later[1].run_id, "drei")
        await cast.queue.withdraw("t1", later[2].run_id)
        gated.open()
        assert [(await whole(each)).status for each in later[:2]] == ["completed", "completed"]
        gone = await whole(later[2])
        assert (gone.status, gone.code) == ("truncated", "withdrawn")
        with pytest.raises(Over, match="taken back"):
            await later[2].begun()
        assert await words(cast) == ["one", "two", "drei"]
        runs = await cast.log.runs("t1")
        assert [each.run_id for each in runs] == [first.run_id, later[0].run_id, later[1].run_id]
        with pytest.raises(Over, match="has begun"):
            await cast.queue.edit("t1", later[0].run_id, "too late")
        with pytest.raises(NotFound, match="no message"):
            await cast.queue.withdraw("t1", "unheard-of")
        entries = await cast.log.entries("t1")
        for run in runs:
            assert not verify([each.event for each in entries if each.run_id == run.run_id])


async def test_who_watches_sees_what_waits() -> None:
    gated, publisher = Gated(1), MemoryPublisher()
    log = RunLog(MemoryStore())
    async with Cast(log, Broadcaster(publisher), agents=[gated]) as cast:

        async def lists() -> list[tuple[str, list[str]]]:
            return [
                (each.execution_id, [row["text"] for row in each.payload["messages"]])
                for each in publisher.envelopes(channel_for("t1"))
                if each.type == "agent.queued"
            ]

        first = await cast.say("t1", "one")
        second = await cast.say("t1", "two", on_busy="queue")
        await cast.queue.edit("t1", second.run_id, "zwei")
        gated.open(1)
        await until(lambda: _last_is_empty(lists))
        assert await lists() == [(first.run_id, ["two"]), (first.run_id, ["zwei"]), (second.run_id, [])]
        gated.open()
        await whole(second)


async def _last_is_empty(lists: Any) -> bool:
    found = await lists()
    return bool(found) and found[-1][1] == []


async def test_a_queue_has_an_end_and_a_run_id_one_message() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[gated], watch=False, on_busy="queue") as cast:
        first = await cast.say("t1", "one")
        for n in range(MOST):
            await cast.say("t1", f"{n}")
        with pytest.raises(Full, match="wait in this thread"):
            await cast.say("t1", "one too many")
        for each in (await cast.queue.waiting("t1"))[1:]:
            await cast.queue.withdraw("t1", each.run_id)
        (only,) = await cast.queue.waiting("t1")
        with pytest.raises(Busy, match="run id was used"):
            await cast.start(cast.agent(first.adapter.name), ask(run_id=only.run_id))
        with pytest.raises(Busy):
            await cast.start(cast.agent(first.adapter.name), ask(run_id=first.run_id))
        with pytest.raises(BadRequest, match="on_busy is one of"):
            await cast.say("t1", "?", on_busy="later")  # type: ignore[arg-type]
        assert await cast.stop(only.run_id) == "stopped"
        assert await queued(cast) == []
        gated.open()
        await whole(first)


async def test_the_policy_is_the_requests_or_the_agents_or_the_casts() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", watch=False, on_busy="queue") as cast:
        cast.register(gated, name="strict", on_busy="refuse")
        first = await cast.say("t1", "one", agent="strict")
        with pytest.raises(Busy):
            await cast.say("t1", "two", agent="strict")
        waits = await cast.say("t1", "two", agent="strict", on_busy="queue")
        with pytest.raises(Busy, match="messages wait"):
            await cast.say("t1", "three", agent="strict", on_busy="refuse")
        gated.open()
        await whole(first)
        await whole(waits)


async def test_a_question_is_answered_before_what_waits_begins() -> None:
    gate = asyncio.Event()

    async def asks(input: Any) -> Any:
        async for event in asker(input):
            yield event
            await gate.wait()

    async with Cast.open("memory://", agents=[parrot, asks], watch=False) as cast:
        first = await cast.say("t1", "one", agent="asks")
        second = await cast.say("t1", "two", agent="parrot", on_busy="queue")
        gate.set()
        assert (await whole(first)).status == "interrupted"
        await cast.queue.begin_next("t1")
        assert await queued(cast) == ["two"]
        third = await cast.say("t1", "three", agent="parrot", on_busy="queue")
        assert await queued(cast) == ["two", "three"]
        answer = await cast.resume("t1", {"q1": True})
        assert (await whole(answer)).status == "completed"
        assert (await whole(second)).status == "completed"
        assert (await whole(third)).status == "completed"
        assert [each.run_id for each in await cast.log.runs("t1")] == [
            first.run_id,
            answer.run_id,
            second.run_id,
            third.run_id,
        ]


async def test_a_message_that_begins_is_not_taken_back() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        cast.register(gated, name="gated")
        first = await cast.say("t1", "one", agent="gated")
        two, three = [
            await cast.say("t1", each, agent="parrot", on_busy="queue") for each in ("two", "three")
        ]
        begins = (await cast.queue.waiting("t1"))[0]
        await cast.log.notes.exchange(begins.note, begins.begun())
        for change in (cast.queue.withdraw("t1", two.run_id), cast.queue.edit("t1", two.run_id, "zwei")):
            with pytest.raises(Over, match="begins at this moment"):
                await change
        with pytest.raises(Over, match="has begun"):
            await cast.queue.withdraw("t1", first.run_id)
        with pytest.raises(NotFound):
            await cast.queue.withdraw("t1", "unknown")
        await cast.queue.withdraw("t1", three.run_id)
        assert [each.run_id for each in await cast.queue.waiting("t1")] == [two.run_id]
        gated.open()
        await whole(first)


async def test_an_interrupt_keeps_what_was_said_and_what_waits() -> None:
    gated = Gated(5)
    async with Cast.open("memory://", agents=[parrot, gated], watch=False) as cast:
        name = next(each for each in cast.agents if each != "parrot")
        first = await cast.say("t1", "one", agent=name)
        later = [await cast.say("t1", text, agent="parrot", on_busy="queue") for text in ("two", "three")]
        urgent = await cast.say("t1", "now", agent="parrot", on_busy="interrupt")
        again = await cast.say("t1", "and now", agent="parrot", on_busy="interrupt")
        for each in (urgent, again, *later):
            assert (await whole(each)).status == "completed"
        assert (await whole(first)).code == "cancelled"
        assert await words(cast) == ["one", "now", "and now", "two", "three"]


async def test_a_rollback_takes_the_run_back_and_the_log_keeps_it_as_a_branch() -> None:
    gated = Gated(5)
    async with Cast.open("memory://", agents=[parrot, gated], watch=False) as cast:
        name = next(each for each in cast.agents if each != "parrot")
        start = await cast.say("t1", "one", agent=name)
        anew = await cast.say("t1", "uno", agent="parrot", on_busy="rollback")
        assert (await whole(anew)).status == "completed"
        taken = await cast.say("t1", "two", agent=name)
        later = await cast.say("t1", "three", agent="parrot", on_busy="queue")
        instead = await cast.say("t1", "zwei", agent="parrot", on_busy="rollback")
        await whole(instead)
        await whole(later)
        assert await words(cast) == ["uno", "zwei", "three"]
        tree = [(each.run_id, each.parent, each.edge) for each in await cast.log.runs("t1")]
        assert tree == [
            (start.run_id, None, "continue"),
            (anew.run_id, None, "branch"),
            (taken.run_id, anew.run_id, "continue"),
            (instead.run_id, anew.run_id, "branch"),
            (later.run_id, instead.run_id, "continue"),
        ]


async def test_a_message_for_an_agent_that_is_gone_is_in_the_log_all_the_same() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[parrot, gated], watch=False) as cast:
        name = next(each for each in cast.agents if each != "parrot")
        first = await cast.say("t1", "one", agent=name)
        run = await cast.say("t1", "two", agent="parrot", from_run=first.run_id, on_busy="queue")
        (note,) = [each.note for each in await cast.queue.waiting("t1")]
        bad = RunRequest.decode(note.body)
        lost = note.body.replace(b'"parent":"%s"' % first.run_id.encode(), b'"parent":"gone"')
        assert bad.parent == first.run_id
        assert await cast.log.notes.exchange(note, lost)
        gated.open()
        assert (await whole(run)).status == "failed"
        assert await queued(cast) == []


# ----------------------------------------------------------------- kills


@pytest.mark.parametrize(
    ("policy", "recover"), [("queue", "continue"), ("interrupt", "off"), ("rollback", "continue")]
)
async def test_no_message_is_lost_or_doubled_wherever_its_process_dies(
    policy: OnBusy, recover: Literal["off", "continue"]
) -> None:
    graves: list[asyncio.Future[None]] = []
    for steps in range(1, 2_000, 1 if LONG else 4):
        store = MemoryStore()
        mortal = Mortal(store, steps)
        gated, acknowledged = Gated(2), list[str]()
        victim = Cast(
            RunLog(cast("Any", mortal), clock=behind, patience_ms=0), agents=[parrot, gated], recover=recover
        )

        async def scene(victim: Cast = victim, gated: Gated = gated, done: list[str] = acknowledged) -> None:
            async with victim:
                await victim.say("t1", "one", agent=next(each for each in victim.agents if each != "parrot"))
                done.append("one")
                for text, how in (("two", "queue"), ("three", policy)):
                    await victim.say("t1", text, agent="parrot", on_busy=how)  # type: ignore[arg-type]
                    done.append(text)
                gated.open()
                await idle(victim)

        playing = asyncio.ensure_future(scene())
        died = await mortal.dies_in_scene(playing)
        finisher = Gated(2)
        finisher.open()
        async with Cast(
            RunLog(store), agents=[parrot, finisher], recover=recover, recover_every=0.01
        ) as survivor:
            if acknowledged:
                await idle(survivor)
            runs = await survivor.log.runs("t1")
            entries = [each.event for each in await survivor.log.entries("t1")]
            asked = [
                words_of(each)
                for event in entries
                if isinstance(event, RunStartedEvent) and event.input
                for each in event.input.messages
                if each.role == "user"
            ]
            assert set(acknowledged) <= set(asked), steps
            begun = [each.run_id for each in runs]
            assert len(set(begun)) == len(begun), steps
            said = await words(survivor)
            assert len(set(said)) == len(said), steps
            if {"two", "three"} <= set(acknowledged):
                ends = {"queue": ["one", "two", "three"], "interrupt": ["one", "three", "two"]}
                assert said == ends.get(policy, ["three", "two"]) or "three" in said, steps
        if died:
            graves.append(
                asyncio.ensure_future(buried(mortal, playing, victim))
            )  # now: its scene has a limit
        else:
            await playing
        if not died:
            break
    await asyncio.gather(*graves)
    assert steps > 30


async def buried(mortal: Mortal, playing: asyncio.Future[Any], victim: Cast) -> None:
    """Let a process that died end, so that no task of it is left."""
    mortal.bury()
    playing.cancel()
    with suppress(asyncio.CancelledError, StoreError):
        await playing
    with suppress(StoreError):  # it is dead
        await victim.aclose(grace=0)


# ----------------------------------------------------------------- nodes


async def test_a_message_waits_over_nodes_and_its_worker_may_be_killed(url: str) -> None:
    front = web(url)
    async with nodes(front):
        async with WorkerProcess(url) as process:
            first = await counting(front)
            later = [
                await front.say("t1", text, agent="parrot", on_busy="queue") for text in ("two", "three")
            ]
            assert [each.accepted for each in later] == ["queued", "queued"]
            await front.queue.edit("t1", later[1].run_id, "drei")

            async def announced() -> bool:
                lists = [
                    each.event.value["messages"]
                    for each in await front.log.entries("t1")
                    if isinstance(each.event, CustomEvent) and each.event.name == "runcast.queued"
                ]
                return bool(lists) and [row["text"] for row in lists[-1]] == ["two", "drei"]

            await until(announced)
            await process.kill()
        async with nodes(worker(url)):
            for each in later:
                assert (await whole(each)).status == "completed"
        runs = await front.log.runs("t1")
        assert [each.run_id for each in runs] == [first.run_id, *(each.run_id for each in later)]
        assert (await words(front))[-2:] == ["two", "drei"]


async def test_an_interrupt_reaches_the_node_that_drives_the_run(url: str) -> None:
    gated, front = Gated(), web(url)
    here = Cast.open(url, agents=[gated, parrot])
    async with nodes(here, front):
        await knows(front, "parrot")
        first = await here.start(gated, ask("one"))
        urgent = await front.say("t1", "now", agent="parrot", on_busy="interrupt")
        assert (await whole(urgent)).status == "completed"
        assert (await whole(first)).code == "cancelled"
        assert await words(front) == ["one", "now"]


async def test_an_agui_client_may_let_its_run_wait() -> None:
    gated = Gated(1)
    cast = Cast.open("memory://", agents=[parrot])
    cast.register(gated, name="gated")
    async with serving(cast) as host:
        first = await cast.say("t1", "one", agent="gated")
        refused = await host.http.post("/agents/parrot", json=run_input("two", run="r2"))
        assert refused.status_code == 409
        async with host.http.stream(
            "POST", "/agents/parrot?on_busy=queue", json=run_input("two", run="r2")
        ) as response:
            assert (await host.http.get("/threads/t1/queue")).json()["messages"][0]["text"] == "two"
            edited = await host.http.post("/threads/t1/queue/r2", json={"message": "zwei"})
            assert [each["text"] for each in edited.json()["messages"]] == ["zwei"]
            third = await host.http.post(
                "/threads/t1/runs", json={"message": "three", "agent": "parrot", "on_busy": "queue"}
            )
            assert (third.status_code, third.json()["status"]) == (202, "queued")
            gone = await host.http.post(f"/threads/t1/queue/{third.json()['run_id']}/withdraw")
            assert [each["run_id"] for each in gone.json()["messages"]] == ["r2"]
            gated.open()
            events = [each.event["type"] async for each in sent(response)]
        assert (events[0], events[-1]) == ("RUN_STARTED", "RUN_FINISHED")
        assert await words(cast) == ["one", "zwei"]
        assert (await host.http.post("/threads/t1/queue/r2/withdraw")).status_code == 409
        assert (await host.http.post("/threads/t1/queue/r9/withdraw")).status_code == 404
        assert (await whole(first)).status == "completed"


async def test_a_waiting_client_whose_message_is_taken_back_gets_an_end() -> None:
    gated = Gated(1)
    cast = Cast.open("memory://", agents=[gated])
    async with serving(cast) as host:
        await cast.start(gated, ask("one"))
        path = f"/agents/{next(iter(cast.agents))}?on_busy=queue"
        async with host.http.stream("POST", path, json=run_input("two", run="r2")) as response:
            await cast.queue.withdraw("t1", "r2")
            events = [each.event["type"] async for each in sent(response)]
        assert events == ["RUN_ERROR"]
        gated.open()


# ------------------------------------------------------------- what waits


def waiting(run_id: str, on_busy: OnBusy = "queue", at: int = 0, *, begins: bool = False) -> Waiting:
    request = RunRequest(
        "a", input_for("t", run_id, [UserMessage(id=run_id, content=run_id)]), on_busy=on_busy, begins=begins
    )
    return Waiting(Note(f"n {run_id}", "queue a", Key("", "t"), run_id, request.encode(), at), request)


@given(
    st.lists(st.tuples(st.sampled_from(POLICIES), st.booleans(), st.integers(0, 3)), max_size=6), st.randoms()
)
def test_the_order_does_not_depend_on_how_it_is_read(rows: list[Any], random: Any) -> None:
    notes = [waiting(f"r{n}", how, at, begins=begins).note for n, (how, begins, at) in enumerate(rows)]
    other = Note("x", "run a", Key("", "t"), "r", b"", 0)
    ordered = in_order([*notes, other])
    random.shuffle(notes)
    assert in_order(notes) == ordered
    ranks = [(not each.request.begins, not each.ahead, each.note.at) for each in ordered]
    assert ranks == sorted(ranks)


def test_a_waiting_request_survives_its_note_and_is_edited_in_its_words_alone() -> None:
    one = waiting("r1", "rollback", begins=True)
    assert RunRequest.decode(one.note.body) == one.request
    again = RunRequest.decode(one.edited("other"))
    assert again.input is not None
    assert [(each.id, each.content) for each in again.input.messages] == [("r1", "other")]
    with pytest.raises(BadRequest, match="no user message"):
        Waiting(one.note, RunRequest("a")).edited("x")
    picture = ImageInputContent(source=InputContentUrlSource(value="https://example.com/a.png"))
    shown = UserMessage(id="u", content=[TextInputContent(text="this"), picture])
    asked = replace(one.request, input=input_for("t", "r1", [shown]))
    assert Waiting(one.note, asked).row()["files"] == 1
    kept = RunRequest.decode(Waiting(one.note, asked).edited("that")).input
    assert kept is not None
    assert kept.messages[-1].content == [TextInputContent(text="that"), picture], "its files stay"
    assert Waiting(one.note, RunRequest("a")).row()["files"] == 0


def run_info(run_id: str, parent: str | None, edge: Any, status: Any) -> RunInfo:
    return RunInfo(
        run_id=run_id, parent=parent, edge=edge, attempt=1, first_seq=1, last_seq=1, started_at=0, ended_at=None,
        status=status, terminal=None, usage=(), wire_parent=None, pruned=False,
    )  # fmt: skip


def test_a_rollback_goes_before_the_attempts_at_a_run_and_leaves_other_runs_alone() -> None:
    runs = [
        run_info("a", None, "continue", "completed"),
        run_info("b", "a", "continue", "truncated"),
        run_info("c", "b", "resume", "cancelled"),
    ]
    request = to_wait(RunRequest("x", edge="continue", parent="a"), "rollback", "c")
    assert (request.parent, request.append) == (None, True)
    assert to_begin(request, runs).parent == "a"
    assert to_begin(request, runs[:2]) == request
    assert before(runs[0], runs) is None
    branch = to_wait(RunRequest("x", edge="branch", parent="a"), "queue", None)
    assert (branch.edge, branch.parent) == ("branch", "a")


def test_a_client_that_knows_little_of_the_thread_adds_its_own_words_alone() -> None:
    old, new = UserMessage(id="1", content="a"), UserMessage(id="2", content="b")
    assert new_messages([old, new], [old]) == [new]
    assert new_messages([new], [old]) == [new]
    assert new_messages([old], [old, new]) == []
