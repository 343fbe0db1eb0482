"""Which runs a run builds on: branches apart, spawned runs alone, deep chains quickly, inputs exactly."""

from __future__ import annotations

import random

import pytest
from ag_ui.core import Message, RunStartedEvent, StateDeltaEvent, StateSnapshotEvent

from runcast.slim.archive.lineage import RunNode, ancestors
from runcast.slim.errors import LineageError, UnknownThread
from runcast.slim.folding.conversation import fold
from runcast.slim.stores import open_store
from runcast.slim.stores.contract.tools import batch, take
from runcast.slim.stores.records import Key, NewRun, RunEnd
from runcast.slim.wire.codec import AnyEvent
from tests.slim.logs import THREAD, contents, finished, make_log, started, text, turn, user


async def test_a_branch_sees_its_ancestors_and_no_sibling(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1", "Paris"))
        await log.append_many(THREAD, turn("r2", "London"))
        await log.branch(THREAD, "r1", "r3")
        await log.append_many(THREAD, turn("r3", "Tokyo"))
        wanted = {
            "r1": ["well?", "Paris "],
            "r2": ["well?", "Paris ", "well?", "London "],
            "r3": ["well?", "Paris ", "well?", "Tokyo "],
        }
        for compacted in (True, False):
            for run_id, said in wanted.items():
                stream = await log.restore(THREAD, run_id, compacted=compacted)
                assert contents(stream) == said
        assert fold(await log.restore(THREAD, "r3")).state == {"r1": "Paris", "r3": "Tokyo"}
        assert contents(await log.restore(THREAD)) == wanted["r3"], (
            "the newest run is where the thread goes on"
        )
        runs = await log.runs(THREAD)
        assert [(run.parent, run.edge) for run in runs] == [
            (None, "continue"),
            ("r1", "continue"),
            ("r1", "branch"),
        ]
        await log.append_many(THREAD, turn("r4", "Kyoto"))
        assert contents(await log.restore(THREAD))[-3:] == ["Tokyo ", "well?", "Kyoto "]


async def test_what_the_wire_says_of_a_parent_is_kept_and_not_followed(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1", "Paris"))
        await log.append_many(THREAD, turn("r2", "London"))
        await log.append_many(THREAD, [started("r3", parent_run_id="r1"), finished("r3")])
        run = (await log.runs(THREAD))[-1]
        assert (run.parent, run.wire_parent) == ("r2", "r1")
        event = (await log.entries(THREAD))[-2].event
        assert isinstance(event, RunStartedEvent)
        assert event.parent_run_id == "r1", "and RUN_STARTED still says it"


async def test_a_spawned_run_has_no_history_and_is_none(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1", "Paris"))
        await log.start_run(THREAD, "helper", parent="r1", edge="spawn")
        await log.append_many(THREAD, turn("helper", "looked it up"))
        await log.append_many(THREAD, turn("r2", "London"))
        assert contents(await log.restore(THREAD, "helper")) == ["well?", "looked it up "]
        assert contents(await log.restore(THREAD)) == ["well?", "Paris ", "well?", "London "]
        assert [(run.run_id, run.parent) for run in await log.runs(THREAD)][1:] == [
            ("helper", "r1"),
            ("r2", "r1"),
        ]


async def test_a_plan_counts_for_the_run_it_names(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1", "Paris"))
        await log.append_many(THREAD, turn("r2", "London"))
        await log.branch(THREAD, "r1", "r4")
        await log.append_many(THREAD, turn("r3", "Rome"))
        await log.append_many(THREAD, turn("r4", "Oslo"))
        assert [(run.run_id, run.parent, run.edge) for run in await log.runs(THREAD)][2:] == [
            ("r3", "r2", "continue"),
            ("r4", "r3", "continue"),
        ]


async def test_unknown_runs_and_parents_of_other_threads_are_refused(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many("elsewhere", turn("there"))
        for call in (
            log.restore(THREAD),
            log.restore("elsewhere", "nobody"),
            log.branch(THREAD, "there", "r1"),
            log.resume(THREAD, "r1"),
            log.input(THREAD, "r1"),
        ):
            with pytest.raises(UnknownThread):
                await call
        await log.start_run(THREAD, "r1", parent="there", edge="branch")
        with pytest.raises(LineageError, match="'there' is not in thread"):
            await log.append(THREAD, started("r1"))
        assert await log.runs(THREAD) == []


async def test_the_input_comes_back_exactly_and_is_stored_without_what_is_known(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1", "Paris", asks="where to?"))
        history = fold(await log.restore(THREAD)).messages
        edited = history[0].model_copy(update={"content": "where to, and when?"})
        inputs: dict[str, list[Message]] = {
            "r2": [*history, user("u2", "and then?")],
            "r3": [edited, *history[1:], user("u3", "hm")],
            "r4": [history[1], user("u4", "the order is the user's"), history[0]],
        }
        for run_id, messages in inputs.items():
            await log.branch(THREAD, "r1", run_id)
            await log.append_many(
                THREAD, [started(run_id, *messages), *text(f"{run_id}-m", "ok"), finished(run_id)]
            )
        for run_id, messages in inputs.items():
            found = await log.input(THREAD, run_id)
            assert found is not None
            assert found == started(run_id, *messages).input
        small = [
            entry.event for entry in await log.entries(THREAD) if isinstance(entry.event, RunStartedEvent)
        ]
        kept = [[message.id for message in event.input.messages] for event in small if event.input]
        assert kept == [["r1-user"], ["u2"], ["r1-user", "u3"], ["u4"]]
        await log.append_many(THREAD, [started("r5"), finished("r5")])
        assert await log.input(THREAD, "r5") is None
        await log.append_many(THREAD, [started("r6", user("u6", "alone")), finished("r6")])
        await log.archive.compact(THREAD)
        for run_id, messages in inputs.items():
            found = await log.input(THREAD, run_id)
            assert found is not None
            assert found.messages == messages, "also when the history comes from segments"


async def test_any_tree_of_runs_restores_to_what_its_ancestors_say(store_url: str):
    rng = random.Random(7)
    async with make_log(store_url) as log:
        path: dict[str, list[AnyEvent]] = {}
        for n in range(24):
            run_id = f"r{n}"
            parent = rng.choice(list(path)) if path else None
            if parent is not None:
                edge = rng.choice(["continue", "branch", "resume"])
                await log.start_run(THREAD, run_id, parent=parent, edge=edge)  # type: ignore[arg-type]  # one of them
            events = a_run(rng, run_id)
            await log.append_many(THREAD, events)
            path[run_id] = [*(path[parent] if parent else []), *events]
            if rng.random() < 0.2:
                await log.archive.compact(THREAD)
        for run_id, events in path.items():
            wanted = fold(events)
            for compacted in (True, False):
                found = fold(await log.restore(THREAD, run_id, compacted=compacted))
                assert found.messages == wanted.messages
                assert found.state == wanted.state
        nodes = {
            run.run_id: RunNode(run.run_id, THREAD, run.parent, run.edge) for run in await log.runs(THREAD)
        }
        store = open_store(store_url) if store_url != "memory://" else None
        for run_id in path if store else ():
            chain = [run.run_id for run in await store.lineage(Key("", THREAD), run_id)]  # type: ignore[union-attr]  # not None here
            assert chain == [*(node.run_id for node in ancestors(run_id, nodes)), run_id]
        if store:
            await store.close()


def a_run(rng: random.Random, run_id: str) -> list[AnyEvent]:
    """A run that writes something of its own, and sometimes into what was there."""
    events: list[AnyEvent] = [started(run_id, user(f"{run_id}-u", run_id))]
    for n in range(rng.randint(0, 2)):
        events += text(rng.choice((f"{run_id}-{n}", "shared")), *"abc"[: rng.randint(0, 3)])
    if rng.random() < 0.5:
        events.append(StateSnapshotEvent(snapshot={"by": run_id}))
    events.append(StateDeltaEvent(delta=[{"op": "add", "path": f"/{run_id}", "value": None}]))
    return [*events, finished(run_id)]


async def test_a_deep_chain_is_walked_to_its_start(store_url: str):
    deep = 400 if store_url.startswith("postgres") else 2_000
    store = open_store(store_url)
    lease = await take(store, Key("", THREAD))
    for n in range(1, deep + 1):
        parent = f"r{n - 1}" if n > 1 else None
        end = RunEnd("completed", "RUN_FINISHED")
        await store.append(batch(lease, n, run=NewRun(f"r{n}", parent, "continue"), end=end))
    chain = await store.lineage(Key("", THREAD), f"r{deep}")
    assert [run.run_id for run in chain] == [f"r{n}" for n in range(1, deep + 1)]
    await store.close()
