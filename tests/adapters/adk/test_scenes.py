"""Every scene: whole, and with its process killed at every event and gone on over the same session."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.scenes import SCENES, SECRET
from tests.adapters.adk.stage import Stage
from tests.adapters.harness import torn_at_every_event
from tests.conftest import LONG
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
STORED = ["text", "an approval", "executed code", *(["a sequence", "a loop that exits"] if LONG else [])]
every_scene = pytest.mark.parametrize("name", SCENES)


def opened(name: str) -> Stage:
    scene = SCENES[name]
    return Stage(scene.make(), options=AdkOptions(**scene.options), **scene.app())


@every_scene
async def test_the_client_shows_the_session_after_every_turn(oracle: Oracle, name: str):
    stage = opened(name)
    for words in SCENES[name].turns:
        run = await stage.turn(words)
        assert run[-1].type.value == "RUN_FINISHED", run[-1]
        await stage.check(oracle, ordered=SCENES[name].ordered)
        assert SECRET not in str([event.model_dump() for event in run])


@every_scene
async def test_a_run_that_is_torn_at_any_event_goes_on_to_the_same_end(oracle: Oracle, name: str):
    scene = SCENES[name]

    async def end(stage: Stage, oracle: Oracle) -> Any:
        return await stage.same(oracle, ordered=scene.ordered)

    await torn_at_every_event(lambda: opened(name), scene.turns, end, oracle)


@pytest.mark.parametrize("name", STORED)
async def test_it_goes_on_by_what_a_database_holds(oracle: Oracle, name: str, tmp_path: Path):
    scene, files = SCENES[name], count()

    def stored() -> Stage:
        service = SqliteSessionService(str(tmp_path / f"{next(files)}.db"))
        return Stage(scene.make(), options=AdkOptions(**scene.options), service=service, **scene.app())

    async def end(stage: Stage, oracle: Oracle) -> Any:
        return await stage.same(oracle)

    await torn_at_every_event(stored, scene.turns, end, oracle)
