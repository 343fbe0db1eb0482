"""A graph on a LangGraph server, through LangGraph's own `RemoteGraph` and SDK: over a server that answers as one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from ag_ui.core import UserMessage
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from runcast.adapters.langgraph import LangGraphAdapter
from tests.adapters.langgraph.test_adapter import asks, played, said

WHERE = {"langgraph_checkpoint_ns": "n:1"}
CHUNK = {"type": "AIMessageChunk", "content": "Hello", "id": "m1", "chunk_position": "last"}
HELD = [
    {"type": "human", "content": "one", "id": "u1"},
    {"type": "ai", "content": "first", "id": "a1"},
    {"type": "human", "content": "two", "id": "u2"},
    {"type": "ai", "content": "second", "id": "a2"},
]


def place(id: str) -> dict[str, Any]:
    return {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id}


class Server:
    """Holds a thread of two turns, or none. Keeps what it was asked to run."""

    def __init__(self, *held: dict[str, Any]) -> None:
        self.held = list(held)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path, given = request.url.path, json.loads(request.content or b"{}")
        if path.endswith("/history"):
            assert given["metadata"] == {"source": "input", "runcast_turn": "u2"}
            return httpx.Response(200, json=[self.state("3", "2")])
        if "/state" in path:
            missing = httpx.Response(404, json={"detail": "Thread with ID t not found"})
            return httpx.Response(200, json=self.state("5", "4")) if self.held else missing
        assert path.endswith("/runs/stream")
        self.asked.append(given)
        parts = [("messages", [CHUNK, WHERE]), ("values", {"messages": self.held})]
        lines = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in parts)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=lines.encode())

    def state(self, id: str, before: str) -> dict[str, Any]:
        return {
            "values": {"messages": self.held},
            "next": [],
            "tasks": [],
            "metadata": {},
            "created_at": None,
            "checkpoint": place(id),
            "parent_checkpoint": place(before),
        }


def remote(answers: Callable[[httpx.Request], httpx.Response]) -> LangGraphAdapter:
    there, door = "http://graph.test", httpx.MockTransport(answers)
    client = LangGraphClient(httpx.AsyncClient(base_url=there, transport=door))
    waiting = SyncLangGraphClient(httpx.Client(base_url=there, transport=door))
    return LangGraphAdapter(RemoteGraph("agent", client=client, sync_client=waiting))


async def run(adapter: LangGraphAdapter, synchronous: bool, *messages: Any) -> list[Any]:
    input = asks(messages=[UserMessage(id="u1", content="one"), *messages])
    return list(adapter.run_sync(input)) if synchronous else await played(adapter, input)


both_ways = pytest.mark.parametrize("synchronous", [False, True])


@both_ways
async def test_a_thread_that_its_server_does_not_know_begins(synchronous: bool):
    server = Server()
    events = await run(remote(server), synchronous)
    assert said(events) == "Hello"
    assert events[-1].outcome.type == "success"
    (asked,) = server.asked
    assert asked["if_not_exists"] == "create"
    assert "checkpoint_id" not in asked


@both_ways
async def test_a_server_that_refuses_ends_the_run(synchronous: bool):
    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403, json={"detail": "no"})

    events = await run(remote(refuse), synchronous)
    assert events[-1].type == "RUN_ERROR"


@both_ways
async def test_an_edited_message_begins_where_the_one_stood_that_it_replaces(synchronous: bool):
    server = Server(*HELD)
    edited = UserMessage(id="e2", content="two, else")
    await run(remote(server), synchronous, edited)
    (asked,) = server.asked
    assert asked["checkpoint_id"] == "2"
    assert [each["id"] for each in asked["input"]["messages"]] == ["e2"]


@both_ways
async def test_a_new_message_is_added_to_what_the_server_holds(synchronous: bool):
    server = Server(*HELD)
    sent = [UserMessage(id="u2", content="two"), UserMessage(id="u3", content="three")]
    await run(remote(server), synchronous, *sent)
    (asked,) = server.asked
    assert [each["id"] for each in asked["input"]["messages"]] == ["u3"]
