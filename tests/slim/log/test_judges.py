"""What is restored from any tree of runs: valid for the official client and a second judge, and of the same effect."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ag_ui.core import Event, RunErrorEvent, RunFinishedEvent, RunStartedEvent
from ag_ui_validate.pytest_plugin import validate_agui

from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.wire.codec import AnyEvent
from tests.e2e.oracle import Oracle
from tests.slim.logs import THREAD
from tests.slim.protocol.test_second_judge import NO_ERRORS
from tests.slim.views import applied, judged, plain, where_it_led
from tests.streams import structured

ENDS = (RunFinishedEvent, RunErrorEvent)


def a_run(rng: random.Random, run_id: str) -> list[AnyEvent]:
    """One valid run of this name; now and then one that is cut short."""
    while True:
        run: list[AnyEvent] = []
        for event in structured(rng):
            if isinstance(event, RunStartedEvent) and run:
                break
            if isinstance(event, RunStartedEvent | RunFinishedEvent):
                event = event.model_copy(update={"run_id": run_id, "thread_id": THREAD})
            run.append(event)
        if isinstance(run[0], RunStartedEvent) and (isinstance(run[-1], ENDS) or rng.random() < 0.2):
            return run


def known(events: list[AnyEvent]) -> list[Event]:
    return list(events)  # type: ignore[arg-type]  # these streams hold nothing that 1.0 does not know


def closed(events: list[AnyEvent]) -> list[AnyEvent]:
    """As the log restores it inside a chain: a run that was cut short has failed."""
    if isinstance(events[-1], ENDS):
        return events
    run = next(event.run_id for event in events if isinstance(event, RunStartedEvent))
    return [*events, RunErrorEvent(message=f"run {run!r} was cut short", code="truncated")]


@pytest.mark.oracle
async def test_restored_branches_please_the_official_client_and_a_second_judge(oracle: Oracle):
    rng = random.Random(11)
    requests: list[dict[str, Any]] = []
    for tree in range(40):
        store = MemoryStore()
        path: dict[str, list[AnyEvent]] = {}
        for n in range(5):
            run_id, parent = f"r{n}", rng.choice(list(path)) if path else None
            async with RunLog(
                store, verify="off", derive="manual"
            ) as log:  # a log that closes cuts its run short
                if parent is not None:
                    await log.start_run(THREAD, run_id, parent=parent, edge="branch")
                kept = [entry.event for entry in await log.append_many(THREAD, a_run(rng, run_id))]
                path[run_id] = [*(closed(path[parent]) if parent else []), *kept]
        async with RunLog(store, derive="manual") as log:
            if tree % 2:
                await log.archive.compact(THREAD)
            for run_id, events in path.items():
                for compacted in (True, False):
                    restored = await log.restore(THREAD, run_id, compacted=compacted)
                    requests += [applied(known(events)), applied(known(restored)), judged(known(restored))]
                    # A run that was cut short is restored without an end, which this judge does not let pass.
                    found = validate_agui([plain(event) for event in restored]).diagnostics
                    errors = {each.rule for each in found if each.severity == "error"}
                    assert errors <= set(NO_ERRORS) or not isinstance(events[-1], ENDS)
    answers = oracle.batch(requests)
    assert len(answers) == 40 * 5 * 2 * 3
    for at in range(0, len(answers), 3):
        led, restored_led, valid = answers[at : at + 3]
        assert valid["ok"], valid
        assert where_it_led(restored_led) == where_it_led(led)
