"""What the type checkers make of a host: settings in the signature, runs behind one handle."""

from __future__ import annotations

from typing import assert_type

from ag_ui.core import RunAgentInput

from runcast.app import AccessPolicy, Cast, Run, RunHandle, RunResult


async def a_user_annotates_runs(cast: Cast, input: RunAgentInput) -> str:
    run: Run = await cast.start("https://host/agent", input)
    handle: RunHandle = await cast.say("t1", "hello", agent="parrot")
    assert_type(await run.result(), RunResult)
    return f"{handle.run_id} {run.active}"


def settings_are_known(policy: AccessPolicy) -> Cast:
    Cast.open("memory://", max_run=3)  # type: ignore[call-arg]  # misspelt
    return Cast.open("memory://", agents=[], recover="continue", access=policy, max_runs=3, lease_ms=1_000)
