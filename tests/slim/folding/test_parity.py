"""The fold against the official client: the same view of every stream, whatever the client held before."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import Event

from runcast.slim.folding.conversation import Conversation, fold
from tests import shapes, streams
from tests.conftest import share
from tests.e2e.oracle import Oracle
from tests.slim.views import MESSAGES, applied, in_batches, view

pytestmark = pytest.mark.oracle

STREAMS = share(1_300)  # of each kind; there are eight kinds of valid ones
IDS = ("a", "b", "c", "m1", "m2", "c1", "x1", "u1")


def start(rng: random.Random) -> dict[str, Any]:
    """What a client may hold: messages, now and then with a doubled id, and any JSON as state."""
    held = shapes.messages(rng, ids=IDS, count=rng.randint(0, 5))
    if rng.random() < 0.2:
        held += shapes.messages(rng, ids=("a", "b", "m1"), count=2)
    state = rng.choice(shapes.VALUES)
    return {"messages": held, "state": {} if state is None else state}


def ours(stream: list[Event], held: dict[str, Any]) -> dict[str, Any]:
    messages = MESSAGES.validate_python(held.get("messages", []))
    conversation = fold(stream, Conversation(messages, held.get("state"), keep_passed=True))
    assert len(conversation.messages) == len(conversation.wire_messages())
    return view(conversation)


def differences(oracle: Oracle, drawn: list[tuple[list[Event], dict[str, Any]]]) -> list[Any]:
    """Streams whose view differs; those that the client refuses to spell out have no view to differ from."""
    found: list[Any] = []
    for some in in_batches(drawn):
        answers = oracle.batch([applied(stream, **held) for stream, held in some])
        for (stream, held), theirs in zip(some, answers, strict=True):
            mine = ours(stream, held)
            if theirs["ok"] and mine != theirs:
                found.append((stream, held, mine, theirs))
    return found


@pytest.mark.parametrize("held", ["nothing", "something"])
@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
@pytest.mark.parametrize("draw", [streams.structured, streams.adversarial])
def test_case_1_the_fold_says_what_the_client_holds(
    oracle: Oracle, draw: Callable[..., list[Event]], chunks: bool, held: str
):
    drawn: list[tuple[list[Event], dict[str, Any]]] = []
    for seed in range(STREAMS):
        rng = random.Random(seed)
        drawn.append((draw(rng, chunks=chunks), start(rng) if held == "something" else {}))
    assert differences(oracle, drawn) == []


@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
@pytest.mark.parametrize("draw", [streams.structured, streams.adversarial])
def test_case_1_even_of_streams_that_are_broken(
    oracle: Oracle, draw: Callable[..., list[Event]], chunks: bool
):
    drawn: list[tuple[list[Event], dict[str, Any]]] = []
    for seed in range(STREAMS // 2):
        rng = random.Random(seed)
        drawn.append((streams.mutated(rng, draw(rng, chunks=chunks)), start(rng)))
    assert differences(oracle, drawn) == []


def test_folding_in_two_goes_is_folding_in_one():
    for seed in range(300):
        rng = random.Random(seed)
        stream = streams.structured(rng, chunks=True)
        cut = rng.randint(0, len(stream))
        first = fold(stream[:cut], Conversation(keep_passed=True))
        before = view(first)
        assert fold(stream[cut:], first) is first
        assert view(first) == view(fold(stream, Conversation(keep_passed=True)))
        assert before == view(fold(stream[:cut], Conversation(keep_passed=True)))
