"""What people build with LangGraph's middleware, teams and graphs: right after every turn, and torn and gone on.

The default is the scenes that have found something; the long form plays all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from ag_ui.core import Event

from runcast.adapters.langgraph.options import Stream
from tests.adapters.harness import asked
from tests.adapters.langgraph.stage import over_both_streams
from tests.adapters.langgraph.wide import hooks, own_hooks, shapes, teams, templates
from tests.adapters.langgraph.wide.book import SCENES
from tests.adapters.langgraph.wide.playing import opened, outcome, right
from tests.conftest import LONG
from tests.e2e.oracle import Oracle

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # of langchain's shell
]
BOOKS = (hooks, own_hooks, shapes, teams, templates)  # they write their scenes down
FOUND = (
    *(
        "approval let go",
        "redaction with approval behind",
        "two drafts, second kept",
        "two drafts, joined kept",
    ),
    *("a draft with a call, second kept", "a model's answer dressed up", "a guard that asks another model"),
    *(
        "deep: the same subagent twice at once",
        "deep: the general subagent",
        "supervisor: nested, full history",
    ),
    *("supervisor: two handovers at once", "supervisor: a handover beside a tool", "supervisor: forwarding"),
    *("supervisor: no handover messages", "swarm: a handover beside a tool", "swarm: two handovers at once"),
    *("by hand: alice hands over to its parent", "by hand: an unnamed agent in a node, last word kept"),
    *(
        "by hand: a router that is not kept",
        "by hand: a subgraph with another state",
        "words that no state keeps",
    ),
    *("a question in a subgraph that a node runs", "all messages replaced", "pii of tool results"),
    "a question in a subgraph behind a tool that answers with a dict",
    *("an answer that a subgraph rewrites, behind a question", "an answer that a subgraph rewrites"),
    *("a node that takes calls out of its model's message", "results of calls without ids"),
    *("a hook that changes the answer itself", "a hook that changes the user's message itself"),
    "an output that is a class of its own, and a subgraph with another state",
    *("supervisor: a swarm as an agent", "by hand: an agent below that summarises"),
)
TORN = (
    "a stateful agent as a node",
    "stateful agents by name",
    "questions one after the other",
    "a breakpoint",
    "a breakpoint behind",
    "approval let go",
    "an edited message with tools",
    "by hand: alice hands over to its parent",
    "a router before a question, without a message",
    "a node that takes calls out of its model's message",
)
NAMES = sorted(SCENES) if LONG else FOUND
REDACTED = ("pii of tool results",)  # shown without addresses; what the model called stays in the state


@pytest.fixture(autouse=True)
def collected(request: pytest.FixtureRequest) -> Iterator[None]:
    """What langchain's shell leaves open is collected here, where its warnings are not ours."""
    yield
    if "shell" in request.node.name:
        gc.collect()


@over_both_streams
@pytest.mark.parametrize("name", NAMES)
async def test_the_client_shows_what_the_graph_holds_after_every_turn(
    oracle: Oracle, name: str, stream: Stream
):
    stage = opened(name, stream, oracle)
    for words in SCENES[name].turns:
        await stage.turn(words)
        if stream == "v3" and SCENES[name].fails_over_v3:
            assert stage.runs[-1][-1].type == "RUN_ERROR"
            return
        if name in REDACTED:
            assert "@" not in str(stage.view["messages"])
        else:
            await right(stage, oracle)


@pytest.mark.parametrize("name", sorted(SCENES) if LONG else TORN)
async def test_a_run_that_is_torn_goes_on_to_the_same_end(oracle: Oracle, name: str):
    scene = SCENES[name]
    whole = opened(name, "v2", oracle)
    for words in scene.turns:
        await whole.turn(words)
    expected = await outcome(whole, ordered=scene.ordered)
    for number, run in enumerate(whole.runs):
        for until in sorted({1, 2, *range(1, len(run), 3 if LONG else 7)} & set(range(1, len(run)))):
            found = await torn(oracle, name, number, until, questions(run))
            assert scene.unlike or found == expected, f"run {number + 1} torn after {until} events"


@pytest.mark.parametrize(
    ("name", "number", "until"),
    [
        # its node's message has begun
        ("by hand: an unnamed agent in a node, last word kept as a user's", 1, 11),
        ("all messages replaced", 1, 12),  # restated, and not in order yet
        ("all messages replaced", 1, 13),  # taken out, to be put in order
        ("synchronous nodes, and an edge that decides", 1, 4),  # the node has written, its edge has not
        ("a router before a question, without a message", 1, 3),  # a node writes as the user: half is shown
        ("a router before a question, without a message", 1, 5),  # and the whole
        ("the functional API with an answer of its own", 0, 8),  # it has returned, and runs again
        ("swarm: a guard in each agent", 0, 15),  # the user's message is rewritten, and not restated yet
        ("supervisor: a swarm as an agent", 0, 26),  # an agent inside has its call's result
    ],
)
async def test_a_turn_that_is_torn_here_ends_as_it_would(oracle: Oracle, name: str, number: int, until: int):
    whole = opened(name, "v2", oracle)
    for words in SCENES[name].turns:
        await whole.turn(words)
    assert await torn(oracle, name, number, until, []) == await outcome(whole, ordered=True)


async def torn(oracle: Oracle, name: str, number: int, until: int, asks: list[Any]) -> Any:
    """The end of this scene, when the process of one of its runs dies after so many events."""
    scene, stage = SCENES[name], opened(name, "v2", oracle)
    for at, words in enumerate(scene.turns):
        stage.until = until if at == number else None
        await stage.turn(words)
        if at == number:
            await stage.go_on()
            while (
                stage.interrupts and questions(stage.runs[-1]) != asks
            ):  # the answer was lost with its process
                await stage.turn(words)
    await right(stage, oracle)
    return await outcome(stage, ordered=scene.ordered)


def questions(run: Sequence[Event]) -> list[Any]:
    """What a run ended with asking; the id of a breakpoint is its checkpoint's."""
    return [(each.reason, each.message, each.tool_call_id) for each in asked(run)]
