"""What a user without a thread's rights sends while a run of it is active: nothing of it arrives."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.app.agents import Gated
from tests.app.http.test_access import guarded
from tests.app.serving import Served, run_input

__all__ = ["guarded"]


@pytest.mark.parametrize("on_busy", ["refuse", "queue", "steer", "interrupt", "rollback"])
async def test_nothing_that_others_send_reaches_a_run_and_what_waits(guarded: Served, on_busy: str) -> None:
    gated, cast = Gated(), guarded.cast
    cast.register(gated, name="gated")
    first = await cast.say("ann-2", "one", agent="gated")
    waits = await cast.say("ann-2", "two", agent="gated", on_busy="queue")
    asked = {"message": "mine", "agent": "gated", "on_busy": on_busy}
    said = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "mine"}]}
    sent: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/threads/ann-2/runs", asked),
        ("POST", "/runs", {**asked, "thread_id": "ann-2"}),
        ("POST", f"/agents/gated?on_busy={on_busy}", run_input("mine", thread="ann-2", run="r9")),
        ("POST", "/chat/gated", {"id": "ann-2", "messages": [said], "trigger": "submit-message"}),
        ("POST", f"/threads/ann-2/queue/{waits.run_id}", {"message": "mine"}),
        ("POST", f"/threads/ann-2/queue/{waits.run_id}/withdraw", {}),
        ("POST", "/threads/ann-2/annotations", {"metaType": "tag", "payload": {}}),
        ("DELETE", "/threads/ann-2", {}),
        ("POST", f"/runs/{first.run_id}/stop", {"hard": True}),
        ("POST", f"/runs/{waits.run_id}/stop", {"hard": True}),
    ]
    for user in ({"x-user": "bob"}, {}):
        async with httpx.AsyncClient(base_url=guarded.url, headers=user) as other:
            answers = [(await other.request(how, to, json=body)).status_code for how, to, body in sent]
        assert answers == [403] * 8 + [404] * 2
    assert [each.text for each in await cast.queue.waiting("ann-2")] == ["two"]
    assert [(run.run_id, run.status) for run in await cast.log.runs("ann-2")] == [
        (first.run_id, "in_progress")
    ]
    assert await cast.annotations.of("ann-2") == []
    gated.open()
    async with asyncio.timeout(60):
        assert (await waits.result()).status == "completed"
