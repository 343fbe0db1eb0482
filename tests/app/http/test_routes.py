"""Every route as a client meets it: runs, streams, pages of the past, answers, branches, stops."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    Event,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
)
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import connect

from runcast.app import App, Cast, PageOptions, watch_token
from runcast.app.fastapi import add_agent
from runcast.slim import decode_input
from tests.app.agents import LONG, Gated, asker, parrot, tooled
from tests.app.serving import Served, anyone, over, post_run, run_input, sent, serving


@pytest.fixture
async def host() -> AsyncIterator[Served]:
    async with serving() as it:
        yield it


async def test_an_agent_runs_over_http_and_every_event_has_its_place(host: Served) -> None:
    told = await post_run(host.http)
    assert [each.event["type"] for each in told][:3] == ["RUN_STARTED", "STEP_STARTED", "TEXT_MESSAGE_START"]
    assert told[-1].event["type"] == "RUN_FINISHED"
    epoch = told[0].id.split(":")[0]
    assert [each.id for each in told] == [f"{epoch}:{n}" for n in range(1, 9)]


async def test_the_run_goes_on_when_its_asker_leaves_and_the_rest_is_read(host: Served) -> None:
    gated = Gated(20)
    host.cast.register(gated, name="gated")
    async with host.http.stream("POST", "/agents/gated", json=run_input()) as response:
        gated.open(3)
        seen = []
        async for each in sent(response):
            seen.append(each)
            if len(seen) == 4:
                break
    gated.open()
    await over(host.cast)
    last = seen[-1].id
    headers = {"accept": "text/event-stream", "last-event-id": last}
    async with host.http.stream("GET", "/threads/t1/events", headers=headers) as response:
        async for each in sent(response):
            seen.append(each)
            if each.event["type"] == "RUN_FINISHED":
                break
    assert [int(each.id.rpartition(":")[2]) for each in seen] == list(range(1, 25))
    text = "".join(each.event.get("delta", "") for each in seen)
    assert text == "".join(f"{n} " for n in range(20))


async def test_events_are_read_page_by_page(host: Served) -> None:
    told = await post_run(host.http)
    after, epoch, found = 0, "", []
    while True:
        page = (
            await host.http.get("/threads/t1/events", params={"after": after, "epoch": epoch, "limit": 3})
        ).json()
        assert page["recovered"]
        found += page["events"]
        after, epoch = found[-1]["seq"], page["epoch"]
        if not page["more"]:
            break
    assert [each["event"] for each in found] == [each.event for each in told]


async def test_a_position_of_another_epoch_or_of_the_future_starts_over(host: Served) -> None:
    await post_run(host.http)
    for query in ({"epoch": "other"}, {"after": "99"}):
        for what in ("events", "envelopes"):
            page = (await host.http.get(f"/threads/t1/{what}", params=query)).json()
            assert (page["recovered"], page[what], page["head"]) == (False, [], 8)
        headers = {"accept": "text/event-stream"}
        answer = await host.http.get("/threads/t1/events", params=query, headers=headers)
        assert (answer.status_code, answer.json()["title"]) == (410, "Start over")


async def test_envelopes_snapshot_runs_and_results_are_read(host: Served) -> None:
    await post_run(host.http, "tooled")
    page = (await host.http.get("/threads/t1/envelopes")).json()
    assert [each["type"] for each in page["envelopes"]] == [
        "agent.status",
        "agent.tool.started",
        "agent.tool.completed",
        "agent.status",
    ]
    assert (page["recovered"], page["more"]) == (True, False)
    await host.cast.log.archive.compact("t1")
    assert (await host.http.get("/threads/t1/snapshot")).json()["status"] == "completed"
    told = (await host.http.get("/threads/t1/runs")).json()
    assert [(run["run_id"], run["status"]) for run in told["runs"]] == [("r1", "completed")]
    assert told["size"]["events"] == 6
    assert told["size"]["bytes"] > told["size"]["snapshot"] > 0
    result = await host.http.get("/threads/t1/tools/call-r1/result")
    assert result.json() == {"content": LONG}


async def test_a_question_is_answered_over_http(host: Served) -> None:
    started = await host.http.post("/threads/t1/runs", json={"agent": "asker", "message": "ask me"})
    assert started.json()["thread_id"] == "t1"
    await over(host.cast)
    answered = await host.http.post(
        "/threads/t1/resume", json={"answers": [{"interruptId": "q1", "status": "resolved", "payload": "go"}]}
    )
    assert answered.status_code == 202
    await over(host.cast)
    assert (await host.http.get("/threads/t1/snapshot")).json()["messages"][-1]["content"] == "resolved go"


async def test_an_ag_ui_client_answers_with_its_next_run(host: Served) -> None:
    told = await post_run(host.http, "asker")
    assert told[-1].event["outcome"]["interrupts"][0]["id"] == "q1"
    answers = [{"interruptId": "q1", "status": "resolved", "payload": 7}]
    told = await post_run(host.http, "asker", run="r2", resume=answers)
    assert "".join(each.event.get("delta", "") for each in told) == "resolved 7"
    runs = (await host.http.get("/threads/t1/runs")).json()["runs"]
    assert [(run["edge"], run["parent"]) for run in runs] == [("continue", None), ("resume", "r1")]
    wrong = await host.http.post("/agents/asker", json=run_input(run="r3", resume=answers))
    assert (wrong.status_code, wrong.json()["detail"]) == (
        400,
        "no open question is called q1; open questions: none",
    )


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        (
            "/runs",
            {"message": "x", "massage": "y"},
            "there is no field 'massage'; the fields are message, agent, from_run",
        ),
        ("/threads/t1/branch", {"message": "x", "from_run": "r1", "form": 1}, "there is no field 'form'"),
        ("/threads/t1/resume", {"answer": {}}, "there is no field 'answer'; the fields are answers"),
        ("/runs/r1/stop", {"herd": True}, "there is no field 'herd'"),
    ],
)
async def test_a_field_that_is_misspelt_is_refused(host: Served, path: str, body: Any, sentence: str) -> None:
    refused = await host.http.post(path, json=body)
    assert refused.status_code == 400
    assert sentence in refused.json()["detail"]


async def test_a_thread_branches_over_http(host: Served) -> None:
    for n, text in enumerate(("one", "two")):
        await post_run(host.http, text=text, run=f"r{n}")
    started = await host.http.post(
        "/threads/t1/branch", json={"from_run": "r0", "message": "other", "agent": "parrot"}
    )
    await over(host.cast)
    runs = (await host.http.get("/threads/t1/runs")).json()["runs"]
    assert [(run["edge"], run["parent"]) for run in runs][-1] == ("branch", "r0")
    third = await post_run(host.http, text="third", run="r9", parentRunId="r1")
    assert third[-1].event["type"] == "RUN_FINISHED"
    runs = (await host.http.get("/threads/t1/runs")).json()["runs"]
    assert [(run["edge"], run["parent"]) for run in runs][-1] == ("branch", "r1")
    assert started.json()["thread_id"] == "t1"


async def test_a_run_is_stopped_over_http(host: Served) -> None:
    gated = Gated()
    await host.cast.start(gated, given())
    run = host.cast.run("r1")
    stopped = await host.http.post("/runs/r1/stop", json={"hard": True})
    assert (stopped.status_code, stopped.json()["status"]) == (202, "stopping")
    assert (await run.result()).code == "cancelled"
    gone = await host.http.post("/runs/r1/stop")
    assert (gone.status_code, gone.json()["detail"]) == (409, "run 'r1' is over: it ended as failed")
    unknown = await host.http.post("/runs/r9/stop")
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "no run 'r9' is active here")


async def test_a_silent_stream_says_that_it_is_still_there() -> None:
    gated = Gated()
    cast = Cast.open("memory://", agents=[gated])
    async with serving(cast, keepalive=0.05) as host, host.http.stream("POST", "/", json=run_input()) as told:
        lines = told.aiter_lines()
        async with asyncio.timeout(60):
            while await anext(lines) != ": still here":
                pass
        gated.open()
        rest = [line async for line in lines]
    assert '"type":"RUN_FINISHED"' in "".join(rest)


async def test_a_head_request_holds_no_stream(host: Served) -> None:
    await post_run(host.http)
    async with asyncio.timeout(60):
        head = await host.http.head("/threads/t1/events", headers={"accept": "text/event-stream"})
    assert (head.status_code, head.content) == (200, b"")
    assert host.cast.log.stats().readers == 0


async def test_the_only_agent_answers_at_the_root_and_of_several_one_is_named(host: Served) -> None:
    answer = await host.http.post("/", json=run_input())
    assert answer.status_code == 404
    assert "there are: parrot, asker, tooled" in answer.json()["detail"]


async def test_agents_and_their_capabilities_are_told(host: Served) -> None:
    told = (await host.http.get("/agents")).json()["agents"]
    assert [each["name"] for each in told] == ["parrot", "asker", "tooled"]
    assert (await host.http.get("/agents/parrot/capabilities")).json() == told[0]["capabilities"]


async def test_health_and_numbers(host: Served) -> None:
    await post_run(host.http)
    assert (await host.http.get("/health")).json() == {"status": "ok", "runs": 0}
    lines = (await host.http.get("/metrics")).text.splitlines()
    assert "runcast_runs 0" in lines
    assert "runcast_log_appended_total 8" in lines
    assert any(line.startswith("runcast_hub_connections ") for line in lines)


async def test_threads_are_listed_and_read_on(host: Served) -> None:
    for n in range(3):
        await post_run(host.http, thread=f"t{n}", run=f"r{n}")
    first = (await host.http.get("/threads", params={"limit": 2})).json()
    rest = (await host.http.get("/threads", params={"after": first["next"]})).json()
    assert [each["thread_id"] for each in first["threads"] + rest["threads"]] == ["t0", "t1", "t2"]


async def test_a_thread_is_renamed_for_everybody_and_listed_with_its_status(host: Served) -> None:
    await post_run(host.http)
    await host.cast.say("t1", "ask me", agent="asker")
    await over(host.cast)
    row = (await host.http.get("/threads")).json()["threads"][0]
    assert (row["title"], row["status"]) == (None, "interrupted")
    for title in ("Trip to\n Vienna", None):
        answer = await host.http.post("/threads/t1/title", json={"title": title})
        wanted = title and "Trip to Vienna"
        assert (answer.status_code, answer.json()) == (200, {"title": wanted})
        assert (await host.http.get("/threads")).json()["threads"][0]["title"] == wanted
    for wrong in ("", " ", "x" * 201, 5):
        assert (await host.http.post("/threads/t1/title", json={"title": wrong})).status_code == 400
    assert (await host.http.post("/threads/ghost/title", json={"title": "x"})).status_code == 404


async def test_the_page_is_told_its_prices(host: Served) -> None:
    assert (await host.http.get("/page.json")).json() == {"prices": {}, "currency": "$", "demo": False}
    prices = {"gpt-5": {"input": 1.25, "output": 10.0}}
    async with serving(page=PageOptions(prices, "€")) as other:
        assert (await other.http.get("/page.json")).json() == {
            "prices": prices, "currency": "€", "demo": False,
        }  # fmt: skip
    for wrong in (
        {"input": 1.0},
        {"input": -1.0, "output": 1.0},
        {"input": 1.0, "output": 1.0, "cached_": 1.0},
    ):
        with pytest.raises(ValueError, match="the price of 'm' needs"):
            PageOptions({"m": wrong})


async def test_an_id_may_hold_a_slash(host: Served) -> None:
    await post_run(host.http, thread="a/b ü", run="r1")
    page = await host.http.get(f"/threads/{quote('a/b ü', safe='')}/envelopes")
    assert page.json()["head"] == 8


async def test_the_page_comes_with_a_strict_policy(host: Served) -> None:
    answer = await host.http.get("/")
    assert answer.status_code == 200
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
    files = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', answer.text)
    assert {file.rpartition(".")[2] for file in files} == {"js", "css"}
    for file in (*files, "runcast.js", "reader.js", "runcast.d.ts", "types.d.ts"):
        found = await host.http.get(f"/{file}")
        assert found.status_code == 200
        assert "unsafe" not in found.headers["content-security-policy"]
        assert ("immutable" in found.headers["cache-control"]) == file.startswith("assets/")
    head = await host.http.head("/runcast.js")
    assert (head.status_code, head.content) == (200, b"")


async def test_the_hub_is_behind_the_same_door(host: Served) -> None:
    await post_run(host.http)
    address = host.url.replace("http", "ws")
    async with connect(f"{address}/ws?channel=agent.t1&after=0") as socket:
        told = json.loads(await socket.recv())
        assert (told["type"], told["recovered"]) == ("hub.subscribed", True)
        seen = [json.loads(await socket.recv())["type"] for _ in range(4)]
    assert seen[0] == "agent.status"
    form = {"socket_id": "1.1", "channel_name": "private-agent.t1"}
    assert "auth" in (await host.http.post("/broadcasting/auth", data=form)).json()


@pytest.mark.parametrize("kind", ["starlette", "fastapi"])
async def test_it_is_mounted_anywhere(kind: str) -> None:
    cast = Cast.open("memory://", agents=[parrot])
    app = (
        Starlette(routes=[Mount("/live", cast.asgi(authorize=anyone))]) if kind == "starlette" else FastAPI()
    )
    if isinstance(app, FastAPI):
        app.mount("/live", App(cast, authorize=anyone))
    async with serving(cast, app=app, path="/live") as host:
        assert (await post_run(host.http))[-1].event["type"] == "RUN_FINISHED"
        assert (await host.http.get("/threads/t1/envelopes")).json()["head"] == 8
        assert (await host.http.get("/")).text.startswith("<!doctype html>")
        address = host.url.replace("http", "ws")
        async with connect(f"{address}/ws?channel=agent.t1&after=0") as socket:
            assert json.loads(await socket.recv())["recovered"]


async def test_an_agent_is_added_to_a_fastapi_app_in_one_line() -> None:
    app = FastAPI()
    cast = add_agent(app, tooled, "/agent", url="memory://", authorize=anyone)
    async with (
        serving(cast, app=app, path="/agent") as host,
        host.http.stream("POST", "/", json=run_input()) as answer,
    ):
        assert [each async for each in sent(answer)][-1].event["type"] == "RUN_FINISHED"


async def test_without_a_page_and_without_a_hub() -> None:
    cast = Cast(Cast.open("memory://").log, agents=[asker])
    async with serving(cast, page=False) as host:
        assert (await host.http.get("/")).status_code == 405  # a run may be posted there
        assert (await host.http.get("/runcast.js")).status_code == 404
        assert (await host.http.post("/broadcasting/auth")).status_code == 404


async def test_a_host_that_closes_takes_no_more() -> None:
    async with serving() as host:
        await host.cast.aclose(grace=0.1)
        assert (await host.http.get("/health")).status_code == 503
        answer = await host.http.post("/agents/parrot", json=run_input())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")


def given() -> RunAgentInput:
    return decode_input(json.dumps(run_input()))


async def drawing(input: RunAgentInput) -> AsyncIterator[Event]:
    """Draws a surface that no envelope holds, and changes it."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    content = {"nothing": None, "text": LONG, "run": input.run_id}
    yield ActivitySnapshotEvent(message_id="s1", activity_type="a2ui-surface", content=content)
    patch: Any = [{"op": "add", "path": "/more", "value": 1}]
    yield ActivityDeltaEvent(message_id="s1", activity_type="a2ui-surface", patch=patch)
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


async def test_what_an_envelope_refers_to_is_fetched_as_any_run_left_it(host: Served) -> None:
    host.cast.register(drawing)
    await post_run(host.http, "drawing")
    await post_run(host.http, "drawing", run="r2")
    page = (await host.http.get("/threads/t1/envelopes")).json()["envelopes"]
    shown = [each["payload"] for each in page if each["type"] == "agent.activity"]
    assert [each.get("by_reference") for each in shown] == [True, None, True, None]
    assert shown[1]["patch"] == [{"op": "add", "path": "/more", "value": 1}]
    for query, run in (("", "r2"), ("?run=r1", "r1"), ("?run=r2", "r2")):
        found = (await host.http.get(f"/threads/t1/messages/s1{query}")).json()["message"]
        assert found == {
            "id": "s1", "role": "activity", "activityType": "a2ui-surface",
            "content": {"nothing": None, "text": LONG, "run": run, "more": 1},
        }  # fmt: skip
    for path in ("t1/messages/none", "t1/messages/s1?run=none", "t9/messages/s1"):
        assert (await host.http.get(f"/threads/{path}")).status_code == 404
    assert (await host.http.get("/threads/t1/messages/s1?run=%00")).status_code == 400
    other = {"token": watch_token(host.cast, "t2")}
    assert (await host.http.get("/threads/t1/messages/s1", params=other)).status_code == 403
    own = {"token": watch_token(host.cast, "t1")}
    assert (await host.http.get("/threads/t1/messages/s1", params=own)).status_code == 200


async def test_the_host_is_open_while_its_server_is() -> None:
    cast = Cast.open("memory://", agents=[parrot], watch=False)
    asked, answered = ["lifespan.startup", "lifespan.shutdown"], list[str]()

    async def receive() -> dict[str, str]:
        assert cast.closing is False
        return {"type": asked.pop(0)}

    async def send(message: Any) -> None:
        answered.append(message["type"])

    await cast.asgi()({"type": "lifespan"}, receive, send)
    assert answered == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert cast.closing
