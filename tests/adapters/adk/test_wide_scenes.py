"""What else people build on ADK, with its plugins and callbacks: right after every turn, and torn and gone on.

The default is the scenes that have found something; the long form plays all of them.
"""

from __future__ import annotations

import pytest

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.scenes import SECRET
from tests.adapters.adk.stage import Stage
from tests.adapters.adk.wide import combos, hooks, replayed, resumed
from tests.adapters.adk.wide.agents import WIDE
from tests.adapters.harness import asked
from tests.conftest import LONG
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
FOUND = (
    *("an agent as a tool without summary", "code twice", "branches with tools"),
    *("a plugin that rewrites the question", "a confirmation below a transfer"),
    *("a confirmation beside a plain tool", "a schema behind a tool", "a loop that a tool ends"),
    *combos.TORN,
    *resumed.TORN,
    *replayed.TORN,
    *("plugins that shout and add", "a plugin instead of the run", "an agent without a model in a sequence"),
)
NAMES = sorted(WIDE) if LONG else FOUND
BOOKS = (hooks, combos, resumed, replayed)  # write their scenes down


def opened(name: str) -> Stage:
    scene = WIDE[name]
    return Stage(scene.make(), options=AdkOptions(**scene.options), **scene.app())


@pytest.mark.parametrize("name", NAMES)
async def test_the_client_shows_the_session_after_every_turn(oracle: Oracle, name: str):
    stage = opened(name)
    for words in WIDE[name].turns:
        run = await stage.turn(words)
        assert run[-1].type.value == "RUN_FINISHED", run[-1]
        await stage.check(oracle, ordered=WIDE[name].ordered)
        assert SECRET not in str([event.model_dump() for event in run])


@pytest.mark.parametrize("name", NAMES)
async def test_a_run_that_is_torn_goes_on_to_the_same_end(oracle: Oracle, name: str):
    scene, whole = WIDE[name], opened(name)
    for words in scene.turns:
        await whole.turn(words)
    expected = await whole.same(oracle, ordered=scene.ordered)
    for number, run in enumerate(whole.runs):
        for until in range(1, len(run), 2 if LONG else 5):
            stage = opened(name)
            for at, words in enumerate(scene.turns):
                stage.until = until if at == number else None
                await stage.turn(words)
                if at == number:
                    await stage.go_on()
                    while stage.interrupts and not asked(run):  # the answer was lost with its process
                        await stage.turn(words)
            found = await stage.same(oracle, ordered=scene.ordered)
            assert found == expected, f"run {number + 1} torn after {until} events"
