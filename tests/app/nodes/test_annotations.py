"""Annotations: whoever watches sees them, whenever they come, and nothing else of the thread changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from ag_ui.core import CustomEvent, RunFinishedEvent, RunFinishedInterruptOutcome, RunStartedEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from runcast.app import BadRequest, Busy, Cast, NotFound
from runcast.app.nodes import annotations
from runcast.app.nodes.annotations import LONGEST_TYPE
from runcast.broadcast import Broadcaster, MemoryPublisher, Position, channel_for
from runcast.slim import MemoryStore, RunLog, fold, verify
from tests.app.agents import Gated, asker, parrot
from tests.app.nodes.stage import lingering, nodes, until
from tests.app.serving import Served, post_run, serving
from tests.e2e.oracle import Oracle

UP = {"messageId": "m-r1"}


def bare(rows: Any) -> list[dict[str, Any]]:
    """Annotations without their places."""
    return [{key: value for key, value in row.items() if key not in ("at", "seq")} for row in rows]


async def watched(cast: Cast, thread_id: str = "t1") -> list[dict[str, Any]]:
    """What a watcher that comes now makes of the envelopes."""
    found: dict[str, Any] = {}
    stretch = await cast.history.read(thread_id, Position.of("", 0), most=10_000)
    for envelope in stretch.envelopes:
        if envelope.type == "agent.annotation":
            found.pop(envelope.payload["id"], None)
            if envelope.payload["payload"] is not None:
                found[envelope.payload["id"]] = dict(envelope.payload)
    return list(found.values())


async def test_what_is_noted_as_a_run_ends_is_not_lost_with_it() -> None:
    async with lingering() as (cast, run, goes_on):
        noting = asyncio.create_task(cast.annotations.add("t1", "thumb", UP, id="a"))
        for _ in range(50):
            await asyncio.sleep(0)
        goes_on.set()
        await run.result()
        await noting
        assert [each["id"] for each in await cast.annotations.of("t1")] == ["a"]


async def test_what_is_noted_on_a_thread_that_asks_ends_as_the_thread_stands() -> None:
    async with Cast.open("memory://", agents=[asker], watch=False) as cast:
        await (await cast.say("t1", "go")).result()
        asked: Any = (await cast.log.entries("t1"))[-1].event
        await cast.annotations.add("t1", "thumb", UP)
        ended: Any = (await cast.log.entries("t1"))[-1].event
        assert ended.run_id != asked.run_id
        assert ended.outcome == asked.outcome is not None


Step = tuple[str, str, dict[str, Any] | None]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "note", "compact", "prune"]),
        st.sampled_from("abc"),
        st.none()
        | st.fixed_dictionaries({"messageId": st.sampled_from(["m1", "m2"]), "n": st.integers(0, 9)}),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(STEPS)
def test_what_was_noted_stands_whatever_happens_to_the_thread(steps: list[Step]) -> None:
    async def story() -> None:
        model: dict[str, Any] = {}
        async with Cast.open("memory://", agents=[parrot]) as host:
            await (await host.say("t1", "hello")).result()
            runs = 1
            for what, id, payload in steps:
                if what == "say":
                    await (await host.say("t1", "again")).result()
                    runs += 1
                elif what == "note":
                    await host.annotations.add("t1", "tag", payload, id=id, by="ada")
                    model.pop(id, None)
                    if payload is not None:
                        model[id] = {"id": id, "metaType": "tag", "by": "ada", "payload": payload}
                elif what == "compact":
                    await host.log.archive.compact("t1")
                else:
                    await host.log.archive.prune(keep_bytes=0)
                assert bare(await host.annotations.of("t1")) == list(model.values())
            kept = list(model.values())
            assert bare(await host.annotations.of("t1")) == await watched(host) == kept
            assert len(await host.log.runs("t1")) == runs
            assert verify([entry.event for entry in await host.log.entries("t1")]) == []
            history = fold(await host.log.restore("t1"))
            assert sum(each.role == "user" for each in history.messages) == runs
            async with RunLog(MemoryStore()) as other:
                await other.archive.import_lines(host.log.archive.export_lines("t1"))
                async with Cast(other) as there:
                    assert bare(await there.annotations.of("t1")) == kept
                    assert len(await other.runs("t1")) == runs

    asyncio.run(story())


async def test_a_note_leaves_open_questions_open_and_clients_accept_the_replay(oracle: Oracle) -> None:
    async with Cast.open("memory://", agents=[asker]) as host:
        await (await host.say("t1", "ask me")).result()
        await host.annotations.add("t1", "thumbs_up", UP)
        (run,) = await host.log.runs("t1")
        thread = await host.log.thread("t1")
        assert run.status == "interrupted"
        assert thread is not None
        assert thread.status == "interrupted"
        events = [entry.event for entry in await host.log.entries("t1")]
        assert [each.id for each in fold(events).pending_interrupts] == ["q1"]
        await (await host.resume("t1", {"q1": "go"})).result()
        await host.annotations.add("t1", "thumbs_down", UP)
        events = [entry.event for entry in await host.log.entries("t1")]
        assert verify(events) == []
        for judged in (oracle.pipeline(events), oracle.earlier(events)):
            assert judged.get("error") is None, judged
        joined = [each async for each in _past(host)]
        for judged in (oracle.pipeline(joined), oracle.earlier(joined)):
            assert judged.get("error") is None, judged
        ends = [each for each in events if each.type.value == "RUN_FINISHED"]
        assert [isinstance(cast(Any, each).outcome, RunFinishedInterruptOutcome) for each in ends] == [
            True, True, False, False
        ]  # fmt: skip


async def _past(host: Cast) -> Any:
    async for portion in host.log.join("t1"):
        for event in portion.events:
            yield event
        return


async def test_every_target_receives_a_note_while_nothing_runs_and_while_something_does() -> None:
    gated = Gated()
    publisher = MemoryPublisher()
    log = RunLog(MemoryStore())
    async with Cast(log, Broadcaster(publisher)) as host:
        host.register(gated, name="gated")
        run = await host.say("t1", "hello")
        await host.annotations.add("t1", "note", {"text": "while it runs"}, id="a")
        gated.open()
        await run.result()
        await host.annotations.add("t1", "note", {"text": "after it"}, id="b")

        def notes() -> list[Any]:
            return [
                each for each in publisher.envelopes(channel_for("t1")) if each.type == "agent.annotation"
            ]

        async def sent() -> bool:
            return len(notes()) == 2

        await until(sent)
        assert [each.payload["payload"]["text"] for each in notes()] == ["while it runs", "after it"]
        assert notes()[0].execution_id == run.run_id != notes()[1].execution_id
        statuses = [
            each.payload["status"]
            for each in publisher.envelopes(channel_for("t1"))
            if each.type == "agent.status"
        ]
        assert statuses == ["in_progress", "completed"]


async def test_a_note_reaches_a_run_that_another_process_drives(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    gated = Gated()
    one, two = Cast.open(url, watch=False), Cast.open(url, agents=[parrot], watch=False)
    one.register(gated, name="gated")
    async with nodes(one, two):
        run = await one.say("t1", "hello", agent="gated")
        await two.annotations.add("t1", "thumbs_up", UP, id="a")
        (noted,) = [each for each in await two.log.entries("t1") if each.event.type.value == "CUSTOM"]
        assert noted.run_id == run.run_id
        gated.open()
        await run.result()
        await two.annotations.add("t1", "thumbs_up", None, id="a")
        assert await one.annotations.of("t1") == []
        assert await one.log.notes.of_thread("t1") == []


async def test_many_at_once_are_all_kept_and_no_run_is_refused_for_them(tmp_path: Path) -> None:
    async with Cast.open(f"sqlite:///{tmp_path}/runs.db", agents=[parrot], watch=False) as host:
        await (await host.say("t1", "hello")).result()
        notes = [host.annotations.add("t1", "tag", {"n": n}, id=str(n)) for n in range(12)]
        run, *_ = await asyncio.gather(host.say("t1", "again"), *notes)
        await run.result()
        assert {row["id"] for row in await host.annotations.of("t1")} == {str(n) for n in range(12)}
        assert verify([entry.event for entry in await host.log.entries("t1")]) == []


async def test_what_was_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations, "KEPT", 2)  # room for one thread
    async with Cast.open("memory://", agents=[parrot], watch=False) as host:
        for thread in ("t1", "t2"):
            await (await host.say(thread, "hello")).result()
            await host.annotations.add(thread, "tag", {}, id=thread)
        known, places, read = await host.annotations.of("t1"), list[int](), host.log.entries

        async def counted(thread_id: str, after: int = 0, *rest: Any, **more: Any) -> Any:
            places.append(after)
            return await read(thread_id, after, *rest, **more)

        monkeypatch.setattr(host.log, "entries", counted)
        assert await host.annotations.of("t1") == known
        assert min(places) >= known[-1].get("seq", 0)
        await host.annotations.of("t2")
        places.clear()
        assert await host.annotations.of("t1") == known
        assert min(places) == 0


async def test_so_many_stand_in_a_thread_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations, "MOST", 3)
    async with Cast.open("memory://", agents=[parrot], watch=False) as host:
        await (await host.say("t1", "hello")).result()
        for n in range(3):
            await host.annotations.add("t1", "tag", {"n": n}, id=str(n))
        with pytest.raises(BadRequest, match="3 annotations stand"):
            await host.annotations.add("t1", "tag", {}, id="more")
        await host.annotations.add("t1", "tag", {"n": 9}, id="0")
        await host.annotations.add("t1", "tag", None, id="1")
        await host.annotations.add("t1", "tag", {}, id="more")
        assert [row["id"] for row in await host.annotations.of("t1")] == ["2", "0", "more"]


async def test_a_note_needs_a_thread_and_a_shape() -> None:
    async with Cast.open("memory://", agents=[parrot]) as host:
        with pytest.raises(NotFound, match="there is no thread 't1'"):
            await host.annotations.add("t1", "tag", {})
        await (await host.say("t1", "hello")).result()
        await host.annotations.add("t1", "tag", {})
        for kind, payload in (("", {}), ("x" * 65, {}), ("tag", {"text": "x" * 4_000})):
            with pytest.raises(BadRequest):
                await host.annotations.add("t1", kind, payload)
        await host.forget("t1")
        with pytest.raises(NotFound):
            await host.annotations.add("t1", "tag", {})
        assert await host.annotations.of("t1") == []


@pytest.fixture
async def host() -> Any:
    def owner(user: Any, thread_id: str) -> bool:
        return user == "ann"

    async with serving(authorize=owner, identify=lambda headers: headers.get("x-user")) as served:
        served.http.headers["x-user"] = "ann"
        yield served


async def test_notes_over_http_have_their_author(host: Served) -> None:
    await post_run(host.http)
    path = "/threads/t1/annotations"
    made = await host.http.post(path, json={"metaType": "thumbs_up", "payload": UP, "id": "a"})
    row = {"id": "a", "metaType": "thumbs_up", "by": "ann", "payload": UP}
    assert (made.status_code, made.json()) == (200, row)
    assert bare((await host.http.get(path)).json()["annotations"]) == [row]
    named = await host.http.post(path, json={"metaType": "tag", "payload": {}})
    assert named.json()["id"]
    for body in (
        {},
        {"metaType": 1, "payload": {}},
        {"metaType": "a", "payload": []},
        {"metaType": "a", "by": "bob"},
    ):
        assert (await host.http.post(path, json=body)).status_code == 400
    assert (
        await host.http.post("/threads/none/annotations", json={"metaType": "a", "payload": {}})
    ).status_code == 404
    for method in ("GET", "POST"):
        answer = await host.http.request(
            method, path, headers={"x-user": "bob"}, json={"metaType": "a", "payload": {}}
        )
        assert answer.status_code == 403


@pytest.mark.parametrize(
    ("length", "fits"), [(0, False), (1, True), (LONGEST_TYPE, True), (LONGEST_TYPE + 1, False)]
)
async def test_a_type_has_a_length(length: int, fits: bool) -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        await (await cast.say("t1", "a word")).result()
        if fits:
            await cast.annotations.add("t1", "x" * length, {})
        else:
            with pytest.raises(BadRequest, match="metaType"):
                await cast.annotations.add("t1", "x" * length, {})


async def test_what_stood_in_a_thread_of_another_history_stands_no_more() -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot]) as cast, RunLog(store) as other:
        await (await cast.say("t1", "a word")).result()
        await cast.annotations.add("t1", "thumb", UP, id="a")
        assert len(await cast.annotations.of("t1")) == 1
        await other.archive.delete("t1")
        await (await cast.say("t1", "another")).result()
        assert await cast.annotations.of("t1") == []


async def test_a_note_whose_worker_has_gone_is_written_here() -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot]) as host, RunLog(store) as gone:
        await gone.append("t1", RunStartedEvent(thread_id="t1", run_id="r1"))
        noting = asyncio.create_task(host.annotations.add("t1", "thumb", UP, id="a"))
        await until(lambda: host.log.notes.of_thread("t1"))
        await gone.recovery.abandon("t1")
        await asyncio.wait_for(noting, 30)
        assert [each["id"] for each in await host.annotations.of("t1")] == ["a"]
        assert await host.log.notes.of_thread("t1") == []


async def test_a_note_that_its_worker_takes_at_its_end_is_written_once() -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot]) as host, RunLog(store) as worker:
        await worker.append("t1", RunStartedEvent(thread_id="t1", run_id="r1"))
        noting = asyncio.create_task(host.annotations.add("t1", "thumb", UP, id="a"))
        await until(lambda: host.log.notes.of_thread("t1"))
        (note,) = await worker.notes.of_thread("t1")
        value = {"id": "a", "metaType": "thumb", "payload": UP}
        await worker.append("t1", CustomEvent(name=annotations.NAME, value=value))
        assert await worker.notes.take(note)
        await worker.append_many("t1", [RunFinishedEvent(thread_id="t1", run_id="r1")])
        await asyncio.wait_for(noting, 30)
        noted = [each for each in await host.log.entries("t1") if isinstance(each.event, CustomEvent)]
        assert [each.run_id for each in noted] == ["r1"]


async def test_a_note_that_no_worker_takes_is_refused_and_comes_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(annotations, "PATIENCE", 0.2)
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot]) as host, RunLog(store) as worker:
        await worker.append("t1", RunStartedEvent(thread_id="t1", run_id="r1"))
        with pytest.raises(Busy, match="took no annotation"):
            await asyncio.wait_for(host.annotations.add("t1", "thumb", UP, id="a"), 30)
        assert await host.log.notes.of_thread("t1") == []
        await worker.append_many("t1", [RunFinishedEvent(thread_id="t1", run_id="r1")])
        assert await host.annotations.of("t1") == []


async def test_a_note_that_cannot_be_written_yet_stays_until_it_is() -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot]) as host, RunLog(store) as other:
        await other.append("t1", RunStartedEvent(thread_id="t1", run_id="r1"))
        value = b'{"id":"a","metaType":"thumb","payload":{}}'
        notes, body = host.log.notes, annotations.MARK + value
        note = await notes.leave("note", box="box", body=body, thread_id="t1", lasting_ms=60_000)
        assert note is not None
        assert not await host.annotations.deliver(note), "another process writes the thread"
        assert await notes.of_thread("t1") == [note]
        await other.append_many("t1", [RunFinishedEvent(thread_id="t1", run_id="r1")])
        assert await host.annotations.deliver(note)
        assert (await notes.of_thread("t1"), len(await host.annotations.of("t1"))) == ([], 1)
        nowhere = await notes.leave("none", box="box", body=body, thread_id="t2", lasting_ms=60_000)
        assert nowhere is not None
        assert await host.annotations.deliver(nowhere), "there is no thread that could take it"
        assert await notes.of_thread("t2") == []
