"""What a turn of the AI SDK's chat costs the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, ToolCallChunkEvent

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


def tools(*names: str) -> dict[str, Any]:
    """As assistant-ui writes a page's tools."""
    schema = {"type": "object", "properties": {"message": {"type": "string"}}}
    return {name: {"description": f"{name} it", "parameters": schema} for name in names}


async def test_the_tools_of_the_page_reach_the_agent_in_every_turn() -> None:
    seen = list[list[tuple[str, str, Any]]]()

    async def agent(input: RunAgentInput) -> AsyncIterator[Event]:
        seen.append([(each.name, each.description, each.parameters) for each in input.tools or ()])
        if input.messages[-1].role == "user":
            yield ToolCallChunkEvent(
                tool_call_id=f"c-{input.run_id}", tool_call_name="alert", delta='{"message":"hi"}'
            )

    def posted(messages: list[Any], *names: str) -> Request:
        return Request.of({"id": "t1", "messages": messages, "tools": tools(*names)})

    def said(id: str) -> dict[str, Any]:
        return {"id": id, "role": "user", "parts": [{"type": "text", "text": "warn me"}]}

    async with Cast.open("memory://", agents=[agent], watch=False) as cast:

        async def turn(request: Request) -> list[Any]:
            async for _ in await ai_sdk.answer(cast, request, "agent"):
                pass
            return list(await ai_sdk.messages(cast, "t1"))

        first = await turn(posted([said("u1")], "alert"))
        call = first[-1]["parts"][-1]
        assert (call["toolName"], call["state"], call.get("providerExecuted")) == (
            "alert",
            "input-available",
            None,
        )
        result = {**call, "state": "output-available", "output": {"status": "shown"}}
        second = await turn(posted([*first[:-1], {**first[-1], "parts": [result]}], "alert", "title"))
        await turn(posted([*second, said("u2")], "title"))
        await turn(posted([said("u3")]))
    schema = tools("alert")["alert"]["parameters"]
    alert, title = ("alert", "alert it", schema), ("title", "title it", schema)
    assert seen == [[alert], [alert, title], [title], []]
