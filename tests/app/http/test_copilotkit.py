"""The request that CopilotKit's runtime makes of an AG-UI agent, byte for byte as it was recorded.

`@copilotkit/runtime` 1.69.3 with `@ag-ui/client` 0.0.57 and Node 20.20, `HttpAgent` behind its node endpoint. It takes
304 MB to install, so it was run by hand: its own answer to a page was our stream, event for event.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from ag_ui.core import (
    Event,
    RunAgentInput,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from runcast.app import Cast
from tests.app.serving import Sent, run_input, sent, serving
from tests.e2e.oracle import Oracle

HI = [{"id": "u1", "role": "user", "content": "hi"}]
HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "accept-language": "*",
    "sec-fetch-mode": "cors",
    "user-agent": "node",
    "accept-encoding": "gzip, deflate",
}
BODY = (
    b'{"threadId":"ck-1","runId":"ck-r1","tools":[],"context":[],"forwardedProps":{},"state":{},'
    b'"messages":[{"id":"m1","role":"user","content":"hello from copilot"}]}'
)


async def test_its_request_is_answered_with_a_run() -> None:
    async with (
        serving() as host,
        host.http.stream("POST", "/agents/parrot", content=BODY, headers=HEADERS) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers
        told = [each.event async for each in sent(answer)]
    assert (told[0]["type"], told[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert told[-1]["threadId"] == "ck-1"
    assert "".join(each.get("delta", "") for each in told) == "hello from copilot "


def ask(state: MessagesState) -> dict[str, Any]:
    return {"messages": [("ai", f"got {interrupt({'question': 'Which?'})}")]}


@pytest.mark.oracle
async def test_its_hook_for_langgraph_answers_a_question_that_is_a_custom_event(oracle: Oracle) -> None:
    """`useLangGraphInterrupt`: no outcome, and the answer beside the question's value in `forwardedProps.command`."""
    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    async with serving(Cast.open("memory://", agents=[graph])) as host:
        path = f"/agents/{next(iter(host.cast.agents))}?interrupts=on_interrupt"

        async def post(run: str, **props: Any) -> list[dict[str, Any]]:
            body = run_input("hi", run=run, forwardedProps=props, messages=HI)
            async with host.http.stream("POST", path, json=body) as answer:
                assert answer.status_code == 200, await answer.aread()
                return [each.event async for each in sent(answer)]

        asked = await post("r1")
        assert oracle.earlier(asked)["ok"]
        assert (asked[-2]["name"], asked[-2]["value"]) == ("on_interrupt", '{"question":"Which?"}')
        assert "outcome" not in asked[-1]
        assert (await host.cast.log.runs("t1"))[-1].status == "interrupted"  # the log has it as 1.0 does
        for route in ("join", "events"):  # a page that was reloaded is asked in the same form
            past = f"/threads/t1/{route}?interrupts=on_interrupt"
            live = {"accept": "text/event-stream"}
            async with host.http.stream("GET", past, headers=live) as answer:
                frames = [each async for each in upto_end(answer)]
            assert [each.event for each in frames[-2:]] == asked[-2:]
            assert (frames[-2].id, bool(frames[-1].id)) == ("", True)  # no reader goes on between the two
            assert (await host.http.get(past.replace("on_interrupt", "no"))).status_code == 400
        joined = (await host.http.get("/threads/t1/join?interrupts=on_interrupt")).json()["events"]
        assert joined[-2:] == asked[-2:]
        assert "outcome" in (await host.http.get("/threads/t1/join")).json()["events"][-1]
        command = {"resume": "red", "interruptEvent": asked[-2]["value"]}
        told = await post("r1", command=command)  # under the id of the run that asked
        assert "".join(each.get("delta", "") for each in told if "delta" in each) == "got red"
        assert [each.status for each in await host.cast.log.runs("t1")] == ["interrupted", "completed"]
        wrong = await host.http.post(path.replace("on_interrupt", "no"), json=run_input("hi", run="r3"))
        assert wrong.status_code == 400


async def delegating(input: RunAgentInput) -> AsyncIterator[Event]:
    """An agent whose helper has a step of the name that its own has."""
    tags: Any = {"subagent_run_id": "s"}
    yield StepStartedEvent(step_name="tools")
    yield SubagentStartedEvent(subagent_run_id="s", name="helper")
    yield StepStartedEvent(step_name="tools", **tags)
    yield TextMessageChunkEvent(message_id="m1", role="assistant", delta="from below", **tags)
    yield StepFinishedEvent(step_name="tools", **tags)
    yield SubagentFinishedEvent(subagent_run_id="s")
    yield StepFinishedEvent(step_name="tools")
    yield TextMessageChunkEvent(message_id="m2", role="assistant", delta="from above")


async def test_a_client_that_knows_no_subagents_is_sent_none() -> None:
    """`@ag-ui/client` before 0.0.59, by the agent's URL; a thread that is joined is shown as its run was."""
    live = {"accept": "text/event-stream"}
    async with serving(Cast.open("memory://", agents=[delegating])) as host:
        body = run_input("hi", run="r1", messages=HI)
        async with host.http.stream("POST", "/agents/delegating?subagents=hidden", json=body) as answer:
            told = [each async for each in sent(answer)]
        types = [each.event["type"] for each in told]
        assert types.count("STEP_STARTED") == types.count("STEP_FINISHED") == 1
        assert "below" not in str(told)
        assert "above" in str(told)
        async with host.http.stream("GET", "/threads/t1/events?subagents=hidden", headers=live) as answer:
            again = [each async for each in upto_end(answer)]
        assert [each.event for each in again] == [each.event for each in told]
        joined = (await host.http.get("/threads/t1/join?subagents=hidden")).json()["events"]
        assert "below" not in str(joined)
        assert "below" in str((await host.http.get("/threads/t1/join")).json()["events"])
        assert (await host.http.get("/threads/t1/join?subagents=no")).status_code == 400


async def upto_end(answer: httpx.Response) -> AsyncIterator[Sent]:
    async for each in sent(answer):
        yield each
        if each.event["type"] == "RUN_FINISHED":
            return


async def test_its_hook_answers_under_the_id_of_the_run_that_asked() -> None:
    """`useInterrupt` of 1.74. The answering run gets an id of its own; the same id without an answer is refused as ever."""
    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    async with serving(Cast.open("memory://", agents=[graph])) as host:
        path = f"/agents/{next(iter(host.cast.agents))}"
        first = run_input("hi", run="r1", messages=HI)
        async with host.http.stream("POST", path, json=first) as answer:
            asked = [each.event async for each in sent(answer)]
        assert (await host.http.post(path, json=first)).status_code == 409
        [question] = asked[-1]["outcome"]["interrupts"]
        resume = [{"interruptId": question["id"], "status": "resolved", "payload": "red"}]
        async with host.http.stream("POST", path, json={**first, "resume": resume}) as answer:
            told = [each.event async for each in sent(answer)]
        assert "".join(each.get("delta", "") for each in told) == "got red"
        assert len({"r1", told[0]["runId"], told[-1]["runId"]}) == 2
        assert (await host.http.post(path, json={**first, "resume": resume})).status_code == 409
