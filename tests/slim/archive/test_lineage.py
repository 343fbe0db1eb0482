"""Whose history a run has, and what goes when its input does not repeat it."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from ag_ui.core import Event

from runcast.slim.archive.lineage import EdgeKind, RunNode, ancestors
from runcast.slim.compaction.compactor import compact
from runcast.slim.errors import LineageError
from runcast.slim.folding.checkpoint import checkpoint
from runcast.slim.folding.conversation import Conversation, fold
from tests import streams
from tests.slim.scripts import FINISHED, STARTED, text
from tests.slim.views import events, view


def node(run_id: str, parent: str | None = None, edge: EdgeKind = "continue", thread: str = "t") -> RunNode:
    return RunNode(run_id, thread, parent, edge)


def store(*nodes: RunNode) -> Mapping[str, RunNode]:
    return {each.run_id: each for each in nodes}


def names(chain: list[RunNode]) -> list[str]:
    return [each.run_id for each in chain]


def test_ancestors_come_oldest_first_without_the_run_itself():
    runs = store(node("r1"), node("r2", "r1"), node("r3", "r2", "branch"), node("r4", "r3", "resume"))
    assert names(ancestors("r4", runs)) == ["r1", "r2", "r3"]
    assert names(ancestors("r4", runs.get)) == ["r1", "r2", "r3"]
    assert ancestors("r1", runs) == []


def test_case_38_a_branch_sees_nothing_of_its_sibling():
    runs = store(node("r1"), node("r2", "r1"), node("r3", "r1", "branch"))
    told: dict[str, list[Event]] = {
        run_id: events(
            {**STARTED, "runId": run_id},
            *text(f"m-{run_id}", run_id),
            {"type": "STATE_DELTA", "delta": [{"op": "add", "path": f"/{run_id}", "value": 1}]},
            {**FINISHED, "runId": run_id},
        )
        for run_id in runs
    }
    history = [event for run_id in [*names(ancestors("r3", runs)), "r3"] for event in told[run_id]]
    for replayed in (history, compact(history), checkpoint(history)):
        conversation = fold(replayed)
        assert [message.id for message in conversation.messages] == ["m-r1", "m-r3"]
        assert conversation.state == {"r1": 1, "r3": 1}


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        (store(node("r3", "r2"), node("r2", "r1"), node("r1", "r3")), "is its own ancestor"),
        (store(node("r3", "r3")), "is its own ancestor; correct the parent of 'r3'"),
        (store(node("r3", "r2")), "run 'r2' is unknown, though run 'r3' names it as its parent"),
        (store(), "run 'r3' is unknown, though it was asked for"),
        (
            store(node("r3", "r2"), node("r2", thread="u")),
            "'r3' of thread 't' cannot build on run 'r2' of thread 'u'",
        ),
    ],
    ids=["cycle", "itself", "unknown parent", "unknown run", "another thread"],
)
def test_case_39_a_chain_that_cannot_be_walked_is_refused(runs: Mapping[str, RunNode], reason: str):
    with pytest.raises(LineageError, match=reason):
        ancestors("r3", runs)


def test_case_40_a_spawned_run_has_no_history_and_its_spawner_need_not_be_known():
    runs = store(
        node("r1", thread="elsewhere"),
        node("r2", "r1", "spawn"),
        node("r3", "gone", "spawn"),
        node("r4", "r2"),
    )
    assert ancestors("r2", runs) == ancestors("r3", runs) == []
    assert names(ancestors("r4", runs)) == ["r2"]


def test_case_41_a_deep_chain_is_walked_without_recursion():
    runs = store(node("r0"), *(node(f"r{n}", f"r{n - 1}") for n in range(1, 20_000)))
    assert len(ancestors("r19999", runs)) == 19_999


def test_case_42_restoring_a_run_of_a_random_tree_is_folding_its_ancestors_events():
    for seed in range(60):
        rng = random.Random(seed)
        nodes = [node("r0")]
        told = {"r0": streams.structured(rng)}
        for number in range(1, rng.randint(2, 8)):
            parent, edge = rng.choice(nodes).run_id, rng.choice(("continue", "branch", "resume", "spawn"))
            nodes.append(node(f"r{number}", parent, edge))
            told[f"r{number}"] = streams.structured(rng)
        runs = store(*nodes)
        for each in nodes:
            chain = [*names(ancestors(each.run_id, runs)), each.run_id]
            raw = [event for run_id in chain for event in told[run_id]]
            segments = [event for run_id in chain for event in compact(told[run_id])]
            whole = view(fold(raw, Conversation(keep_passed=True)))
            assert view(fold(segments, Conversation(keep_passed=True))) == whole
            assert compact(raw) == segments
            assert fold(checkpoint(segments, duplicates="keep")).wire_messages() == whole["messages"]
