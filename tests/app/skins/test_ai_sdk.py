"""What a turn of the AI SDK's chat costs the log."""

from __future__ import annotations

from typing import Any

import pytest

from runcast.app import Cast
from runcast.app.skins import ai_sdk
from runcast.app.skins.ui_messages import Request
from tests.app.agents import parrot


@pytest.mark.parametrize("meanwhile", [False, True])
async def test_a_turn_reads_its_thread_once(monkeypatch: pytest.MonkeyPatch, meanwhile: bool) -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        await (await cast.say("t1", "before")).result()
        first = (await cast.log.runs("t1"))[-1]
        places, read, say = list[int](), cast.log.entries, cast.say

        async def counted(thread_id: str, after: int = 0, limit: int | None = None, **more: Any) -> Any:
            if after == 0 and limit == ai_sdk.PAGE:
                places.append(after)
            return await read(thread_id, after, limit, **more)

        async def after_another(*given: Any, **more: Any) -> Any:
            await (await say("t1", "in between")).result()
            return await say(*given, **more)

        monkeypatch.setattr(cast.log, "entries", counted)
        if meanwhile:
            monkeypatch.setattr(cast, "say", after_another)
        known = await ai_sdk.messages(cast, "t1")
        places.clear()
        shown = Request.of({
            "id": "t1", "trigger": "submit-message",
            "messages": [*known, {"id": "u9", "role": "user", "parts": [{"type": "text", "text": "now"}]}],
        })  # fmt: skip
        chunks = [each async for each in await ai_sdk.answer(cast, shown, "parrot")]
        assert b"now" in b"".join(chunks)
        assert len(places) == (2 if meanwhile else 1)
        assert first.run_id in {run.parent for run in await cast.log.runs("t1")}
